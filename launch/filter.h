/* SPDX-License-Identifier: Apache-2.0
 *
 * filter.h - putting a seccomp program into force. What the programs say is
 * written in filter_children.c and filter_sandbox.c; libseccomp turns it into
 * BPF when sallyport is built (filter_main.c), not in every session.
 */
#ifndef LAUNCH_FILTER_H
#define LAUNCH_FILTER_H

#include "launch/isolate.h"

/* Stands for the pid of the process itself until filter_apply(). */
#define FILTER_PID 0x7f5a11feu

/* Installs the role's filter for good. 0 or -errno. */
int filter_apply(enum isolate_role role);

#endif
