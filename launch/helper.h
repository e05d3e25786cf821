/* SPDX-License-Identifier: Apache-2.0
 *
 * helper.h - a child for something that we can't do ourselves, because there is
 * no way back: entering a namespace.
 *
 * It shares our memory, so that starting it costs next to nothing: a fork(2)
 * makes each page that either of us then writes a fault. We must have one
 * thread only.
 */
#ifndef LAUNCH_HELPER_H
#define LAUNCH_HELPER_H

#include <sys/types.h>

/* Runs @work to its end in a child that shares our descriptors too, while we
 * stand still. 0 if it returned 0, else -errno, -ECHILD when it died. */
int helper_run(int (*work)(void *arg), void *arg);

/* A child in a new user namespace, which does nothing at all and ends with
 * helper_end(), or with us. */
struct helper {
	pid_t pid;
	int wait[2]; /* its end, our end */
	void *stack;
};

int helper_hold_userns(struct helper *ret);
void helper_end(struct helper *helper);

#endif
