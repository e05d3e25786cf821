/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_print.c - what verification found: for people, and for programs.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit/receipt.h"
#include "cmd/print.h"
#include "cmd/verify.h"

#define TIME_MAX 40

const char *verify_verdict_word(enum verify_verdict verdict)
{
	return verdict == VERIFY_HOLDS	  ? "holds"
	       : verdict == VERIFY_BROKEN ? "broken"
					  : "incomplete";
}

static enum tone tone_of(enum verify_verdict verdict)
{
	return verdict == VERIFY_HOLDS	  ? TONE_GOOD
	       : verdict == VERIFY_BROKEN ? TONE_BAD
					  : TONE_WARNING;
}

static const char *format_time(uint64_t ms, char buf[TIME_MAX])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	size_t len;

	if (!gmtime_r(&seconds, &tm)) {
		snprintf(buf, TIME_MAX, "%" PRIu64 " ms", ms);
		return buf;
	}
	len = strftime(buf, TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + len, TIME_MAX - len, ".%03uZ", (unsigned)(ms % 1000));
	return buf;
}

size_t verify_whys(const struct verify_result *result,
		   const char *ret_why[VERIFY_WHYS_MAX])
{
	size_t n = 0;

	if (result->verdict != VERIFY_INCOMPLETE)
		return 0;
	if (!result->known_key)
		ret_why[n++] = "the key came with the log: whoever changed the "
			       "log could have made it (--key)";
	if (!result->closed)
		ret_why[n++] = "the session is not closed: it goes on, or came "
			       "to an unclean end";
	if (result->torn)
		ret_why[n++] = "it ends within a line that is not signed";
	if (result->covered < result->records)
		ret_why[n++] =
			result->closed
				? "its last records are not signed: it was "
				  "killed as it ended, or somebody removed "
				  "checkpoints and receipt"
				: "its last records are not signed";
	if (!result->has_receipt)
		ret_why[n++] = "there is no receipt";
	if (result->not_named)
		ret_why[n++] = "the log of all sessions does not name it";
	if (result->host_broken)
		ret_why[n++] = "the log of all sessions is broken";
	return n;
}

static const char *of_receipt(const struct verify_result *result, const char *a,
			      const char *b)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(result->receipt, a), b));

	return text ? text : "?";
}

static json_int_t attacks_of(const struct verify_result *result,
			     enum attack_result which)
{
	return json_integer_value(
		json_object_get(json_object_get(result->receipt, "attacks"),
				attack_word(which)));
}

/* "; as uid 1000, 0 reports"; nothing where the warden has seen it itself. */
static void print_reporters(const struct verify_result *result)
{
	const json_t *uids = json_object_get(
		json_object_get(result->receipt, "attacks"), "reported_by");

	for (size_t i = 0; i < json_array_size(uids); i++)
		print_text(
			stdout, TONE_PLAIN, "%s%lld", i ? ", " : "; as uid ",
			(long long)json_integer_value(json_array_get(uids, i)));
	if (uids)
		print_text(stdout, TONE_PLAIN, " reports");
}

/* Of `sallyport prove`. */
static void print_attacks(const struct verify_result *result)
{
	json_int_t out = attacks_of(result, ATTACK_GOT_OUT);

	if (!json_object_get(result->receipt, "attacks"))
		return;
	print_text(stdout, out ? TONE_BAD : TONE_PLAIN,
		   "  attacks   %lld held, %lld got out, %lld skipped",
		   (long long)attacks_of(result, ATTACK_HELD), (long long)out,
		   (long long)attacks_of(result, ATTACK_SKIPPED));
	print_reporters(result);
	putchar('\n');
}

static void put_attacks(struct json *j, const struct verify_result *result)
{
	const json_t *uids;

	if (!json_object_get(result->receipt, "attacks"))
		return;
	json_open(j, "attacks", '{');
	for (unsigned i = 0; i < ATTACK_RESULTS; i++)
		json_int(j, attack_word((enum attack_result)i),
			 attacks_of(result, (enum attack_result)i));
	uids = json_object_get(json_object_get(result->receipt, "attacks"),
			       "reported_by");
	if (uids)
		json_open(j, "reported_by", '[');
	for (size_t i = 0; i < json_array_size(uids); i++)
		json_int(j, NULL, json_integer_value(json_array_get(uids, i)));
	if (uids)
		json_close(j, ']');
	json_close(j, '}');
}

static void print_what(const struct verify_command *command,
		       const struct verify_result *result)
{
	char first[TIME_MAX], last[TIME_MAX], vkey[VKEY_TEXT_MAX];

	if (result->receipt)
		print_text(stdout, TONE_PLAIN,
			   "  boundary  %s, %s; processes separated by %s\n",
			   of_receipt(result, "boundary", "kind"),
			   of_receipt(result, "boundary", "held"),
			   of_receipt(result, "boundary", "separation"));
	print_attacks(result);
	if (*result->policy)
		print_text(stdout, TONE_PLAIN, "  policy    %s\n",
			   result->policy);
	if (*result->ruleset)
		print_text(stdout, TONE_PLAIN, "  ruleset   %s\n",
			   result->ruleset);
	print_text(stdout, TONE_PLAIN,
		   "  records   %" PRIu64 " in %" PRIu64 " file%s, %s to %s\n",
		   result->records, result->parts,
		   result->parts == 1 ? "" : "s",
		   format_time(result->first_ms, first),
		   format_time(result->last_ms, last));
	if (result->backwards)
		print_text(
			stdout, TONE_PLAIN,
			"            the clock went backwards before %" PRIu64
			" of them\n",
			result->backwards);
	print_text(stdout, TONE_PLAIN,
		   "  signed    %" PRIu64 " of them, by %" PRIu64
		   " checkpoint%s\n",
		   result->covered, result->checkpoints,
		   result->checkpoints == 1 ? "" : "s");
	if (!*result->key.name)
		return;
	vkey_format(&result->key, vkey);
	print_text(stdout, TONE_PLAIN, "  key       %s\n", vkey);
	print_text(stdout, TONE_PLAIN, "            %s%s\n",
		   result->known_key ? "which is that of " : "not known before",
		   result->known_key ? command->key_from : "");
}

