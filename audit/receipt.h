/* SPDX-License-Identifier: Apache-2.0
 *
 * receipt.h - what a session came to, as the predicate of an in-toto Statement.
 *
 * Signed (dsse.h, STATEMENT_MEDIA_TYPE, by the session's key), it is the one
 * line of receipt.dsse.json. Subjects: the parts of the log by file name,
 * "policy", and "ruleset" (as read back from the kernel at the start) if we
 * loaded one. The predicate:
 *
 *	session, sandbox, product{name,version}
 *	started, ended	RFC 3339, UTC, milliseconds, as all times here; of the
 *			first record and of the last. duration_ms is measured
 *			by a clock that nobody sets.
 *	kernel		its release
 *	boundary	{kind,held,separation,files,nest}; files: what the
 *			command saw of them, "private" or "host"; nest: true
 *			where it could make namespaces of its own, else absent
 *	command		cut; absent under `serve`
 *	exit		{status,by}
 *	policy		{digest,name,files,changes[{sequence,digest}],
 *			changes_total}
 *	ruleset		{start,end,changes[{sequence,time,process,pid,text}],
 *			changes_total}; start and end are absent if they were
 *			not read; changes are foreign ones and our repairs
 *	findings	[{sequence,time,text}], findings_total
 *	attacks		{held,got_out,skipped,duration_ms,reports,
 *			reported_by[UID],results{ID:WORD}}: what `sallyport
 *			prove` found; absent where it was not used. WORD is
 *			held, got_out or skipped. Reports are of a session
 *			that was there already, by those who may say so;
 *			absent in the receipt of a session of its own
 *	packets		{counted{spoofed,refused,ipv6,forwarded},recorded,
 *			unreported}; counted and unreported are absent if the
 *			kernel's counters were not read
 *	verdicts	{allowed,refused,by_reason{WORD:N}}: see struct
 *			tally_sums
 *	bytes		{up,down}
 *	log		{records,root,parts,sign,durability,checkpoints,
 *			first_checkpoint,last_checkpoint}
 *	key		{vkey,ephemeral}
 *
 * Lists hold the first TALLY_NOTES; their totals say how many there were.
 */
#ifndef AUDIT_RECEIPT_H
#define AUDIT_RECEIPT_H

#include "audit/attacks.h"
#include "audit/merkle.h"
#include "audit/statement.h"
#include "audit/tally.h"
#include "audit/vkey.h"

#define RECEIPT_TYPE "https://sallyport.example/receipt/v1"

/* Strings are never NULL. "" is left out. */
struct receipt {
	const struct statement_subject *subjects;
	size_t subject_count, parts;
	const char *session, *sandbox, *kernel, *command;
	uint64_t started_ms, ended_ms, duration_ms;
	const char *boundary, *held, *separation, *files; /* words */
	bool nest;
	int status;
	const char *ended_by; /* a word */
	const char *policy_digest, *policy_name, *policy_files;
	const char *ruleset_start, *ruleset_end; /* hex */
	const struct tally_sums *sums;
	const struct attacks *attacks;
	bool counted; /* the next are known */
	uint64_t spoofed, refused, ipv6, forwarded, unreported;
	uint64_t records;
	struct merkle_hash root;
	bool sign_every, durable;
	const char *first_checkpoint, *last_checkpoint;
	uint64_t checkpoints;
	const struct vkey *vkey;
	bool ephemeral;
};

/* The statement, which the caller frees: to be signed as it is. Returns 0;
 * -E2BIG of more than DSSE_BODY_MAX; -ENOMEM. */
int receipt_format(const struct receipt *receipt, char **ret_body,
		   size_t *ret_len);

#endif
