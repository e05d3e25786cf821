/* SPDX-License-Identifier: Apache-2.0
 *
 * report_session.c - one log: read once, by the verifier, which gives its lines
 * away; and what it comes to in a sentence. What the receipt says counts only
 * where the verifier found it good.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/report.h"
#include "cmd/report_receipt.h"
#include "cmd/report_words.h"
#include "cmd/verify.h"

struct reading {
	struct report *report;
	struct report_session *session;
	struct verify_progress progress;
};

static bool on_progress(void *arg, uint64_t bytes, uint64_t total)
{
	struct reading *reading = arg;

	return verify_progress_on(&reading->progress, bytes, total);
}

static void on_line(void *arg, const char *line, size_t len, uint64_t sequence)
{
	struct reading *reading = arg;

	report_line(reading->report, reading->session, line, len, sequence);
}

static struct report_session *new_session(const char *path)
{
	struct report_session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->path = strdup(path);
	session->name = strdup("");
	session->policy = strdup("");
	session->digest = strdup("");
	session->boundary = strdup("");
	return session;
}

/* Of a log that is not there nothing can be shown. */
static void set_unreadable(struct report_session *session, int error)
{
	struct verify_result *result = &session->result;

	*result = (struct verify_result){ .verdict = VERIFY_BROKEN,
					  .problems = 1 };
	result->problem[0].fault = VERIFY_UNREADABLE;
	snprintf(result->problem[0].text, sizeof(result->problem[0].text),
		 "the log cannot be read: %s", strerror(-error));
}

int report_add_log(struct report *report, const char *path,
		   const struct vkey *key)
{
	struct report_session *session;
	struct reading reading = { .report = report };
	const struct verify_options options = { .key = key,
						.line = on_line,
						.progress = on_progress,
						.arg = &reading };
	int r;

	if (report->sessions == REPORT_SESSIONS_MAX)
		return -ENOSPC;
	session = new_session(path);
	if (!session)
		return -ENOMEM;
	/* Numbers of connections are a session's own. */
	free(report->flows);
	report->flows = NULL;
	report->session[report->sessions++] = session;
	reading.session = session;
	verify_progress_begin(&reading.progress, false);
	r = verify_log(path, &options, &session->result);
	verify_progress_end(&reading.progress);
	if (r < 0)
		set_unreadable(session, r);
	return r;
}

/* --- in words ------------------------------------------------------------ */

struct words {
	char *buf;
	size_t len, cap;
};

static void say(struct words *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct words *w, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(w->buf + w->len, w->cap - w->len, format, ap);
	va_end(ap);
	if (n > 0)
		w->len += (size_t)n;
	if (w->len >= w->cap)
		w->len = w->cap - 1;
}

static bool is_external(const struct report_session *session)
{
	return strcmp(session->boundary, "external") == 0 ||
	       strcmp(receipt_text(session, "boundary", "kind"), "external") ==
		       0;
}

static bool is_inside(const struct report_session *session)
{
	return strcmp(receipt_text(session, "boundary", "kind"),
		      "in-container") == 0;
}

/* Behind a gate that stands still there is another way out, under the guard:
 * what rules did not hold for a moment may have taken it. */
static bool is_restored_inside(const struct report_session *session)
{
	return is_inside(session) &&
	       strcmp(receipt_text(session, "boundary", "held"), "restored") ==
		       0;
}

enum report_mark report_mark(const struct report_session *session)
{
	const char *held = receipt_text(session, "boundary", "held");

	if (session->result.verdict == VERIFY_BROKEN ||
	    (session->result.verdict == VERIFY_HOLDS &&
	     strcmp(held, "broken") == 0))
		return REPORT_BROKEN;
	if (session->result.verdict != VERIFY_HOLDS || is_external(session) ||
	    is_restored_inside(session) ||
	    (strcmp(held, "held") != 0 && strcmp(held, "restored") != 0))
		return REPORT_NOT_PROVED;
	return REPORT_HELD;
}

const char *report_mark_word(enum report_mark mark)
{
	static const char *const words[] = { [REPORT_HELD] = "Held",
					     [REPORT_NOT_PROVED] = "Not proved",
					     [REPORT_BROKEN] = "Broken" };

	return words[mark];
}

