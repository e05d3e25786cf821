/* SPDX-License-Identifier: Apache-2.0
 *
 * log_find.c - sessions have a directory each below the state directory, named
 * by their id, which begins with the time.
 */
#include "cmd/log_find.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/log_dir.h"
#include "audit/observed.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client_log.h"
#include "cmd/command.h"
#include "cmd/session.h"
#include "policy/words.h"

#define STAMP_LEN 16 /* 20261121T041652Z */

struct newest {
	char path[PATH_MAX], stamp[STAMP_LEN + 1];
	struct timespec changed;
};

/* False if the path is too long. */
static bool join(char buf[PATH_MAX], const char *dir, const char *name)
{
	int len = snprintf(buf, PATH_MAX, "%s/%s", dir, name);

	return len > 0 && len < PATH_MAX;
}

static bool is_id(const char *name)
{
	static const char form[] = "00000000T000000Z-";

	for (const char *at = form; *at; at++, name++) {
		if (*at == '0' ? *name < '0' || *name > '9' : *name != *at)
			return false;
	}
	return true;
}

/* Does the first line say that this session is called @name? */
static bool is_called(const char *path, const char *name)
{
	AUTO_FILE FILE *file = fopen(path, "re");
	AUTO_FREE char *line = malloc(OBSERVED_LINE_MAX);
	const char *called = NULL;
	struct observation o;
	json_t *json = NULL;
	bool same;

	if (!file || !line || !fgets(line, OBSERVED_LINE_MAX, file))
		return false;
	if (observed_parse_json(line, strcspn(line, "\n"), &o, &json) !=
	    OBSERVED_BAD)
		called = json_string_value(json_object_get(
			json_object_get(json, "unmapped"), "sandbox"));
	same = called && strcmp(called, name) == 0;
	json_decref(json);
	return same;
}

static bool is_newer(const struct newest *than, const char *id,
		     const struct stat *st)
{
	int order = strncmp(id, than->stamp, STAMP_LEN);

	if (order)
		return order > 0;
	if (st->st_mtim.tv_sec != than->changed.tv_sec)
		return st->st_mtim.tv_sec > than->changed.tv_sec;
	return st->st_mtim.tv_nsec > than->changed.tv_nsec;
}

/* @name: NULL for any. */
static void consider(struct newest *newest, const char *home, const char *id,
		     const char *name)
{
	char dir[PATH_MAX], path[PATH_MAX];
	struct stat st;

	if (!is_id(id) || !join(dir, home, id) ||
	    !join(path, dir, LOG_DIR_RECORDS) || stat(path, &st) < 0 ||
	    !S_ISREG(st.st_mode) || !is_newer(newest, id, &st) ||
	    (name && !is_called(path, name)))
		return;
	snprintf(newest->path, sizeof(newest->path), "%s", path);
	snprintf(newest->stamp, sizeof(newest->stamp), "%.*s", STAMP_LEN, id);
	newest->changed = st.st_mtim;
}

static void consider_all(struct newest *newest, const char *home,
			 const char *name)
{
	const struct dirent *entry;
	DIR *dir = opendir(home);

	while (dir && (entry = readdir(dir)))
		consider(newest, home, entry->d_name, name);
	if (dir)
		closedir(dir);
}

static bool find_newest(const char *home, const char *name,
			char ret_path[PATH_MAX])
{
	struct newest newest = { .path = "" };
	char linked[PATH_MAX];

	consider_all(&newest, home, name);
	if (join(linked, home, CLIENT_LOG_DIR))
		consider_all(&newest, linked, name);
	snprintf(ret_path, PATH_MAX, "%s", newest.path);
	return *newest.path;
}

static bool is_session(const char *home, const char *id,
		       char ret_path[PATH_MAX])
{
	char dir[PATH_MAX];
	struct stat st;

	return join(dir, home, id) && join(ret_path, dir, LOG_DIR_RECORDS) &&
	       stat(ret_path, &st) == 0;
}

bool log_find(const char *what, char ret_path[PATH_MAX])
{
	char home[PATH_MAX] = "", dir[PATH_MAX], shown[WORD_SHOWN_MAX];
	struct stat st;

	if (what && strlen(what) >= PATH_MAX)
		die(EXIT_SALLYPORT, "%.64s...: %s", what,
		    strerror(ENAMETOOLONG));
	if (what && stat(what, &st) == 0) {
		snprintf(ret_path, PATH_MAX, "%s", what);
		if (S_ISDIR(st.st_mode) &&
		    !join(ret_path, what, LOG_DIR_RECORDS))
			die(EXIT_SALLYPORT, "%.64s...: %s", what,
			    strerror(ENAMETOOLONG));
		return S_ISDIR(st.st_mode);
	}
	if (what && strchr(what, '/'))
		die(EXIT_SALLYPORT, "%s: %s", what, strerror(errno));
	if (!session_home(home, sizeof(home)))
		die(EXIT_SALLYPORT, "there is no HOME: say which log");
	if (what && is_id(what) &&
	    (is_session(home, what, ret_path) ||
	     (join(dir, home, CLIENT_LOG_DIR) &&
	      is_session(dir, what, ret_path))))
		return true;
	if (find_newest(home, what, ret_path))
		return true;
	if (what)
		die(EXIT_SALLYPORT,
		    "there is no file, directory or session %s\nSessions are "
		    "looked for below %s.",
		    word_show(what, strlen(what), shown), home);
	die(EXIT_SALLYPORT,
	    "there is no session below %s\nThe log of one that was started "
	    "with --log is named by that directory.",
	    home);
}
