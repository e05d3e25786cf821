/* SPDX-License-Identifier: Apache-2.0
 *
 * test_message.c - questions on the wire, with libldns as the second opinion.
 */
#include "tests/dns/message_case.h"

#define WITH_OPT HEADER("\x01\x00", "\x01", "\x00", "\x00", "\x01")

#define L63    \
	"\x3f" \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
	const char *what;
	const char *data;
	size_t len;
	enum dns_parse expect;
} queries[] = {
	{ "plain", BYTES(PLAIN NAME_OK A_IN), DNS_PARSE_OK },
	{ "with OPT",
	  BYTES(WITH_OPT NAME_OK A_IN "\0\x00\x29\x10\x00\0\0\0\0\0\0"),
	  DNS_PARSE_OK },
	{ "with a cookie",
	  BYTES(WITH_OPT NAME_OK A_IN
		"\0\x00\x29\x10\x00\0\0\0\0\0\x0c\0\x0a\0\x08"
		"abcdefgh"),
	  DNS_PARSE_OK },
	{ "option longer than OPT",
	  BYTES(WITH_OPT NAME_OK A_IN
		"\0\x00\x29\x10\x00\0\0\0\0\0\x0c\0\x0a\0\x09"
		"abcdefgh"),
	  DNS_PARSE_FORMERR },
	{ "OPT that is cut off",
	  BYTES(WITH_OPT NAME_OK A_IN "\0\x00\x29\x10\x00\0\0\0\0\0"),
	  DNS_PARSE_FORMERR },
	{ "OPT with an owner",
	  BYTES(WITH_OPT NAME_OK A_IN "\1a\0\x00\x29\x10\x00\0\0\0\0\0\0"),
	  DNS_PARSE_FORMERR },
	{ "EDNS version 1",
	  BYTES(WITH_OPT NAME_OK A_IN "\0\x00\x29\x10\x00\0\1\0\0\0\0"),
	  DNS_PARSE_BADVERS },
	{ "no header", BYTES("\x12\x34\x01\x00\0\1\0\0\0\0\0"),
	  DNS_PARSE_IGNORE },
	{ "nothing", BYTES(""), DNS_PARSE_IGNORE },
	{ "an answer",
	  BYTES(HEADER("\x81\x00", "\x01", "\0", "\0", "\0") NAME_OK A_IN),
	  DNS_PARSE_IGNORE },
	{ "NOTIFY",
	  BYTES(HEADER("\x21\x00", "\x01", "\0", "\0", "\0") NAME_OK A_IN),
	  DNS_PARSE_NOTIMP },
	{ "no question", BYTES(HEADER("\x01\x00", "\0", "\0", "\0", "\0")),
	  DNS_PARSE_FORMERR },
	{ "two questions",
	  BYTES(HEADER("\x01\x00", "\x02", "\0", "\0", "\0")
			NAME_OK A_IN NAME_OK A_IN),
	  DNS_PARSE_FORMERR },
	{ "an answer record",
	  BYTES(HEADER("\x01\x00", "\x01", "\x01", "\0", "\0") NAME_OK A_IN),
	  DNS_PARSE_FORMERR },
	{ "an authority record",
	  BYTES(HEADER("\x01\x00", "\x01", "\0", "\x01", "\0") NAME_OK A_IN),
	  DNS_PARSE_FORMERR },
	{ "bytes past the end", BYTES(PLAIN NAME_OK A_IN "x"),
	  DNS_PARSE_FORMERR },
	{ "name that ends nowhere", BYTES(PLAIN "\x02ok"), DNS_PARSE_FORMERR },
	{ "label that ends nowhere", BYTES(PLAIN "\x09ok"), DNS_PARSE_FORMERR },
	{ "pointer in the question", BYTES(PLAIN "\xc0\x0c" A_IN),
	  DNS_PARSE_FORMERR },
	{ "label type 0x40", BYTES(PLAIN "\x41x\x00" A_IN), DNS_PARSE_FORMERR },
	{ "label type 0x80", BYTES(PLAIN "\x81x\x00" A_IN), DNS_PARSE_FORMERR },
	{ "name of 255 bytes",
	  BYTES(PLAIN L63 L63 L63
		"\x3d"
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		"\0" A_IN),
	  DNS_PARSE_OK },
	{ "name of 256 bytes",
	  BYTES(PLAIN L63 L63 L63
		"\x3e"
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		"\0" A_IN),
	  DNS_PARSE_FORMERR },
	{ "OPT as a question type", BYTES(PLAIN NAME_OK "\x00\x29\x00\x01"),
	  DNS_PARSE_FORMERR },
};

static void test_query_parse(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		struct dns_query query;
		enum dns_parse got = dns_query_parse(queries[i].data,
						     queries[i].len, &query);

		if (got != queries[i].expect)
			fail_msg("%s: %d", queries[i].what, got);
	}
}

static const struct {
	const char *wire;
	size_t len;
	const char *host; /* NULL: none */
	const char *text;
} names[] = {
	{ BYTES("\2ok\3com\0"), "ok.com", "ok.com" },
	{ BYTES("\2oK\3COM\0"), "ok.com", "oK.COM" },
	{ BYTES("\0"), NULL, "." },
	{ BYTES("\7evil\0ok\3com\0"), NULL, "evil\\000ok.com" },
	{ BYTES("\7evil.ok\3com\0"), NULL, "evil\\046ok.com" },
	{ BYTES("\6ok.com\0"), NULL, "ok\\046com" },
	{ BYTES("\3o k\3com\0"), NULL, "o\\032k.com" },
	{ BYTES("\3\x1b[m\3com\0"), NULL, "\\027[m.com" },
	{ BYTES("\2\xc3\xa9\3com\0"), NULL, "\\195\\169.com" },
	{ BYTES("\1*\3com\0"), NULL, "*.com" },
	{ BYTES("\3a\\b\1\"\0"), NULL, "a\\092b.\\034" },
	{ BYTES("\1\n\1\r\0"), NULL, "\\010.\\013" },
	{ BYTES("\3"
		"127\1"
		"0\1"
		"0\1"
		"1\0"),
	  NULL, NULL },
	{ BYTES("\5_http\4_tcp\2ok\3com\0"), "_http._tcp.ok.com",
	  "_http._tcp.ok.com" },
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct wire w = wire_of(names[i].wire, names[i].len);
		struct name name, back;
		char host[HOST_MAX + 1] = "untouched", text[NAME_TEXT_MAX];
		bool ok;

		assert_true(name_read_plain(&w, &name));
		assert_int_equal(w.left, 0);
		ok = name_to_host(&name, host);
		if (ok != (names[i].host != NULL))
			fail_msg("row %zu: %s", i, host);
		assert_string_equal(host, ok ? names[i].host : "untouched");
		if (names[i].text)
			assert_string_equal(name_format(&name, text),
					    names[i].text);
		if (!ok)
			continue;
		name_from_host(host, &back);
		assert_int_equal(back.len, name.len);
	}
}

static void test_longest_text_fits(void **state)
{
	char text[NAME_TEXT_MAX];
	struct name name = { .len = NAME_MAX_WIRE };

	(void)state;
	/* Every label of one odd byte makes the most of it. */
	for (size_t i = 0; i < NAME_MAX_WIRE - 1; i += 2) {
		name.wire[i] = 1;
		name.wire[i + 1] = 0xff;
	}
	name.wire[NAME_MAX_WIRE - 1] = 0;
	assert_true(strlen(name_format(&name, text)) < sizeof(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_query_parse),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_longest_text_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
