/* SPDX-License-Identifier: Apache-2.0
 *
 * test_retry_early.c - early data, which stands between two hellos.
 */
#include "tests/proxy/retry_case.h"

/* Early data behind the first hello: taken, or refused by a retry, after which
 * the client's second hello comes behind it. More than we hold, too. */
static void check_early(enum way way, size_t much, bool retry)
{
	static uint8_t data[EARLY_MAX], got[EARLY_MAX];
	uint8_t flight[8192];
	struct line l;
	size_t n, len = 0;
	int status = SSL_READ_EARLY_DATA_ERROR;

	line_world(&l, way);
	tls_client(&l.client, NAME, "X25519:P-256", TLS1_3_VERSION);
	tls_server(&l.server, "X25519:P-256");
	tls_get_ticket(&l.client, &l.server);
	if (retry)
		SSL_CTX_set1_groups_list(l.server.ctx, "P-256");
	tls_begin(&l.client, NAME);
	tls_begin(&l.server, NULL);
	assert_int_equal(SSL_set_session(l.client.ssl, tls_ticket), 1);
	/* OpenSSL 3.0 does not skip full records before a second hello. */
	SSL_set_max_send_fragment(l.client.ssl, 8192);
	line_dial(&l, way);

	memset(data, 'e', sizeof(data));
	for (size_t at = 0; at < much; at += n)
		assert_int_equal(SSL_write_early_data(l.client.ssl, data + at,
						      much - at, &n),
				 1);
	for (int64_t end = now_ms() + HEAR_MS;
	     !(l.client_done && l.server_done) && now_ms() < end;) {
		client_turn(&l, SIZE_MAX);
		turn(l.w);
		if (l.server_fd < 0) {
			l.server_fd =
				accept4(l.w->origin, NULL, NULL, SOCK_CLOEXEC);
			continue;
		}
		bring(&l.server, l.server_fd, &l.server_end);
		for (n = 1; n && status != SSL_READ_EARLY_DATA_FINISH;) {
			status = SSL_read_early_data(l.server.ssl, got + len,
						     sizeof(got) - len, &n);
			if (status == SSL_READ_EARLY_DATA_ERROR)
				break;
			len += n;
		}
		if (status == SSL_READ_EARLY_DATA_FINISH)
			l.server_done = step_or_alert(&l.server);
		n = tls_said(&l.server, flight, sizeof(flight));
		send_cut(&l, l.server_fd, flight, n, SIZE_MAX);
	}
	assert_true(l.client_done && l.server_done);
	assert_int_equal(SSL_get_early_data_status(l.client.ssl),
			 retry ? SSL_EARLY_DATA_REJECTED
			       : SSL_EARLY_DATA_ACCEPTED);
	assert_int_equal(len, retry ? 0 : much);
	assert_memory_equal(got, data, len);
	check_talk(&l);
	SSL_SESSION_free(STEAL(tls_ticket));
	line_end(&l);
}

static void test_early_data(void **state)
{
	static const size_t much[] = { 5, 20000, 60000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(much); i++)
		for (int retry = 0; retry < 2; retry++) {
			print_message("%zu %d\n", much[i], retry);
			check_early(TRANSPARENT_443, much[i], retry);
			check_early(BY_CONNECT, much[i], retry);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_early_data),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
