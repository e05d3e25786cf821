/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tls_hello.c - the name in a hello, as a server would find it.
 */
#include "tests/proxy/tls_hello_case.h"

static void assert_hello(const uint8_t *data, size_t len, const char *host)
{
	struct tls_hello hello;
	enum reason reason;

	assert_int_equal(parse(data, len, &hello, &reason), SNIFF_DONE);
	assert_string_equal(hello.host, host);
}

/* What OpenSSL sends first when it connects with these settings. */
struct real {
	int min, max;
	const char *sni;
	const char *alpn; /* wire format */
	const char *groups;
	bool ocsp, no_ticket;
	uint64_t options;
};

static const struct real reals[] = {
	{ .sni = NAME },
	{ .sni = NULL },
	{ .sni = NAME, .max = TLS1_2_VERSION },
	{ .sni = NAME, .min = TLS1_3_VERSION },
	{ .sni = NAME, .alpn = "\x02h2\x08http/1.1" },
	{ .sni = NAME, .alpn = "\x08http/1.1", .max = TLS1_2_VERSION },
	{ .sni = NAME, .groups = "P-521:P-384:P-256:X25519" },
	{ .sni = NAME, .ocsp = true },
	{ .sni = NAME, .no_ticket = true, .max = TLS1_2_VERSION },
	{ .sni = NAME, .options = SSL_OP_TLSEXT_PADDING },
	{ .sni = NAME, .options = SSL_OP_NO_ENCRYPT_THEN_MAC },
	{ .sni = NAME, .options = SSL_OP_ENABLE_MIDDLEBOX_COMPAT },
	{ .sni = "API.Example.COM" },
	{ .sni = "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.test" },
};

static size_t real_hello(const struct real *r, uint8_t *buf, size_t cap)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl;
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	int n;

	assert_non_null(ctx);
	if (r->min)
		SSL_CTX_set_min_proto_version(ctx, r->min);
	if (r->max)
		SSL_CTX_set_max_proto_version(ctx, r->max);
	if (r->groups)
		assert_int_equal(SSL_CTX_set1_groups_list(ctx, r->groups), 1);
	SSL_CTX_set_options(ctx, r->options);
	if (r->no_ticket)
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	ssl = SSL_new(ctx);
	assert_non_null(ssl);
	if (r->alpn)
		SSL_set_alpn_protos(ssl, (const uint8_t *)r->alpn,
				    (unsigned)strlen(r->alpn));
	if (r->ocsp)
		SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp);
	if (r->sni)
		SSL_set_tlsext_host_name(ssl, r->sni);
	SSL_set_bio(ssl, in, out);
	assert_int_equal(SSL_connect(ssl), -1);
	n = BIO_read(out, buf, (int)cap);
	assert_in_range(n, 50, (int)cap - 1);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return (size_t)n;
}

static const char *lower(const char *name, char buf[HOST_MAX + 1])
{
	assert_true(!name || host_canonical(name, strlen(name), buf));
	return name ? buf : "";
}

/* Whole, and fed byte by byte: MORE until the last one, then the name. */
static void test_real(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reals); i++) {
		uint8_t buf[4096];
		char want[HOST_MAX + 1];
		size_t len = real_hello(&reals[i], buf, sizeof(buf) - 6);
		enum reason reason;

		lower(reals[i].sni, want);
		for (size_t n = 0; n < len; n++)
			assert_int_equal(parse(buf, n, NULL, &reason),
					 SNIFF_MORE);
		assert_hello(buf, len, reals[i].sni ? want : "");
		/* middlebox compatibility: CCS, then early data */
		memcpy(buf + len, "\x14\x03\x03\x00\x01\x01", 6);
		assert_hello(buf, len + 6, reals[i].sni ? want : "");
	}
}

/* One hello in two records, cut at every offset, and fed byte by byte. */
static void test_real_split(void **state)
{
	uint8_t buf[4096], cut[8192];
	size_t len = real_hello(&reals[0], buf, sizeof(buf)) - 5;
	const uint8_t *message = buf + 5;
	enum reason reason;

	(void)state;
	for (size_t at = 1; at < len; at++) {
		size_t n = hello_records(message, at, at, cut, sizeof(cut));

		assert_int_equal(parse(cut, n, NULL, &reason), SNIFF_MORE);
		n += hello_records(message + at, len - at, len, cut + n,
				   sizeof(cut) - n);
		assert_int_equal(parse(cut, n - 1, NULL, &reason), SNIFF_MORE);
		assert_hello(cut, n, NAME);
	}
	for (size_t size = 1; size < 20; size++) {
		size_t n = hello_records(message, len, size, cut, sizeof(cut));

		for (size_t fed = 0; fed < n; fed++)
			assert_int_equal(parse(cut, fed, NULL, &reason),
					 SNIFF_MORE);
		assert_hello(cut, n, NAME);
	}
}

/* What a real server takes for a hello, we must not take for anything else:
 * an OpenSSL server reads the same bytes and tells which name it saw. */
static char seen[HOST_MAX + 8];

static int on_name(SSL *ssl, int *alert, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)alert;
	(void)arg;
	snprintf(seen, sizeof(seen), "%s", name ? name : "(none)");
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static const char *server_sees(const uint8_t *data, size_t len)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	SSL *ssl;
	BIO *in = BIO_new(BIO_s_mem());

	assert_non_null(ctx);
	SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
	ssl = SSL_new(ctx);
	assert_non_null(ssl);
	*seen = '\0';
	BIO_write(in, data, (int)len);
	SSL_set_bio(ssl, in, BIO_new(BIO_s_mem()));
	assert_int_equal(SSL_accept(ssl), -1);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return seen;
}

