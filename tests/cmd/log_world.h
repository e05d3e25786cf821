/* SPDX-License-Identifier: Apache-2.0
 *
 * log_world.h - lines as the ledger writes them, and `log` run over them.
 */
#ifndef TESTS_CMD_LOG_WORLD_H
#define TESTS_CMD_LOG_WORLD_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/record.h"
#include "base/cleanup.h"
#include "cmd/command.h"

#define TIME_MS	  UINT64_C(1775014138811) /* 2026-04-01T03:28:58.811Z */
#define SLURP_MAX (32u << 20)

struct shown {
	int status;
	char *out, *err;
	long rss_kib;
};

static inline void shown_free(struct shown *shown)
{
	free(shown->out);
	free(shown->err);
}
#define AUTO_SHOWN __attribute__((cleanup(shown_free)))

/* @line holds RECORD_LINE_MAX + 1 bytes; with its LF. */
static inline size_t format(const struct audit_event *event, const char *name,
			    char *line)
{
	static uint64_t sequence;
	const struct record_context context = { .session = "5e551071",
						.sandbox_name = name,
						.policy_digest = "d1ce57",
						.policy_name = "test",
						.boundary = "netns" };
	struct audit_event copy = *event;
	size_t len;

	if (!copy.time_ms)
		copy.time_ms = TIME_MS;
	if (!copy.sandbox)
		copy.sandbox = 1;
	len = record_format(&copy, ++sequence, &context, line, RECORD_LINE_MAX);
	assert_true(len > 0);
	line[len++] = '\n';
	return len;
}

static inline void put(FILE *file, struct audit_event event)
{
	static char line[RECORD_LINE_MAX + 1];
	size_t len = format(&event, "run", line);

	assert_int_equal(fwrite(line, 1, len, file), len);
}

static inline struct verdict verdict_of(enum reason reason)
{
	return (struct verdict){ .allow = reason_info(reason)->allow,
				 .reason = reason,
				 .observed = reason == REASON_OBSERVE
						     ? REASON_NOT_IN_POLICY
						     : REASON_RULE };
}

/* Of whatever kind; a test sets what it is about. */
static inline struct audit_event event_of(enum event_kind kind,
					  enum reason reason)
{
	return (struct audit_event){ .kind = kind,
				     .flow = 7,
				     .verdict = verdict_of(reason),
				     .door = DOOR_CONNECT,
				     .rule = "policy.yaml:12",
				     .host = "api.example",
				     .src_ip = ip_v4(0x0a000002),
				     .dst_ip = ip_v4(0xcb007105),
				     .dst_port = 443,
				     .protocol = "tls" };
}

static inline char *slurp(const char *path)
{
	AUTO_FILE FILE *file = fopen(path, "r");
	char *text = calloc(1, SLURP_MAX);

	assert_non_null(file);
	assert_non_null(text);
	assert_in_range(fread(text, 1, SLURP_MAX - 1, file), 0, SLURP_MAX - 2);
	return text;
}

/* `log` with @args in a process of its own. */
static inline pid_t start_log(const char *const *args, int in, int out, int err)
{
	char *argv[16] = { (char *)"log" };
	int argc = 1;
	pid_t pid;

	for (; args[argc - 1]; argc++)
		argv[argc] = (char *)args[argc - 1];
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if ((in >= 0 && dup2(in, 0) < 0) || dup2(out, 1) < 0 ||
		    dup2(err, 2) < 0)
			_exit(99);
		/* As after exec(): it must not hold the other end. */
		close_range(3, ~0u, 0);
		exit(log_main(argc, argv));
	}
	assert_true(pid > 0);
	return pid;
}

static inline struct shown end_log(pid_t pid, const char *dir)
{
	struct shown shown;
	struct rusage usage;
	char path[128];
	int status;

	assert_int_equal(wait4(pid, &status, 0, &usage), pid);
	assert_true(WIFEXITED(status));
	shown.status = WEXITSTATUS(status);
	shown.rss_kib = usage.ru_maxrss;
	snprintf(path, sizeof(path), "%s/out", dir);
	shown.out = slurp(path);
	snprintf(path, sizeof(path), "%s/err", dir);
	shown.err = slurp(path);
	return shown;
}

static inline int open_in(const char *dir, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static inline pid_t begin_log(const char *dir, const char *const *args, int in)
{
	AUTO_FD int out = open_in(dir, "out");
	AUTO_FD int err = open_in(dir, "err");

	return start_log(args, in, out, err);
}

#define LOG(dir, ...)                                                        \
	end_log(begin_log((dir), (const char *const[]){ __VA_ARGS__, NULL }, \
			  -1),                                               \
		(dir))

/* A scratch directory with a log in it, empty for now. */
struct world {
	char dir[64], path[80], home[80];
	FILE *file;
};

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	snprintf(w->dir, sizeof(w->dir), "/tmp/sallyport-log-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof(w->path), "%s/audit.jsonl", w->dir);
	w->file = fopen(w->path, "w");
	assert_non_null(w->file);
	assert_int_equal(setenv("TZ", "XYZ-01:30", 1), 0);
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	static const char *const names[] = { "audit.jsonl", "audit.jsonl.1",
					     "out", "err", "other" };
	struct world *w = *state;
	char path[96];

	fclose(w->file);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", w->dir, names[i]);
		unlink(path);
	}
	rmdir(w->dir);
	free(w);
	return 0;
}

#endif
