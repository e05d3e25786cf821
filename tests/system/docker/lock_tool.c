/* SPDX-License-Identifier: Apache-2.0
 *
 * lock_tool.c - for each line "PATH GATEWAY" of its input it locks the
 * namespace that appears at PATH, with the daemon's own watcher; and says
 * "PATH ok MILLISECONDS" or "PATH ERROR WHY", the time since the line.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/addr.h"
#include "cmd/docker_watch.h"

struct job {
	char path[4096];
	struct timespec began;
};

static struct event_base *base;

static void done(void *arg, int err, int ns, const char *why)
{
	struct job *job = arg;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (err)
		printf("%s %s %s\n", job->path, strerrorname_np(-err), why);
	else
		printf("%s ok %.1f\n", job->path,
		       (double)(now.tv_sec - job->began.tv_sec) * 1e3 +
			       (double)(now.tv_nsec - job->began.tv_nsec) /
				       1e6);
	(void)fflush(stdout);
	if (ns >= 0)
		close(ns);
	free(job);
}

static void start(char *line)
{
	struct docker_watch *watch;
	char *gateway = strchr(line, ' ');
	struct job *job = calloc(1, sizeof(*job));
	struct ip ip;

	if (!job || !gateway || strlen(line) >= sizeof(job->path))
		exit(1);
	*gateway++ = '\0';
	(void)stpcpy(job->path, line);
	clock_gettime(CLOCK_MONOTONIC, &job->began);
	if (!ip_parse(gateway, &ip) ||
	    docker_watch(base, job->path, &ip, done, job, &watch) < 0)
		exit(1);
}

static void on_line(evutil_socket_t fd, short what, void *arg)
{
	static char buf[8192];
	static size_t len;

	(void)what;
	(void)arg;
	ssize_t n = read(fd, buf + len, sizeof(buf) - len);
	if (n <= 0)
		exit(n < 0);
	len += (size_t)n;
	for (char *end; (end = memchr(buf, '\n', len));) {
		*end++ = '\0';
		start(buf);
		len -= (size_t)(end - buf);
		memmove(buf, end, len);
	}
}

int main(void)
{
	base = event_base_new();
	if (!base)
		return 1;
	struct event *input = event_new(base, STDIN_FILENO,
					EV_READ | EV_PERSIST, on_line, NULL);
	if (!input || event_add(input, NULL) < 0)
		return 1;
	return event_base_dispatch(base) < 0;
}
