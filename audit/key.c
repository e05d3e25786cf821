/* SPDX-License-Identifier: Apache-2.0
 *
 * key.c - the private half of an Ed25519 key, and its files.
 *
 * RFC 8410 leaves one way to write such a key (without the optional public
 * half), so the file has a fixed length and no parser of ASN.1 is near it.
 */
#include "audit/key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "audit/base64.h"
#include "base/cleanup.h"
#include "base/file.h"

#define PEM_BEGIN  "-----BEGIN PRIVATE KEY-----\n"
#define PEM_END	   "\n-----END PRIVATE KEY-----\n"
#define DER_LEN	   (16 + KEY_SEED)
#define PEM_BASE64 BASE64_LEN(DER_LEN)
#define PEM_LEN	   (sizeof(PEM_BEGIN) - 1 + PEM_BASE64 + sizeof(PEM_END) - 1)

/* PrivateKeyInfo { version 0, { id-Ed25519 }, OCTET STRING { OCTET STRING of
 * 32 bytes, which follow } } */
static const uint8_t der_begin[16] = { 0x30, 0x2e, 0x02, 0x01, 0x00, 0x30,
				       0x05, 0x06, 0x03, 0x2b, 0x65, 0x70,
				       0x04, 0x22, 0x04, 0x20 };

struct key {
	struct vkey public;
	uint8_t seed[KEY_SEED];
	EVP_PKEY *pkey;
};

void key_free(struct key *key)
{
	if (!key)
		return;
	EVP_PKEY_free(key->pkey);
	OPENSSL_cleanse(key, sizeof(*key));
	free(key);
}

int key_of_seed(struct text name, const uint8_t *seed, struct key **ret_key)
{
	uint8_t public[VKEY_LEN];
	size_t len = sizeof(public);
	struct key *key;

	if (!vkey_name_ok(name))
		return -EINVAL;
	key = calloc(1, sizeof(*key));
	if (!key)
		return -ENOMEM;
	memcpy(key->seed, seed, KEY_SEED);
	key->pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed,
						 KEY_SEED);
	if (!key->pkey ||
	    EVP_PKEY_get_raw_public_key(key->pkey, public, &len) != 1 ||
	    len != sizeof(public) || vkey_make(name, public, &key->public)) {
		key_free(key);
		return -ENOMEM;
	}
	*ret_key = key;
	return 0;
}

int key_generate(struct text name, struct key **ret_key)
{
	uint8_t seed[KEY_SEED];
	int r;

	/* Up to 256 bytes come whole, or not at all. */
	if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return -errno;
	r = key_of_seed(name, seed, ret_key);
	OPENSSL_cleanse(seed, sizeof(seed));
	return r;
}

int key_under_name(const struct key *key, struct text name,
		   struct key **ret_key)
{
	struct key *named;

	if (!vkey_name_ok(name))
		return -EINVAL;
	named = calloc(1, sizeof(*named));
	if (!named)
		return -ENOMEM;
	/* Two multiplications on the curve less than by its seed. */
	if (vkey_make(name, key->public.public, &named->public) ||
	    EVP_PKEY_up_ref(key->pkey) != 1) {
		free(named);
		return -ENOMEM;
	}
	memcpy(named->seed, key->seed, KEY_SEED);
	named->pkey = key->pkey;
	*ret_key = named;
	return 0;
}

/* No configuration: what the machine's administrator wants of TLS is not for
 * us, and nothing of it can keep a log from being signed. Nor the tables of
 * messages and of old names, which are half of what there is to do. */
int key_warm_up(void)
{
	const uint64_t without = OPENSSL_INIT_NO_LOAD_CONFIG |
				 OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS |
				 OPENSSL_INIT_NO_ADD_ALL_CIPHERS |
				 OPENSSL_INIT_NO_ADD_ALL_DIGESTS;
	static const uint8_t seed[KEY_SEED];
	static const struct text name = { "none", 4 };
	uint8_t signature[VKEY_SIGNATURE];
	struct key *key = NULL;
	int r;

	if (OPENSSL_init_crypto(without, NULL) != 1)
		return -ENOMEM;
	r = key_of_seed(name, seed, &key);
	if (r == 0)
		r = key_sign(key, "", 0, signature);
	key_free(key);
	return r;
}

const struct vkey *key_public(const struct key *key)
{
	return &key->public;
}

int key_sign(const struct key *key, const void *data, size_t len,
	     uint8_t *ret_signature)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t n = VKEY_SIGNATURE;
	int r = -ENOMEM;

	if (ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) == 1 &&
	    EVP_DigestSign(ctx, ret_signature, &n, data, len) == 1 &&
	    n == VKEY_SIGNATURE)
		r = 0;
	EVP_MD_CTX_free(ctx);
	return r;
}

