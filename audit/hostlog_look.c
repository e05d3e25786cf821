/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_look.c - a session's directory may have been used again (--log DIR):
 * then its log is in an earlier-NNNNNN/ there. The public key beside a log
 * tells whose it is.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "audit/hostlog_look.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/hostlog.h"
#include "base/cleanup.h"
#include "base/hex.h"

#define READ_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

/* Is the log in @dir that of @vkey? */
static bool is_of(int dir, const char *vkey)
{
	char text[VKEY_TEXT_MAX];
	struct vkey found;

	if (key_read_public(dir, LOG_DIR_VKEY, &found) < 0)
		return false;
	vkey_format(&found, text);
	return strcmp(text, vkey) == 0;
}

/* What is in @dir, or was put aside there: takes @dir over. -1 if neither is of
 * @vkey. */
static int find_in(int at, const char *vkey)
{
	AUTO_FD int dir = at;

	if (dir < 0 || is_of(dir, vkey))
		return steal_fd(&dir);
	for (unsigned i = 1; i <= LOG_DIR_PARTS_MAX; i++) {
		char name[LOG_DIR_NAME_MAX];

		snprintf(name, sizeof(name), LOG_DIR_EARLIER, i);
		AUTO_FD int below =
			openat(dir, name,
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (below < 0)
			return -1;
		if (is_of(below, vkey))
			return steal_fd(&below);
	}
	return -1;
}

int hostlog_find_session(int home, const char *session, const char *directory,
			 const char *vkey)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int dir = -1;

	if (*session && *session != '.' && !strchr(session, '/'))
		dir = find_in(openat(home, session, flags | O_NOFOLLOW), vkey);
	return dir < 0 ? find_in(open(directory, flags), vkey) : dir;
}

enum hostlog_trouble hostlog_look_at_receipt(int dir, const char *digest)
{
	AUTO_FD int fd = openat(dir, LOG_DIR_RECEIPT, READ_FLAGS);
	uint8_t sum[MERKLE_HASH];
	char buf[16384], text[80] = "sha256:";
	SHA256_CTX sha;
	ssize_t n;

	/* It gets its name after it was told of. */
	if (fd < 0)
		fd = openat(dir, LOG_DIR_RECEIPT_NEW, READ_FLAGS);
	if (fd < 0)
		return HOSTLOG_RECEIPT_GONE;
	SHA256_Init(&sha);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		SHA256_Update(&sha, buf, (size_t)n);
	SHA256_Final(sum, &sha);
	hex_format(sum, sizeof(sum), text + 7);
	return n == 0 && strcmp(text, digest) == 0 ? HOSTLOG_FINE
						   : HOSTLOG_RECEIPT_OTHER;
}
