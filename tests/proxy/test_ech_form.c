/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ech_form.c - what the extension of an encrypted ClientHello may look
 * like (RFC 9849 section 5).
 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <dirent.h>

#include "proxy/sniff/tls_hello.h"
#include "tests/proxy/ech.h"

static enum sniff parse(uint16_t type, const uint8_t *body, size_t len,
			struct tls_hello *ret)
{
	const struct hello_spec spec = {
		.name = "ok.test",
		.extra = type,
		.body = body,
		.body_len = len,
	};
	enum reason reason = REASON_RULE;
	uint8_t buf[2048];
	size_t hello = hello_make(&spec, buf, sizeof(buf));
	enum sniff s = tls_hello_parse(buf, hello, ret, &reason);

	if (s == SNIFF_BAD)
		assert_int_equal(reason, REASON_MALFORMED);
	return s;
}

static void test_forms(void **state)
{
	static const struct {
		size_t enc, payload, more;
		bool ok;
	} rows[] = {
		{ 32, 208, 0, true }, { 32, 1, 0, true },
		{ 0, 208, 0, true }, /* the second one after a retry */
		{ 32, 0, 0, false },  { 32, 208, 1, false },
	};
	struct tls_hello hello;
	uint8_t body[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = outer(body, sizeof(body), rows[i].enc,
				   rows[i].payload, rows[i].more);

		hello.ech = false;
		assert_int_equal(parse(ECH, body, len, &hello),
				 rows[i].ok ? SNIFF_DONE : SNIFF_BAD);
		assert_int_equal(hello.ech, rows[i].ok);
	}
}

/* Every shorter one, and every other kind: inner (1) with nothing or with
 * something, and kinds that nobody has. */
static void test_malformed(void **state)
{
	struct tls_hello hello;
	uint8_t body[512];
	size_t len = outer(body, sizeof(body), 32, 208, 0);

	(void)state;
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(parse(ECH, body, cut, &hello), SNIFF_BAD);
	for (unsigned kind = 1; kind < 256; kind++) {
		body[0] = (uint8_t)kind;
		assert_int_equal(parse(ECH, body, len, &hello), SNIFF_BAD);
		assert_int_equal(parse(ECH, body, 1, &hello), SNIFF_BAD);
	}
	/* ech_outer_extensions stands inside only. */
	assert_int_equal(parse(0xfd00, body, 3, &hello), SNIFF_BAD);
}

/* Drafts of it had other forms, and are told by their numbers. */
static void test_drafts(void **state)
{
	static const uint16_t types[] = { 0xffce, 0xff02, 0xfe08,
					  0xfe09, 0xfe0a, 0xfe0b,
					  0xfe0c, 0xfe07, 0x0a0a };
	struct tls_hello hello;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		assert_int_equal(
			parse(types[i], (const uint8_t *)"?", 1, &hello),
			SNIFF_DONE);
		assert_int_equal(hello.ech, i < 7);
	}
}

/* The fuzzer's seeds are what they are called, or it begins at nothing. */
static void test_seeds(void **state)
{
	DIR *dir = opendir(SEEDS);
	const struct dirent *entry;
	unsigned good = 0, ech = 0;

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		const char *name = entry->d_name;
		struct tls_hello hello = { .ech = false };
		enum reason reason;
		uint8_t data[SNIFF_MAX];
		char path[4096];
		size_t len;

		if (strncmp(name, "good_", 5) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", SEEDS, name);
		AUTO_FILE FILE *file = fopen(path, "rb");
		assert_non_null(file);
		len = fread(data, 1, sizeof(data), file);
		if (tls_hello_parse(data, len, &hello, &reason) != SNIFF_DONE)
			fail_msg("%s is not good", path);
		assert_int_equal(hello.ech, strstr(name, "ech") != NULL);
		good++;
		ech += hello.ech;
	}
	closedir(dir);
	assert_true(good > 10 && ech >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_drafts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
