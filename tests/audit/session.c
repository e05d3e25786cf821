/* SPDX-License-Identifier: Apache-2.0
 *
 * session.c - writes the log of a session that never was, with the project's
 * own modules, and signs what tests/audit/damage.py makes of it.
 *
 *	session make DIR [WORD=VALUE]...
 *	session checkpoint NAME SEED SIZE ROOT_HEX	a note on stdout
 *	session dsse NAME SEED TYPE <BODY		an envelope on stdout
 *
 * Words of make: earlier (a directory: what was there before), session, name,
 *seed (a number: the key), records, parts, every (records to a checkpoint),
 *close, receipt, hostile, backwards (0, 1).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/base64.h"
#include "audit/checkpoint.h"
#include "audit/dsse.h"
#include "audit/log_dir.h"
#include "audit/receipt.h"
#include "audit/record.h"
#include "audit/statement.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "policy/digest.h"

#define POLICY_HEX \
	"1111111111111111111111111111111111111111111111111111111111111111"
#define RULESET_HEX \
	"2222222222222222222222222222222222222222222222222222222222222222"
#define PARTS_MAX 16
#define FIRST_MS  UINT64_C(1795300000000)

static const char *session = "20261121T120000Z-0123456789";
static const char *name = "box.example";
static unsigned seed = 1, records = 300, parts = 3, every = 64;
static unsigned closes = 1, receipt = 1, hostile, backwards;

static struct key *key;
static unsigned allowed, refused;
static struct record_earlier earlier = { .checkpoint = "", .receipt = true };
static bool has_earlier;
static struct merkle tree;
static struct merkle_hash before;
static FILE *log_file, *notes;
static struct digest part_sha;
static char part_hex[PARTS_MAX + 1][DIGEST_HEX];
static unsigned part = 1;
static char first_note[CHECKPOINT_NOTE_MAX], last_note[CHECKPOINT_NOTE_MAX];
static unsigned note_count;

static void must(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "session: %s\n", what);
		exit(1);
	}
}

static struct key *key_of(const char *key_name, unsigned number)
{
	uint8_t bytes[KEY_SEED] = { 'k', (uint8_t)(number >> 8),
				    (uint8_t)number };
	struct key *made;

	must(!key_of_seed((struct text){ key_name, strlen(key_name) }, bytes,
			  &made),
	     "key");
	return made;
}

static void sign_here(void)
{
	struct checkpoint checkpoint = { .size = tree.size };
	size_t len;

	snprintf(checkpoint.origin, sizeof(checkpoint.origin), "%s",
		 key_public(key)->name);
	merkle_root(&tree, &checkpoint.root);
	must(!checkpoint_sign(&checkpoint, key, last_note, sizeof(last_note),
			      &len),
	     "sign");
	if (!*first_note)
		memcpy(first_note, last_note, sizeof(first_note));
	fputs(last_note, notes);
	note_count++;
}

static struct audit_event event_of(unsigned i)
{
	static char host[64];
	struct audit_event event = { .kind = EVENT_FLOW_OPEN,
				     .flow = i + 1,
				     .time_ms = FIRST_MS + i * 10,
				     .verdict = { .allow = i % 3 != 0,
						  .reason = REASON_RULE },
				     .door = DOOR_COUNT,
				     .host = host,
				     .dst_port = 443,
				     .protocol = "tls" };

	snprintf(host, sizeof(host), "h%u.test", i);
	if (!event.verdict.allow)
		event.verdict.reason = REASON_NOT_IN_POLICY;
	if (i == 0)
		event.kind = EVENT_SESSION_OPEN;
	else if (closes && i + 1 == records)
		event.kind = EVENT_SESSION_CLOSE;
	else if (i % 4 == 1)
		event.kind = EVENT_DNS_QUERY;
	else if (i % 4 == 2)
		event.kind = EVENT_FLOW_CLOSE;
	if (backwards && i % 50 == 49)
		event.time_ms -= 3600000;
	return event;
}

/* What would end a line, a text, or the reader's patience. */
static void make_hostile(struct audit_event *event)
{
	static const char bad[] = "a\r\n\x1b[31m\"\\,{}\xff\xfe\xc0\x80"
				  "\xe2\x80\xae.test\x7f\xc2\x9b";
	static char twice[sizeof(bad) + 80];

	snprintf(twice, sizeof(twice), "%s\",\"metadata\":{\"sequence\":7}",
		 bad);
	event->host = event->sni = event->method = event->detail = bad;
	event->target = event->rule = event->rule_text = twice;
	event->process = "\x1b]0;x\a";
	event->pid = 7;
	event->protocol = "\n{}";
	event->kind = event->kind == EVENT_FLOW_OPEN ? EVENT_HTTP_REQUEST
						     : event->kind;
}

