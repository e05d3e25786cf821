/* SPDX-License-Identifier: Apache-2.0
 *
 * test_record_ech.c - a record says that its ClientHello was encrypted, and
 * keeps saying it on the way to the log. And the fuzzer's seeds are messages of
 * today: it would look at nothing but their first bytes otherwise.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/record.h"
#include "base/cleanup.h"

static const struct record_context context = { .session = "s",
					       .sandbox_name = "run",
					       .boundary = "netns" };

static void test_ech(void **state)
{
	static uint8_t message[RECORD_MESSAGE_MAX];
	static char text[RECORD_MESSAGE_MAX], line[RECORD_LINE_MAX];

	(void)state;
	for (int ech = 0; ech < 2; ech++) {
		const struct audit_event event = {
			.kind = EVENT_FLOW_CLOSE,
			.flow = 3,
			.verdict = { .allow = true },
			.door = DOOR_SOCKS,
			.host = "a.example",
			.protocol = "tls",
			.sni = "a.example",
			.ech = ech,
		};
		struct audit_event back;
		uint64_t seq;
		size_t len = record_encode(&event, 1, message);

		assert_int_equal(record_decode(message, len, &back, &seq, text),
				 0);
		assert_int_equal(back.ech, ech);
		len = record_format(&back, seq, &context, line, sizeof(line));
		assert_true(len && len < sizeof(line));
		line[len] = '\0';
		assert_int_equal(strstr(line, "\"ech\":true") != NULL, ech);
		assert_null(strstr(line, "\"ech\":false"));
	}
}

/* One spelling: of the values of its byte only 0 and 1. */
static void test_one_spelling(void **state)
{
	static uint8_t message[2][RECORD_MESSAGE_MAX];
	static char text[RECORD_MESSAGE_MAX];
	struct audit_event event = { .kind = EVENT_FLOW_CLOSE };
	size_t len = record_encode(&event, 1, message[0]), at = 0;
	uint64_t seq;

	(void)state;
	event.ech = true;
	assert_int_equal(record_encode(&event, 1, message[1]), len);
	while (message[0][at] == message[1][at])
		at++;
	for (unsigned v = 0; v < 256; v++) {
		message[0][at] = (uint8_t)v;
		assert_int_equal(
			record_decode(message[0], len, &event, &seq, text) == 0,
			v < 2);
	}
}

static void try_seed(const char *folder, const char *name)
{
	static uint8_t data[RECORD_MESSAGE_MAX];
	static char text[RECORD_MESSAGE_MAX];
	struct audit_event event;
	char path[4096];
	uint64_t seq;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	AUTO_FILE FILE *file = fopen(path, "rb");
	assert_non_null(file);
	len = fread(data, 1, sizeof(data), file);
	if ((record_decode(data, len, &event, &seq, text) == 0) !=
	    (strncmp(name, "bad_", 4) != 0))
		fail_msg("%s is not what it is called", path);
}

static void test_seeds(void **state)
{
	DIR *dir = opendir(SEEDS);
	const struct dirent *entry;
	unsigned seeds = 0;

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' ||
		    strncmp(entry->d_name, "pack", 4) == 0 ||
		    strcmp(entry->d_name, "ack") == 0)
			continue;
		try_seed(SEEDS, entry->d_name);
		seeds++;
	}
	closedir(dir);
	assert_true(seeds > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ech),
		cmocka_unit_test(test_one_spelling),
		cmocka_unit_test(test_seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
