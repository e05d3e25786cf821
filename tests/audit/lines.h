/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.h - an event of each kind, its line, and what that line says.
 */
#ifndef TESTS_AUDIT_LINES_H
#define TESTS_AUDIT_LINES_H

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/record.h"
#include "base/cleanup.h"

#define LINE_SEQUENCE 41

static const struct record_context lines_context = {
	.session = "0123456789abcdef",
	.sandbox_name = "run",
	.policy_digest = "0123456789abcdef0123456789abcdef"
			 "0123456789abcdef0123456789abcdef",
	.policy_name = "coding-agent",
	.boundary = "netns",
};

/* Formats and parses; checks what must hold for each line. */
static inline json_t *line_in(const struct record_context *context,
			      const struct audit_event *event, char *buf)
{
	size_t len = record_format(event, LINE_SEQUENCE, context, buf,
				   RECORD_LINE_MAX);
	json_error_t error;
	json_t *line;

	assert_in_range(len, 1, RECORD_LINE_MAX - 1);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)buf[i];

		assert_true(c >= 0x20 && c != 0x7f);
	}
	line = json_loadb(buf, len, JSON_REJECT_DUPLICATES, &error);
	if (!line)
		fail_msg("%s at %d: %.*s", error.text, error.position, (int)len,
			 buf);
	return line;
}

static inline json_t *line_of(const struct audit_event *event, char *buf)
{
	return line_in(&lines_context, event, buf);
}

static inline json_t *at(json_t *line, const char *path)
{
	AUTO_FREE char *copy = strdup(path);
	char *save = NULL;

	for (char *key = strtok_r(copy, ".", &save); key && line;
	     key = strtok_r(NULL, ".", &save))
		line = json_is_array(line)
			       ? json_array_get(line, (size_t)(*key - '0'))
			       : json_object_get(line, key);
	return line;
}

static inline void assert_int(json_t *line, const char *path, json_int_t want)
{
	json_t *value = at(line, path);

	if (!json_is_integer(value) || json_integer_value(value) != want)
		fail_msg("%s is %lld, not %lld", path,
			 (long long)json_integer_value(value), (long long)want);
}

static inline void assert_str(json_t *line, const char *path, const char *want)
{
	const char *value = json_string_value(at(line, path));

	if (!value || strcmp(value, want) != 0)
		fail_msg("%s is %s, not %s", path, value ? value : "(none)",
			 want);
}

static inline struct audit_event sample(enum event_kind kind, bool allow,
					enum reason reason)
{
	return (struct audit_event){
		.kind = kind,
		.sandbox = 3,
		.flow = 77,
		.time_ms = 1775014138811,
		.verdict = { .allow = allow,
			     .reason = reason,
			     .observed = reason == REASON_OBSERVE
						 ? REASON_NOT_IN_POLICY
						 : REASON_RULE },
		.door = DOOR_CONNECT,
		.rule = "policy.yaml:12",
		.rule_text = "*.example.com",
		.host = "api.example.com",
		.src_ip = ip_v4(0x0a000002),
		.src_port = 40000,
		.dst_ip = ip_v4(0xcb007105),
		.dst_port = 443,
		.protocol = "tls",
		.sni = "api.example.com",
		.detail = "the detail",
	};
}

#endif
