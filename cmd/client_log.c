/* SPDX-License-Identifier: Apache-2.0
 *
 * client_log.c - a link a session. One that can't be made costs no more than
 * the typing of a path.
 */
#include "cmd/client_log.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/client_call.h"
#include "cmd/session.h"

void client_log_note(const json_t *s)
{
	const char *session = client_text(s, "session");
	const char *log = client_text(s, "log");
	char home[PATH_MAX], dir[PATH_MAX], link[PATH_MAX];

	if (session_root() || !*session || *session == '.' ||
	    strchr(session, '/') || *log != '/' ||
	    !session_home(home, sizeof(home)))
		return;
	if (snprintf(dir, sizeof(dir), "%s/" CLIENT_LOG_DIR, home) >=
		    (int)sizeof(dir) ||
	    snprintf(link, sizeof(link), "%s/%s", dir, session) >=
		    (int)sizeof(link) ||
	    session_mkdir(dir))
		return;
	/* The one that is there says the same. */
	(void)!symlink(log, link);
}
