/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_check.h - are all sessions still there that the log of all sessions
 * names, as they ended; and does it name all that are there?
 */
#ifndef AUDIT_HOSTLOG_CHECK_H
#define AUDIT_HOSTLOG_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/vkey.h"

enum hostlog_trouble {
	HOSTLOG_FINE,	    /* its log is there, and the receipt it ended
			       with */
	HOSTLOG_NOT_ENDED,  /* its log is there: it runs, or was killed */
	HOSTLOG_NO_RECEIPT, /* its log is there: it ended without one */
	HOSTLOG_NO_PLACE,   /* where its log is was not written down */
	/* From here on something is wrong. */
	HOSTLOG_GONE, /* its log is not where it was */
	HOSTLOG_RECEIPT_GONE,
	HOSTLOG_RECEIPT_OTHER, /* not the one that it ended with */
	HOSTLOG_NOT_NAMED,     /* a log that the log of all does not name,
				  though it is there for some seconds */
	HOSTLOG_TROUBLE_COUNT
};

/* "fine", "not_ended", ...: for programs. */
const char *hostlog_trouble_word(enum hostlog_trouble trouble);
/* "its log is gone", ...: goes on after the name of the session. */
const char *hostlog_trouble_text(enum hostlog_trouble trouble);

struct hostlog_session {
	const char *session;
	const char *directory; /* where its log is, or was; "" */
	enum hostlog_trouble trouble;
};

#define HOSTLOG_PROBLEMS_MAX 8

struct hostlog_checked {
	uint64_t records, covered; /* of all logs; by checkpoints */
	unsigned logs;		   /* with those that were put aside */
	uint64_t sessions[HOSTLOG_TROUBLE_COUNT];
	/* What is wrong with the log itself. */
	size_t problems;
	char problem[HOSTLOG_PROBLEMS_MAX][320];
};

/* A session's log is where it was, or in @home under the session's name (all
 * of them may have been moved).
 *
 * @home: the directory of all sessions. @key: of NAME; NULL: that beside the
 * log is believed. @session, if not NULL, is called for each. The newest log
 * vouches for the older ones, which it quotes. Returns 0, whatever is wrong;
 * -ENOENT if there is no such log; -ENOMEM; what reading says. */
int hostlog_check(const char *home, const struct vkey *key,
		  void (*session)(void *arg, const struct hostlog_session *),
		  void *arg, struct hostlog_checked *ret);

/* The same of one session, whose log is in @dir and was signed by @own,
 * NAME/SESSION. HOSTLOG_GONE: it names another key of that session.
 * HOSTLOG_NOT_NAMED is no more than that. Returns 0; -ENOENT also if no log of
 * all sessions is of that key. */
int hostlog_check_one(const char *home, const struct vkey *own, const char *dir,
		      enum hostlog_trouble *ret_trouble,
		      struct hostlog_checked *ret);

#endif
