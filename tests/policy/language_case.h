/* SPDX-License-Identifier: Apache-2.0
 *
 * language_case.h - what a policy decides, row by row.
 */
#ifndef TESTS_POLICY_LANGUAGE_CASE_H
#define TESTS_POLICY_LANGUAGE_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "tests/policy/build_helper.h"

/* A row says what it asks for; the rest is nothing. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define V   "version: 1\n"
#define NOW 1767225600 /* 2026-01-01T00:00:00Z */

struct ask {
	const char *host, *address;
	uint16_t port;
	enum door door;
	const char *method, *path;
	int64_t now_s;
};

struct row {
	struct ask ask;
	bool allow;
	enum reason reason;
	enum reason observed;
	int line; /* of the rule that decided; 0: none */
};

static inline struct verdict decide(const struct policy *policy,
				    const struct ask *ask)
{
	struct question q = { .host = ask->host,
			      .port = ask->port,
			      .door = ask->door,
			      .method = ask->method,
			      .path = ask->path,
			      .now_s = ask->now_s ? ask->now_s : NOW };

	if (ask->address)
		q.address = ip_of(ask->address);
	return policy_decide(policy, &q);
}

static inline int line_of(const struct rule *rule)
{
	const char *colon = rule ? strrchr(rule_origin(rule), ':') : NULL;

	return colon ? (int)strtol(colon + 1, NULL, 10) : 0;
}

static inline void check_rows(const char *yaml, const struct row *row, size_t n)
{
	struct policy *policy = build_yaml(yaml);

	for (size_t i = 0; i < n; i++) {
		struct verdict v = decide(policy, &row[i].ask);

		if (v.allow != row[i].allow || v.reason != row[i].reason ||
		    v.observed != row[i].observed ||
		    line_of(v.rule) != row[i].line)
			fail_msg("row %zu (%s:%u): %s %s, observed %s, line %d",
				 i, row[i].ask.host ? row[i].ask.host : "-",
				 row[i].ask.port, v.allow ? "allow" : "deny",
				 reason_word(v.reason), reason_word(v.observed),
				 line_of(v.rule));
	}
	policy_unref(policy);
}

#define ROWS(yaml, ...)                                            \
	do {                                                       \
		static const struct row rows_[] = { __VA_ARGS__ }; \
		check_rows(yaml, rows_, ARRAY_SIZE(rows_));        \
	} while (0)

static inline const struct rule *rule_for(const struct policy *policy,
					  const char *host, uint16_t port)
{
	struct ask ask = { host, NULL, port };

	return decide(policy, &ask).rule;
}

/* --- files that extend each other ---------------------------------------- */

struct file {
	enum bundle_kind kind;
	const char *path, *text;
};

static inline int build_files(const struct file *file,
			      struct policy **ret_policy,
			      struct policy_error *err)
{
	struct bundle bundle = { 0 };
	int ret = 0;

	for (; file->path && ret == 0; file++)
		ret = bundle_add(&bundle, file->kind, file->path, file->text,
				 strlen(file->text));
	if (ret == 0)
		ret = policy_build(bundle.data, bundle.len, ret_policy, err);
	bundle_free(&bundle);
	return ret;
}

#endif
