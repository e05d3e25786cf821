/* SPDX-License-Identifier: Apache-2.0
 *
 * limits.h - how much of the machine a command and all that it starts may use.
 */
#ifndef LAUNCH_LIMITS_H
#define LAUNCH_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 0: as much as our user may. */
struct resources {
	uint64_t memory; /* bytes */
	uint64_t fsize;	 /* bytes, of each file that is written to */
	unsigned pids;	 /* processes and threads */
	unsigned cpus;	 /* thousandths of one */
	unsigned nofile; /* open files, of each process */
	bool apart;	 /* in a group of its own also without a limit, if it
			    can be had: --nest */
};

enum { LIMITS_MEMORY, LIMITS_PIDS, LIMITS_CPU, LIMITS_APART, LIMITS_GROUPS };

/* The groups that hold a sandbox to its limits; -1 or NULL: there is none. */
struct limits_groups {
	char *dir[LIMITS_GROUPS]; /* one and the same with cgroup v2 */
	int procs[LIMITS_GROUPS]; /* to join, by writing "0" */
	unsigned version;	  /* 1, 2; 0: none */
};

/* Makes what groups @limits needs, where the kernel and our rights let us: a
 * memory or pids group that can't be had is left to limits_apply(). 0, or
 * -errno and a sentence (there is no other way to limit cpus).
 * limits_groups_remove() in any case. */
int limits_groups_make(const struct resources *limits,
		       struct limits_groups *ret, char *reterr, size_t cap);

/* The calling process joins. 0 or -errno. */
int limits_groups_join(const struct limits_groups *groups);

/* Puts the rest on @pid, before it runs the command: what it starts inherits
 * it. 0 or -errno; -ETIMEDOUT: there is something to put, and @pid is 0, not
 * known. */
int limits_apply(const struct resources *limits,
		 const struct limits_groups *groups, pid_t pid);

/* How they are held, for people: "memory by cgroup v1; fsize by rlimit"; ""
 * without any. */
void limits_describe(const struct resources *limits,
		     const struct limits_groups *groups, char *ret, size_t cap);

/* Which limits were reached, as a sentence each: the first @max. How many. */
#define LIMITS_SAID 120
size_t limits_reached(const struct resources *limits,
		      const struct limits_groups *groups,
		      char said[][LIMITS_SAID], size_t max);

/* All processes in them are gone, or going. */
void limits_groups_remove(struct limits_groups *groups);

#endif
