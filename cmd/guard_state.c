/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_state.c - which guard is up, for `down`, `status` and the next `up`.
 *
 * Names have the number of the network namespace, as one file system may serve
 * several. The lock goes with its process, the state stays: rules do, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cmd/guard.h"

#define RUN_DIR	  "/run/sallyport"
#define STATE_MAX 16384

static int path_of(const char *suffix, char *buf)
{
	struct stat st;

	if (stat("/proc/self/ns/net", &st) < 0)
		return -errno;
	snprintf(buf, PATH_MAX, RUN_DIR "/guard-%llu%s",
		 (unsigned long long)st.st_ino, suffix);
	return 0;
}

const char *guard_messages_path(char *buf)
{
	if (path_of(".err", buf))
		snprintf(buf, PATH_MAX, RUN_DIR "/guard.err");
	return buf;
}

int guard_lock(void)
{
	char path[PATH_MAX];
	int err = path_of(".lock", path);

	if (err)
		return err;
	if (mkdir(RUN_DIR, 0755) < 0 && errno != EEXIST)
		return -errno;
	AUTO_FD int fd =
		open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return steal_fd(&fd);
}

void guard_state_forget(void)
{
	char path[PATH_MAX];

	if (path_of(".json", path) == 0)
		unlink(path);
}

static void put_spec(struct json *j, const struct guard_spec *spec)
{
	char ip[IP_TEXT_MAX];

	json_uint(j, "uid", spec->uid);
	json_uint(j, "dns_udp", spec->dns_udp_port);
	json_uint(j, "dns_tcp", spec->dns_tcp_port);
	json_uint(j, "transparent", spec->transparent_port);
	json_uint(j, "nflog", spec->nflog_group);
	json_bool(j, "egress", spec->egress);
	json_bool(j, "dns6", spec->dns6);
	json_open(j, "inbound", '[');
	for (size_t i = 0; i < spec->inbounds; i++) {
		json_uint(j, NULL, spec->inbound[i].port);
		json_uint(j, NULL, spec->inbound[i].listener);
	}
	json_close(j, ']');
	json_open(j, "resolvers", '[');
	for (size_t i = 0; i < spec->resolvers; i++) {
		ip_format(&spec->resolver[i], ip);
		json_bytes(j, NULL, ip, strlen(ip));
	}
	json_close(j, ']');
}

/* Written beside and renamed, so that nobody reads half of it. */
static int replace(const char *text, size_t len)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	int err = path_of(".json", path);

	if (!err)
		err = path_of(".new", fresh);
	if (err)
		return err;
	AUTO_FD int fd = open(
		fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		0600);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, len);
	if (n < 0)
		return -errno;
	if ((size_t)n != len)
		return -EIO;
	return rename(fresh, path) < 0 ? -errno : 0;
}

int guard_state_write(const struct guard_state *state)
{
	char buf[STATE_MAX];
	struct json j = json_of(buf, sizeof(buf));

	json_open(&j, NULL, '{');
	json_int(&j, "pid", state->pid);
	json_text(&j, "session", state->session);
	json_text(&j, "dir", state->dir);
	json_text(&j, "policy", state->policy);
	json_text(&j, "proxy", state->proxy);
	json_text(&j, "ruleset", state->ruleset);
	put_spec(&j, &state->spec);
	json_close(&j, '}');
	return j.full ? -E2BIG : replace(buf, j.len);
}

static bool take_text(const json_t *root, const char *key, char *buf,
		      size_t cap)
{
	const char *text = json_string_value(json_object_get(root, key));

	if (!text || strlen(text) >= cap)
		return false;
	memcpy(buf, text, strlen(text) + 1);
	return true;
}

static bool port_of(const json_t *value, uint16_t *ret)
{
	json_int_t v = json_integer_value(value);

	if (!json_is_integer(value) || v < 1 || v > UINT16_MAX)
		return false;
	*ret = (uint16_t)v;
	return true;
}

static bool take_port(const json_t *root, const char *key, uint16_t *ret)
{
	return port_of(json_object_get(root, key), ret);
}

/* Port and listener, and so on. */
static bool take_inbound(const json_t *list, struct guard_spec *spec)
{
	const size_t n = json_array_size(list);
	bool good =
		json_is_array(list) && n % 2 == 0 && n <= GUARD_INBOUND_MAX * 2;

	for (size_t i = 0; good && i < n; i += 2, spec->inbounds++)
		good = port_of(json_array_get(list, i),
			       &spec->inbound[i / 2].port) &&
		       port_of(json_array_get(list, i + 1),
			       &spec->inbound[i / 2].listener);
	return good;
}

static bool take_spec(const json_t *root, struct guard_spec *spec)
{
	const json_t *resolvers = json_object_get(root, "resolvers");
	const json_t *uid = json_object_get(root, "uid");

	if (!json_is_integer(uid) || !json_is_array(resolvers) ||
	    json_array_size(resolvers) > GUARD_RESOLVERS_MAX)
		return false;
	spec->uid = (uint32_t)json_integer_value(uid);
	spec->egress = json_is_true(json_object_get(root, "egress"));
	spec->dns6 = json_is_true(json_object_get(root, "dns6"));
	if (!take_inbound(json_object_get(root, "inbound"), spec))
		return false;
	for (; spec->resolvers < json_array_size(resolvers);
	     spec->resolvers++) {
		const char *text = json_string_value(
			json_array_get(resolvers, spec->resolvers));

		if (!text || !ip_parse(text, &spec->resolver[spec->resolvers]))
			return false;
	}
	return take_port(root, "dns_udp", &spec->dns_udp_port) &&
	       take_port(root, "dns_tcp", &spec->dns_tcp_port) &&
	       take_port(root, "transparent", &spec->transparent_port) &&
	       take_port(root, "nflog", &spec->nflog_group);
}

int guard_state_parse(const char *text, size_t len, struct guard_state *ret)
{
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *pid = json_object_get(root, "pid");
	bool good;

	*ret = (struct guard_state){ 0 };
	good = json_is_integer(pid) &&
	       take_text(root, "session", ret->session, sizeof(ret->session)) &&
	       take_text(root, "dir", ret->dir, sizeof(ret->dir)) &&
	       take_text(root, "policy", ret->policy, sizeof(ret->policy)) &&
	       take_text(root, "proxy", ret->proxy, sizeof(ret->proxy)) &&
	       take_text(root, "ruleset", ret->ruleset, sizeof(ret->ruleset)) &&
	       take_spec(root, &ret->spec);
	ret->pid = (pid_t)json_integer_value(pid);
	json_decref(root);
	return good ? 0 : -EBADMSG;
}

int guard_state_read(struct guard_state *ret)
{
	char path[PATH_MAX], buf[STATE_MAX];
	int err = path_of(".json", path);

	*ret = (struct guard_state){ 0 };
	if (err)
		return err;
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, buf, sizeof(buf));
	return n < 0 ? -errno : guard_state_parse(buf, (size_t)n, ret);
}
