/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_check.c - holds what the log of all sessions says against what is on
 * the disk.
 */
#include "audit/hostlog_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/hostlog_dir.h"
#include "audit/hostlog_look.h"
#include "audit/hostlog_read.h"
#include "base/cleanup.h"
#include "base/hex.h"

#define YOUNG_S 10
/* More are not followed. */
#define LOGS_MAX 10000

static const struct {
	const char *word, *text;
} troubles[HOSTLOG_TROUBLE_COUNT] = {
	[HOSTLOG_FINE] = { "fine", "its log is there, and its receipt" },
	[HOSTLOG_NOT_ENDED] = { "not_ended", "it runs, or was killed" },
	[HOSTLOG_NO_RECEIPT] = { "no_receipt", "it ended without a receipt" },
	[HOSTLOG_NO_PLACE] = { "no_place",
			       "where its log is was not written down" },
	[HOSTLOG_GONE] = { "gone", "its log is gone" },
	[HOSTLOG_RECEIPT_GONE] = { "receipt_gone", "its receipt is gone" },
	[HOSTLOG_RECEIPT_OTHER] = { "receipt_other",
				    "its receipt is not the one that it ended "
				    "with" },
	[HOSTLOG_NOT_NAMED] = { "not_named",
				"the log of all sessions does not name it" },
};

const char *hostlog_trouble_word(enum hostlog_trouble trouble)
{
	return troubles[trouble].word;
}

const char *hostlog_trouble_text(enum hostlog_trouble trouble)
{
	return troubles[trouble].text;
}

struct check {
	struct hostlog_checked *ret;
	void (*session)(void *arg, const struct hostlog_session *session);
	void *arg;
	json_t *sessions; /* name: { directory, vkey, ended, receipt } */
	json_t *keys;	  /* public halves of those that sign: true */
	const char *name; /* of the log that is read */
	int home;
	bool no_memory;
};

static void __attribute__((format(printf, 3, 4)))
say(struct check *c, const char *where, const char *format, ...)
{
	char *to;
	size_t len;
	va_list args;

	if (c->ret->problems++ >= HOSTLOG_PROBLEMS_MAX)
		return;
	to = c->ret->problem[c->ret->problems - 1];
	snprintf(to, sizeof(c->ret->problem[0]), "%s/%s%s: ", c->name, where,
		 *where ? "/" : "");
	len = strlen(to);
	va_start(args, format);
	vsnprintf(to + len, sizeof(c->ret->problem[0]) - len, format, args);
	va_end(args);
}

static void keep(struct check *c, json_t *object, const char *key,
		 const char *value)
{
	if (value && !json_object_get(object, key) &&
	    json_object_set_new(object, key, json_string(value)) < 0)
		c->no_memory = true;
}

static void take_line(void *arg, const struct hostlog_line *line)
{
	struct check *c = arg;
	json_t *object = json_object_get(c->sessions, line->session);

	if (!object) {
		object = json_object();
		if (!object || json_object_set_new(c->sessions, line->session,
						   object) < 0) {
			c->no_memory = true;
			return;
		}
	}
	keep(c, object, "directory", line->directory);
	keep(c, object, "vkey", line->vkey);
	keep(c, object, "receipt", line->receipt);
	if (line->event != HOSTLOG_OPENED)
		keep(c, object, "ended", "");
}

static void note_key(struct check *c, const struct vkey *vkey)
{
	char hex[2 * VKEY_LEN + 1];

	if (json_object_set_new(c->keys,
				hex_format(vkey->public, VKEY_LEN, hex),
				json_true()) < 0)
		c->no_memory = true;
}

