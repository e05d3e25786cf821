/* SPDX-License-Identifier: Apache-2.0
 *
 * test_client_reply.c - replies taken apart, and what needs no server.
 */
#include "cmd/client.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/options.h"

/* --- what needs no server ------------------------------------------------ */

static void test_reply_ends_once(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
				   "\r\n{}";
	struct client_reply reply = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(text) - 2; i++)
		assert_int_equal(client_reply_read(&reply, text + i, 1),
				 SNIFF_MORE);
	assert_int_equal(client_reply_read(&reply, "}", 1), SNIFF_DONE);
	assert_string_equal(reply.body, "{}");
	client_reply_free(&reply);
}

static void test_reply_refused(void **state)
{
	static const char *const bad[] = {
		/* Whose end can be read in two ways, or in none. */
		"HTTP/1.1 200 OK\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n"
		"\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
		"Transfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}x",
		"HTTP/1.1 200 OK\r\nContent-Length: 16777217\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/2 200 OK\r\n",
		"HTTP/1.1 99 x\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 2\n\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct client_reply reply = { 0 };

		if (client_reply_read(&reply, bad[i], strlen(bad[i])) !=
		    SNIFF_BAD)
			fail_msg("taken: %s", bad[i]);
		assert_non_null(reply.error);
		client_reply_free(&reply);
	}
}

static void test_names(void **state)
{
	static const char *const good[] = { "a",     "a9",	   "dev-1",
					    "x.y_z", "0123456789", NULL };
	static const char *const bad[] = {
		"",	    "-a",   "_a",   ".",   "..",  "a/b",
		"a b",	    "a?b",  "a%2f", "a#b", "a\n", "a\r",
		"\xc3\xa4", "../x", "a:b",  "A",   "aB",  NULL,
	};
	char name[66];

	(void)state;
	for (size_t i = 0; good[i]; i++)
		assert_true(client_name(good[i]));
	for (size_t i = 0; bad[i]; i++)
		assert_false(client_name(bad[i]));
	memset(name, 'a', sizeof(name));
	name[63] = '\0';
	assert_true(client_name(name));
	name[63] = 'a';
	name[64] = '\0';
	assert_false(client_name(name));
}

static void test_publish(void **state)
{
	static const struct {
		const char *text, *ip;
		uint16_t port, inside;
	} good[] = {
		{ "8080:80", "127.0.0.1", 8080, 80 },
		{ "127.0.0.1:1:65535", "127.0.0.1", 1, 65535 },
		{ "0.0.0.0:8080:80", "0.0.0.0", 8080, 80 },
		{ "[::1]:8080:80", "::1", 8080, 80 },
	};
	static const char *const bad[] = {
		"",	     "80",	     ":80",	   "80:",
		"0:80",	     "80:0",	     "65536:80",   "80:65536",
		"::1:80:80", "[::1]:80",     "a:80:80",	   "1.2.3.4:80:80:80",
		"80:80x",    "80:00000080x", " 80:80",

		"-1:80",     "1.2.3:80:1",   "[::1:80:80", "localhost:80:80",
	};
	struct publish_option got;
	char ip[IP_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(options_publish(good[i].text, &got));
		assert_string_equal(ip_format(&got.at.ip, ip), good[i].ip);
		assert_int_equal(got.at.port, good[i].port);
		assert_int_equal(got.port, good[i].inside);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (options_publish(bad[i], &got))
			fail_msg("taken: %s", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reply_ends_once),
		cmocka_unit_test(test_reply_refused),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_publish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
