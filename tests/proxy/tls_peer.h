/* SPDX-License-Identifier: Apache-2.0
 *
 * tls_peer.h - real OpenSSL clients and servers over memory BIOs: what they
 * say comes out as bytes, so that it can be cut, looked at and forged.
 */
#ifndef TESTS_PROXY_TLS_PEER_H
#define TESTS_PROXY_TLS_PEER_H

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <string.h>

#define EARLY_MAX 100000

struct tls_peer {
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *in, *out;
};

static inline void tls_certify(SSL_CTX *ctx)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();

	assert_non_null(key);
	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 9999);
	X509_set_pubkey(cert, key);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static inline int tls_any_name(SSL *ssl, int *alert, void *arg)
{
	(void)ssl;
	(void)alert;
	(void)arg;
	return SSL_TLSEXT_ERR_OK;
}

/* A new connection with the context. */
static inline void tls_begin(struct tls_peer *p, const char *name)
{
	SSL_free(p->ssl);
	p->ssl = SSL_new(p->ctx);
	assert_non_null(p->ssl);
	p->in = BIO_new(BIO_s_mem());
	p->out = BIO_new(BIO_s_mem());
	SSL_set_bio(p->ssl, p->in, p->out);
	if (name)
		SSL_set_tlsext_host_name(p->ssl, name);
	if (SSL_CTX_get_ssl_method(p->ctx) == TLS_server_method())
		SSL_set_accept_state(p->ssl);
	else
		SSL_set_connect_state(p->ssl);
}

static inline void tls_client(struct tls_peer *p, const char *name,
			      const char *groups, int max)
{
	*p = (struct tls_peer){ .ctx = SSL_CTX_new(TLS_client_method()) };
	assert_non_null(p->ctx);
	assert_int_equal(SSL_CTX_set1_groups_list(p->ctx, groups), 1);
	SSL_CTX_set_max_proto_version(p->ctx, max);
	tls_begin(p, name);
}

static inline void tls_server(struct tls_peer *p, const char *groups)
{
	*p = (struct tls_peer){ .ctx = SSL_CTX_new(TLS_server_method()) };
	assert_non_null(p->ctx);
	tls_certify(p->ctx);
	assert_int_equal(SSL_CTX_set1_groups_list(p->ctx, groups), 1);
	SSL_CTX_set_tlsext_servername_callback(p->ctx, tls_any_name);
	SSL_CTX_set_max_early_data(p->ctx, EARLY_MAX);
	SSL_CTX_set_recv_max_early_data(p->ctx, EARLY_MAX);
	SSL_CTX_set_options(p->ctx, SSL_OP_NO_ANTI_REPLAY);
	tls_begin(p, NULL);
}

static inline void tls_end(struct tls_peer *p)
{
	SSL_free(p->ssl);
	SSL_CTX_free(p->ctx);
}

/* What @p has to say now. */
static inline size_t tls_said(struct tls_peer *p, void *buf, size_t cap)
{
	int n = BIO_read(p->out, buf, (int)cap);

	assert_int_equal(BIO_ctrl_pending(p->out), 0);
	return n > 0 ? (size_t)n : 0;
}

static inline void tls_hear(struct tls_peer *p, const void *data, size_t len)
{
	if (len)
		assert_int_equal(BIO_write(p->in, data, (int)len), (int)len);
}

/* Its next step; true once the handshake is over. */
static inline bool tls_step(struct tls_peer *p)
{
	int n = SSL_do_handshake(p->ssl);

	if (n == 1)
		return true;
	assert_int_equal(SSL_get_error(p->ssl, n), SSL_ERROR_WANT_READ);
	return false;
}

/* The same name in all places, one of the same length instead. */
static inline size_t tls_forge(uint8_t *data, size_t len, const char *from,
			       const char *to)
{
	size_t n = strlen(from), count = 0;

	assert_int_equal(n, strlen(to));
	for (size_t i = 0; i + n <= len; i++)
		if (!memcmp(data + i, from, n)) {
			memcpy(data + i, to, n);
			count++;
		}
	return count;
}

static SSL_SESSION *tls_ticket;

static inline int tls_new_session(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	SSL_SESSION_free(tls_ticket);
	tls_ticket = session;
	return 1;
}

/* A whole handshake in memory, after which the client has a ticket that allows
 * early data. */
static inline void tls_get_ticket(struct tls_peer *client,
				  struct tls_peer *server)
{
	uint8_t buf[16384];
	char byte;
	bool done = false;

	SSL_CTX_set_session_cache_mode(client->ctx, SSL_SESS_CACHE_CLIENT);
	SSL_CTX_sess_set_new_cb(client->ctx, tls_new_session);
	for (int i = 0; i < 6; i++) {
		done = tls_step(client);
		tls_hear(server, buf, tls_said(client, buf, sizeof(buf)));
		done &= tls_step(server);
		tls_hear(client, buf, tls_said(server, buf, sizeof(buf)));
	}
	assert_true(done);
	assert_int_equal(SSL_read(client->ssl, &byte, 1), -1);
	assert_non_null(tls_ticket);
	assert_true(SSL_SESSION_get_max_early_data(tls_ticket) > 0);
	/* else it counts as broken, and its ticket too */
	SSL_set_shutdown(client->ssl,
			 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_set_shutdown(server->ssl,
			 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

#endif