/* A log, and those that were put aside, newest first. */
static int read_logs(struct check *c, int host, const struct vkey *key)
{
	struct hostlog_earlier next = { .directory = "." };

	for (unsigned i = 0; *next.directory && i < LOGS_MAX; i++) {
		const char *where = i ? next.directory : "";
		struct hostlog_read log;
		AUTO_FD int dir =
			openat(host, next.directory,
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		int r = dir < 0 ? -errno
				: hostlog_read(dir, i ? NULL : key, take_line,
					       c, &log);

		if (i && r < 0 && r != -ENOMEM) {
			say(c, where,
			    "a log was put there, and can't be read: "
			    "%s",
			    strerror(-r));
			return 0;
		}
		if (r < 0)
			return r;
		c->ret->logs++;
		c->ret->records += log.records;
		c->ret->covered += log.covered;
		note_key(c, &log.vkey);
		if (*log.problem)
			say(c, where, "%s", log.problem);
		if (i && (log.bytes != next.bytes ||
			  memcmp(log.sha256, next.sha256, MERKLE_HASH) != 0)) {
			say(c, where, "not the log that was put there");
			return 0;
		}
		next = log.earlier;
	}
	return c->no_memory ? -ENOMEM : 0;
}

static bool is_apart(const char *name)
{
	static const char begin[] = HOSTLOG_DIR "-";
	size_t len = sizeof(begin) - 1;

	return strncmp(name, begin, len) == 0 &&
	       strspn(name + len, "0123456789abcdef") == 8 && !name[len + 8];
}

static int read_one(struct check *c, const char *name, const struct vkey *key)
{
	AUTO_FD int host = openat(
		c->home, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (host < 0)
		return -errno;
	c->name = name;
	return read_logs(c, host, key);
}

static DIR *open_home(const struct check *c)
{
	int fd = openat(c->home, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *all = fd < 0 ? NULL : fdopendir(fd);

	if (!all)
		close_fd(&fd);
	return all;
}

/* @key is that of its own log, if it has one, else of the usual one; nobody
 * told us of the others. */
static int read_all(struct check *c, const struct vkey *key)
{
	char own[HOSTLOG_DIR_MAX] = "";
	DIR *all = open_home(c);
	struct dirent *entry;
	bool found = false;
	int r = 0;

	if (!all)
		return -errno;
	if (key &&
	    faccessat(c->home, hostlog_dir_name(key, true, own), F_OK, 0) < 0)
		snprintf(own, sizeof(own), HOSTLOG_DIR);
	while (r == 0 && (entry = readdir(all))) {
		const char *name = entry->d_name;

		if (strcmp(name, HOSTLOG_DIR) != 0 && !is_apart(name))
			continue;
		found = true;
		r = read_one(c, name, strcmp(name, own) == 0 ? key : NULL);
	}
	closedir(all);
	return r == 0 && !found ? -ENOENT : r;
}

/* --- what is on the disk -------------------------------------------------- */

/* Of a log that is there. */
static enum hostlog_trouble look_at_end(int dir, json_t *object)
{
	const char *receipt =
		json_string_value(json_object_get(object, "receipt"));

	if (receipt)
		return hostlog_look_at_receipt(dir, receipt);
	return json_object_get(object, "ended") ? HOSTLOG_NO_RECEIPT
						: HOSTLOG_NOT_ENDED;
}

static enum hostlog_trouble look(const struct check *c, const char *session,
				 json_t *object)
{
	const char *directory =
		json_string_value(json_object_get(object, "directory"));
	const char *vkey = json_string_value(json_object_get(object, "vkey"));
	AUTO_FD int dir = -1;

	if (!directory || !vkey)
		return HOSTLOG_NO_PLACE;
	dir = hostlog_find_session(c->home, session, directory, vkey);
	if (dir < 0 || faccessat(dir, LOG_DIR_RECORDS, F_OK, 0) < 0)
		return HOSTLOG_GONE;
	return look_at_end(dir, object);
}

static void tell(struct check *c, const char *session, const char *directory,
		 enum hostlog_trouble trouble)
{
	struct hostlog_session told = { .session = session,
					.directory = directory,
					.trouble = trouble };

	c->ret->sessions[trouble]++;
	if (c->session)
		c->session(c->arg, &told);
}

static void look_at_named(struct check *c)
{
	const char *session;
	json_t *object;

	json_object_foreach(c->sessions, session, object)
	{
		const char *directory =
			json_string_value(json_object_get(object, "directory"));

		tell(c, session, directory ? directory : "",
		     look(c, session, object));
	}
}

/* It may have begun after the logs were read, or wait for its turn to be named
 * in one (HOSTLOG_WAIT_MS). */
static bool is_young(int dir)
{
	struct stat st;

	return fstatat(dir, LOG_DIR_VKEY, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       time(NULL) - st.st_mtim.tv_sec < YOUNG_S;
}

/* A log that one of our keys signs, of a session that nobody named. Sessions
 * with a key of their own are in no log of all. */
static void look_at_other(struct check *c, const char *home, const char *name)
{
	AUTO_FD int dir = openat(
		c->home, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	char path[PATH_MAX], hex[2 * VKEY_LEN + 1];
	const char *session;
	struct vkey vkey;

	if (dir < 0 || key_read_public(dir, LOG_DIR_VKEY, &vkey) < 0 ||
	    !json_object_get(c->keys, hex_format(vkey.public, VKEY_LEN, hex)))
		return;
	session = strrchr(vkey.name, '/');
	session = session ? session + 1 : vkey.name;
	if (json_object_get(c->sessions, session) || is_young(dir))
		return;
	snprintf(path, sizeof(path), "%s/%s", home, name);
	tell(c, session, path, HOSTLOG_NOT_NAMED);
}

static int look_at_others(struct check *c, const char *home)
{
	DIR *all = open_home(c);
	struct dirent *entry;

	if (!all)
		return -errno;
	while ((entry = readdir(all)))
		if (entry->d_name[0] != '.')
			look_at_other(c, home, entry->d_name);
	closedir(all);
	return 0;
}

static int begin(struct check *c, const char *home)
{
	*c->ret = (struct hostlog_checked){ 0 };
	c->home = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->home < 0)
		return -errno;
	c->sessions = json_object();
	c->keys = json_object();
	return c->sessions && c->keys ? 0 : -ENOMEM;
}

static void end(struct check *c)
{
	close_fd(&c->home);
	json_decref(c->sessions);
	json_decref(c->keys);
}

int hostlog_check(const char *home, const struct vkey *key,
		  void (*session)(void *arg, const struct hostlog_session *),
		  void *arg, struct hostlog_checked *ret)
{
	struct check c = { .ret = ret, .session = session, .arg = arg };
	int r = begin(&c, home);

	if (r == 0)
		r = read_all(&c, key);
	if (r == 0) {
		look_at_named(&c);
		r = look_at_others(&c, home);
	}
	end(&c);
	return r;
}

static bool is_by(int dir, const struct vkey *own)
{
	struct vkey found;

	return key_read_public(dir, HOSTLOG_VKEY, &found) == 0 &&
	       memcmp(found.public, own->public, VKEY_LEN) == 0;
}

/* Is a log in @name, or one that was put aside there, of @own's key? All of
 * them are read only then: there may be many sessions. *@ret_newest: that in
 * @name is. */
static bool has_log_by(const char *home, const char *name,
		       const struct vkey *own, bool *ret_newest)
{
	char path[PATH_MAX], earlier[LOG_DIR_NAME_MAX];
	AUTO_FD int host = -1;

	*ret_newest = false;
	if (snprintf(path, sizeof(path), "%s/%s", home, name) >= PATH_MAX)
		return false;
	host = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (host < 0 || is_by(host, own))
		return *ret_newest = host >= 0;
	for (unsigned i = 1; i < LOGS_MAX; i++) {
		snprintf(earlier, sizeof(earlier), LOG_DIR_EARLIER, i);
		AUTO_FD int dir =
			openat(host, earlier,
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (dir < 0 || is_by(dir, own))
			return dir >= 0;
	}
	return false;
}

/* The signer of @own, if its name fits. */
static bool signer_of(const struct vkey *own, struct vkey *ret_key)
{
	const char *slash = strrchr(own->name, '/');

	return slash && vkey_make((struct text){ own->name,
						 (size_t)(slash - own->name) },
				  own->public, ret_key) == 0;
}

static enum hostlog_trouble look_at_one(json_t *object, const struct vkey *own,
					const char *path)
{
	const char *vkey = json_string_value(json_object_get(object, "vkey"));
	AUTO_FD int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[VKEY_TEXT_MAX];

	if (!object)
		return HOSTLOG_NOT_NAMED;
	if (!vkey)
		return HOSTLOG_NO_PLACE;
	vkey_format(own, text);
	return dir < 0 || strcmp(text, vkey) != 0 ? HOSTLOG_GONE
						  : look_at_end(dir, object);
}

int hostlog_check_one(const char *home, const struct vkey *own, const char *dir,
		      enum hostlog_trouble *ret_trouble,
		      struct hostlog_checked *ret)
{
	struct check c = { .ret = ret, .home = -1 };
	const char *session = strrchr(own->name, '/');
	char apart[HOSTLOG_DIR_MAX];
	const char *const names[] = { HOSTLOG_DIR, apart };
	bool found = false, newest;
	struct vkey key;
	int r;

	if (!signer_of(own, &key))
		return -ENOENT;
	hostlog_dir_name(&key, true, apart);
	r = begin(&c, home);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
		if (!has_log_by(home, names[i], own, &newest))
			continue;
		found = true;
		r = read_one(&c, names[i], newest ? &key : NULL);
	}
	if (r == 0 && !found)
		r = -ENOENT;
	if (r == 0)
		*ret_trouble = look_at_one(
			json_object_get(c.sessions, session + 1), own, dir);
	end(&c);
	return r;
}
