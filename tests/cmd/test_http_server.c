/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests, answers that come later, and limits, by a socket pair's worth of
 * server: its loop and its client are one process.
 */
#include <errno.h>
#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/http_server.h"

#define WAITING_MAX 8

struct world {
	struct event_base *base;
	struct http_server *server;
	struct sockaddr_un at;
	socklen_t len;
	struct http_request *waiting[WAITING_MAX];
	size_t n;
	bool later; /* answers are given by the test */
};

static void answer(struct http_request *request)
{
	const char *path = http_request_path(request);
	size_t len;
	char text[64];
	int n;

	http_request_body(request, &len);
	n = snprintf(text, sizeof(text), "%s %s %zu %u",
		     http_request_method(request), path, len,
		     http_request_peer(request)->uid);
	http_reply(request, strcmp(path, "/no") == 0 ? 404 : 200, "text/plain",
		   text, (size_t)n);
}

static void on_request(void *arg, struct http_request *request)
{
	struct world *w = arg;

	if (!w->later) {
		answer(request);
		return;
	}
	assert_true(w->n < WAITING_MAX);
	w->waiting[w->n++] = request;
}

static unsigned for_root;

static struct world *world(unsigned seconds, unsigned connections)
{
	const struct http_limits limits = { .header_bytes = 1024,
					    .body_bytes = 4096,
					    .held_bytes = 10000,
					    .seconds = seconds,
					    .connections = connections,
					    .user_connections = connections,
					    .root_connections = for_root };
	static unsigned count;
	struct world *w = calloc(1, sizeof(*w));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	w->at.sun_family = AF_UNIX;
	w->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			     (size_t)snprintf(w->at.sun_path + 1, 64,
					      "sallyport-http-%d-%u", getpid(),
					      count++));
	assert_int_equal(bind(fd, (struct sockaddr *)&w->at, w->len), 0);
	assert_int_equal(listen(fd, 16), 0);
	w->base = event_base_new();
	assert_int_equal(http_server_open(w->base, fd, &limits, on_request, w,
					  &w->server),
			 0);
	return w;
}

static void end(struct world *w)
{
	http_server_close(w->server);
	event_base_free(w->base);
	free(w);
}

static void turn(struct world *w, unsigned ms)
{
	const struct timeval limit = { .tv_sec = ms / 1000,
				       .tv_usec = ms % 1000 * 1000 };

	event_base_loopexit(w->base, &limit);
	event_base_dispatch(w->base);
}

static int ask(struct world *w, const char *text)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&w->at, w->len), 0);
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL),
			 strlen(text));
	return fd;
}

/* What came, or "" after an end; NULL: nothing yet. */
static const char *got(int fd)
{
	static char text[4096];
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN ? NULL : "";
	text[n] = '\0';
	return text;
}

/* All that comes until it has @last; the machine may have others to serve. */
static const char *awaited(struct world *w, int fd, const char *last)
{
	static char all[8192];
	const char *text;

	*all = '\0';
	for (int i = 0; i < 1000 && !strstr(all, last); i++) {
		text = got(fd);
		if (text)
			strncat(all, text, sizeof(all) - strlen(all) - 1);
		if (!strstr(all, last))
			turn(w, 5);
	}
	return all;
}

/* Until one of them was cut off, and a moment longer. How many were. */
static int count_cut(struct world *w, const int *fd, size_t n)
{
	int cut = 0;

	for (int i = 0; i < 1000 && !cut; i++) {
		turn(w, 5);
		for (size_t j = 0; j < n; j++)
			cut += got(fd[j]) != NULL;
	}
	turn(w, 50);
	cut = 0;
	for (size_t j = 0; j < n; j++)
		cut += got(fd[j]) != NULL;
	return cut;
}

static void test_answers(void **state)
{
	struct world *w = world(5, 4);
	char want[64];

	(void)state;
	AUTO_FD int a = ask(w, "POST /x?y=z HTTP/1.1\r\nContent-Length: 3\r\n"
			       "\r\nabcGET /no HTTP/1.1\r\n\r\n");
	const char *text = awaited(w, a, "GET /no 0");
	assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
	snprintf(want, sizeof(want), "\r\n\r\nPOST /x 3 %u", getuid());
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, "HTTP/1.1 404 "));
	assert_non_null(strstr(text, "GET /no 0"));
	end(w);
}

