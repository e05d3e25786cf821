/* SPDX-License-Identifier: Apache-2.0
 *
 * report_sample.c - logs for reports: one of a coding agent's session as the
 * ledger would have written it, signed and with its receipt, and one whose
 *every text is hostile.
 *
 *	report_sample agent|hostile DIR
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/sha.h>

#include "audit/checkpoint.h"
#include "audit/dsse.h"
#include "audit/log_dir.h"
#include "audit/merkle.h"
#include "audit/record.h"
#include "audit/statement.h"
#include "audit/tally.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "policy/reason.h"

#define BEGAN	UINT64_C(1795248000000) /* 2026-11-21T08:00:00Z */
#define SESSION "20261121T080000Z-3f9a0c11d2"
#define DIGEST \
	"7b1d2c9e0f4a6b8c5d3e1f2a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0c"
#define RULESET \
	"0c1b2a3f4e5d6c7b8a9f0e1d2c3b4a5f6e7d8c9b2a1f3e5d8c6b4a0f9e2c1d7b"

struct sample {
	FILE *file;
	int dir;
	struct key *key;
	struct merkle tree;
	struct merkle_hash prev;
	char first[CHECKPOINT_NOTE_MAX], last[CHECKPOINT_NOTE_MAX];
	unsigned checkpoints;
	uint64_t sequence, now, flow, up, down;
	uint64_t allowed, refused, packets;
};

/* As the ledger's. */
static struct tally tally;

static struct text of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

static void must(bool ok, const char *what)
{
	if (!ok)
		die(1, "report_sample: %s", what);
}

static FILE *create(const struct sample *s, const char *name)
{
	int fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	must(file, name);
	return file;
}

/* --- the log ------------------------------------------------------------- */

