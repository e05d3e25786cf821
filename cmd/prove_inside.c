/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_inside.c - `sallyport prove-inside`: one attack after the other, each
 * in a process of its own, so that one that is killed, or changes what it is,
 * changes nothing for the next.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/command.h"
#include "cmd/prove.h"

#define ATTACK_MS 8000
#define LINKS_MAX 16

const char *const prove_namespaces[PROVE_NAMESPACES] = { "net", "pid",	"mnt",
							 "ipc", "user", "uts" };

const struct prove_attack *prove_attack(size_t i)
{
	static const struct prove_group *const groups[] = {
		&prove_net, &prove_route, &prove_dns,  &prove_proxy,
		&prove_tls, &prove_unix,  &prove_local
	};

	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		if (i < groups[g]->n)
			return &groups[g]->at[i];
		i -= groups[g]->n;
	}
	return NULL;
}

/* --- which way something goes --------------------------------------------- */

struct link_count {
	char name[16];
	unsigned long long sent;
};

/* /proc/net/dev. How many. */
static size_t count_links(struct link_count *links)
{
	AUTO_FILE FILE *f = fopen("/proc/net/dev", "re");
	char line[512];
	size_t n = 0;

	while (f && n < LINKS_MAX && fgets(line, sizeof(line), f))
		if (sscanf(line,
			   " %15[^: ]: %*u %*u %*u %*u %*u %*u %*u %*u %*u "
			   "%llu",
			   links[n].name, &links[n].sent) == 2 &&
		    strcmp(links[n].name, "lo") != 0)
			n++;
	return n;
}

/* The interface of the default route: the sandbox's link. */
static void find_link(char ret[16])
{
	AUTO_FILE FILE *f = fopen("/proc/net/route", "re");
	char line[512], name[16];
	unsigned to, via;

	*ret = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%15s %x %x", name, &to, &via) != 3 || to)
			continue;
		snprintf(ret, 16, "%s", name);
		return;
	}
}

/* What was sent by another interface is out, whatever came back; what was sent
 * at all was not impossible. */
static void look_at_links(struct prove_try *t, const char *link,
			  const struct link_count *before, size_t n)
{
	struct link_count after[LINKS_MAX];
	size_t m = count_links(after);

	for (size_t i = 0; i < m; i++) {
		const bool known =
			i < n && strcmp(before[i].name, after[i].name) == 0;

		if (after[i].sent == (known ? before[i].sent : 0))
			continue;
		if (t->task->alone && strcmp(after[i].name, link) != 0)
			prove_saw(t, PROVE_OUT,
				  "it was sent by %s, which is not the link to "
				  "the gateway",
				  after[i].name);
		else if (t->result->seen == PROVE_UNABLE &&
			 t->result->trace.set)
			t->result->seen = PROVE_REFUSED;
	}
}

/* --- one attack ----------------------------------------------------------- */

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void await(struct prove_try *t, pid_t pid)
{
	AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	int status = 0;

	if (pidfd >= 0 && poll(&ended, 1, ATTACK_MS) <= 0) {
		kill(pid, SIGKILL);
		prove_saw(t, PROVE_SILENT, "it did not come to an end");
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		prove_saw(t, PROVE_UNABLE, "the system call is forbidden");
	else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		prove_saw(t, PROVE_SKIPPED, "it crashed: signal %d",
			  WTERMSIG(status));
}

static void run_one(struct prove_try *t, const char *link)
{
	struct link_count before[LINKS_MAX];
	size_t n = count_links(before);
	uint64_t began = now_us();
	pid_t pid;

	if ((t->attack->where == PROVE_BOX && !t->task->box) ||
	    (t->attack->where == PROVE_ALONE && !t->task->alone)) {
		prove_saw(t, PROVE_SKIPPED,
			  "only the network is bounded here, not processes and "
			  "files");
		return;
	}
	pid = fork();
	if (pid == 0) {
		t->attack->run(t);
		_exit(0);
	}
	if (pid < 0)
		prove_saw(t, PROVE_SKIPPED, "no process: %s", strerror(errno));
	else
		await(t, pid);
	look_at_links(t, link, before, n);
	t->result->us = (uint32_t)(now_us() - began);
}

/* Descriptor 1, or the file @path. */
static struct prove_sheet *map_sheet(const char *path)
{
	AUTO_FD int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (path && file < 0)
		return MAP_FAILED;
	return mmap(NULL, sizeof(struct prove_sheet), PROT_READ | PROT_WRITE,
		    MAP_SHARED, path ? file : STDOUT_FILENO, 0);
}

int prove_inside_main(int argc, char **argv)
{
	struct prove_sheet *sheet;
	const struct prove_attack *attack;
	char link[16];

	while (argc > 1 && strcmp(argv[1], PROVE_INSIDE_WAIT) == 0)
		pause();
	sheet = map_sheet(argc > 1 ? argv[1] : NULL);
	if (sheet == MAP_FAILED || sheet->task.suite != PROVE_SUITE) {
		fputs("this is a part of `sallyport prove`\n", stderr);
		return EXIT_SALLYPORT;
	}
	signal(SIGPIPE, SIG_IGN);
	find_link(link);
	for (size_t i = 0; i < PROVE_MAX && (attack = prove_attack(i)); i++) {
		struct prove_try t = { .task = &sheet->task,
				       .attack = attack,
				       .result = &sheet->result[i] };

		run_one(&t, link);
	}
	sheet->done = 1;
	/* What a sanitizer does at an exit can't be done in a sandbox. */
	_exit(0);
}