static void test_later(void **state)
{
	struct world *w = world(1, 4);

	(void)state;
	w->later = true;
	AUTO_FD int a =
		ask(w, "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
	AUTO_FD int b = ask(w, "GET /c HTTP/1.1\r\n\r\n");
	int gone = ask(w, "GET /d HTTP/1.1\r\n\r\n");
	/* Whoever answers may take longer than who asks. */
	turn(w, 1500);
	assert_int_equal(w->n, 3);
	assert_null(got(a));
	assert_null(got(b));
	close(gone);
	for (size_t i = 0; i < 3; i++)
		answer(w->waiting[i]);
	turn(w, 100);
	assert_non_null(strstr(awaited(w, a, "GET /a"), "GET /a"));
	assert_non_null(strstr(awaited(w, b, "GET /c"), "GET /c"));
	/* The second of the first connection. */
	for (int i = 0; i < 1000 && w->n < 4; i++)
		turn(w, 5);
	assert_int_equal(w->n, 4);
	struct http_request *last = w->waiting[3];
	http_server_close(w->server);
	w->server = NULL;
	answer(last);
	assert_string_equal(got(a), "");
	end(w);
}

static void test_limits(void **state)
{
	struct world *w = world(3, 2);
	char body[3000];

	(void)state;
	/* Two are served at a time; the third waits its turn. */
	AUTO_FD int a = ask(w, "GET /a HTTP/1.1\r\n");
	AUTO_FD int b = ask(w, "GET /b HTTP/1.1\r\n");
	AUTO_FD int c = ask(w, "GET /c HTTP/1.1\r\nConnection: close\r\n\r\n");
	turn(w, 500);
	assert_null(got(a));
	assert_null(got(c));
	turn(w, 3000);
	assert_string_equal(got(a), "");
	assert_string_equal(got(b), "");
	assert_non_null(strstr(awaited(w, c, "GET /c"), "GET /c"));
	/* Each body is short enough, all together are not. */
	memset(body, 'x', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	AUTO_FD int d =
		ask(w, "POST /d HTTP/1.1\r\nContent-Length: 4096\r\n\r\n");
	AUTO_FD int e =
		ask(w, "POST /e HTTP/1.1\r\nContent-Length: 9000\r\n\r\n");
	turn(w, 100);
	assert_null(got(d));
	assert_non_null(strstr(awaited(w, e, " 413 "), " 413 "));
	end(w);
}

static void test_held(void **state)
{
	struct world *w = world(5, 8);
	char body[3000];
	int fd[4];

	(void)state;
	memset(body, 'x', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = ask(w, "POST /d HTTP/1.1\r\nContent-Length: 4096\r\n"
			       "\r\n");
		send(fd[i], body, sizeof(body) - 1, MSG_NOSIGNAL);
		turn(w, 50);
	}
	assert_int_equal(count_cut(w, fd, ARRAY_SIZE(fd)), 1);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	turn(w, 500);
	/* They are gone: there is room again. */
	AUTO_FD int a = ask(w, "GET /a HTTP/1.1\r\n\r\n");
	turn(w, 100);
	assert_non_null(strstr(awaited(w, a, "GET /a"), "GET /a"));
	end(w);
}

/* However many users there are, root gets in. */
static void test_for_root(void **state)
{
	static const char hello[] = "GET / HTTP/1.1\r\n\r\n";
	int fd[4];
	struct world *w;

	(void)state;
	for_root = 1;
	w = world(5, 4);
	for_root = 0;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(seteuid(61001 + (uid_t)i), 0);
		fd[i] = ask(w, "GET / HT");
		assert_int_equal(seteuid(0), 0);
		turn(w, 50);
	}
	assert_int_equal(count_cut(w, fd, 4), 1);
	turn(w, 300);
	AUTO_FD int root = ask(w, hello);
	const char *text = awaited(w, root, "\r\n\r\n");
	assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
	for (int i = 0; i < 4; i++)
		close_fd(&fd[i]);
	end(w);
}

static int lowest_free(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void test_many(void **state)
{
	struct world *w = world(5, 4);

	(void)state;
	for (int i = 0; i < 200; i++) {
		AUTO_FD int a = ask(w, i % 3 ? "GET /a HTTP/1.1\r\n\r\n" : "x");

		if (i % 3 == 1) {
			assert_non_null(
				strstr(awaited(w, a, "GET /a"), "GET /a"));
		}
	}
	turn(w, 500);
	for (int i = 0; i < 1000 && lowest_free() >= 16; i++)
		turn(w, 5);
	assert_true(lowest_free() < 16);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers), cmocka_unit_test(test_later),
		cmocka_unit_test(test_limits),	cmocka_unit_test(test_held),
		cmocka_unit_test(test_many),	cmocka_unit_test(test_for_root),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
