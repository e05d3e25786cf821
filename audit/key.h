/* SPDX-License-Identifier: Apache-2.0
 *
 * key.h - the private half: an Ed25519 key that signs checkpoints and receipts.
 *
 * The file is what "openssl genpkey -algorithm ed25519" writes and openssl
 * reads: PKCS#8 as PEM (RFC 8410), and nothing else is accepted. It holds no
 * name; that is in the public file (vkey.h) beside it.
 *
 * OpenSSL's providers start with the first key, not before.
 */
#ifndef AUDIT_KEY_H
#define AUDIT_KEY_H

#include "audit/vkey.h"

#define KEY_SEED 32

struct key;

/* A new key. Returns 0 and a key the caller owns; -EINVAL of a bad @name (see
 * vkey_name_ok()); -ENOMEM; what getrandom(2) says. */
int key_generate(struct text name, struct key **ret_key);
/* The key that RFC 8032 makes of KEY_SEED bytes. */
int key_of_seed(struct text name, const uint8_t *seed, struct key **ret_key);
/* The same key under another name, and so with another id: a session signs as
 * "NAME/SESSION". Returns as key_generate(). */
int key_under_name(const struct key *key, struct text name,
		   struct key **ret_key);
/* Does what takes a while with the first key of a process, which from then on
 * goes by no configuration file of OpenSSL's. 0 or -ENOMEM. */
int key_warm_up(void);
/* Wipes it. NULL is fine. */
void key_free(struct key *key);

/* The public half; @key owns it. */
const struct vkey *key_public(const struct key *key);

/* Fills VKEY_SIGNATURE bytes. Returns 0 or -ENOMEM. */
int key_sign(const struct key *key, const void *data, size_t len,
	     uint8_t *ret_signature);

/* Writes a new @file below @dirfd and syncs it: the private half with mode
 * 0600, the public one, a line, with 0644. Returns 0; -EEXIST, nothing is ever
 * overwritten; what open, write or fsync say: then there is no @file. */
int key_write(const struct key *key, int dirfd, const char *file);
/* The same into an open file without anything in it, whose mode is the
 * caller's business. */
int key_write_fd(const struct key *key, int fd);
int key_write_public(const struct key *key, int dirfd, const char *file);

/* Reads the private half from @file below @dirfd, which must be a regular file
 * (not a link to one) of ours or root's that only its owner may read or write.
 *
 * Returns 0 and a key the caller owns; -EPERM if the file is not such, -EBADMSG
 * if no key is in it, -EINVAL of a bad @name; what open and read say.
 * *@reterr_why is a sentence about it for people, never NULL after an error. */
int key_read(int dirfd, const char *file, struct text name,
	     struct key **ret_key, const char **reterr_why);
/* What is wrong with an open file of that kind, without reading it: a sentence,
 * or NULL. */
const char *key_file_fault(int fd);
/* The same from an open file, which stays open and is read from offset 0. */
int key_read_fd(int fd, struct text name, struct key **ret_key,
		const char **reterr_why);

/* Reads the public half. Returns 0; -EBADMSG; what open and read say. */
int key_read_public(int dirfd, const char *file, struct vkey *ret_vkey);

#endif
