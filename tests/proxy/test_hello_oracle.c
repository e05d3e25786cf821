/* SPDX-License-Identifier: Apache-2.0
 *
 * test_hello_oracle.c - ClientHellos of OpenSSL, damaged at random, shown to us
 * and to an OpenSSL server. Whichever name the server would answer is the name
 * that we judged; or we let none of it pass.
 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "proxy/sniff/tls_hello.h"
#include "tests/proxy/hello.h"

#define NAME   "api.example.com"
#define ROUNDS 30000
#define CAP    8192

static uint64_t state_of_chance = 88172645463325252u;

static uint32_t chance(uint32_t below)
{
	state_of_chance ^= state_of_chance << 13;
	state_of_chance ^= state_of_chance >> 7;
	state_of_chance ^= state_of_chance << 17;
	return (uint32_t)(state_of_chance >> 32) % below;
}

/* --- hellos --------------------------------------------------------------- */

static const struct real {
	const char *sni, *groups;
	int min, max;
	const char *alpn;
	uint64_t options;
	bool ocsp;
} reals[] = {
	{ .sni = NAME },
	{ .sni = NAME, .max = TLS1_2_VERSION },
	{ .sni = NAME, .min = TLS1_3_VERSION },
	{ .sni = NAME, .max = TLS1_1_VERSION },
	{ .sni = NAME, .alpn = "\x02h2\x08http/1.1", .ocsp = true },
	{ .sni = NAME, .groups = "P-521:P-384:P-256:X25519" },
	{ .sni = NAME, .options = SSL_OP_TLSEXT_PADDING },
	{ .sni = NAME, .options = SSL_OP_NO_TICKET },
	{ .sni = NULL },
	{ .sni = "A.Example.COM", .max = TLS1_2_VERSION },
};

static void choose(SSL_CTX *ctx, const struct real *r)
{
	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_min_proto_version(ctx, r->min ? r->min : TLS1_VERSION);
	if (r->max)
		SSL_CTX_set_max_proto_version(ctx, r->max);
	if (r->groups)
		assert_int_equal(SSL_CTX_set1_groups_list(ctx, r->groups), 1);
	SSL_CTX_set_options(ctx, r->options);
}

/* The handshake message, without the record's header. */
static size_t real_hello(const struct real *r, uint8_t *buf)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	BIO *out = BIO_new(BIO_s_mem());
	SSL *ssl;
	int n;

	assert_non_null(ctx);
	choose(ctx, r);
	ssl = SSL_new(ctx);
	assert_non_null(ssl);
	if (r->alpn)
		SSL_set_alpn_protos(ssl, (const uint8_t *)r->alpn,
				    (unsigned)strlen(r->alpn));
	if (r->ocsp)
		SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp);
	if (r->sni)
		SSL_set_tlsext_host_name(ssl, r->sni);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	assert_int_equal(SSL_connect(ssl), -1);
	n = BIO_read(out, buf, CAP);
	assert_in_range(n, 50, 2000);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	memmove(buf, buf + 5, (size_t)n - 5);
	return (size_t)n - 5;
}

/* --- damage --------------------------------------------------------------- */

static void set_u24(uint8_t *at, size_t v)
{
	at[0] = (uint8_t)(v >> 16);
	at[1] = (uint8_t)(v >> 8);
	at[2] = (uint8_t)v;
}

/* Where the extensions' length is; 0: it can't be told. */
static size_t extensions_at(const uint8_t *m, size_t len)
{
	struct wire w = wire_of(m, len);

	wire_take(&w, 4 + 2 + 32);
	wire_take(&w, wire_u8(&w));
	wire_take(&w, wire_u16(&w));
	wire_take(&w, wire_u8(&w));
	return wire_ok(&w) && w.left > 2 ? len - w.left : 0;
}

/* What a change of length would break at once is set right again, mostly. */
static void mend(uint8_t *m, size_t len)
{
	size_t at = extensions_at(m, len);

	if (chance(16))
		set_u24(m + 1, len - 4);
	if (at && chance(16)) {
		m[at] = (uint8_t)((len - at - 2) >> 8);
		m[at + 1] = (uint8_t)(len - at - 2);
	}
}

/* One extension once more, or moved to the front. */
static size_t copy_extension(uint8_t *m, size_t len)
{
	size_t at = extensions_at(m, len), n, skip;
	struct wire w = wire_of(m + at + 2, len - at - 2);
	uint8_t copy[2048];

	if (!at)
		return len;
	for (skip = chance(8); skip && w.left > 4; skip--) {
		wire_u16(&w);
		wire_take(&w, wire_u16(&w));
	}
	if (!wire_ok(&w) || w.left < 4)
		return len;
	n = 4u + (size_t)(w.at[2] << 8 | w.at[3]);
	if (n > w.left || n > sizeof(copy) || len + n > CAP / 2)
		return len;
	memcpy(copy, w.at, n);
	memmove(m + at + 2 + n, m + at + 2, len - at - 2);
	memcpy(m + at + 2, copy, n);
	return len + n;
}

