/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_check.c - what has to be so before the guard can promise anything:
 * nobody else has the gate's uid, and names are not asked in a circle.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cmd/guard.h"
#include "cmd/session.h"
#include "cmd/upstream.h"
#include "launch/isolate.h"

#define DNS_PORT    53
#define UID_NOBODY  65534
#define UID_FEWEST  1000 /* below are users that exist */
#define LOCAL_FIRST 0x7f000001u
/* Docker's own resolver, in each container of a network that has a name. */
#define DOCKER_RESOLVER 0x7f00000bu

/* --- uids ---------------------------------------------------------------- */

/* The last ones of this namespace, below nobody: images hardly use them. */
static unsigned long last_mapped(void)
{
	unsigned long inside, outside, count, last = 0;
	AUTO_FILE FILE *map = fopen("/proc/self/uid_map", "re");

	while (map &&
	       fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3)
		if (count && inside + count - 1 > last)
			last = inside + count - 1;
	return last >= UID_NOBODY ? UID_NOBODY - 1 : last;
}

int guard_uids(uid_t *ret_gate, uid_t *ret_ledger)
{
	unsigned long last;

	*ret_gate = ISOLATE_UID_GATE;
	*ret_ledger = ISOLATE_UID_LEDGER;
	if (session_root())
		return 0;
	last = last_mapped();
	if (last < UID_FEWEST)
		return -ENOENT;
	*ret_gate = (uid_t)last;
	*ret_ledger = (uid_t)last - 1;
	return 0;
}

/* --- processes ----------------------------------------------------------- */

/* @line, of /proc/PID/status, is about what is looked for. */
typedef bool line_fn(const char *line, const void *arg);

static bool status_has(const char *pid, line_fn *fn, const void *arg)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
	AUTO_FILE FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (fn(line, arg))
			return true;
	return false;
}

/* In many a container nobody takes the status of what has ended. */
static bool has_ended(const char *line, const void *arg)
{
	char state;

	(void)arg;
	return sscanf(line, "State: %c", &state) == 1 &&
	       (state == 'Z' || state == 'X');
}

/* Of another one we would know: what we may not look at counts as in here. */
static bool is_elsewhere(const char *pid)
{
	char path[64];
	struct stat own, its;

	snprintf(path, sizeof(path), "/proc/%.20s/ns/net", pid);
	return stat("/proc/self/ns/net", &own) == 0 && stat(path, &its) == 0 &&
	       (own.st_ino != its.st_ino || own.st_dev != its.st_dev);
}

static pid_t find_process(line_fn *fn, const void *arg)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	pid_t found = 0;

	while (dir && !found && (entry = readdir(dir)))
		if (isdigit((unsigned char)*entry->d_name) &&
		    status_has(entry->d_name, fn, arg) &&
		    !status_has(entry->d_name, has_ended, NULL) &&
		    !is_elsewhere(entry->d_name))
			found = (pid_t)strtol(entry->d_name, NULL, 10);
	if (dir)
		closedir(dir);
	return found;
}

static bool has_uid(const char *line, const void *arg)
{
	const unsigned wanted = *(const uid_t *)arg;
	unsigned uid[4];

	if (sscanf(line, "Uid: %u %u %u %u", &uid[0], &uid[1], &uid[2],
		   &uid[3]) != 4)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(uid); i++)
		if (uid[i] == wanted)
			return true;
	return false;
}

pid_t guard_uid_user(uid_t uid)
{
	return find_process(has_uid, &uid);
}

static bool may_be_raw(const char *line, const void *arg)
{
	unsigned long long bound;

	(void)arg;
	return sscanf(line, "CapBnd: %llx", &bound) == 1 &&
	       bound >> CAP_NET_RAW & 1;
}

pid_t guard_raw_user(void)
{
	return find_process(may_be_raw, NULL);
}

/* --- resolvers ----------------------------------------------------------- */

/* Is there a UDP socket in this namespace for @ip, port 53? */
static bool is_served_here(const struct ip *ip)
{
	AUTO_FILE FILE *file = fopen("/proc/net/udp", "re");
	const uint32_t wanted = htonl(ip_v4_value(ip));
	unsigned address, port;
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " %*d: %x:%x", &address, &port) == 2 &&
		    port == DNS_PORT && (address == wanted || address == 0))
			return true;
	return false;
}

static void add(struct guard_spec *spec, const struct ip *ip)
{
	for (size_t i = 0; i < spec->resolvers; i++)
		if (ip_equal(&spec->resolver[i], ip))
			return;
	if (spec->resolvers < GUARD_RESOLVERS_MAX)
		spec->resolver[spec->resolvers++] = *ip;
}

int guard_find_resolvers(const struct policy *policy, struct guard_spec *spec,
			 char *reterr, size_t cap)
{
	const struct ip docker = ip_v4(DOCKER_RESOLVER);
	const struct ip local = ip_v4(LOCAL_FIRST);
	struct msg_gate_servers servers;
	char text[IP_TEXT_MAX];

	add(spec, &docker);
	upstream_servers(policy, &servers);
	for (size_t i = 0; i < servers.count; i++) {
		const struct endpoint *at = &servers.server[i];

		if (at->ip.len != 4 || at->ip.byte[0] != 127)
			continue;
		if (at->port == DNS_PORT && is_served_here(&at->ip)) {
			snprintf(reterr, cap,
				 "the name server %s is a process in here, "
				 "whose own questions would come to the guard "
				 "again\nName the one that it asks in the "
				 "policy: dns: { upstream: [ADDRESS] }",
				 ip_format(&at->ip, text));
			return -EADDRINUSE;
		}
		/* 127.0.0.1 is everybody's. */
		if (!ip_equal(&at->ip, &local))
			add(spec, &at->ip);
	}
	return 0;
}
