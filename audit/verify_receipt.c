/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_receipt.c - does the receipt say what the log says?
 *
 * It is read first, so that a session that ends meanwhile has no receipt yet;
 * what is wrong with it is told last.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/base64.h"
#include "audit/dsse.h"
#include "audit/receipt.h"
#include "audit/statement.h"
#include "audit/verify_state.h"
#include "base/cleanup.h"

#define FILE_MAX ((size_t)BASE64_LEN(DSSE_BODY_MAX) + 64 * 1024)

/* The first one counts. */
#define SAY(v, what, ...)                                                 \
	do {                                                              \
		if (!(v)->receipt.fault.fault)                            \
			verify_say_in(&(v)->receipt.fault, what,          \
				      (v)->receipt.name, 1, __VA_ARGS__); \
	} while (0)

static int open_it(struct verify *v)
{
	const char *path = v->options->receipt;
	const char *slash = path ? strrchr(path, '/') : NULL;
	int fd;

	snprintf(v->receipt.name, sizeof(v->receipt.name), "%.60s",
		 slash	? slash + 1
		 : path ? path
			: LOG_DIR_RECEIPT);
	if (!path)
		return verify_open_file(v->dirfd, LOG_DIR_RECEIPT);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int read_it(struct verify *v, int fd)
{
	char *data = malloc(FILE_MAX + 1);
	size_t len = 0;
	ssize_t n = 0;

	if (!data)
		return -ENOMEM;
	while (len <= FILE_MAX) {
		n = read(fd, data + len, FILE_MAX + 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (n < 0) {
		n = -errno;
		free(data);
		return (int)n;
	}
	v->receipt.data = data;
	v->receipt.len = len;
	return 0;
}

int verify_open_receipt(struct verify *v)
{
	AUTO_FD int fd = open_it(v);
	int r;

	if (fd == -ENOENT && !v->options->receipt)
		return 0;
	if (fd < 0 && v->options->receipt)
		return fd;
	r = fd < 0 ? fd : read_it(v, fd);
	if (r == -ENOMEM)
		return r;
	v->receipt.present = true;
	if (r < 0)
		verify_say_in(&v->receipt.fault, VERIFY_UNREADABLE,
			      v->receipt.name, 0, "the receipt: %s",
			      verify_open_why(r));
	return 0;
}

/* The hint says that another key signed? */
static bool hints_at_another(const struct verify *v)
{
	json_t *envelope = json_loadb(v->receipt.data, v->receipt.len,
				      JSON_REJECT_DUPLICATES, NULL);
	const char *hint = json_string_value(json_object_get(
		json_array_get(json_object_get(envelope, "signatures"), 0),
		"keyid"));
	char want[VKEY_NAME_MAX + 16];
	bool another;

	snprintf(want, sizeof(want), "%s+%08" PRIx32, v->key.name, v->key.id);
	another = hint && strcmp(hint, want) != 0;
	json_decref(envelope);
	return another;
}

static void say_unopened(struct verify *v, int r)
{
	if (r == -EKEYREJECTED && hints_at_another(v))
		SAY(v, VERIFY_WRONG_KEY,
		    "the receipt is not signed with the key of the session");
	else if (r == -EKEYREJECTED)
		SAY(v, VERIFY_SIGNATURE,
		    "the signature of the receipt is wrong");
	else if (r == -ENOMSG)
		SAY(v, VERIFY_RECEIPT, "it is signed, but no receipt of ours");
	else
		SAY(v, VERIFY_RECEIPT, "this is no receipt");
}

static const json_t *predicate(const struct verify *v)
{
	return json_object_get(v->receipt.statement, "predicate");
}

static const char *text_of(const json_t *object, const char *a, const char *b)
{
	const json_t *value = json_object_get(object, a);

	return json_string_value(b ? json_object_get(value, b) : value);
}

static bool number_is(const json_t *object, const char *a, const char *b,
		      uint64_t want)
{
	const json_t *value = json_object_get(json_object_get(object, a), b);

	return json_is_integer(value) && json_integer_value(value) >= 0 &&
	       (uint64_t)json_integer_value(value) == want;
}

void verify_begin_receipt(struct verify *v)
{
	AUTO_FREE char *body = NULL;
	const char *session;
	size_t len;
	int r;

	if (!v->receipt.data || !v->has_key)
		return;
	r = dsse_open((struct text){ v->receipt.data, v->receipt.len },
		      STATEMENT_MEDIA_TYPE, &v->key, &body, &len);
	if (!r)
		r = statement_parse((struct text){ body, len }, RECEIPT_TYPE,
				    &v->receipt.statement);
	if (r < 0) {
		say_unopened(v, r);
		return;
	}
	session = text_of(predicate(v), "session", NULL);
	if (!session || strcmp(session, v->session) != 0)
		SAY(v, VERIFY_OTHER_SESSION,
		    "the receipt of another session, %.60s; this is %.60s",
		    session ? session : "(none)", v->session);
}

/* The digest of the part that was read is in .reader. */
void verify_end_part(struct verify *v)
{
	const char *want =
		v->receipt.statement
			? statement_digest(v->receipt.statement, v->reader.file)
			: NULL;

	if (!v->receipt.statement)
		return;
	if (!want)
		SAY(v, VERIFY_RECEIPT, "it knows nothing of %s",
		    v->reader.file);
	else if (strcmp(want, v->reader.digest) != 0)
		SAY(v, VERIFY_RECEIPT,
		    "%s is not the file whose digest is in the receipt",
		    v->reader.file);
}

static unsigned count_parts(const json_t *statement)
{
	const json_t *list = json_object_get(statement, "subject");
	unsigned parts = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name =
			text_of(json_array_get(list, i), "name", NULL);

		if (strncmp(name, LOG_DIR_RECORDS,
			    sizeof(LOG_DIR_RECORDS) - 1) == 0)
			parts++;
	}
	return parts;
}

/* "sha256:HEX" of the first record, and the digest of a subject. */
static void check_digest(struct verify *v, const char *subject,
			 const char *recorded)
{
	const char *digest = statement_digest(v->receipt.statement, subject);
	size_t skip = sizeof("sha256:") - 1;

	if (!digest && !*recorded)
		return;
	if (!digest || strncmp(recorded, "sha256:", skip) != 0 ||
	    strcmp(recorded + skip, digest) != 0)
		SAY(v, VERIFY_RECEIPT,
		    "its %s is not the one in the first record", subject);
}

static void check_verdicts(struct verify *v)
{
	const json_t *said = json_object_get(predicate(v), "verdicts");
	size_t words = 0;

	if (!number_is(predicate(v), "verdicts", "allowed",
		       v->result->allowed) ||
	    !number_is(predicate(v), "verdicts", "refused", v->result->refused))
		SAY(v, VERIFY_RECEIPT,
		    "it counts other verdicts than the %" PRIu64
		    " allowed and %" PRIu64 " refused of the records",
		    v->result->allowed, v->result->refused);
	for (size_t i = 0; i < REASON_COUNT; i++) {
		const char *word = reason_word((enum reason)i);

		words += v->by_reason[i] != 0;
		if (v->by_reason[i] &&
		    !number_is(said, "by_reason", word, v->by_reason[i]))
			SAY(v, VERIFY_RECEIPT,
			    "it counts other refusals of reason %s than the "
			    "%" PRIu64 " of the records",
			    word, v->by_reason[i]);
	}
	if (json_object_size(json_object_get(said, "by_reason")) != words)
		SAY(v, VERIFY_RECEIPT,
		    "it counts refusals of a reason that no record has");
}

static void check_sums(struct verify *v)
{
	const json_t *p = predicate(v);
	char root[BASE64_LEN(MERKLE_HASH) + 1] = "";
	const char *said = text_of(p, "log", "root");
	struct merkle_hash hash;
	struct vkey key;
	const char *vkey = text_of(p, "key", "vkey");

	merkle_root(&v->tree, &hash);
	base64_encode(hash.byte, MERKLE_HASH, root);
	if (!number_is(p, "log", "records", v->tree.size))
		SAY(v, VERIFY_RECEIPT,
		    "it is about another number of records than %" PRIu64,
		    v->tree.size);
	if (!said || strcmp(said, root) != 0)
		SAY(v, VERIFY_RECEIPT, "its root is not that of the records");
	if (!number_is(p, "log", "parts", v->reader.parts) ||
	    count_parts(v->receipt.statement) != v->reader.parts)
		SAY(v, VERIFY_RECEIPT, "it is about other parts than these %u",
		    v->reader.parts);
	if (!vkey || vkey_parse((struct text){ vkey, strlen(vkey) }, &key) ||
	    memcmp(key.public, v->key.public, VKEY_LEN) != 0 ||
	    strcmp(key.name, v->key.name) != 0)
		SAY(v, VERIFY_RECEIPT, "it names another key of the session");
	check_verdicts(v);
	check_digest(v, "policy", v->result->policy);
	check_digest(v, "ruleset", v->result->ruleset);
}

/* It counts more than there are. */
static void check_length(struct verify *v)
{
	const json_t *said = json_object_get(
		json_object_get(predicate(v), "log"), "records");

	if (!v->tree_bad && json_is_integer(said) &&
	    json_integer_value(said) > (json_int_t)v->tree.size)
		verify_say(v, VERIFY_TRUNCATED, v->reader.file,
			   v->before_at.line,
			   "the log ends after %" PRIu64
			   " records; the receipt is of %" JSON_INTEGER_FORMAT,
			   v->tree.size, json_integer_value(said));
}

/* Those that it quotes are the first and the last in the file. */
static void check_quoted(struct verify *v)
{
	const struct verify_result *result = v->result;
	const char *first = text_of(predicate(v), "log", "first_checkpoint");
	const char *last = text_of(predicate(v), "log", "last_checkpoint");
	struct checkpoint quoted;

	if (!first || !last)
		SAY(v, VERIFY_RECEIPT, "it quotes no checkpoints");
	else if (checkpoint_open((struct text){ last, strlen(last) }, &v->key,
				 &quoted))
		SAY(v, VERIFY_RECEIPT,
		    "the last checkpoint that it quotes is not signed");
	else if (quoted.size > v->notes.last.size)
		verify_say(v, VERIFY_TRUNCATED, LOG_DIR_CHECKPOINTS,
			   v->notes.line,
			   "the last checkpoints are missing: they end at "
			   "%" PRIu64 " records, the receipt quotes one of "
			   "%" PRIu64,
			   v->notes.last.size, quoted.size);
	else if (strcmp(last, result->last_checkpoint) != 0)
		SAY(v, VERIFY_RECEIPT,
		    "the last checkpoint that it quotes is another");
	else if (strcmp(first, result->first_checkpoint) != 0)
		SAY(v, VERIFY_RECEIPT,
		    "the first checkpoint that it quotes is another");
	else if (!number_is(predicate(v), "log", "checkpoints",
			    result->checkpoints))
		SAY(v, VERIFY_RECEIPT,
		    "it counts other checkpoints than these %" PRIu64,
		    result->checkpoints);
}

void verify_end_receipt(struct verify *v)
{
	struct verify_result *result = v->result;
	const struct verify_problem *fault = &v->receipt.fault;

	if (!v->receipt.present)
		return;
	if (!v->has_key) {
		if (fault->fault == VERIFY_UNREADABLE)
			verify_say(v, fault->fault, fault->file, fault->line,
				   "%s", fault->text);
		return;
	}
	if (v->receipt.statement && fault->fault != VERIFY_OTHER_SESSION) {
		check_length(v);
		if (!result->closed)
			SAY(v, VERIFY_RECEIPT,
			    "there is a receipt, but the log does not end with "
			    "the record that closes the session");
		/* What a wrong line leads to needs no telling. */
		if (!v->tree_bad && !v->root.set)
			check_sums(v);
		if (!result->problems && !fault->fault)
			check_quoted(v);
	}
	if (fault->fault &&
	    (!result->problems ||
	     (!v->receipt.statement || fault->fault == VERIFY_OTHER_SESSION)))
		verify_say(v, fault->fault, fault->file, fault->line, "%s",
			   fault->text);
	if (v->receipt.statement && !result->problems) {
		result->has_receipt = true;
		result->receipt = json_incref((json_t *)predicate(v));
	}
}

void verify_close_receipt(struct verify *v)
{
	json_decref(v->receipt.statement);
	free(v->receipt.data);
}