static void count(const struct audit_event *event)
{
	bool asks = event->kind == EVENT_DNS_QUERY ||
		    event->kind == EVENT_FLOW_OPEN ||
		    event->kind == EVENT_HTTP_REQUEST;

	allowed += asks && event->verdict.allow;
	refused += asks && !event->verdict.allow;
}

static void write_line(unsigned i)
{
	static char line[RECORD_LINE_MAX];
	struct audit_event event = event_of(i);
	struct record_context context = { .session = session,
					  .sandbox_name = "run",
					  .policy_digest = POLICY_HEX,
					  .policy_name = "p.yaml",
					  .boundary = "netns",
					  .earlier =
						  has_earlier ? &earlier : NULL,
					  .ruleset_digest = RULESET_HEX,
					  .prev = i ? before.byte : NULL };
	size_t len;

	if (hostile && i)
		make_hostile(&event);
	count(&event);
	len = record_format(&event, i, &context, line, sizeof(line) - 1);
	must(len, "record");
	merkle_leaf(line, len, &before);
	merkle_append_hash(&tree, &before);
	line[len++] = '\n';
	digest_add(&part_sha, line, len);
	must(fwrite(line, 1, len, log_file) == len, "write");
}

static void part_name(unsigned number, char *buf, size_t cap)
{
	if (number == parts)
		snprintf(buf, cap, "%s", LOG_DIR_RECORDS);
	else
		snprintf(buf, cap, LOG_DIR_PART, number);
}

static void open_part(void)
{
	char file[LOG_DIR_NAME_MAX];

	part_name(part, file, sizeof(file));
	log_file = fopen(file, "w");
	must(log_file, file);
	digest_begin(&part_sha);
}

static void end_part(void)
{
	fclose(log_file);
	digest_end(&part_sha, part_hex[part++]);
}

static void put_predicate(struct json *j)
{
	char root[BASE64_LEN(MERKLE_HASH) + 1] = "", vkey[VKEY_TEXT_MAX];
	struct merkle_hash hash;

	merkle_root(&tree, &hash);
	base64_encode(hash.byte, MERKLE_HASH, root);
	vkey_format(key_public(key), vkey);
	json_text(j, "session", session);
	json_text(j, "sandbox", "run");
	json_open(j, "boundary", '{');
	json_text(j, "kind", "netns");
	json_text(j, "held", "held");
	json_text(j, "separation", "uid");
	json_close(j, '}');
	json_open(j, "verdicts", '{');
	json_uint(j, "allowed", allowed);
	json_uint(j, "refused", refused);
	json_open(j, "by_reason", '{');
	if (refused)
		json_uint(j, "not_in_policy", refused);
	json_close(j, '}');
	json_close(j, '}');
	json_open(j, "log", '{');
	json_uint(j, "records", tree.size);
	json_text(j, "root", root);
	json_uint(j, "parts", parts);
	json_text(j, "sign", "batch");
	json_text(j, "durability", "batch");
	json_uint(j, "checkpoints", note_count);
	json_text(j, "first_checkpoint", first_note);
	json_text(j, "last_checkpoint", last_note);
	json_close(j, '}');
	json_open(j, "key", '{');
	json_text(j, "vkey", vkey);
	json_bool(j, "ephemeral", false);
	json_close(j, '}');
}

static void write_receipt(void)
{
	static char body[65536], file[PARTS_MAX + 1][LOG_DIR_NAME_MAX];
	struct statement_subject subject[PARTS_MAX + 3];
	struct json j = json_of(body, sizeof(body));
	AUTO_FREE char *json = NULL;
	AUTO_FILE FILE *out = NULL;
	size_t count = 0, len;

	for (unsigned i = 1; i <= parts; i++) {
		part_name(i, file[i], sizeof(file[i]));
		subject[count++] =
			(struct statement_subject){ file[i], part_hex[i] };
	}
	subject[count++] = (struct statement_subject){ "policy", POLICY_HEX };
	subject[count++] = (struct statement_subject){ "ruleset", RULESET_HEX };
	statement_open(&j, subject, count, RECEIPT_TYPE);
	put_predicate(&j);
	statement_close(&j);
	must(!j.full, "body");
	must(!dsse_sign(STATEMENT_MEDIA_TYPE, (struct text){ body, j.len }, key,
			&json, &len),
	     "dsse");
	out = fopen(LOG_DIR_RECEIPT, "w");
	must(out && fprintf(out, "%s\n", json) > 0, "receipt");
}

