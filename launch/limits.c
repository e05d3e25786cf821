/* SPDX-License-Identifier: Apache-2.0
 *
 * limits.c - control groups where they can be had, rlimits where not.
 *
 * A group holds all processes of a sandbox together. An rlimit holds each for
 * itself, but for processes and threads: those are counted in the sandbox's own
 * user namespace.
 */
#include "launch/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/cgroup.h"

/* Of ours: bubblewrap and pid 1; in the sandbox's user namespace pid 1 only. */
#define OWN_PIDS   2
#define OWN_NPROC  1
#define CPU_PERIOD 100000 /* us */

static const struct {
	const char *controller, *v2, *v1;
} groups_of[LIMITS_GROUPS] = {
	[LIMITS_MEMORY] = { "memory", "memory.max", "memory.limit_in_bytes" },
	[LIMITS_PIDS] = { "pids", "pids.max", "pids.max" },
	[LIMITS_CPU] = { "cpu", "cpu.max", "cpu.cfs_quota_us" },
	[LIMITS_APART] = { NULL, "cgroup.procs", NULL }, /* v2 only */
};

static uint64_t wanted(const struct resources *limits, int which)
{
	switch (which) {
	case LIMITS_MEMORY:
		return limits->memory;
	case LIMITS_PIDS:
		return limits->pids;
	case LIMITS_APART:
		return limits->apart;
	default:
		return limits->cpus;
	}
}

/* --- groups -------------------------------------------------------------- */

static int set_memory(const char *dir, unsigned version, uint64_t bytes)
{
	char text[32];
	int r;

	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	r = cgroup_write(dir,
			 version == 2 ? groups_of[LIMITS_MEMORY].v2
				      : groups_of[LIMITS_MEMORY].v1,
			 text);
	if (r < 0)
		return r;
	/* What is swapped out is memory too. Not every kernel can. */
	if (version == 2)
		cgroup_write(dir, "memory.swap.max", "0");
	else
		cgroup_write(dir, "memory.memsw.limit_in_bytes", text);
	return 0;
}

static int set_cpu(const char *dir, unsigned version, unsigned cpus)
{
	char text[64];
	unsigned long quota = (unsigned long)cpus * (CPU_PERIOD / 1000);
	int r;

	if (version == 2) {
		snprintf(text, sizeof(text), "%lu %d", quota, CPU_PERIOD);
		return cgroup_write(dir, groups_of[LIMITS_CPU].v2, text);
	}
	snprintf(text, sizeof(text), "%d", CPU_PERIOD);
	r = cgroup_write(dir, "cpu.cfs_period_us", text);
	snprintf(text, sizeof(text), "%lu", quota);
	return r < 0 ? r : cgroup_write(dir, groups_of[LIMITS_CPU].v1, text);
}

static int set(const struct resources *limits, const char *dir,
	       unsigned version, int which)
{
	char text[32];

	if (which == LIMITS_MEMORY)
		return set_memory(dir, version, limits->memory);
	if (which == LIMITS_CPU)
		return set_cpu(dir, version, limits->cpus);
	if (which == LIMITS_APART)
		return 0;
	snprintf(text, sizeof(text), "%u", limits->pids + OWN_PIDS);
	return cgroup_write(dir, groups_of[LIMITS_PIDS].v2, text);
}

/* Of v2 a process is in one group only: that of the limits before. */
static const char *shared_dir(const struct limits_groups *groups,
			      unsigned version)
{
	for (int i = 0; version == 2 && i < LIMITS_GROUPS; i++)
		if (groups->dir[i])
			return groups->dir[i];
	return NULL;
}

static int make(const struct resources *limits, struct limits_groups *groups,
		int which)
{
	AUTO_FREE char *dir = NULL;
	const char *shared;
	char procs[PATH_MAX];
	unsigned version;
	int r = cgroup_make(groups_of[which].controller, groups_of[which].v2,
			    groups_of[which].v1, &dir, &version);

	if (r < 0)
		return r;
	shared = which == LIMITS_APART && groups->version == 1
			 ? NULL
			 : shared_dir(groups, version);
	if (shared && strcmp(shared, dir) != 0)
		r = -EXDEV;
	if (r == 0)
		r = set(limits, dir, version, which);
	if (r == 0)
		r = cgroup_make_leaf(dir);
	if (r == 0) {
		snprintf(procs, sizeof(procs),
			 "%s/" CGROUP_LEAF "/cgroup.procs", dir);
		groups->procs[which] = open(procs, O_WRONLY | O_CLOEXEC);
		if (groups->procs[which] < 0)
			r = -errno;
	}
	if (r < 0) {
		if (!shared || strcmp(shared, dir) != 0)
			cgroup_remove(dir);
		return r;
	}
	groups->dir[which] = STEAL(dir);
	if (which != LIMITS_APART)
		groups->version = version;
	return 0;
}

