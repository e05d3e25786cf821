/* SPDX-License-Identifier: Apache-2.0
 *
 * session.h - the name of a session, its policy and the place of its log.
 */
#ifndef CMD_SESSION_H
#define CMD_SESSION_H

#include <limits.h>

#include "cmd/options.h"
#include "cmd/session_log.h"
#include "cmd/signing.h"
#include "policy/policy.h"

struct session {
	char id[64];   /* 20261121T041652Z-3f9a0c11d2 */
	char name[64]; /* --name, or the id */
	char dir[PATH_MAX], log[PATH_MAX + 16]; /* DIR/audit.jsonl */
	char home[PATH_MAX]; /* all sessions: $XDG_STATE_HOME/sallyport */
	struct policy *policy;
	char policy_text[512]; /* the files it is made of, for people */
	struct session_log files;
	struct signing signing;
};

/* Builds the policy, names the session, makes its directory and the files of
 * its log, and opens its key; dies with a message (EXIT_SALLYPORT) where that
 * can't be done. */
void session_open(const struct options *options, struct session *ret);
/* Its policy alone, with what there is to say of it; dies as well. */
void session_policy(const struct options *options, struct session *session);
/* The policy that @bundle makes; dies with what is wrong. */
struct policy *session_build(const struct bundle *bundle);
void session_close(struct session *session);

/* Are we real root: uid 0 with all uids mapped? Uid 0 of a small user namespace
 * is not: it is treated as the ordinary user it is. */
bool session_root(void);
/* session_home() of root. */
#define SESSION_HOME_ROOT "/var/log/sallyport"

/* Where sessions have their directories, unless --log says otherwise; false if
 * there is no HOME. */
bool session_home(char *buf, size_t cap);

/* mkdir -p with mode 0700. 0 or -errno. */
int session_mkdir(const char *path);

#endif
