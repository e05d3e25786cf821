/* SPDX-License-Identifier: Apache-2.0
 *
 * explain_rule.h - rules in words, for people. Each returns @buf, always
 * terminated; what does not fit is cut.
 */
#ifndef POLICY_EXPLAIN_RULE_H
#define POLICY_EXPLAIN_RULE_H

#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"

/* "80, 443, 8000-8100"; "any port" for none. */
char *ports_format(const struct port_range *range, size_t n, char *buf,
		   size_t cap);

/* What narrows or widens @rule beside host and ports: "GET, HEAD; /v1/ **;
 * protocol any"; "" if nothing does. */
char *rule_describe(const struct rule *rule, char *buf, size_t cap);

/* "10 MB", "1536 B" */
char *size_format(uint64_t bytes, char *buf, size_t cap);

/* "2027-01-01T00:00:00Z" */
char *time_format(int64_t time_s, char *buf, size_t cap);

#endif
