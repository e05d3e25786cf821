/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_rules.h - writing a seccomp program. Build time only.
 *
 * Only the native calls exist. A 32-bit call would not be seen by rules on
 * socket(2), it goes through socketcall(2): such a process is killed.
 *
 * Arguments of type int are compared as 32 bits: the kernel ignores the upper
 * half, so a rule that looked at it could be stepped around (flatpak,
 * CVE-2019-10063).
 */
#ifndef LAUNCH_FILTER_RULES_H
#define LAUNCH_FILTER_RULES_H

#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/isolate.h"

#define INT_MASK 0xffffffffu
#define ARG_INT(arg, value) \
	SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, INT_MASK, (uint32_t)(value))
#define ARG_BITS(arg, mask, value) \
	SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, (uint64_t)(mask), (uint64_t)(value))

/* A whole program each. 0 or -errno; to be released also on failure. */
int filter_write_child(enum isolate_role role, scmp_filter_ctx *ret_ctx);
/* @nest: it may make namespaces of its own, and mount in them. */
int filter_write_sandbox(bool nest, scmp_filter_ctx *ret_ctx);

/* A filter that does @action unless a rule says otherwise. NULL without
 * memory. */
scmp_filter_ctx seccomp_filter_new(uint32_t action);

/* @action for the calls of these names; a name that this architecture does not
 * have is skipped. 0 or -errno. */
int filter_add_list(scmp_filter_ctx ctx, uint32_t action,
		    const char *const *name, size_t n);

/* @action for the call @nr if @arg matches. */
int filter_add(scmp_filter_ctx ctx, uint32_t action, int nr,
	       struct scmp_arg_cmp arg);

#endif