static void test_same_as_server(void **state)
{
	uint8_t buf[4096], trick[8192];
	size_t len = real_hello(&reals[0], buf, sizeof(buf));
	size_t n;

	(void)state;
	assert_string_equal(server_sees(buf, len), NAME);
	n = hello_records(buf + 5, len - 5, 1, trick, sizeof(trick));
	assert_string_equal(server_sees(trick, n), NAME);
	assert_hello(trick, n, NAME);

	/* A record with nothing in it, or a warning, in front. */
	memcpy(trick, "\x16\x03\x01\x00\x00", 5);
	memcpy(trick + 5, buf, len);
	assert_string_equal(server_sees(trick, len + 5), NAME);
	assert_bad(trick, len + 5, REASON_MALFORMED);
	memcpy(trick, "\x15\x03\x01\x00\x02\x01\x5a", 7);
	memcpy(trick + 7, buf, len);
	assert_bad(trick, len + 7, REASON_PROTOCOL);
	assert_int_equal(sniff_protocol(trick, 7), PROTOCOL_TLS);
}

static const struct {
	const char *what;
	struct hello_spec spec;
	const char *host; /* NULL: malformed */
} names[] = {
	{ "plain", { .name = NAME }, NAME },
	{ "none", { 0 }, "" },
	{ "padding before", { .name = NAME, .padding = 1500 }, NAME },
	{ "much padding", { .name = NAME, .padding = 16000 }, NAME },
	{ "upper case", { .name = "API.EXAMPLE.COM" }, NAME },
	{ "underscore", { .name = "a_b.test" }, "a_b.test" },
	{ "trailing dot", { .name = NAME "." }, NULL },
	{ "NUL", { .name = "evil.test\0.ok.test", .name_len = 18 }, NULL },
	{ "ESC", { .name = "a\x1b[2Jb.test" }, NULL },
	{ "UTF-8", { .name = "\xc3\xa4.test" }, NULL },
	{ "IPv4", { .name = "192.0.2.1" }, NULL },
	{ "number", { .name = "2130706433" }, NULL },
	{ "IPv6", { .name = "::1" }, NULL },
	{ "brackets", { .name = "[a.test]" }, NULL },
	{ "space", { .name = "a b.test" }, NULL },
	{ "two names", { .name = NAME, .names = 2 }, NULL },
	{ "two extensions", { .name = NAME, .repeat = 2 }, NULL },
	{ "other duplicate",
	  { .name = NAME, .padding = 1, .extra = 21 },
	  NULL },
	{ "name type", { .name = NAME, .name_type = 1 }, NULL },
	{ "trailing", { .name = NAME, .trailing = 1 }, NULL },
	{ "trailing, no name", { .trailing = 3 }, NULL },
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint8_t buf[32768];
		size_t len = hello_make(&names[i].spec, buf, sizeof(buf));
		struct tls_hello hello;
		enum reason reason;
		enum sniff s = parse(buf, len, &hello, &reason);

		print_message("%s\n", names[i].what);
		assert_int_not_equal(len, 0);
		assert_int_equal(s, names[i].host ? SNIFF_DONE : SNIFF_BAD);
		if (names[i].host)
			assert_string_equal(hello.host, names[i].host);
		else
			assert_int_equal(reason, REASON_MALFORMED);
	}
}

/* 254 octets and more are no name, 253 are. */
static void test_long_name(void **state)
{
	char name[300];
	uint8_t buf[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	for (size_t n = 240; n < sizeof(name); n++) {
		const struct hello_spec spec = { .name = name, .name_len = n };
		size_t len = hello_make(&spec, buf, sizeof(buf));
		enum reason reason;

		assert_int_equal(parse(buf, len, NULL, &reason),
				 n <= HOST_MAX && name[n - 1] != '.'
					 ? SNIFF_DONE
					 : SNIFF_BAD);
	}
}

/* An empty list or name is no name; half a list is malformed. */
static void test_empty_name(void **state)
{
	static const struct {
		uint8_t ext[9];
		size_t len;
		bool ok;
	} rows[] = {
		{ { 0, 0, 0, 0 }, 4, true },
		{ { 0, 0, 0, 2, 0, 0 }, 6, true },
		{ { 0, 0, 0, 5, 0, 3, 0, 0, 0 }, 9, true },
		{ { 0, 0, 0, 1, 0 }, 5, false },
		{ { 0, 0, 0, 3, 0, 1, 0 }, 7, false },
		{ { 0, 0, 0, 5, 0, 3, 0, 0, 1 }, 9, false },
		{ { 0, 0, 0, 5, 0, 2, 0, 0, 0 }, 9, false },
		{ { 0, 0, 0, 6, 0 }, 5, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct hello_spec none = { 0 };
		uint8_t m[128], buf[256];
		size_t len = hello_message(&none, m, sizeof(m));

		m[len - 1] = (uint8_t)rows[i].len;
		memcpy(m + len, rows[i].ext, rows[i].len);
		len += rows[i].len;
		m[3] = (uint8_t)(len - 4);
		len = hello_records(m, len, 16384, buf, sizeof(buf));
		if (rows[i].ok)
			assert_hello(buf, len, "");
		else
			assert_bad(buf, len, REASON_MALFORMED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real),
		cmocka_unit_test(test_real_split),
		cmocka_unit_test(test_same_as_server),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_empty_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