int limits_groups_make(const struct resources *limits,
		       struct limits_groups *ret, char *reterr, size_t cap)
{
	*ret = (struct limits_groups){ .procs = { -1, -1, -1, -1 } };
	for (int i = 0; i < LIMITS_GROUPS; i++) {
		int r = wanted(limits, i) ? make(limits, ret, i) : 0;

		if (r < 0 && i == LIMITS_CPU) {
			snprintf(reterr, cap,
				 "--cpus needs a control group, and none can "
				 "be made here: %s",
				 strerror(-r));
			return r;
		}
	}
	return 0;
}

int limits_groups_join(const struct limits_groups *groups)
{
	for (int i = 0; groups && i < LIMITS_GROUPS; i++)
		if (groups->procs[i] >= 0 &&
		    write(groups->procs[i], "0", 1) != 1)
			return -errno;
	return 0;
}

void limits_groups_remove(struct limits_groups *groups)
{
	for (int i = 0; i < LIMITS_GROUPS; i++) {
		close_fd(&groups->procs[i]);
		if (groups->dir[i])
			cgroup_remove(groups->dir[i]);
		free(groups->dir[i]);
		groups->dir[i] = NULL;
	}
}

/* --- rlimits ------------------------------------------------------------- */

static int apply(pid_t pid, __rlimit_resource_t which, uint64_t value)
{
	struct rlimit limit;

	if (!value)
		return 0;
	if (prlimit(pid, which, NULL, &limit) < 0)
		return -errno;
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < value)
		value = limit.rlim_max;
	limit = (struct rlimit){ value, value };
	return prlimit(pid, which, &limit, NULL) < 0 ? -errno : 0;
}

int limits_apply(const struct resources *limits,
		 const struct limits_groups *groups, pid_t pid)
{
	const bool some = limits->fsize || limits->nofile ||
			  (limits->memory && !groups->dir[LIMITS_MEMORY]) ||
			  (limits->pids && !groups->dir[LIMITS_PIDS]);
	int r = 0;

	/* 0 would be ourselves. */
	if (pid <= 0)
		return some ? -ETIMEDOUT : 0;
	r = apply(pid, RLIMIT_FSIZE, limits->fsize);
	if (r == 0)
		r = apply(pid, RLIMIT_NOFILE, limits->nofile);
	/* Not RLIMIT_AS: many programs reserve much that they never use. */
	if (r == 0 && !groups->dir[LIMITS_MEMORY])
		r = apply(pid, RLIMIT_DATA, limits->memory);
	if (r == 0 && limits->pids && !groups->dir[LIMITS_PIDS])
		r = apply(pid, RLIMIT_NPROC,
			  (uint64_t)limits->pids + OWN_NPROC);
	return r;
}

/* --- for people ---------------------------------------------------------- */

void limits_describe(const struct resources *limits,
		     const struct limits_groups *groups, char *ret, size_t cap)
{
	const struct {
		const char *name;
		bool set, group;
	} all[] = {
		{ "memory", limits->memory, groups->dir[LIMITS_MEMORY] },
		{ "pids", limits->pids, groups->dir[LIMITS_PIDS] },
		{ "cpus", limits->cpus, groups->dir[LIMITS_CPU] },
		{ "fsize", limits->fsize, false },
		{ "nofile", limits->nofile, false },
	};
	size_t n = 0;

	*ret = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(all) && n < cap; i++) {
		if (!all[i].set)
			continue;
		n += (size_t)snprintf(ret + n, cap - n, "%s%s by ",
				      n ? ", " : "", all[i].name);
		if (n < cap && all[i].group)
			n += (size_t)snprintf(ret + n, cap - n, "cgroup v%u",
					      groups->version);
		else if (n < cap)
			n += (size_t)snprintf(ret + n, cap - n, "rlimit");
	}
}

/* Where the group of the processes has a file of its own, it counts what v2
 * counts in the one with the limit. */
static uint64_t count_both(const char *dir, const char *file, const char *key)
{
	char leaf[PATH_MAX];

	snprintf(leaf, sizeof(leaf), "%s/" CGROUP_LEAF, dir);
	return cgroup_read(dir, file, key) + cgroup_read(leaf, file, key);
}

static uint64_t killed(const struct limits_groups *groups)
{
	const char *dir = groups->dir[LIMITS_MEMORY];

	if (!dir)
		return 0;
	return groups->version == 2
		       ? cgroup_read(dir, "memory.events", "oom_kill")
		       : count_both(dir, "memory.oom_control", "oom_kill");
}

size_t limits_reached(const struct resources *limits,
		      const struct limits_groups *groups,
		      char said[][LIMITS_SAID], size_t max)
{
	uint64_t kills = killed(groups), forks = 0;
	size_t n = 0;

	if (groups->dir[LIMITS_PIDS])
		forks = count_both(groups->dir[LIMITS_PIDS], "pids.events",
				   "max");
	if (kills && n < max)
		snprintf(said[n++], LIMITS_SAID,
			 "limit reached: memory %" PRIu64 " bytes: %" PRIu64
			 " processes were killed",
			 limits->memory, kills);
	if (forks && n < max)
		snprintf(said[n++], LIMITS_SAID,
			 "limit reached: %u pids: %" PRIu64
			 " more were refused",
			 limits->pids, forks);
	return n;
}
