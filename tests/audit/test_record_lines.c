/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of each line are what is hashed and signed, and what others parse:
 * they do not change by accident. record_lines.jsonl has them, with VERSION in
 * place of the program's; `test_record_lines print` writes what is there now.
 */
#include "tests/audit/lines.h"

#include <stdio.h>

#define VERSION "@VERSION@"

static const char *const texts[] = {
	NULL,
	"plain-text.example.com",
	"quo\"te back\\slash",
	"tab\tnew\nline \x1b[2J del\x7f",
	"m\xc3\xbcnchen \xe2\x82\xac \xf0\x9f\x98\x80",
	"\xff\xc2\x9b\xe2\x80\xae bad",
};

/* Event number @i of its kind; false: there are no more. */
static bool make(enum event_kind kind, unsigned i, struct audit_event *ret)
{
	static const enum reason reasons[] = {
		REASON_RULE,	       REASON_OBSERVE,	   REASON_NOT_IN_POLICY,
		REASON_CONNECT_FAILED, REASON_LIMIT_BYTES, REASON_MALFORMED,
	};
	enum reason reason = reasons[i % ARRAY_SIZE(reasons)];
	const char *text = texts[i % ARRAY_SIZE(texts)];

	*ret = sample(kind, reason_info(reason)->allow, reason);
	ret->qtype = (uint16_t)(i * 14 + 1);
	ret->rcode = (uint8_t)(i * 3);
	ret->answers = (uint8_t)(i % 3);
	ret->answer[0] = ip_v4(0xc6120007 + i);
	ip_parse("2001:db8::2", &ret->answer[1]);
	ret->bytes_up = i * UINT64_C(123456789012);
	ret->bytes_down = i;
	ret->duration_ms = i * 1001;
	ret->count = i;
	ret->status = (uint16_t)(i * 100);
	ret->method = i % 2 ? "GET" : text;
	ret->target = i % 3 ? "/a/b?c=d\"e" : text;
	if (i >= ARRAY_SIZE(texts)) {
		ret->host = ret->sni = ret->detail = ret->process = text;
		ret->rule = ret->rule_text = ret->protocol = text;
		ret->dst_port = 0;
		if (kind != EVENT_PACKET)
			ret->dst_ip.len = 0;
		ret->pid = i * 1000;
	}
	return i < 2 * ARRAY_SIZE(texts);
}

/* Calls @take with each line, its LF and a NUL. */
static void each_line(void (*take)(const char *line, size_t len, void *ctx),
		      void *ctx)
{
	static char line[RECORD_LINE_MAX + 2];
	static const struct record_earlier earlier = {
		.checkpoint = "a\nb\n\n\xe2\x80\x94 c\n", .lines = 7
	};
	uint8_t prev[RECORD_HASH] = { 0xab };
	struct record_context context = lines_context;
	struct audit_event event;
	uint64_t sequence = 0;

	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		for (unsigned i = 0; make((enum event_kind)kind, i, &event);
		     i++) {
			size_t len;

			prev[1] = (uint8_t)i;
			context.prev = sequence ? prev : NULL;
			context.earlier = i ? &earlier : NULL;
			context.ruleset_digest = i % 2 ? "00ff" : NULL;
			len = record_format(&event, sequence++, &context, line,
					    RECORD_LINE_MAX);
			assert_true(len > 0);
			strcpy(line + len, "\n");
			take(line, len + 1, ctx);
		}
	}
}

/* @stored with the program's version in it. */
static void put_version(const char *stored, char *to)
{
	const char *at;

	while ((at = strstr(stored, VERSION))) {
		to = mempcpy(to, stored, (size_t)(at - stored));
		to = stpcpy(to, SALLYPORT_VERSION);
		stored = at + strlen(VERSION);
	}
	strcpy(to, stored);
}

static void compare(const char *line, size_t len, void *ctx)
{
	static char stored[RECORD_LINE_MAX], want[RECORD_LINE_MAX];

	(void)len;
	assert_non_null(fgets(stored, sizeof(stored), ctx));
	put_version(stored, want);
	assert_string_equal(line, want);
}

static void test_stored(void **state)
{
	AUTO_FILE FILE *file = fopen(LINES_FILE, "r");

	(void)state;
	assert_non_null(file);
	each_line(compare, file);
	assert_int_equal(fgetc(file), EOF);
}

static void print(const char *line, size_t len, void *ctx)
{
	static const char mine[] = "\"version\":\"" SALLYPORT_VERSION "\"";

	for (const char *at; (at = strstr(line, mine));
	     line = at + strlen(mine))
		fprintf(ctx, "%.*s\"version\":\"" VERSION "\"",
			(int)(at - line), line);
	fputs(line, ctx);
	(void)len;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stored),
	};

	if (argc == 2 && strcmp(argv[1], "print") == 0) {
		each_line(print, stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
