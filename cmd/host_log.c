/* SPDX-License-Identifier: Apache-2.0
 *
 * host_log.c - opens the log of all sessions.
 *
 * Whose key signs it is told by the public half beside the key; the private one
 * is never read here.
 */
#include "cmd/host_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "audit/hostlog_dir.h"
#include "base/cleanup.h"
#include "cmd/session.h"

bool host_log_wanted(const struct session *session)
{
	return !session->signing.ephemeral && *session->home;
}

/* Is it the key of all sessions that have this home? A user's key is found as
 * his home is; root's sessions have one home, whatever $XDG_CONFIG_HOME says.
 * Where several keys were used in turn, each session would begin anew. */
static bool is_usual(const struct session *session)
{
	char dir[PATH_MAX], file[PATH_MAX + 16];

	if (session_root())
		snprintf(dir, sizeof(dir), "/etc/sallyport");
	else if (!signing_dir(dir, sizeof(dir)))
		return false;
	snprintf(file, sizeof(file), "%s/" SIGNING_KEY, dir);
	AUTO_FREE char *real = realpath(file, NULL);

	return real && strcmp(real, session->signing.path) == 0;
}

int host_log_open(const struct session *session, bool ongoing,
		  struct hostlog_files *ret_files)
{
	char name[HOSTLOG_DIR_MAX];
	AUTO_FD int home = -1;
	struct vkey signer;
	int r;

	if (key_read_public(AT_FDCWD, session->signing.vkey, &signer) < 0)
		return -ENODATA;
	r = session_mkdir(session->home);
	if (r < 0)
		return r;
	home = open(session->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (home < 0)
		return -errno;
	return hostlog_dir_open(
		home, hostlog_dir_name(&signer, !is_usual(session), name),
		&signer, ongoing, ret_files);
}
