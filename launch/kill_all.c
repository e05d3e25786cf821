/* SPDX-License-Identifier: Apache-2.0
 *
 * kill_all.c - the end of everybody in a network namespace.
 *
 * Who is killed may just have made another one of himself, and chains of such
 * processes are faster than a look at all that run. So nobody is left when
 * nobody at all was made during a look that found nobody. For that to happen on
 * a busy machine a look has to be short: it passes over whoever an earlier one
 * has seen to be elsewhere. Where others never stop making processes, it has to
 * do that nobody was met for a while, in which the newest of all is looked at
 * more often than a link of a chain can be made. A process is held by a pidfd
 * before it is looked at the second time, so that nobody else is met who got
 * its number meanwhile.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "launch/owned.h"

/* A process that does not go has to wait for a disk, or is stopped by a
 * debugger. */
#define TRY_MS	  4000
#define NOBODY_MS 200 /* of our own time: others may have the processors */
#define MEETINGS  50  /* beside a look, which takes longer */
#define NEWEST	  4
/* In less all numbers of processes can't have been given once around. */
#define KNOWN_MS 100

struct pids {
	pid_t *of;
	size_t n, cap;
};

static int add(struct pids *to, pid_t pid)
{
	if (to->n == to->cap) {
		size_t cap = to->cap ? 2 * to->cap : 256;
		pid_t *more = reallocarray(to->of, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		to->of = more;
		to->cap = cap;
	}
	to->of[to->n++] = pid;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool has(const struct pids *all, pid_t pid)
{
	return all->n && bsearch(&pid, all->of, all->n, sizeof(pid), by_number);
}

/* --- one process ---------------------------------------------------------- */

enum where { INSIDE, ELSEWHERE, ENDED };

static enum where where_is(const char *path, const struct stat *ns)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return ENDED;
	return st.st_dev == ns->st_dev && st.st_ino == ns->st_ino ? INSIDE
								  : ELSEWHERE;
}

/* Its first thread may have ended before the others. */
static enum where where_threads_are(pid_t pid, const struct stat *ns)
{
	const struct dirent *entry;
	enum where where = ENDED;
	char path[320];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && where == ENDED && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/ns/net",
			 (int)pid, entry->d_name);
		where = where_is(path, ns);
	}
	if (tasks)
		closedir(tasks);
	return where;
}

static enum where where_process_is(pid_t pid, const struct stat *ns)
{
	enum where where;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	where = where_is(path, ns);
	return where == ENDED ? where_threads_are(pid, ns) : where;
}

static void kill_one(pid_t pid, const struct stat *ns)
{
	AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd >= 0 && where_process_is(pid, ns) == INSIDE)
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* --- all of them ---------------------------------------------------------- */

static int list(struct pids *ret)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	int r = proc ? 0 : -errno;

	ret->n = 0;
	while (proc && r == 0 && (entry = readdir(proc))) {
		const long pid = strtol(entry->d_name, NULL, 10);

		if (pid > 0 && pid != getpid())
			r = add(ret, (pid_t)pid);
	}
	if (proc)
		closedir(proc);
	if (r == 0 && ret->n)
		qsort(ret->of, ret->n, sizeof(*ret->of), by_number);
	return r;
}

/* Kills whom it finds and returns how many, or -errno; @elsewhere is who need
 * not be looked at again. */
static int look(const struct stat *ns, struct pids *now, struct pids *elsewhere)
{
	struct pids swapped;
	int found = 0, r = list(now);
	size_t kept;

	if (r < 0)
		return r;
	kept = now->n;
	for (size_t i = now->n; i-- > 0;) {
		enum where where = has(elsewhere, now->of[i])
					   ? ELSEWHERE
					   : where_process_is(now->of[i], ns);

		if (where == INSIDE) {
			kill_one(now->of[i], ns);
			found++;
		}
		if (where == ELSEWHERE)
			now->of[--kept] = now->of[i];
	}
	now->n -= kept;
	memmove(now->of, now->of + kept, now->n * sizeof(*now->of));
	swapped = *now;
	*now = *elsewhere;
	*elsewhere = swapped;
	return found;
}

/* How many processes and threads there have been; 0 if that is not known. */
static unsigned long long ever_made(void)
{
	AUTO_FILE FILE *file = fopen("/proc/stat", "re");
	unsigned long long made = 0;
	char line[512];

	while (file && !made && fgets(line, sizeof(line), file))
		if (sscanf(line, "processes %llu", &made) != 1)
			made = 0;
	return made;
}

/* The newest of all: a link of a chain does not live until it is listed. */
static int meet_newest(int loadavg, const struct stat *ns)
{
	char text[64];
	ssize_t n = pread(loadavg, text, sizeof(text) - 1, 0);
	int newest, met = 0;

	text[n > 0 ? n : 0] = 0;
	if (sscanf(text, "%*s %*s %*s %*s %d", &newest) != 1)
		return 0;
	for (int pid = newest; pid > 0 && pid > newest - NEWEST; pid--) {
		if (pid == getpid() || where_process_is(pid, ns) != INSIDE)
			continue;
		kill_one(pid, ns);
		met++;
	}
	return met;
}

static int64_t own_ms(void)
{
	return (int64_t)clock_ms(CLOCK_THREAD_CPUTIME_ID);
}

static int kill_until_nobody(const struct stat *ns, struct pids *now,
			     struct pids *elsewhere)
{
	AUTO_FD int loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	const int64_t end = now_ms() + TRY_MS;
	int64_t began, looked = 0, met = own_ms();

	while ((began = now_ms()) < end) {
		const unsigned long long before = ever_made();
		int found;

		if (began - looked > KNOWN_MS)
			elsewhere->n = 0;
		looked = began;
		found = look(ns, now, elsewhere);
		if (found < 0)
			return found;
		if (!found && before && ever_made() == before)
			return 0;
		for (int i = 0; i < MEETINGS; i++)
			found += meet_newest(loadavg, ns);
		if (found) {
			/* Somebody known may have come in meanwhile. */
			elsewhere->n = 0;
			met = own_ms();
		} else if (own_ms() - met > NOBODY_MS) {
			return 0;
		}
	}
	return -EBUSY;
}

int sandbox_kill_all(int fd)
{
	struct pids now = { 0 }, elsewhere = { 0 };
	struct stat ns;
	int r;

	if (fstat(fd, &ns) < 0)
		return -errno;
	r = kill_until_nobody(&ns, &now, &elsewhere);
	free(now.of);
	free(elsewhere.of);
	return r;
}
