/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_host.c - the log of all sessions: that none of them was removed as a
 * whole, or got another receipt, which nothing in its own directory can show.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/hostlog.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "cmd/verify.h"

#define HOST_FILE HOSTLOG_DIR "/" HOSTLOG_RECORDS

struct verify_host_lost {
	char session[80];
	char directory[HOSTLOG_DIRECTORY_MAX];
	enum hostlog_trouble trouble;
};

static bool is_there(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	int len = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return len < PATH_MAX && lstat(path, &st) == 0;
}

bool verify_is_host(const char *dir)
{
	return is_there(dir, HOSTLOG_VKEY) && !is_there(dir, LOG_DIR_VKEY);
}

/* --- of all sessions ----------------------------------------------------- */

static void on_session(void *arg, const struct hostlog_session *session)
{
	struct verify_host *host = arg;
	struct verify_host_lost *more, *lost;

	if (session->trouble < HOSTLOG_GONE)
		return;
	more = realloc(host->lost, (host->losts + 1) * sizeof(*more));
	if (!more)
		die(EXIT_SALLYPORT, "%s", strerror(ENOMEM));
	host->lost = more;
	lost = &more[host->losts++];
	lost->trouble = session->trouble;
	snprintf(lost->session, sizeof(lost->session), "%s", session->session);
	snprintf(lost->directory, sizeof(lost->directory), "%s",
		 session->directory);
	text_clean(lost->session);
	text_clean(lost->directory);
}

/* Of the log itself: what it names may be gone nevertheless. */
static enum verify_verdict judge(const struct verify_host *host)
{
	const struct hostlog_checked *checked = &host->checked;

	if (checked->problems)
		return VERIFY_BROKEN;
	return host->known_key && checked->covered == checked->records &&
			       !checked->sessions[HOSTLOG_NO_PLACE]
		       ? VERIFY_HOLDS
		       : VERIFY_INCOMPLETE;
}

void verify_host(const struct verify_command *command, const char *home,
		 struct verify_host *ret)
{
	*ret = (struct verify_host){ .r = 0 };
	/* A session's key is not the one that the log of all is named by. */
	ret->known_key = command->has_vkey && !strchr(command->vkey.name, '/');
	ret->r = hostlog_check(home, ret->known_key ? &command->vkey : NULL,
			       on_session, ret, &ret->checked);
	for (size_t i = 0;
	     !ret->r && i < ret->checked.problems && i < HOSTLOG_PROBLEMS_MAX;
	     i++)
		text_clean(ret->checked.problem[i]);
	ret->verdict = ret->r ? VERIFY_INCOMPLETE : judge(ret);
}

void verify_host_free(struct verify_host *host)
{
	free(host->lost);
}

static enum tone tone_of(enum verify_verdict verdict)
{
	return verdict == VERIFY_HOLDS	  ? TONE_GOOD
	       : verdict == VERIFY_BROKEN ? TONE_BAD
					  : TONE_WARNING;
}

static void print_count(uint64_t count, const char *what)
{
	if (count)
		print_text(stdout, TONE_PLAIN, ", %" PRIu64 " %s", count, what);
}

static void print_sum(const struct verify_host *host)
{
	const struct hostlog_checked *checked = &host->checked;
	const uint64_t *sessions = checked->sessions;
	uint64_t named = 0;

	for (int i = 0; i < HOSTLOG_NOT_NAMED; i++)
		named += sessions[i];
	print_text(stdout, tone_of(host->verdict), "%-10s",
		   verify_verdict_word(host->verdict));
	print_text(stdout, TONE_PLAIN,
		   "  %-28s  %9" PRIu64 " records  names %" PRIu64 " session%s",
		   "log of all sessions (" HOSTLOG_DIR ")", checked->records,
		   named, named == 1 ? "" : "s");
	print_count(sessions[HOSTLOG_FINE], "as they ended");
	print_count(sessions[HOSTLOG_NOT_ENDED], "running or killed");
	print_count(sessions[HOSTLOG_NO_RECEIPT], "ended without a receipt");
	print_count(sessions[HOSTLOG_NO_PLACE], "of which it is not known "
						"where they are");
	print_text(stdout, TONE_PLAIN, "\n");
}

static void print_whys(const struct verify_host *host)
{
	const char *why[2];
	size_t n = 0;

	if (host->verdict == VERIFY_BROKEN)
		return;
	if (!host->known_key)
		why[n++] = "the key came with the log: whoever changed it "
			   "could have made that (--key)";
	if (host->checked.covered < host->checked.records)
		why[n++] = "its last records are not signed";
	for (size_t i = 0; i < n; i++)
		print_text(stdout, TONE_WARNING, "            but %s\n",
			   why[i]);
}

static void print_lost(const struct verify_host_lost *lost)
{
	print_text(stdout, TONE_BAD, "%-10s",
		   verify_verdict_word(VERIFY_BROKEN));
	print_text(stdout, TONE_PLAIN, "  %-28s  %s%s%s\n", lost->session,
		   hostlog_trouble_text(lost->trouble),
		   *lost->directory ? ": " : "", lost->directory);
}

