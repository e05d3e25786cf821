/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.h - the parts of `sallyport verify`.
 */
#ifndef CMD_VERIFY_H
#define CMD_VERIFY_H

#include <limits.h>

#include "audit/hostlog_check.h"
#include "audit/verify.h"
#include "base/json.h"

enum verify_exit {
	VERIFY_EXIT_HOLDS = 0,
	VERIFY_EXIT_BROKEN = 1,
	VERIFY_EXIT_INCOMPLETE = 2,
};

struct verify_command {
	const char *log; /* NULL: the newest session */
	const char *key, *receipt, *checkpoint;
	const char *record, *with; /* one line, and what proves it */
	const char *out;	   /* of --proof; NULL: standard output */
	bool json, quiet, prove;
	bool sessions; /* .log is the directory of all; NULL: the usual one */
	uint64_t proof;
	struct vkey vkey;
	bool has_vkey;
	const char *key_from; /* for people: where .vkey came from */
};

/* Dies with a message (EXIT_SALLYPORT), or ends after --help. */
void verify_options_parse(int argc, char **argv, struct verify_command *ret);
/* Fills in .vkey: --key, or signing.vkey of the configuration, or none. */
void verify_options_key(struct verify_command *command);
/* The same for the log at @path: what is root's, and we are not, was signed
 * with root's key (a sandbox of the daemon). --key is --key. */
void verify_options_key_of(struct verify_command *command, const char *path);

/* The directory that is meant; die with a message (EXIT_SALLYPORT) if there is
 * none. A log of all sessions stands for the directory that it is in. */
void verify_find_log(const char *what, char ret[PATH_MAX]);
void verify_find_home(const struct verify_command *command, char ret[PATH_MAX]);
bool verify_is_session(const char *dir);

/* Why a result that is not broken proves less than all; 0 if it does. Fills
 * at most VERIFY_WHYS_MAX sentences. */
#define VERIFY_WHYS_MAX 7
size_t verify_whys(const struct verify_result *result,
		   const char *ret_why[VERIFY_WHYS_MAX]);

const char *verify_verdict_word(enum verify_verdict verdict);
/* @host: as verify_host_one() returns it. */
void verify_print(const struct verify_command *command,
		  const struct verify_result *result, const char *host);
void verify_print_row(const char *name, const struct verify_result *result);
/* As a member @key of what is open in @j, or the whole if @key is NULL. */
void verify_put_json(struct json *j, const char *key, const char *name,
		     const struct verify_result *result);
/* Enough for one result. */
#define VERIFY_JSON_MAX 65536

/* A line on standard error, where that is a terminal. */
struct verify_progress {
	bool shown;
	unsigned percent;
	int64_t next_ms; /* when it is drawn again */
};
void verify_progress_begin(struct verify_progress *progress, bool quiet);
bool verify_progress_on(void *progress, uint64_t bytes, uint64_t total);
void verify_progress_end(struct verify_progress *progress);

/* The sessions below @dir, by name: each that has a log. Returns how many there
 * are, with names that the caller frees, or -errno. @prefix: only those. */
int verify_sessions(const char *dir, const char *prefix, char ***ret_names);

/* Adds a problem if @dir is named as a session that is not the one in it:
 * somebody put one in the place of another. */
void verify_check_name(const char *dir, struct verify_result *result);

void verify_add_problem(struct verify_result *result, enum verify_fault fault,
			const char *file, const char *text);

/* Whether @earlier is the log that the first record of @result says was in its
 * place before. */
bool verify_fits(const struct verify_result *result,
		 const struct verify_result *earlier);

/* --- the log of all sessions --------------------------------------------- */

struct verify_host {
	int r;			     /* 0; -ENOENT if there is none; -errno */
	enum verify_verdict verdict; /* of the log itself */
	bool known_key;
	struct hostlog_checked checked;
	struct verify_host_lost *lost; /* what is not as it ended */
	size_t losts;
};

/* Is @dir one of its directories, not a session's? */
bool verify_is_host(const char *dir);
void verify_host(const struct verify_command *command, const char *home,
		 struct verify_host *ret);
void verify_host_free(struct verify_host *host);
void verify_host_print(const struct verify_host *host);
/* A member of what is open in @j. */
void verify_host_json(struct json *j, const struct verify_host *host);

/* What the log of all sessions beside @dir, or the usual one, says of the
 * session in it; adds to @result what is wrong. Returns a few words for people.
 */
const char *verify_host_one(const char *dir, struct verify_result *result);

/* Is @path a file of `prove --receipt`? NULL is none. And is it in order? The
 * exit status. */
bool verify_is_statement(const char *path);
int verify_statement(const struct verify_command *command);

/* `--record FILE --with PROOF`; returns the exit status. */
int verify_record(const struct verify_command *command);

#endif
