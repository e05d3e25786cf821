/* SPDX-License-Identifier: Apache-2.0
 *
 * test_exchange_much.c - much data, both ways, against a server in a thread of
 * its own: every byte arrives, and progress is recorded.
 */
#include "exchange_world.h"

#include <pthread.h>

#define VIA "Via: 1.1 sallyport\r\n"

#define MUCH (24u * 1000 * 1000)

/* A server that reads MUCH, then sends as much, checked byte by byte. */
static void *much_server(void *arg)
{
	static const char go[] =
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	int fd = *(int *)arg;
	char buf[30000];
	size_t got = 0;
	ssize_t n;

	while (got < MUCH && (n = recv(fd, buf, sizeof(buf), 0)) > 0)
		for (ssize_t i = 0; i < n; i++, got++)
			if (buf[i] != (char)(got * 7 >> 8))
				return NULL;
	if (got != MUCH || send(fd, go, strlen(go), 0) < 0)
		return NULL;
	for (size_t at = 0; at < MUCH; at += 24000) {
		n = snprintf(buf, sizeof(buf), "5dc0;x\r\n"); /* 24000 */
		for (size_t i = 0; i < 24000; i++)
			buf[n++] = (char)((at + i) * 5 >> 8);
		memcpy(buf + n, "\r\n", 2);
		for (ssize_t sent = 0, m; sent < n + 2; sent += m)
			if ((m = send(fd, buf + sent, (size_t)(n + 2 - sent),
				      MSG_NOSIGNAL)) <= 0)
				return NULL;
	}
	return send(fd, "0\r\n\r\n", 5, MSG_NOSIGNAL) == 5 ? arg : NULL;
}

static void send_much(void)
{
	static char buf[48000];
	size_t at = 0;

	while (at < MUCH) {
		size_t n = MUCH - at < sizeof(buf) ? MUCH - at : sizeof(buf);
		ssize_t sent;

		for (size_t i = 0; i < n; i++)
			buf[i] = (char)((at + i) * 7 >> 8);
		sent = send(place.client, buf, n, MSG_DONTWAIT);
		if (sent > 0)
			at += (size_t)sent;
		event_base_loop(place.w->base, EVLOOP_NONBLOCK);
	}
}

/* The chunks of what comes, decoded here by hand. */
static void receive_much(void)
{
	static char buf[MUCH + MUCH / 4];
	size_t len = 0, got = 0;
	char *at, *end;

	while (len < 5 || memcmp(buf + len - 5, "0\r\n\r\n", 5) != 0) {
		ssize_t n = recv(place.client, buf + len, sizeof(buf) - len,
				 MSG_DONTWAIT);

		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		if (n > 0)
			len += (size_t)n;
		event_base_loop(place.w->base, EVLOOP_NONBLOCK);
	}
	at = memmem(buf, len, "\r\n\r\n", 4);
	assert_non_null(at);
	at += 4;
	for (size_t n; (n = strtoul(at, &end, 16)) > 0; at += n + 2) {
		assert_memory_equal(end, "\r\n", 2);
		at = end + 2;
		for (size_t i = 0; i < n; i++, got++)
			if (at[i] != (char)(got * 5 >> 8))
				fail_msg("byte %zu differs", got);
	}
	assert_int_equal(got, MUCH);
}

/* Both ways through 64 KiB buffers, with progress recorded each 10 MB. */
static void test_much(void **state)
{
	struct world *w = place_open();
	unsigned progress = 0;
	char text[128], head[256];
	pthread_t thread;
	void *result;
	int origin;

	(void)state;
	snprintf(text, sizeof(text),
		 "PUT http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"
		 "Content-Length: %u\r\n\r\n",
		 MUCH);
	ask(text);
	origin = origin_expect(w);
	snprintf(head, sizeof(head),
		 "PUT / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: %u\r\n" VIA
		 "Connection: close\r\n\r\n",
		 MUCH);
	assert_sent_up(origin, head);
	assert_int_equal(pthread_create(&thread, NULL, much_server, &origin),
			 0);
	send_much();
	receive_much();
	pthread_join(thread, &result);
	assert_non_null(result);
	close(origin);
	turn_for(w, 20);
	for (size_t i = 0; i < w->notes; i++)
		progress += w->note[i].kind == EVENT_FLOW_PROGRESS;
	assert_int_equal(progress, 4);
	assert_int_equal(note_find(w, EVENT_FLOW_CLOSE)->up,
			 MUCH + strlen(head));
	assert_false(place.closed);
	place_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_much),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