static void say_packets(struct words *w, const struct report_session *session)
{
	uint64_t counted = receipt_counted(session);
	uint64_t recorded = receipt_number(session, "packets", "recorded");
	uint64_t missing = receipt_number(session, "packets", "unreported");

	if (!counted && !recorded)
		say(w, " The kernel dropped no packet.");
	else if (missing)
		say(w,
		    " The kernel dropped %" PRIu64 " packets: %" PRIu64
		    " have a record of their own or are counted in one, %" PRIu64
		    " are known by their number only.",
		    counted, recorded, missing);
	else
		say(w,
		    " The kernel dropped %" PRIu64
		    " packet%s, and all are on record.",
		    counted, counted == 1 ? "" : "s");
}

static void say_findings(struct words *w, const struct report_session *session)
{
	uint64_t findings = session->counts.findings;

	if (findings == 1)
		say(w, " There is one finding.");
	else if (findings)
		say(w, " There are %" PRIu64 " findings.", findings);
}

static void say_whole(struct words *w, const struct report_session *session)
{
	say(w,
	    " The log is whole: %" PRIu64 " record%s, signed by %s from the "
	    "first to the last.",
	    session->result.records, session->result.records == 1 ? "" : "s",
	    session->result.key.name);
}

static void say_held(struct words *w, const struct report_session *session)
{
	bool restored = strcmp(receipt_text(session, "boundary", "held"),
			       "restored") == 0;

	if (is_inside(session))
		say(w, "The boundary held: rules inside of the network that "
		       "was guarded let nobody out but the gate, and nobody "
		       "else changed them. Root in there could have, which "
		       "would show.");
	else if (restored)
		say(w, "The boundary held after it was put back in order: "
		       "somebody else changed the kernel's rules, sallyport "
		       "noticed and restored them. There was no other way "
		       "out of the network namespace than the gate.");
	else
		say(w, "The boundary held: a network namespace without any "
		       "way out but the gate, whose rules nobody else "
		       "changed.");
	say_whole(w, session);
	say_packets(w, session);
	say_findings(w, session);
}

static void say_broken(struct words *w, const struct report_session *session)
{
	const struct verify_result *result = &session->result;

	if (result->verdict != VERIFY_BROKEN) {
		say(w, "The boundary did not hold, says the receipt: see the "
		       "findings.");
		say_whole(w, session);
		say_findings(w, session);
		return;
	}
	say(w, "The log does not verify, so it proves nothing");
	if (result->problems && result->problem[0].line)
		say(w, ": %s, line %" PRIu64 ": %s", result->problem[0].file,
		    result->problem[0].line, result->problem[0].text);
	else if (result->problems)
		say(w, ": %s", result->problem[0].text);
	if (w->buf[w->len - 1] != '.')
		say(w, ".");
	if (result->problems > 1)
		say(w, " There is more that is wrong (%zu problems).",
		    result->problems);
	say(w, " What this report counts of it is what the file says.");
}

static void say_unproved(struct words *w, const struct report_session *session)
{
	const struct verify_result *result = &session->result;
	const char *held = receipt_text(session, "boundary", "held");
	const char *why[VERIFY_WHYS_MAX];
	size_t n;

	if (result->verdict == VERIFY_HOLDS && is_external(session)) {
		say(w, "The gate kept to its policy; whether there was "
		       "another way out, it can't know: the boundary was "
		       "somebody else's.");
		say_whole(w, session);
		say_findings(w, session);
		return;
	}
	if (result->verdict == VERIFY_HOLDS && is_inside(session)) {
		say(w, "Somebody changed the rules inside of the network that "
		       "was guarded; sallyport noticed and restored them, but "
		       "something may have left meanwhile.");
		say_whole(w, session);
		say_findings(w, session);
		return;
	}
	if (result->verdict == VERIFY_HOLDS) {
		say(w,
		    "Whether the boundary held is not known: the receipt says "
		    "\"%.32s\".",
		    held);
		say_whole(w, session);
		say_findings(w, session);
		return;
	}
	n = verify_whys(result, why);
	say(w, "Nothing is wrong with this log, but it does not prove that "
	       "the boundary held, because ");
	for (size_t i = 0; i < n; i++)
		say(w, "%s%s", i ? "; " : "", why[i]);
	say(w, ".");
	say_findings(w, session);
}

const char *report_sentence(const struct report_session *session, char *buf,
			    size_t cap)
{
	struct words w = { .buf = buf, .cap = cap };

	switch (report_mark(session)) {
	case REPORT_HELD:
		say_held(&w, session);
		break;
	case REPORT_BROKEN:
		say_broken(&w, session);
		break;
	default:
		say_unproved(&w, session);
	}
	return buf;
}