static size_t damage(uint8_t *m, size_t len)
{
	static const uint8_t odd[] = { 0, 1, 2, 0x7f, 0x80, 0xff, '.', 'A' };
	/* Half of the time where the name is. */
	const uint8_t *name = memmem(m, len, "xample", 6);
	size_t near = name ? (size_t)(name - m) : 0;
	size_t at = name && chance(2) && near > 14 ? near - 14 + chance(26)
						   : chance((uint32_t)len);
	size_t n = 1 + chance(8);

	if (at >= len)
		at = len - 1;
	switch (chance(7)) {
	case 0:
		m[at] = (uint8_t)chance(256);
		break;
	case 1:
		m[at] ^= (uint8_t)(1u << chance(8));
		break;
	case 2:
		m[at] = odd[chance(sizeof(odd))];
		break;
	case 3:
		m[at] = (uint8_t)(m[at] + (chance(2) ? 1 : 255));
		break;
	case 4:
		if (at + n >= len || len - n < 50)
			break;
		memmove(m + at, m + at + n, len - at - n);
		len -= n;
		mend(m, len);
		break;
	case 5:
		memmove(m + at + n, m + at, len - at);
		for (size_t i = 0; i < n; i++)
			m[at + i] = odd[chance(sizeof(odd))];
		len += n;
		mend(m, len);
		break;
	default:
		len = copy_extension(m, len);
		mend(m, len);
	}
	return len;
}

/* --- the two readers ------------------------------------------------------ */

static char seen[HOST_MAX + 8];
static bool asked;

/* Called when a server has read the extensions, whatever is in them. */
static int on_name(SSL *ssl, int *alert, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)alert;
	(void)arg;
	asked = true;
	snprintf(seen, sizeof(seen), "%s", name ? name : "");
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void show_server(SSL_CTX *ctx, const uint8_t *data, size_t len)
{
	SSL *ssl = SSL_new(ctx);
	BIO *in = BIO_new(BIO_s_mem());

	assert_non_null(ssl);
	asked = false;
	BIO_write(in, data, (int)len);
	SSL_set_bio(ssl, in, BIO_new(BIO_s_mem()));
	assert_true(SSL_accept(ssl) <= 0);
	SSL_free(ssl);
}

struct count {
	unsigned both, ours, theirs, none;
};

/* What may pass is what the server reads, and its name the same. */
static void compare(SSL_CTX *ctx, const uint8_t *data, size_t len,
		    struct count *count)
{
	struct tls_hello hello;
	enum reason reason = REASON_RULE;
	enum sniff s;
	char name[HOST_MAX + 1] = "";

	s = tls_hello_parse(data, len, &hello, &reason);
	show_server(ctx, data, len);
	if (s != SNIFF_DONE) {
		count->theirs += asked;
		count->none += !asked;
		return;
	}
	if (!asked) {
		count->ours++;
		return;
	}
	count->both++;
	if (*seen && !host_canonical(seen, strlen(seen), name))
		fail_msg("'%s' passed as '%s'", seen, hello.host);
	if (strcmp(name, hello.host) != 0)
		fail_msg("the server sees '%s', we '%s'", seen, hello.host);
}

static void test_damaged(void **state)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	struct count count = { 0 };

	(void)state;
	assert_non_null(ctx);
	choose(ctx, &reals[0]);
	SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
	for (unsigned i = 0; i < ROUNDS; i++) {
		static uint8_t real[ARRAY_SIZE(reals)][CAP], m[CAP];
		static size_t real_len[ARRAY_SIZE(reals)];
		static uint8_t records[6 * CAP];
		size_t which = i % ARRAY_SIZE(reals), len;

		if (i < ARRAY_SIZE(reals))
			real_len[which] =
				real_hello(&reals[which], real[which]);
		len = real_len[which];
		memcpy(m, real[which], len);
		/* As it is at first, then with ever more damage. */
		for (unsigned n = i < 100 ? 0 : 1 + chance(3); n; n--)
			len = damage(m, len);
		len = hello_records(m, len, chance(4) ? 16384 : 1 + chance(99),
				    records, sizeof(records));
		if (i >= 100 && !chance(8))
			records[chance((uint32_t)len)] ^=
				(uint8_t)(1u << chance(8));
		compare(ctx, records, len, &count);
		if (i == 99) /* undamaged, both read them all */
			assert_int_equal(count.both, 100);
	}
	SSL_CTX_free(ctx);
	print_message("both read %u, only we %u, only the server %u, nobody "
		      "%u\n",
		      count.both, count.ours, count.theirs, count.none);
	/* Damage that leaves nothing to compare would prove nothing. */
	assert_true(count.both > ROUNDS / 10 && count.none > ROUNDS / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
