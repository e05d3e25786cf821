/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_statement.c - a result, signed by whoever attacked.
 */
#include "cmd/prove_statement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "audit/dsse.h"
#include "audit/key.h"
#include "audit/statement.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/prove.h"
#include "cmd/signing.h"
#include "policy/digest.h"
#include "policy/policy.h"

#define BODY_MAX ((size_t)128 << 10)

void prove_statement_open(struct prove *prove)
{
	if (!prove->statement)
		return;
	prove->statement_fd = open(
		prove->statement,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (prove->statement_fd < 0)
		die(EXIT_SALLYPORT, "%s: %s", prove->statement,
		    strerror(errno));
}

/* --- what it says --------------------------------------------------------- */

static bool digest_program(char hex[DIGEST_HEX])
{
	AUTO_FILE FILE *f = fopen("/proc/self/exe", "re");
	static char buf[65536];
	struct digest digest;
	size_t n;

	digest_begin(&digest);
	while (f && (n = fread(buf, 1, sizeof(buf), f)) > 0)
		digest_add(&digest, buf, n);
	digest_end(&digest, hex);
	return f && !ferror(f);
}

static void put_place(struct json *j, const struct prove *prove)
{
	AUTO_FILE FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	char boot[40] = "";

	json_open(j, "place", '{');
	json_text(j, "kind",
		  prove->docker	 ? "docker"
		  : prove->guard ? "in-container"
				 : "netns");
	json_text(j, "name",
		  prove->container ? prove->container
		  : prove->docker  ? prove->docker
		  : prove->netns   ? prove->netns
				   : "");
	if (f && fscanf(f, "%39s", boot) == 1)
		json_text(j, "boot", boot);
	json_close(j, '}');
}

static void put_now(struct json *j, const char *key)
{
	time_t now = time(NULL);
	char text[40];
	struct tm tm;

	if (gmtime_r(&now, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		json_text(j, key, text);
}

static void put_key(struct json *j, const struct key *key, bool ephemeral)
{
	char vkey[VKEY_TEXT_MAX];

	vkey_format(key_public(key), vkey);
	json_open(j, "key", '{');
	json_text(j, "vkey", vkey);
	json_bool(j, "ephemeral", ephemeral);
	json_close(j, '}');
}

static void put_all(struct json *j, const struct prove *prove,
		    const char *program, const struct key *key, bool ephemeral)
{
	const struct statement_subject subjects[] = {
		{ "sallyport", program },
		{ "policy", policy_digest(prove->policy) },
	};
	struct attacks attacks;
	struct utsname uts;

	prove_attacks(&prove->verdict, &attacks);
	statement_open(j, subjects, ARRAY_SIZE(subjects), PROVE_STATEMENT_TYPE);
	json_open(j, "product", '{');
	json_text(j, "name", "sallyport");
	json_text(j, "version", SALLYPORT_VERSION);
	json_close(j, '}');
	if (uname(&uts) == 0)
		json_text(j, "kernel", uts.release);
	put_place(j, prove);
	json_uint(j, "uid", getuid());
	put_now(j, "ended");
	json_uint(j, "duration_ms", attacks.duration_ms);
	if (*prove->log)
		json_text(j, "log", prove->log);
	attacks_put(j, &attacks);
	put_key(j, key, ephemeral);
	statement_close(j);
}

/* --- signing it ------------------------------------------------------------
 */

static struct key *read_key(const struct prove *prove, bool *ret_ephemeral)
{
	struct signing signing;
	struct key *key = NULL;
	const char *why = "";
	int err;

	signing_open(prove->options->key, true, &signing);
	err = key_read_fd(signing.fd,
			  (struct text){ signing.name, strlen(signing.name) },
			  &key, &why);
	if (err)
		die(EXIT_SALLYPORT, "the key %s: %s", signing.path,
		    *why ? why : strerror(-err));
	*ret_ephemeral = signing.ephemeral;
	signing_close(&signing);
	return key;
}

void prove_statement_write(struct prove *prove)
{
	AUTO_FREE char *body = malloc(BODY_MAX), *line = NULL;
	struct json j = json_of(body, body ? BODY_MAX : 0);
	char program[DIGEST_HEX];
	struct key *key;
	bool ephemeral;
	size_t len;
	int err;

	if (!prove->statement)
		return;
	if (!digest_program(program))
		die(EXIT_SALLYPORT, "this program can't be read: %s",
		    strerror(errno));
	key = read_key(prove, &ephemeral);
	put_all(&j, prove, program, key, ephemeral);
	err = j.full ? -ENOMEM
		     : dsse_sign(STATEMENT_MEDIA_TYPE,
				 (struct text){ body, j.len }, key, &line,
				 &len);
	key_free(key);
	if (err)
		die(EXIT_SALLYPORT, "%s: %s", prove->statement, strerror(-err));
	line[len++] = '\n'; /* in place of the NUL */
	if (write(prove->statement_fd, line, len) != (ssize_t)len ||
	    close(prove->statement_fd) < 0)
		die(EXIT_SALLYPORT, "%s: %s", prove->statement,
		    strerror(errno));
}
