/* SPDX-License-Identifier: Apache-2.0
 *
 * retry.h - a question once more, by TCP: its answer is too long for UDP, or
 * somebody guesses at it. c-ares on our loop.
 */
#ifndef DNS_RETRY_H
#define DNS_RETRY_H

#include "base/addr.h"

struct event_base;
struct retry;

/* @question is copied. @done is called once, from the loop: with what answers
 * it, good during the call, or NULL. It takes as long as it takes: who does not
 * want to wait frees it. 0 or -errno. */
int retry_new(struct event_base *base, const struct endpoint *server,
	      const void *question, size_t len,
	      void (*done)(void *arg, const void *answer, size_t len),
	      void *arg, struct retry **ret_retry);
/* Also from within @done. NULL is fine. */
void retry_free(struct retry *retry);

#endif