/* The last five lines there, and how much. */
static void read_earlier(const char *dir)
{
	static char notes_text[65536];
	char path[4096];
	const char *at;
	size_t len;

	snprintf(path, sizeof(path), "%s/" LOG_DIR_CHECKPOINTS, dir);
	AUTO_FILE FILE *file = fopen(path, "r");
	must(file, path);
	len = fread(notes_text, 1, sizeof(notes_text) - 1, file);
	at = notes_text + len;
	for (int lines = 0; at > notes_text; at--) {
		lines += at[-1] == '\n';
		if (lines > 5)
			break;
	}
	earlier.checkpoint = at;
	snprintf(path, sizeof(path), "%s/" LOG_DIR_RECORDS, dir);
	AUTO_FILE FILE *log = fopen(path, "r");
	must(log && !fseek(log, 0, SEEK_END), path);
	earlier.bytes = (uint64_t)ftell(log);
	earlier.lines = 300;
	has_earlier = true;
}

static void take_word(const char *word)
{
	static const struct {
		const char *name;
		unsigned *to;
	} numbers[] = {
		{ "seed=", &seed },	  { "records=", &records },
		{ "parts=", &parts },	  { "every=", &every },
		{ "close=", &closes },	  { "receipt=", &receipt },
		{ "hostile=", &hostile }, { "backwards=", &backwards }
	};
	const char *value = strchr(word, '=');

	must(value, word);
	value++;
	if (strncmp(word, "session=", 8) == 0)
		session = value;
	else if (strncmp(word, "earlier=", 8) == 0)
		read_earlier(value);
	else if (strncmp(word, "name=", 5) == 0)
		name = value;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (strncmp(word, numbers[i].name, strlen(numbers[i].name)) ==
		    0)
			*numbers[i].to = (unsigned)strtoul(value, NULL, 10);
	}
	must(parts && parts <= PARTS_MAX && every, word);
}

static int make(const char *dir, char **words)
{
	char full[VKEY_NAME_MAX];

	while (*words)
		take_word(*words++);
	must(chdir(dir) == 0, dir);
	snprintf(full, sizeof(full), "%s/%s", name, session);
	key = key_of(full, seed);
	must(!key_write_public(key, AT_FDCWD, LOG_DIR_VKEY), LOG_DIR_VKEY);
	notes = fopen(LOG_DIR_CHECKPOINTS, "w");
	must(notes, LOG_DIR_CHECKPOINTS);
	open_part();
	for (unsigned i = 0; i < records; i++) {
		unsigned last = (unsigned)((uint64_t)records * part / parts);

		if (i == last) {
			end_part();
			open_part();
		}
		write_line(i);
		if (tree.size % every == 0 || i + 1 == last)
			sign_here();
	}
	end_part();
	fclose(notes);
	if (receipt)
		write_receipt();
	key_free(key);
	return 0;
}

static int sign_checkpoint(char **argv)
{
	struct checkpoint checkpoint = { .size = strtoull(argv[4], NULL, 10) };
	struct key *signer = key_of(argv[2], (unsigned)atol(argv[3]));
	char note[CHECKPOINT_NOTE_MAX];
	size_t len;

	snprintf(checkpoint.origin, sizeof(checkpoint.origin), "%s", argv[2]);
	must(hex_parse(argv[5], MERKLE_HASH, checkpoint.root.byte), argv[5]);
	must(!checkpoint_sign(&checkpoint, signer, note, sizeof(note), &len),
	     "sign");
	fputs(note, stdout);
	key_free(signer);
	return 0;
}

static int sign_dsse(char **argv)
{
	static char body[1 << 20];
	struct key *signer = key_of(argv[2], (unsigned)atol(argv[3]));
	struct text text = { body, fread(body, 1, sizeof(body), stdin) };
	AUTO_FREE char *json = NULL;
	size_t len;

	must(!dsse_sign(argv[4], text, signer, &json, &len), "dsse");
	puts(json);
	key_free(signer);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 3 && strcmp(argv[1], "make") == 0)
		return make(argv[2], argv + 3);
	if (argc == 6 && strcmp(argv[1], "checkpoint") == 0)
		return sign_checkpoint(argv);
	if (argc == 5 && strcmp(argv[1], "dsse") == 0)
		return sign_dsse(argv);
	fprintf(stderr, "usage: session make|checkpoint|dsse ...\n");
	return 2;
}
