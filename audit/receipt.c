/* SPDX-License-Identifier: Apache-2.0
 *
 * receipt.c - the statement is written once, at the end: into a buffer that is
 * made larger until it fits.
 */
#include "audit/receipt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "audit/base64.h"
#include "audit/dsse.h"
#include "base/cleanup.h"

#define BODY_MIN (32 * 1024)

static void put_time(struct json *j, const char *key, uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	char text[64], date[40];
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) ||
	    !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
		return;
	snprintf(text, sizeof(text), "%s.%03uZ", date, (unsigned)(ms % 1000));
	json_text(j, key, text);
}

static void put_session(struct json *j, const struct receipt *receipt)
{
	json_text(j, "session", receipt->session);
	json_text(j, "sandbox", receipt->sandbox);
	json_open(j, "product", '{');
	json_text(j, "name", "sallyport");
	json_text(j, "version", SALLYPORT_VERSION);
	json_close(j, '}');
	put_time(j, "started", receipt->started_ms);
	put_time(j, "ended", receipt->ended_ms);
	json_uint(j, "duration_ms", receipt->duration_ms);
	json_text(j, "kernel", receipt->kernel);
	json_open(j, "boundary", '{');
	json_text(j, "kind", receipt->boundary);
	json_text(j, "held", receipt->held);
	json_text(j, "separation", receipt->separation);
	json_text(j, "files", receipt->files);
	if (receipt->nest)
		json_bool(j, "nest", true);
	json_close(j, '}');
	json_text(j, "command", receipt->command);
	json_open(j, "exit", '{');
	json_int(j, "status", receipt->status);
	json_text(j, "by", receipt->ended_by);
	json_close(j, '}');
}

static void put_policy(struct json *j, const struct receipt *receipt)
{
	const struct tally_notes *changes = &receipt->sums->policy;

	json_open(j, "policy", '{');
	json_text(j, "digest", receipt->policy_digest);
	json_text(j, "name", receipt->policy_name);
	json_text(j, "files", receipt->policy_files);
	json_open(j, "changes", '[');
	for (size_t i = 0; i < changes->kept; i++) {
		json_open(j, NULL, '{');
		json_uint(j, "sequence", changes->note[i].sequence);
		json_text(j, "digest", changes->note[i].text);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_uint(j, "changes_total", changes->total);
	json_close(j, '}');
}

static void put_notes(struct json *j, const char *key,
		      const struct tally_notes *notes)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < notes->kept; i++) {
		const struct tally_note *note = &notes->note[i];

		json_open(j, NULL, '{');
		json_uint(j, "sequence", note->sequence);
		put_time(j, "time", note->time_ms);
		json_text(j, "process", note->process);
		if (note->pid)
			json_uint(j, "pid", note->pid);
		if (note->by_gate)
			json_text(j, "from", "gate");
		json_text(j, "text", note->text);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_ruleset(struct json *j, const struct receipt *receipt)
{
	json_open(j, "ruleset", '{');
	json_text(j, "start", receipt->ruleset_start);
	json_text(j, "end", receipt->ruleset_end);
	put_notes(j, "changes", &receipt->sums->ruleset);
	json_uint(j, "changes_total", receipt->sums->ruleset.total);
	json_close(j, '}');
}

static void put_packets(struct json *j, const struct receipt *receipt)
{
	json_open(j, "packets", '{');
	if (receipt->counted) {
		json_open(j, "counted", '{');
		json_uint(j, "spoofed", receipt->spoofed);
		json_uint(j, "refused", receipt->refused);
		json_uint(j, "ipv6", receipt->ipv6);
		json_uint(j, "forwarded", receipt->forwarded);
		json_close(j, '}');
	}
	json_uint(j, "recorded", receipt->sums->packets);
	if (receipt->counted)
		json_uint(j, "unreported", receipt->unreported);
	json_close(j, '}');
}

static void put_verdicts(struct json *j, const struct tally_sums *sums)
{
	json_open(j, "verdicts", '{');
	json_uint(j, "allowed", sums->allowed);
	json_uint(j, "refused", sums->refused);
	json_open(j, "by_reason", '{');
	for (unsigned i = 0; i < REASON_COUNT; i++)
		if (sums->by_reason[i])
			json_uint(j, reason_word((enum reason)i),
				  sums->by_reason[i]);
	json_close(j, '}');
	json_close(j, '}');
	json_open(j, "bytes", '{');
	json_uint(j, "up", sums->up);
	json_uint(j, "down", sums->down);
	json_close(j, '}');
}

static void put_log(struct json *j, const struct receipt *receipt)
{
	char root[BASE64_LEN(MERKLE_HASH)], vkey[VKEY_TEXT_MAX];

	base64_encode(receipt->root.byte, MERKLE_HASH, root);
	vkey_format(receipt->vkey, vkey);
	json_open(j, "log", '{');
	json_uint(j, "records", receipt->records);
	json_bytes(j, "root", root, sizeof(root));
	json_uint(j, "parts", receipt->parts);
	json_text(j, "sign", receipt->sign_every ? "every" : "batch");
	json_text(j, "durability", receipt->durable ? "record" : "batch");
	json_uint(j, "checkpoints", receipt->checkpoints);
	json_text(j, "first_checkpoint", receipt->first_checkpoint);
	json_text(j, "last_checkpoint", receipt->last_checkpoint);
	json_close(j, '}');
	json_open(j, "key", '{');
	json_text(j, "vkey", vkey);
	json_bool(j, "ephemeral", receipt->ephemeral);
	json_close(j, '}');
}

static void put_receipt(struct json *j, const struct receipt *receipt)
{
	statement_open(j, receipt->subjects, receipt->subject_count,
		       RECEIPT_TYPE);
	put_session(j, receipt);
	put_policy(j, receipt);
	put_ruleset(j, receipt);
	put_notes(j, "findings", &receipt->sums->finding);
	json_uint(j, "findings_total", receipt->sums->finding.total);
	attacks_put(j, receipt->attacks);
	put_packets(j, receipt);
	put_verdicts(j, receipt->sums);
	put_log(j, receipt);
	statement_close(j);
}

int receipt_format(const struct receipt *receipt, char **ret_body,
		   size_t *ret_len)
{
	for (size_t cap = BODY_MIN; cap <= DSSE_BODY_MAX; cap *= 2) {
		AUTO_FREE char *body = malloc(cap);
		struct json j = json_of(body, cap);

		if (!body)
			return -ENOMEM;
		put_receipt(&j, receipt);
		if (j.full)
			continue;
		*ret_len = j.len;
		*ret_body = STEAL(body);
		return 0;
	}
	return -E2BIG;
}
