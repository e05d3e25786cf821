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
#include "launch/isolate.h"

#define UID_NOBODY 65534
#define UID_FEWEST 1000 /* below are users that exist */

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