static void print_problems(const struct verify_result *result)
{
	size_t kept = result->problems < VERIFY_PROBLEMS_MAX
			      ? result->problems
			      : VERIFY_PROBLEMS_MAX;

	for (size_t i = 0; i < kept; i++) {
		const struct verify_problem *p = &result->problem[i];
		char line[32] = "";

		if (p->line)
			snprintf(line, sizeof(line), ":%" PRIu64, p->line);
		print_text(stdout, TONE_BAD, "  %s%s: %s", p->file, line,
			   verify_word(p->fault));
		print_text(stdout, TONE_PLAIN, ": %s\n", p->text);
	}
	if (result->problems > kept)
		print_text(stdout, TONE_PLAIN, "  and %zu more\n",
			   result->problems - kept);
}

void verify_print(const struct verify_command *command,
		  const struct verify_result *result, const char *host)
{
	const char *why[VERIFY_WHYS_MAX];
	size_t n = verify_whys(result, why);

	print_text(stdout, tone_of(result->verdict), "%s",
		   verify_verdict_word(result->verdict));
	print_text(stdout, TONE_PLAIN, ": session %s\n",
		   *result->session ? result->session : "?");
	print_what(command, result);
	if (result->has_receipt)
		print_text(stdout, TONE_PLAIN, "  receipt   good\n");
	print_text(stdout, TONE_PLAIN, "  host log  %s\n", host);
	for (size_t i = 0; i < n; i++)
		print_text(stdout, TONE_WARNING, "  but %s\n", why[i]);
	print_problems(result);
}

void verify_print_row(const char *name, const struct verify_result *result)
{
	const char *why[VERIFY_WHYS_MAX];
	const struct verify_problem *p = &result->problem[0];
	char line[32] = "";

	print_text(stdout, tone_of(result->verdict), "%-10s",
		   verify_verdict_word(result->verdict));
	print_text(stdout, TONE_PLAIN, "  %-28s  %9" PRIu64 " records", name,
		   result->records);
	if (p->line)
		snprintf(line, sizeof(line), ":%" PRIu64, p->line);
	if (result->problems)
		print_text(stdout, TONE_PLAIN, "  %s%s: %s: %s", p->file, line,
			   verify_word(p->fault), p->text);
	else if (verify_whys(result, why))
		print_text(stdout, TONE_PLAIN, "  %s", why[0]);
	print_text(stdout, TONE_PLAIN, "\n");
}

static void put_problems(struct json *j, const struct verify_result *result)
{
	json_open(j, "problems", '[');
	for (size_t i = 0; i < result->problems && i < VERIFY_PROBLEMS_MAX;
	     i++) {
		const struct verify_problem *p = &result->problem[i];

		json_open(j, NULL, '{');
		json_text(j, "word", verify_word(p->fault));
		json_text(j, "file", p->file);
		if (p->line)
			json_uint(j, "line", p->line);
		json_text(j, "text", p->text);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_uint(j, "problems_total", result->problems);
}

static void put_whys(struct json *j, const struct verify_result *result)
{
	const char *why[VERIFY_WHYS_MAX];
	size_t n = verify_whys(result, why);

	json_open(j, "but", '[');
	for (size_t i = 0; i < n; i++)
		json_text(j, NULL, why[i]);
	json_close(j, ']');
}

static void put_boundary(struct json *j, const struct verify_result *result)
{
	static const char *const names[] = { "kind", "held", "separation" };

	if (!result->receipt)
		return;
	json_open(j, "receipt", '{');
	json_open(j, "boundary", '{');
	for (size_t i = 0; i < 3; i++)
		json_text(j, names[i],
			  of_receipt(result, "boundary", names[i]));
	json_close(j, '}');
	put_attacks(j, result);
	json_text(
		j, "started",
		json_string_value(json_object_get(result->receipt, "started")));
	json_text(j, "ended",
		  json_string_value(json_object_get(result->receipt, "ended")));
	json_close(j, '}');
}

static void put_numbers(struct json *j, const struct verify_result *result)
{
	json_uint(j, "records", result->records);
	json_uint(j, "covered", result->covered);
	json_uint(j, "checkpoints", result->checkpoints);
	json_uint(j, "parts", result->parts);
	json_uint(j, "bytes", result->bytes);
	json_uint(j, "first_ms", result->first_ms);
	json_uint(j, "last_ms", result->last_ms);
	json_uint(j, "backwards", result->backwards);
	json_bool(j, "closed", result->closed);
	json_bool(j, "torn", result->torn);
}

void verify_put_json(struct json *j, const char *key, const char *name,
		     const struct verify_result *result)
{
	char vkey[VKEY_TEXT_MAX] = "";

	if (*result->key.name)
		vkey_format(&result->key, vkey);
	json_open(j, key, '{');
	json_text(j, "log", name);
	json_text(j, "verdict", verify_verdict_word(result->verdict));
	json_text(j, "session", result->session);
	put_numbers(j, result);
	json_text(j, "policy", result->policy);
	json_text(j, "ruleset", result->ruleset);
	json_text(j, "key", vkey);
	json_bool(j, "key_known", result->known_key);
	json_bool(j, "has_receipt", result->has_receipt);
	put_boundary(j, result);
	put_whys(j, result);
	put_problems(j, result);
	json_close(j, '}');
}
