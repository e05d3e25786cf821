/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_state.c - a directory a sandbox, below the state directory:
 *
 *	state.json	what it is: struct daemon_spec, where its namespace is
 *	bundle, bundle.2
 *			its policy as it was asked for, without the ceiling:
 *			which of the two, state.json says. The other one is one
 *			that its keeper has not accepted yet
 *	leases		cmd/sandbox_file.h; its keeper writes to it
 *
 * A file is written under another name, synced, and renamed: whenever we are
 * killed, one that is there is whole. Root alone writes here; what does not
 * read as it should is an error all the same, never a guess.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"
#include "cmd/daemon_reply.h"
#include "cmd/sandbox_file.h"
#include "cmd/session.h"

#define STATE_MAX  16384
#define BUNDLE_CAP ((size_t)256 << 20)

static const char *const files[] = { "state.json", "state.json.new",
				     "bundle",	   "bundle.new",
				     "bundle.2",   "bundle.2.new",
				     "leases" };

int state_open(const char *dir, int *ret_fd)
{
	char path[PATH_MAX];
	int err, fd;

	if (snprintf(path, sizeof(path), "%s/sandboxes", dir) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	err = session_mkdir(path);
	if (err)
		return err;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int open_dir(const struct daemon *daemon, const char *name)
{
	int fd = openat(daemon->state_dir, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* --- files --------------------------------------------------------------- */

/* Names in it are on the disk. */
static int sync_dir(int dir)
{
	return fsync(dir) < 0 ? -errno : 0;
}

int state_leases(const struct daemon *daemon, const char *name)
{
	AUTO_FD int dir = open_dir(daemon, name);
	struct stat st;
	int err;

	if (dir < 0)
		return dir;
	AUTO_FD int fd = openat(
		dir, "leases", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* Of another version, or cut: entries are looked at one by one when
	 * they are read. */
	if ((size_t)st.st_size != sandbox_file_size() && ftruncate(fd, 0) < 0)
		return -errno;
	/* Every block, now: a gate that writes to a page for which the disk
	 * has no room is killed (SIGBUS). */
	err = posix_fallocate(fd, 0, (off_t)sandbox_file_size());
	return err ? -err : steal_fd(&fd);
}

/* --- state.json ---------------------------------------------------------- */

static int put_state(int dir, const struct daemon_sandbox *s)
{
	char buf[STATE_MAX];
	struct json j = json_of(buf, sizeof(buf));

	json_open(&j, NULL, '{');
	json_uint(&j, "version", 1);
	json_text(&j, "name", s->spec.name);
	json_uint(&j, "uid", s->spec.uid);
	json_uint(&j, "gid", s->spec.gid);
	json_bool(&j, "join", s->spec.link == KEEP_LINK_JOIN);
	json_bool(&j, "docker", s->spec.docker);
	reply_ip(&j, "ip", &s->spec.ip);
	reply_ip(&j, "gateway", &s->spec.gateway);
	json_uint(&j, "bits", s->spec.bits);
	json_text(&j, "ifname", s->spec.ifname);
	json_int(&j, "ends", s->spec.ends_s);
	json_int(&j, "made", s->made_s);
	json_int(&j, "holder", s->spec.holder);
	json_uint(&j, "holder_id", s->spec.holder_id);
	json_text(&j, "command", s->spec.command);
	json_text(&j, "policy_text", s->spec.policy_text);
	json_text(&j, "policy_name", s->spec.policy_name);
	json_bool(&j, "second", s->second);
	json_text(&j, "netns", s->netns);
	json_text(&j, "userns", s->userns);
	/* The plugin opens its own again. */
	if (!s->spec.docker)
		reply_publish(&j, s);
	json_close(&j, '}');
	return j.full ? -EFBIG : file_put(dir, "state.json", buf, j.len);
}

static bool get_text(const json_t *root, const char *key, char *buf, size_t cap)
{
	const json_t *value = json_object_get(root, key);
	const char *text = json_string_value(value);

	*buf = '\0';
	if (!value)
		return true;
	if (!text || strlen(text) >= cap)
		return false;
	memcpy(buf, text, strlen(text) + 1);
	return true;
}
#define GET_TEXT(root, key, array) get_text(root, key, array, sizeof(array))

static bool get_int(const json_t *root, const char *key, int64_t max,
		    int64_t *ret)
{
	const json_t *value = json_object_get(root, key);

	*ret = json_integer_value(value);
	return json_is_integer(value) && *ret >= 0 && *ret <= max;
}

static bool get_ip(const json_t *root, const char *key, struct ip *ret)
{
	char text[IP_TEXT_MAX];

	*ret = (struct ip){ 0 };
	return GET_TEXT(root, key, text) && (!*text || ip_parse(text, ret));
}

static bool get_publish(const json_t *root, struct daemon_sandbox *s)
{
	const json_t *list = json_object_get(root, "publish"), *one;
	size_t i;

	if (json_array_size(list) > DAEMON_PUBLISH_MAX)
		return false;
	json_array_foreach(list, i, one)
	{
		int64_t port, inside;

		if (!get_ip(one, "address", &s->publish[i].at.ip) ||
		    !s->publish[i].at.ip.len ||
		    !get_int(one, "port", UINT16_MAX, &port) ||
		    !get_int(one, "inside", UINT16_MAX, &inside))
			return false;
		s->publish[i].at.port = (uint16_t)port;
		s->publish[i].inside = (uint16_t)inside;
	}
	s->publishes = i;
	return true;
}

/* One that stays has none. */
static bool get_holder(const json_t *root, struct daemon_spec *spec)
{
	int64_t pid, id;

	if (!json_object_get(root, "holder"))
		return true;
	if (!get_int(root, "holder", INT32_MAX, &pid) ||
	    !get_int(root, "holder_id", INT64_MAX, &id))
		return false;
	spec->holder = (pid_t)pid;
	spec->holder_id = (uint64_t)id;
	return true;
}

static bool get_state(const json_t *root, struct daemon_sandbox *s)
{
	struct daemon_spec *spec = &s->spec;
	int64_t version, uid, gid, bits;

	if (!get_int(root, "version", 1, &version) || version != 1 ||
	    !get_int(root, "uid", UINT32_MAX - 1, &uid) ||
	    !get_int(root, "gid", UINT32_MAX - 1, &gid) ||
	    !get_int(root, "bits", 32, &bits) ||
	    !get_int(root, "ends", INT64_MAX, &spec->ends_s) ||
	    !get_int(root, "made", INT64_MAX, &s->made_s))
		return false;
	spec->uid = (uid_t)uid;
	spec->gid = (gid_t)gid;
	spec->bits = (uint8_t)bits;
	spec->link = json_is_true(json_object_get(root, "join"))
			     ? KEEP_LINK_JOIN
			     : KEEP_LINK_OWN;
	spec->docker = json_is_true(json_object_get(root, "docker"));
	s->second = json_is_true(json_object_get(root, "second"));
	return get_holder(root, spec) && GET_TEXT(root, "name", spec->name) &&
	       get_ip(root, "ip", &spec->ip) &&
	       get_ip(root, "gateway", &spec->gateway) &&
	       GET_TEXT(root, "ifname", spec->ifname) &&
	       GET_TEXT(root, "command", spec->command) &&
	       GET_TEXT(root, "policy_text", spec->policy_text) &&
	       GET_TEXT(root, "policy_name", spec->policy_name) &&
	       GET_TEXT(root, "netns", s->netns) &&
	       GET_TEXT(root, "userns", s->userns) && get_publish(root, s);
}

int state_load(const struct daemon *daemon, const char *name,
	       struct daemon_sandbox *ret)
{
	AUTO_FD int dir = open_dir(daemon, name);
	AUTO_FREE char *text = NULL;
	json_t *root;
	size_t len;
	bool ok;
	int err;

	if (dir < 0)
		return dir;
	err = file_get(dir, "state.json", STATE_MAX, &text, &len);
	if (err)
		return err;
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	ok = root && get_state(root, ret) && strcmp(ret->spec.name, name) == 0;
	json_decref(root);
	return ok ? 0 : -EBADMSG;
}

/* --- policies ------------------------------------------------------------ */

static const char *bundle_name(bool second)
{
	return second ? "bundle.2" : "bundle";
}

int state_bundle(const struct daemon *daemon, const char *name,
		 struct bundle *ret)
{
	AUTO_FD int dir = open_dir(daemon, name);
	struct daemon_sandbox kept = { 0 };
	char *data;
	size_t len;
	int err;

	if (dir < 0)
		return dir;
	err = state_load(daemon, name, &kept);
	if (!err)
		err = file_get(dir, bundle_name(kept.second), BUNDLE_CAP, &data,
			       &len);
	if (!err)
		*ret = (struct bundle){ .data = (uint8_t *)data, .len = len };
	return err;
}

int state_stage_bundle(const struct daemon *daemon, const char *name,
		       const struct bundle *bundle)
{
	AUTO_FD int dir = open_dir(daemon, name);
	struct daemon_sandbox kept = { 0 };
	int err;

	if (dir < 0)
		return dir;
	err = state_load(daemon, name, &kept);
	return err ? err
		   : file_put(dir, bundle_name(!kept.second), bundle->data,
			      bundle->len);
}

/* What a policy is called belongs to its bundle: both are what the disk has, or
 * both are what is new. */
static int save(const struct daemon *daemon, int dir,
		const struct daemon_sandbox *s, bool staged)
{
	struct daemon_sandbox kept = { 0 }, next = *s;
	int err = state_load(daemon, s->spec.name, &kept);

	if (err)
		return err;
	next.second = staged ? !kept.second : kept.second;
	if (!staged) {
		memcpy(next.spec.policy_text, kept.spec.policy_text,
		       sizeof(next.spec.policy_text));
		memcpy(next.spec.policy_name, kept.spec.policy_name,
		       sizeof(next.spec.policy_name));
	}
	err = put_state(dir, &next);
	if (!err)
		err = sync_dir(dir);
	if (!err && staged)
		unlinkat(dir, bundle_name(kept.second), 0);
	return err;
}

int state_save(const struct daemon *daemon, const struct daemon_sandbox *s,
	       bool staged)
{
	AUTO_FD int dir = open_dir(daemon, s->spec.name);

	return dir < 0 ? dir : save(daemon, dir, s, staged);
}

/* --- directories --------------------------------------------------------- */

int state_make(const struct daemon *daemon, const struct daemon_sandbox *s,
	       const struct bundle *bundle)
{
	const char *name = s->spec.name;
	int err = 0;

	/* One that is nobody's: its sandbox would be known. */
	state_drop(daemon, name);
	if (mkdirat(daemon->state_dir, name, 0700) < 0)
		return -errno;
	AUTO_FD int dir = open_dir(daemon, name);
	if (dir < 0)
		err = dir;
	if (!err)
		err = file_put(dir, "bundle", bundle->data, bundle->len);
	if (!err) {
		AUTO_FD int leases = state_leases(daemon, name);

		err = leases < 0 ? leases : 0;
	}
	/* Last: with it the sandbox is there. */
	if (!err)
		err = put_state(dir, s);
	if (!err)
		err = sync_dir(dir);
	if (!err)
		err = sync_dir(daemon->state_dir);
	if (err)
		state_drop(daemon, name);
	return err;
}

void state_drop(const struct daemon *daemon, const char *name)
{
	AUTO_FD int dir = open_dir(daemon, name);

	if (dir == -ENOENT)
		return;
	for (size_t i = 0; dir >= 0 && i < ARRAY_SIZE(files); i++)
		unlinkat(dir, files[i], 0);
	if (unlinkat(daemon->state_dir, name, AT_REMOVEDIR) < 0)
		log_warn("the state of %s can't be removed: %s", name,
			 strerror(errno));
}

void state_each(struct daemon *daemon,
		void (*fn)(struct daemon *daemon, const char *name))
{
	int fd = openat(daemon->state_dir, ".",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		close_fd(&fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (daemon_name_ok(entry->d_name))
			fn(daemon, entry->d_name);
	closedir(dir);
}
