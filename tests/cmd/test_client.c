/* SPDX-License-Identifier: Apache-2.0
 *
 * test_client.c - one request over a unix socket, and servers of all kinds.
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

/* For what only has to happen. */
#define WAIT_MS 20000

#define OK "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
static char dir[64], path[96];
static pid_t server;

/* --- servers ------------------------------------------------------------- */

/* Serves one connection in a child. */
typedef void serve_fn(int fd);

static int listen_at(const char *at)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", at);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, 4) < 0)
		return -1;
	return fd;
}

static void serve(serve_fn *fn, uid_t uid)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	server = fork();
	assert_true(server >= 0);
	if (server == 0) {
		int fd, peer;

		alarm(60);
		if (uid && (chown(dir, uid, uid) || setresuid(uid, uid, uid)))
			_exit(1);
		fd = listen_at(path);
		if (fd < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		peer = accept(fd, NULL, NULL);
		if (peer >= 0)
			fn(peer);
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

static void say(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		_exit(2);
}

/* The request up to its empty line. */
static void hear(int fd, char *buf, size_t cap)
{
	size_t len = 0;

	*buf = '\0';
	while (len < cap - 1 && !strstr(buf, "\r\n\r\n")) {
		if (read(fd, buf + len, 1) != 1)
			_exit(3);
		buf[++len] = '\0';
	}
}

static void echo(int fd)
{
	char request[4096], head[128];

	hear(fd, request, sizeof(request) - 8);
	if (strstr(request, "Content-Length: 7\r\n") &&
	    read(fd, request + strlen(request), 7) != 7)
		_exit(4);
	snprintf(head, sizeof(head), OK "Content-Length: %zu\r\n\r\n",
		 strlen(request));
	say(fd, head);
	say(fd, request);
}

static void byte_by_byte(int fd)
{
	static const char text[] = OK "Transfer-Encoding: chunked\r\n\r\n"
				      "3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n";
	char request[4096];

	hear(fd, request, sizeof(request));
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		say(fd, (char[]){ text[i], '\0' });
		usleep(500);
	}
}

static void silence(int fd)
{
	(void)fd;
	pause();
}

static void drip(int fd)
{
	char request[4096];

	hear(fd, request, sizeof(request));
	say(fd, OK "Content-Length: 1000\r\n\r\n");
	for (;;) {
		say(fd, "x");
		usleep(20000);
	}
}

static void cut_off(int fd)
{
	char request[4096];

	hear(fd, request, sizeof(request));
	say(fd, OK "Content-Length: 10\r\n\r\n{\"a\":");
}

/* Without reading the rest of it. */
static void too_large(int fd)
{
	char request[4096];

	hear(fd, request, sizeof(request));
	say(fd, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n"
		"Connection: close\r\n\r\n{}");
}

static void nonsense(int fd)
{
	char request[4096];

	hear(fd, request, sizeof(request));
	say(fd, "220 smtp.example ready\r\n");
	pause();
}

static void endless(int fd)
{
	char request[4096], block[65537];

	memset(block, 'x', sizeof(block) - 1);
	block[sizeof(block) - 1] = '\0';
	hear(fd, request, sizeof(request));
	say(fd, OK "Transfer-Encoding: chunked\r\n\r\n");
	for (;;) {
		say(fd, "10000\r\n");
		say(fd, block);
		say(fd, "\r\n");
	}
}

/* --- tests --------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/sallyport-client-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", dir);
	server = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (server) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	unlink(path);
	return rmdir(dir);
}

static char why[256];

static int ask(struct client_reply *reply, int timeout_ms)
{
	*why = '\0';
	return client_ask(&(struct client_request){ .socket = path,
						    .method = "GET",
						    .path = "/v1/version",
						    .timeout_ms = timeout_ms },
			  reply, why, sizeof(why));
}

static void test_request(void **state)
{
	struct client_reply reply = { 0 };

	(void)state;
	serve(echo, 0);
	assert_int_equal(ask(&reply, WAIT_MS), 0);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body,
			    "GET /v1/version HTTP/1.1\r\n"
			    "Host: localhost\r\n"
			    "User-Agent: sallyport/" SALLYPORT_VERSION "\r\n"
			    "Accept: application/json\r\n"
			    "Connection: close\r\n"
			    "Content-Length: 0\r\n\r\n");
	assert_int_equal(reply.len, strlen(reply.body));
	client_reply_free(&reply);
}

static void test_body(void **state)
{
	struct client_reply reply = { 0 };
	const struct client_request request = { .socket = path,
						.method = "PUT",
						.path = "/v1/x",
						.body = "{\"b\":1}",
						.len = 7,
						.timeout_ms = WAIT_MS };

	(void)state;
	serve(echo, 0);
	assert_int_equal(client_ask(&request, &reply, why, sizeof(why)), 0);
	assert_non_null(strstr(reply.body,
			       "Content-Type: application/json\r\n"
			       "Content-Length: 7\r\n\r\n{\"b\":1}"));
	client_reply_free(&reply);
}

static void test_pieces(void **state)
{
	struct client_reply reply = { 0 };

	(void)state;
	serve(byte_by_byte, 0);
	assert_int_equal(ask(&reply, WAIT_MS), 0);
	assert_string_equal(reply.body, "{\"a\":1}");
	client_reply_free(&reply);
}

static void expect_late(serve_fn *fn)
{
	struct client_reply reply = { 0 };
	struct timespec before, after;
	double ms;

	serve(fn, 0);
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(ask(&reply, 300), -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &after);
	ms = (double)(after.tv_sec - before.tv_sec) * 1e3 +
	     (double)(after.tv_nsec - before.tv_nsec) / 1e6;
	assert_true(ms > 250 && ms < 5000);
	assert_null(reply.body);
}

static void test_silence(void **state)
{
	(void)state;
	expect_late(silence);
}

static void test_drip(void **state)
{
	(void)state;
	expect_late(drip);
}

static void test_cut_off(void **state)
{
	struct client_reply reply = { 0 };

	(void)state;
	serve(cut_off, 0);
	assert_int_equal(ask(&reply, WAIT_MS), -EPIPE);
	assert_string_equal(why, "the connection ended before the answer did");
}

static void test_early_answer(void **state)
{
	const size_t len = (size_t)8 << 20;
	AUTO_FREE char *body = malloc(len);
	struct client_request request = { .socket = path,
					  .method = "POST",
					  .path = "/v1/sandboxes",
					  .body = body,
					  .len = len,
					  .timeout_ms = WAIT_MS };
	struct client_reply reply = { 0 };

	(void)state;
	assert_non_null(body);
	memset(body, ' ', len);
	serve(too_large, 0);
	assert_int_equal(client_ask(&request, &reply, why, sizeof(why)), 0);
	assert_int_equal(reply.status, 413);
	client_reply_free(&reply);
}

static void test_nonsense(void **state)
{
	struct client_reply reply = { 0 };

	(void)state;
	serve(nonsense, 0);
	assert_int_equal(ask(&reply, WAIT_MS), -EBADMSG);
	assert_true(*why);
}

static void test_endless(void **state)
{
	struct client_reply reply = { 0 };

	(void)state;
	serve(endless, 0);
	assert_int_equal(ask(&reply, 20000), -EBADMSG);
	assert_string_equal(why, "an answer that is too long");
}

static void test_nobody(void **state)
{
	struct client_reply reply = { 0 };
	char longer[200];
	int fd;

	(void)state;
	assert_int_equal(ask(&reply, WAIT_MS), -ENOENT);
	fd = listen_at(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(ask(&reply, WAIT_MS), -ECONNREFUSED);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(
		client_ask(&(struct client_request){ .socket = longer,
						     .method = "GET",
						     .path = "/",
						     .timeout_ms = 100 },
			   &reply, why, sizeof(why)),
		-ENAMETOOLONG);
}

/* A user's server must not tell root what to enter. */
static void test_stranger(void **state)
{
	struct client_reply reply = { 0 };

	(void)state;
	assert_int_equal(geteuid(), 0); /* only root can be two users */
	serve(echo, 65534);
	assert_int_equal(ask(&reply, WAIT_MS), -EACCES);
	assert_string_equal(why, "user 65534 answers there, not root");
}

/* --- what needs no server ------------------------------------------------ */

#define with_server(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_server(test_request),	with_server(test_body),
		with_server(test_pieces),	with_server(test_silence),
		with_server(test_drip),		with_server(test_cut_off),
		with_server(test_early_answer), with_server(test_nonsense),
		with_server(test_endless),	with_server(test_nobody),
		with_server(test_stranger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
