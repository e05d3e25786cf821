/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_statement.c - a statement of `sallyport prove --receipt`: is it what
 * was signed, and by whom?
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/attacks.h"
#include "audit/base64.h"
#include "audit/dsse.h"
#include "audit/statement.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/print.h"
#include "cmd/prove_statement.h"
#include "cmd/verify.h"

#define FILE_MAX ((off_t)1 << 20)

/* All of a file, with a NUL; NULL if it is none of the kind. */
static char *read_file(const char *path, size_t *ret_len)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	AUTO_FREE char *data = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > FILE_MAX)
		return NULL;
	data = malloc((size_t)st.st_size + 1);
	n = data ? read(fd, data, (size_t)st.st_size) : -1;
	if (n < 0)
		return NULL;
	data[n] = '\0';
	*ret_len = (size_t)n;
	return STEAL(data);
}

/* The statement in an envelope that nobody has looked at yet; or NULL. */
static json_t *peek(const char *data, size_t len)
{
	json_t *envelope = json_loadb(data, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *payload = json_object_get(envelope, "payload");
	const size_t cap = json_string_length(payload) + 1;
	AUTO_FREE char *body = malloc(cap);
	json_t *statement = NULL;
	size_t body_len;

	if (json_is_string(payload) && body &&
	    base64_decode(json_string_value(payload),
			  json_string_length(payload), (uint8_t *)body, cap,
			  &body_len) == 0 &&
	    statement_parse((struct text){ body, body_len },
			    PROVE_STATEMENT_TYPE, &statement) < 0)
		statement = NULL;
	json_decref(envelope);
	return statement;
}

bool verify_is_statement(const char *path)
{
	size_t len;
	AUTO_FREE char *data = path ? read_file(path, &len) : NULL;
	json_t *statement = data ? peek(data, len) : NULL;

	json_decref(statement);
	return statement != NULL;
}

static const char *text_of(const json_t *predicate, const char *a,
			   const char *b)
{
	const json_t *value = json_object_get(predicate, a);
	const char *text =
		json_string_value(b ? json_object_get(value, b) : value);

	return text ? text : "?";
}

/* --- what came of it -------------------------------------------------------
 */

struct statement {
	const char *path;
	json_t *all;
	const json_t *predicate;
	struct vkey key;
	bool known_key;
};

static long long count_of(const struct statement *s, enum attack_result which)
{
	return (long long)json_integer_value(json_object_get(
		json_object_get(s->predicate, "attacks"), attack_word(which)));
}

static void print_statement(const struct statement *s, const char *key_from)
{
	char vkey[VKEY_TEXT_MAX];
	const long long out = count_of(s, ATTACK_GOT_OUT);
	const char *subject = statement_digest(s->all, "sallyport");

	vkey_format(&s->key, vkey);
	print_text(stdout, s->known_key ? TONE_GOOD : TONE_WARNING,
		   "%s: attacks on %s %s, %s\n",
		   s->known_key ? "holds" : "incomplete",
		   text_of(s->predicate, "place", "kind"),
		   text_of(s->predicate, "place", "name"),
		   text_of(s->predicate, "ended", NULL));
	print_text(stdout, out ? TONE_BAD : TONE_PLAIN,
		   "  attacks   %lld held, %lld got out, %lld skipped\n",
		   count_of(s, ATTACK_HELD), out, count_of(s, ATTACK_SKIPPED));
	print_text(stdout, TONE_PLAIN,
		   "  session   none: it is the word of who signed, uid %lld\n",
		   (long long)json_integer_value(
			   json_object_get(s->predicate, "uid")));
	print_text(stdout, TONE_PLAIN, "  program   sha256:%s\n",
		   subject ? subject : "?");
	print_text(stdout, TONE_PLAIN, "  key       %s\n            %s%s\n",
		   vkey,
		   s->known_key ? "which is that of "
				: "which came with it: anybody could have "
				  "made it (--key)",
		   s->known_key ? key_from : "");
}

static void print_json(const struct statement *s)
{
	char vkey[VKEY_TEXT_MAX];
	json_t *all;

	vkey_format(&s->key, vkey);
	all = json_pack("{s:s,s:s,s:s,s:b,s:O}", "verdict",
			s->known_key ? "holds" : "incomplete", "statement",
			s->path, "key", vkey, "known_key", (int)s->known_key,
			"predicate", s->predicate);
	AUTO_FREE char *text =
		all ? json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	json_decref(all);
	if (!text)
		die(EXIT_SALLYPORT, "out of memory");
	puts(text);
}

/* Whose it says that it is, if nobody else is known. */
static int choose_key(const struct verify_command *command, struct statement *s)
{
	const char *vkey = text_of(s->predicate, "key", "vkey");

	s->known_key = command->has_vkey;
	if (s->known_key) {
		s->key = command->vkey;
		return 0;
	}
	return vkey_parse((struct text){ vkey, strlen(vkey) }, &s->key);
}

int verify_statement(const struct verify_command *command)
{
	struct statement s = { .path = command->log };
	AUTO_FREE char *body = NULL;
	size_t len = 0, body_len;
	AUTO_FREE char *data = read_file(command->log, &len);
	int r = -EBADMSG, status;

	s.all = data ? peek(data, len) : NULL;
	s.predicate = json_object_get(s.all, "predicate");
	if (s.all && choose_key(command, &s) == 0)
		r = dsse_open((struct text){ data, len }, STATEMENT_MEDIA_TYPE,
			      &s.key, &body, &body_len);
	if (r == 0) {
		status = s.known_key ? VERIFY_EXIT_HOLDS
				     : VERIFY_EXIT_INCOMPLETE;
		if (command->json && !command->quiet)
			print_json(&s);
		else if (!command->quiet)
			print_statement(&s, command->key_from);
	} else {
		status = VERIFY_EXIT_BROKEN;
		log_err("%s: %s", command->log,
			r == -EKEYREJECTED ? "its signature is not by that key"
					   : "it is no signed statement");
	}
	json_decref(s.all);
	return print_end(status);
}