void verify_host_print(const struct verify_host *host)
{
	size_t kept = host->checked.problems < HOSTLOG_PROBLEMS_MAX
			      ? host->checked.problems
			      : HOSTLOG_PROBLEMS_MAX;

	if (host->r == -ENOENT) {
		print_text(stdout, TONE_WARNING,
			   "There is no log of all sessions (" HOSTLOG_DIR
			   "): nothing shows whether there were others.\n");
		return;
	}
	if (host->r < 0) {
		log_err(HOSTLOG_DIR ": %s", strerror(-host->r));
		return;
	}
	print_sum(host);
	print_whys(host);
	for (size_t i = 0; i < kept; i++)
		print_text(stdout, TONE_BAD, "            %s\n",
			   host->checked.problem[i]);
	if (host->checked.problems > kept)
		print_text(stdout, TONE_PLAIN, "            and %zu more\n",
			   host->checked.problems - kept);
	for (size_t i = 0; i < host->losts; i++)
		print_lost(&host->lost[i]);
}

void verify_host_json(struct json *j, const struct verify_host *host)
{
	const struct hostlog_checked *checked = &host->checked;

	json_open(j, "host", '{');
	json_text(j, "verdict", verify_verdict_word(host->verdict));
	json_uint(j, "records", checked->records);
	json_uint(j, "covered", checked->covered);
	json_bool(j, "key_known", host->known_key);
	json_open(j, "sessions", '{');
	for (int i = 0; i < HOSTLOG_TROUBLE_COUNT; i++)
		json_uint(j, hostlog_trouble_word((enum hostlog_trouble)i),
			  checked->sessions[i]);
	json_close(j, '}');
	json_open(j, "broken", '[');
	for (size_t i = 0; i < host->losts; i++) {
		json_open(j, NULL, '{');
		json_text(j, "session", host->lost[i].session);
		json_text(j, "word",
			  hostlog_trouble_word(host->lost[i].trouble));
		json_text(j, "directory", host->lost[i].directory);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_open(j, "problems", '[');
	for (size_t i = 0; i < checked->problems && i < HOSTLOG_PROBLEMS_MAX;
	     i++)
		json_text(j, NULL, checked->problem[i]);
	json_close(j, ']');
	json_uint(j, "problems_total", checked->problems);
	json_close(j, '}');
}

/* --- of one session ------------------------------------------------------ */

static bool parent_of(const char *dir, char ret[PATH_MAX])
{
	AUTO_FREE char *real = realpath(dir, NULL);
	char *slash = real ? strrchr(real, '/') : NULL;

	if (!slash || strlen(real) >= PATH_MAX)
		return false;
	slash[slash == real] = '\0';
	snprintf(ret, PATH_MAX, "%s", real);
	return true;
}

static const char *add_trouble(enum hostlog_trouble trouble,
			       struct verify_result *result)
{
	switch (trouble) {
	case HOSTLOG_FINE:
		return "names it, with this receipt";
	case HOSTLOG_NOT_ENDED:
		return "names it, and not its end: it goes on, or was killed";
	case HOSTLOG_NO_RECEIPT:
		return "names it, and says that it ended without a receipt";
	case HOSTLOG_NO_PLACE:
		return "names it, but not its key";
	case HOSTLOG_NOT_NAMED:
		result->not_named = true;
		return "does not name it";
	case HOSTLOG_GONE:
		verify_add_problem(result, VERIFY_WRONG_KEY, HOST_FILE,
				   "the log of all sessions names another key "
				   "of this session");
		return "names it, with another key";
	case HOSTLOG_RECEIPT_GONE:
		verify_add_problem(result, VERIFY_RECEIPT, HOST_FILE,
				   "the log of all sessions says that there "
				   "was a receipt, and it is gone");
		return "names it, with a receipt";
	default:
		verify_add_problem(result, VERIFY_RECEIPT, HOST_FILE,
				   "the log of all sessions says that it ended "
				   "with another receipt");
		return "names it, with another receipt";
	}
}

const char *verify_host_one(const char *dir, struct verify_result *result)
{
	enum hostlog_trouble trouble = HOSTLOG_NOT_NAMED;
	struct hostlog_checked checked;
	const char *said;
	char home[PATH_MAX];
	int r;

	if (!*result->key.name || !parent_of(dir, home))
		return "not looked at: the key is not known";
	r = hostlog_check_one(home, &result->key, dir, &trouble, &checked);
	/* The log may be elsewhere (--log), and ours. */
	if (r == -ENOENT && session_home(home, sizeof(home)))
		r = hostlog_check_one(home, &result->key, dir, &trouble,
				      &checked);
	if (r == -ENOENT)
		return "there is none of this key";
	if (r < 0)
		return strerror(-r);
	/* Who broke it could have it say anything. */
	result->host_broken = checked.problems > 0;
	said = checked.problems ? "broken itself: see `sallyport verify "
				  "--sessions`"
				: add_trouble(trouble, result);
	if (result->verdict == VERIFY_HOLDS &&
	    (result->host_broken || result->not_named))
		result->verdict = VERIFY_INCOMPLETE;
	return said;
}