static int write_synced(int fd, const char *data, size_t len)
{
	int r = file_write(fd, data, len);

	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

static int write_new(int dirfd, const char *file, mode_t mode, const char *data,
		     size_t len)
{
	AUTO_FD int fd = openat(dirfd, file,
				O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int r;

	if (fd < 0)
		return -errno;
	r = write_synced(fd, data, len);
	if (r < 0)
		unlinkat(dirfd, file, 0);
	return r;
}

static int format_pem(const struct key *key, char *ret_pem, size_t *ret_len)
{
	uint8_t der[DER_LEN];
	struct out out = { .buf = ret_pem, .cap = PEM_LEN + 1 };

	memcpy(der, der_begin, sizeof(der_begin));
	memcpy(der + sizeof(der_begin), key->seed, KEY_SEED);
	out_text(&out, PEM_BEGIN);
	out_base64(&out, der, sizeof(der));
	out_text(&out, PEM_END);
	OPENSSL_cleanse(der, sizeof(der));
	return out_end(&out, ret_len);
}

int key_write(const struct key *key, int dirfd, const char *file)
{
	char pem[PEM_LEN + 1];
	size_t len;
	int r = format_pem(key, pem, &len);

	if (!r)
		r = write_new(dirfd, file, 0600, pem, len);
	OPENSSL_cleanse(pem, sizeof(pem));
	return r;
}

int key_write_fd(const struct key *key, int fd)
{
	char pem[PEM_LEN + 1];
	size_t len;
	int r = format_pem(key, pem, &len);

	if (!r)
		r = write_synced(fd, pem, len);
	OPENSSL_cleanse(pem, sizeof(pem));
	return r;
}

int key_write_public(const struct key *key, int dirfd, const char *file)
{
	char line[VKEY_TEXT_MAX + 1];
	size_t len;

	vkey_format(&key->public, line);
	len = strlen(line);
	line[len++] = '\n';
	return write_new(dirfd, file, 0644, line, len);
}

/* Reads at most @cap bytes of a file from its beginning. */
static ssize_t read_all(int fd, char *buf, size_t cap)
{
	size_t len = 0;

	while (len < cap) {
		ssize_t n = pread(fd, buf + len, cap - len, (off_t)len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

const char *key_file_fault(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return "it cannot be examined";
	if (!S_ISREG(st.st_mode))
		return "it is not a regular file";
	if (st.st_uid && st.st_uid != geteuid())
		return "it belongs to somebody else";
	if (st.st_mode & 0077)
		return "others than its owner have access to it (chmod 600)";
	return NULL;
}

static int parse_pem(struct text pem, uint8_t *ret_seed)
{
	uint8_t der[DER_LEN];
	int r = -EBADMSG;

	if (text_skip(&pem, PEM_BEGIN) && pem.len > PEM_BASE64 &&
	    !base64_decode_exactly(pem.at, PEM_BASE64, der, sizeof(der)) &&
	    memcmp(der, der_begin, sizeof(der_begin)) == 0) {
		pem.at += PEM_BASE64;
		pem.len -= PEM_BASE64;
		if (text_is(pem, PEM_END)) {
			memcpy(ret_seed, der + sizeof(der_begin), KEY_SEED);
			r = 0;
		}
	}
	OPENSSL_cleanse(der, sizeof(der));
	return r;
}

static int read_pem(int fd, uint8_t *ret_seed, const char **reterr_why)
{
	char pem[PEM_LEN + 1]; /* one more: a longer file shows */
	const char *why = key_file_fault(fd);
	ssize_t n;
	int r;

	if (why) {
		*reterr_why = why;
		return -EPERM;
	}
	n = read_all(fd, pem, sizeof(pem));
	if (n < 0) {
		*reterr_why = "it cannot be read";
		return (int)n;
	}
	r = parse_pem((struct text){ pem, (size_t)n }, ret_seed);
	OPENSSL_cleanse(pem, sizeof(pem));
	if (r < 0)
		*reterr_why = "it is not an Ed25519 key as PEM (PKCS#8)";
	return r;
}

int key_read_fd(int fd, struct text name, struct key **ret_key,
		const char **reterr_why)
{
	uint8_t seed[KEY_SEED];
	int r = read_pem(fd, seed, reterr_why);

	if (r < 0)
		return r;
	r = key_of_seed(name, seed, ret_key);
	OPENSSL_cleanse(seed, sizeof(seed));
	if (r < 0)
		*reterr_why = r == -EINVAL ? "its name may not be used"
					   : "there is no memory";
	return r;
}

int key_read(int dirfd, const char *file, struct text name,
	     struct key **ret_key, const char **reterr_why)
{
	/* A FIFO must not make us wait. */
	AUTO_FD int fd = openat(dirfd, file,
				O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
					O_NOCTTY);
	int r = fd < 0 ? -errno : 0;

	if (!r)
		return key_read_fd(fd, name, ret_key, reterr_why);
	*reterr_why =
		r == -ELOOP ? "it is a symbolic link" : "it cannot be opened";
	return r == -ELOOP ? -EPERM : r;
}

int key_read_public(int dirfd, const char *file, struct vkey *ret_vkey)
{
	AUTO_FD int fd = openat(dirfd, file,
				O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char buf[VKEY_TEXT_MAX + 1];
	struct text text, line;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read_all(fd, buf, sizeof(buf));
	if (n < 0)
		return (int)n;
	text = (struct text){ buf, (size_t)n };
	if (!text_line(&text, &line) || text.len)
		return -EBADMSG;
	return vkey_parse(line, ret_vkey);
}
