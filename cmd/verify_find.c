/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_find.c - which directory is verified: of a session, or of all.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/log_dir.h"
#include "audit/verify_read.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/log_find.h"
#include "cmd/session.h"
#include "cmd/verify.h"

static bool has(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	int len = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return len < PATH_MAX && lstat(path, &st) == 0;
}

/* From a log of all sessions to what it is about. */
static void leave_host(char dir[PATH_MAX])
{
	size_t len;

	while (verify_is_host(dir) &&
	       (len = strlen(dir)) + sizeof("/..") <= PATH_MAX)
		memcpy(dir + len, "/..", sizeof("/.."));
}

/* Cuts the file off: what matters is the directory. */
void verify_find_log(const char *what, char ret[PATH_MAX])
{
	char *slash, *base;

	log_find(what, ret);
	slash = strrchr(ret, '/');
	base = slash ? slash + 1 : ret;
	if (strncmp(base, LOG_DIR_RECORDS, sizeof(LOG_DIR_RECORDS) - 1) != 0)
		die(EXIT_SALLYPORT,
		    "%s: it is no log (" LOG_DIR_RECORDS
		    "), and no directory of one",
		    ret);
	if (!slash)
		snprintf(ret, PATH_MAX, ".");
	else if (slash == ret)
		slash[1] = '\0';
	else
		*slash = '\0';
	leave_host(ret);
}

/* The directory of all sessions: DIR, the usual one, or the one that a log of
 * all sessions is in. */
void verify_find_home(const struct verify_command *command, char ret[PATH_MAX])
{
	struct stat st;

	if (!command->log && !session_home(ret, PATH_MAX))
		die(EXIT_SALLYPORT, "there is no HOME: say which directory");
	if (command->log)
		snprintf(ret, PATH_MAX, "%s", command->log);
	if (stat(ret, &st) < 0)
		die(EXIT_SALLYPORT, "%s: %s", ret, strerror(errno));
	if (!S_ISDIR(st.st_mode) || has(ret, LOG_DIR_VKEY))
		die(EXIT_SALLYPORT, "%s: it is no directory of sessions", ret);
	leave_host(ret);
}

/* Any of its files makes it one: the log may be what is missing. */
bool verify_is_session(const char *dir)
{
	AUTO_FD int fd = open(dir, O_RDONLY | O_CLOEXEC | O_DIRECTORY);

	return fd >= 0 && verify_has_log(fd);
}
