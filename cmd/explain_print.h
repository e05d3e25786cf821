/* SPDX-License-Identifier: Apache-2.0
 *
 * explain_print.h - an explanation, on standard output.
 */
#ifndef CMD_EXPLAIN_PRINT_H
#define CMD_EXPLAIN_PRINT_H

struct explanation;
struct inquiry;
struct policy;

/* For people: what each door makes of @target, which is as it was typed and
 * @inquiry as it was read; what is assumed, and what would allow it. */
void explain_print(const char *target, const struct inquiry *inquiry,
		   const struct explanation *e);

/* The same for programs: one line of JSON. */
void explain_json(const char *target, const struct inquiry *inquiry,
		  const struct policy *policy, const struct explanation *e);

#endif