static void sign(struct sample *s)
{
	struct checkpoint checkpoint = { .size = s->tree.size };
	AUTO_FILE FILE *file = NULL;
	size_t len;
	int fd = openat(s->dir, LOG_DIR_CHECKPOINTS,
			O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	snprintf(checkpoint.origin, sizeof(checkpoint.origin), "%s",
		 key_public(s->key)->name);
	merkle_root(&s->tree, &checkpoint.root);
	must(checkpoint_sign(&checkpoint, s->key, s->last, sizeof(s->last) - 1,
			     &len) == 0,
	     "checkpoint");
	s->last[len] = '\0';
	if (!*s->first)
		memcpy(s->first, s->last, sizeof(s->first));
	file = fdopen(fd, "a");
	must(file && fwrite(s->last, 1, len, file) == len, "checkpoints");
	s->checkpoints++;
}

/* A forger may write what the ledger escapes: three bytes as they are. */
static size_t forge(char *line, size_t len)
{
	static const char escaped[] = "\\u00e2\\u0080\\u00ae";
	char *at;

	while ((at = memmem(line, len, escaped, strlen(escaped)))) {
		memcpy(at, "\xe2\x80\xae", 3);
		memmove(at + 3, at + strlen(escaped),
			len - (size_t)(at - line) - strlen(escaped));
		len -= strlen(escaped) - 3;
	}
	return len;
}

static void put(struct sample *s, struct audit_event event)
{
	static char line[RECORD_LINE_MAX + 1];
	const struct record_context context = {
		.session = SESSION,
		.sandbox_name = "coding-agent",
		.policy_digest = DIGEST,
		.policy_name = "coding-agent",
		.boundary = "netns",
		.prev = s->sequence ? s->prev.byte : NULL,
		.ruleset_digest = RULESET,
	};
	size_t len;

	event.sandbox = 1;
	event.time_ms = s->now;
	len = record_format(&event, s->sequence++, &context, line,
			    sizeof(line) - 1);
	must(len > 0, "record");
	tally_add(&tally, &event);
	len = forge(line, len);
	merkle_leaf(line, len, &s->prev);
	must(merkle_append(&s->tree, line, len) == 0, "tree");
	line[len] = '\n';
	must(fwrite(line, 1, len + 1, s->file) == len + 1, "log");
	if (s->sequence % 64 == 1)
		sign(s);
}

static struct verdict verdict_of(enum reason reason)
{
	return (struct verdict){ .allow = reason_info(reason)->allow,
				 .reason = reason };
}

static struct audit_event event_of(enum event_kind kind, const char *host,
				   uint16_t port, enum reason reason)
{
	return (struct audit_event){ .kind = kind,
				     .host = host,
				     .dst_port = port,
				     .door = DOOR_TRANSPARENT,
				     .protocol = "tls",
				     .verdict = verdict_of(reason),
				     .src_ip = ip_v4(0x0a000002) };
}

static void ask(struct sample *s, const char *host, uint16_t type,
		enum reason reason)
{
	struct audit_event event = event_of(EVENT_DNS_QUERY, host, 0, reason);

	event.protocol = NULL;
	event.qtype = type;
	event.door = DOOR_DNS;
	event.rcode = event.verdict.allow ? 0 : 3;
	put(s, event);
	s->allowed += event.verdict.allow;
	s->refused += !event.verdict.allow;
}

/* A connection, from the question to its end. */
static void connect_to(struct sample *s, const char *host, const char *rule,
		       uint16_t port, uint64_t up, uint64_t down)
{
	struct audit_event event =
		event_of(EVENT_FLOW_OPEN, host, port, REASON_RULE);

	ask(s, host, 1, REASON_RULE);
	event.flow = ++s->flow;
	event.rule = rule;
	event.dst_ip = ip_v4(0xc6120007);
	put(s, event);
	s->allowed++;
	event.kind = EVENT_FLOW_DIAL;
	put(s, event);
	event.kind = EVENT_FLOW_CLOSE;
	event.bytes_up = up;
	event.bytes_down = down;
	event.duration_ms = 900;
	s->up += up;
	s->down += down;
	put(s, event);
}

static void refuse(struct sample *s, const char *host, uint16_t port,
		   enum reason reason, const char *rule)
{
	struct audit_event event =
		event_of(EVENT_FLOW_OPEN, host, port, reason);

	event.flow = ++s->flow;
	event.rule = rule;
	if (!host)
		event.dst_ip = ip_v4(0xa9fea9fe);
	put(s, event);
	s->refused++;
}

static void drop(struct sample *s, uint32_t to, const char *protocol,
		 uint16_t port, const char *detail, uint32_t count)
{
	struct audit_event event =
		event_of(EVENT_PACKET, NULL, port, REASON_BYPASS);

	event.dst_ip = ip_v4(to);
	event.protocol = protocol;
	event.detail = detail;
	event.count = count;
	put(s, event);
	s->packets += count;
}

/* --- the receipt --------------------------------------------------------- */

static void digest_log(const struct sample *s, char hex[65])
{
	uint8_t hash[SHA256_DIGEST_LENGTH];
	int fd = openat(s->dir, LOG_DIR_RECORDS, O_RDONLY | O_CLOEXEC);
	AUTO_FILE FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	AUTO_FREE char *data = malloc(16 << 20);
	size_t len;

	must(file && data, "log");
	len = fread(data, 1, 16 << 20, file);
	SHA256((const unsigned char *)data, len, hash);
	hex_format(hash, sizeof(hash), hex);
}

static void put_packets(const struct sample *s, struct json *j)
{
	json_open(j, "packets", '{');
	json_open(j, "counted", '{');
	json_uint(j, "spoofed", 0);
	json_uint(j, "refused", s->packets);
	json_uint(j, "ipv6", 0);
	json_uint(j, "forwarded", 0);
	json_close(j, '}');
	json_uint(j, "recorded", s->packets);
	json_uint(j, "unreported", 0);
	json_close(j, '}');
}

static void put_log(const struct sample *s, struct json *j)
{
	char vkey[VKEY_TEXT_MAX], root[64];
	struct out out = { .buf = root, .cap = sizeof(root) };
	struct merkle_hash hash;
	size_t len;

	merkle_root(&s->tree, &hash);
	out_base64(&out, hash.byte, sizeof(hash.byte));
	must(out_end(&out, &len) == 0, "root");
	json_open(j, "log", '{');
	json_uint(j, "records", s->tree.size);
	json_text(j, "root", root);
	json_uint(j, "parts", 1);
	json_text(j, "sign", "batch");
	json_text(j, "durability", "batch");
	json_uint(j, "checkpoints", s->checkpoints);
	json_text(j, "first_checkpoint", s->first);
	json_text(j, "last_checkpoint", s->last);
	json_close(j, '}');
	vkey_format(key_public(s->key), vkey);
	json_open(j, "key", '{');
	json_text(j, "vkey", vkey);
	json_bool(j, "ephemeral", false);
	json_close(j, '}');
}

static void put_facts(const struct sample *s, struct json *j)
{
	json_text(j, "session", SESSION);
	json_text(j, "sandbox", "coding-agent");
	json_open(j, "product", '{');
	json_text(j, "name", "sallyport");
	json_text(j, "version", SALLYPORT_VERSION);
	json_close(j, '}');
	json_text(j, "started", "2026-11-21T08:00:00.000Z");
	json_text(j, "ended", "2026-11-21T08:31:00.000Z");
	json_uint(j, "duration_ms", s->now - BEGAN);
	json_text(j, "kernel", "6.1.0-18-amd64");
	json_open(j, "boundary", '{');
	json_text(j, "kind", "netns");
	json_text(j, "held", "held");
	json_text(j, "separation", "uid");
	json_close(j, '}');
	json_text(j, "command", "agent --task 'upgrade the build'");
	json_open(j, "exit", '{');
	json_uint(j, "status", 0);
	json_text(j, "by", "exit");
	json_close(j, '}');
}

static void put_rules(struct json *j)
{
	json_open(j, "policy", '{');
	json_text(j, "digest", "sha256:" DIGEST);
	json_text(j, "name", "coding-agent");
	json_text(j, "files", "coding-agent.yaml");
	json_open(j, "changes", '[');
	json_close(j, ']');
	json_close(j, '}');
	json_open(j, "ruleset", '{');
	json_text(j, "start", "sha256:" RULESET);
	json_text(j, "end", "sha256:" RULESET);
	json_open(j, "changes", '[');
	json_close(j, ']');
	json_close(j, '}');
	json_open(j, "findings", '[');
	json_close(j, ']');
	json_uint(j, "findings_total", 0);
}

static void put_counts(const struct sample *s, struct json *j)
{
	put_packets(s, j);
	json_open(j, "verdicts", '{');
	json_uint(j, "allowed", s->allowed);
	json_uint(j, "refused", s->refused);
	json_open(j, "by_reason", '{');
	for (unsigned i = 0; i < REASON_COUNT; i++)
		if (tally.sums.by_reason[i])
			json_uint(j, reason_word((enum reason)i),
				  tally.sums.by_reason[i]);
	json_close(j, '}');
	json_close(j, '}');
	json_open(j, "bytes", '{');
	json_uint(j, "up", s->up);
	json_uint(j, "down", s->down);
	json_close(j, '}');
	put_log(s, j);
}

static void put_receipt(const struct sample *s)
{
	AUTO_FILE FILE *file = create(s, LOG_DIR_RECEIPT);
	AUTO_FREE char *body = malloc(1 << 16), *envelope = NULL;
	struct json j = json_of(body, 1 << 16);
	char hex[65];
	const struct statement_subject subjects[] = {
		{ LOG_DIR_RECORDS, hex },
		{ "policy", DIGEST },
		{ "ruleset", RULESET },
	};
	size_t len;

	digest_log(s, hex);
	statement_open(&j, subjects, ARRAY_SIZE(subjects),
		       "https://sallyport.example/receipt/v1");
	put_facts(s, &j);
	put_rules(&j);
	put_counts(s, &j);
	statement_close(&j);
	must(!j.full, "statement");
	must(dsse_sign(STATEMENT_MEDIA_TYPE, (struct text){ body, j.len },
		       s->key, &envelope, &len) == 0,
	     "envelope");
	fprintf(file, "%s\n", envelope);
}

/* --- the sessions -------------------------------------------------------- */

static void work(struct sample *s)
{
	for (unsigned i = 0; i < 60; i++) {
		s->now += 11000 + i * 37 % 23 * 900;
		connect_to(s, "api.model.example", "coding-agent.yaml:6", 443,
			   180000 + i * 7919 % 400000, 22000 + i * 911 % 9000);
		if (i % 7 == 3)
			connect_to(s, "git.forge.example",
				   "coding-agent.yaml:8", 443, 9000 + i * 1300,
				   1900000);
		if (i > 8 && i < 22)
			connect_to(s, "registry.packages.example",
				   "coding-agent.yaml:11", 443, 2100, 640000);
		if (i % 9 == 4)
			refuse(s, "telemetry.editor.example", 443,
			       REASON_NOT_IN_POLICY, NULL);
		if (i == 30)
			connect_to(s, "gist.github.com", "coding-agent.yaml:14",
				   443, 48211, 3900);
	}
}

/* A package that was installed tries to get something out. */
static void attack(struct sample *s)
{
	char name[128];

	s->now += 4000;
	refuse(s, NULL, 80, REASON_FORBIDDEN_ADDRESS, NULL);
	ask(s, "webhook.site", 1, REASON_NOT_IN_POLICY);
	refuse(s, "webhook.site", 443, REASON_NOT_IN_POLICY, NULL);
	refuse(s, "dns.google", 443, REASON_NOT_IN_POLICY, NULL);
	drop(s, 0x08080808, "udp", 53, "DNS", 12);
	drop(s, 0x01010101, "tcp", 853, "DNS over TLS", 3);
	drop(s, 0xcb007105, "icmp", 0, "ICMP", 40);
	drop(s, 0xcb007105, "tcp", 4444, "direct IP", 6);
	drop(s, 0xcb007106, "udp", 443, "QUIC", 9);
	for (unsigned i = 0; i < 96; i++) {
		s->now += 400;
		snprintf(name, sizeof(name),
			 "%08x%08x%08x%08x%04x.c2.exfil.example",
			 i * 2654435761u, i * 40503u + 77u, i * 97531u + 5u,
			 ~i * 2246822519u, i);
		ask(s, name, 16, REASON_NOT_IN_POLICY);
	}
	refuse(s, "git.forge.example", 22, REASON_PORT, "coding-agent.yaml:8");
}

#define BIDI	"\xe2\x80\xae"
#define EVIL	"<img src=x onerror=alert(1)>\"'&" BIDI "gpj.exe\x1b[31m|`*_"
#define FORMULA "=cmd|' /C calc'!A0"

static void assault(struct sample *s)
{
	struct audit_event event;

	refuse(s, EVIL, 443, REASON_MALFORMED, EVIL);
	refuse(s, FORMULA, 443, REASON_MALFORMED, "+1+1");
	refuse(s, "</title></style><script>alert(2)</script>", 443,
	       REASON_MALFORMED, "@SUM(1)");
	refuse(s, "\xff\xfe-\xe2\x80\x8b-\xef\xbb\xbf", 443, REASON_MALFORMED,
	       "-1");
	refuse(s, "www.evil.test,\r\n\"x\"", 443, REASON_MALFORMED, NULL);
	ask(s, "]]><svg/onload=alert(3)>", 16, REASON_MALFORMED);
	event = event_of(EVENT_FINDING, NULL, 0, REASON_RULE);
	event.detail = "rules changed: " EVIL;
	event.process = "<b>nft" BIDI;
	event.pid = 4711;
	put(s, event);
	drop(s, 0x08080808, "<i>", 53, EVIL, 2);
	for (unsigned i = 0; i < 40; i++)
		connect_to(s, "ok.example", EVIL, 443, 100, 100);
}

int main(int argc, char **argv)
{
	struct sample s = { .now = BEGAN };
	uint8_t seed[KEY_SEED] = { 42 };
	bool hostile = argc == 3 && strcmp(argv[1], "hostile") == 0;

	log_init("report_sample", LOG_LEVEL_WARN);
	must(argc == 3, "usage: report_sample agent|hostile DIR");
	mkdir(argv[2], 0700);
	s.dir = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(s.dir >= 0, argv[2]);
	unlinkat(s.dir, LOG_DIR_CHECKPOINTS, 0);
	unlinkat(s.dir, LOG_DIR_VKEY, 0);
	must(key_of_seed(of("build-7.example/" SESSION), seed, &s.key) == 0,
	     "key");
	must(key_write_public(s.key, s.dir, LOG_DIR_VKEY) == 0, "vkey");
	s.file = create(&s, LOG_DIR_RECORDS);
	put(&s, event_of(EVENT_SESSION_OPEN, NULL, 0, REASON_RULE));
	if (hostile)
		assault(&s);
	else
		work(&s);
	if (!hostile)
		attack(&s);
	s.now += 20000;
	put(&s, event_of(EVENT_SESSION_CLOSE, NULL, 0, REASON_RULE));
	must(fclose(s.file) == 0, "log");
	sign(&s);
	put_receipt(&s);
	key_free(s.key);
	close(s.dir);
	return 0;
}
