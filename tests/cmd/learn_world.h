/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_world.h - logs as the ledger writes them, and `learn` run over them.
 */
#ifndef TESTS_CMD_LEARN_WORLD_H
#define TESTS_CMD_LEARN_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/record.h"
#include "base/cleanup.h"
#include "cmd/command.h"
#include "tests/cmd/policy_of.h"

struct world {
	char dir[64], log[80], out[80], err[80];
	FILE *file;
	uint64_t sequence, flow;
	const char *session;
};

/* What `learn` printed. */
struct learned {
	int status;
	char *yaml, *err;
};

static inline void learned_free(struct learned *learned)
{
	free(learned->yaml);
	free(learned->err);
}
#define AUTO_LEARNED __attribute__((cleanup(learned_free)))

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	snprintf(w->dir, sizeof(w->dir), "/tmp/sallyport-learn-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->log, sizeof(w->log), "%s/audit.jsonl", w->dir);
	snprintf(w->out, sizeof(w->out), "%s/out", w->dir);
	snprintf(w->err, sizeof(w->err), "%s/err", w->dir);
	w->file = fopen(w->log, "w");
	assert_non_null(w->file);
	w->session = "5e551071";
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;
	char path[96];

	if (w->file)
		fclose(w->file);
	unlink(w->log);
	unlink(w->out);
	unlink(w->err);
	snprintf(path, sizeof(path), "%s/policy.yaml", w->dir);
	unlink(path);
	rmdir(w->dir);
	free(w);
	return 0;
}

static inline void raw(struct world *w, const void *data, size_t len)
{
	assert_int_equal(fwrite(data, 1, len, w->file), len);
}

static inline void record(struct world *w, struct audit_event event)
{
	const struct record_context context = { .session = w->session,
						.sandbox_name = "run",
						.policy_digest = "d1ce57",
						.policy_name = "test",
						.boundary = "netns" };
	static char line[RECORD_LINE_MAX];
	size_t len;

	if (!event.time_ms)
		event.time_ms = 1775014138000 + w->sequence * 1000;
	event.sandbox = 1;
	len = record_format(&event, ++w->sequence, &context, line,
			    sizeof(line) - 1);
	assert_true(len > 0);
	line[len++] = '\n';
	raw(w, line, len);
}

static inline struct verdict verdict_of(enum reason reason)
{
	return (struct verdict){ .allow = reason_info(reason)->allow,
				 .reason = reason,
				 .observed = reason == REASON_OBSERVE
						     ? REASON_NOT_IN_POLICY
						     : REASON_RULE };
}

static inline struct audit_event event_of(struct world *w, enum event_kind kind,
					  const char *host, uint16_t port,
					  enum reason reason)
{
	struct audit_event event = { .kind = kind,
				     .flow = w->flow,
				     .verdict = verdict_of(reason),
				     .door = DOOR_CONNECT,
				     .host = host,
				     .src_ip = ip_v4(0x0a000002),
				     .dst_ip = ip_v4(0x65020304),
				     .dst_port = port,
				     .protocol = port == 443  ? "tls"
						 : port == 80 ? "http"
							      : "tcp" };

	if (host && ip_parse(host, &event.dst_ip))
		event.host = NULL;
	return event;
}

/* A connection that came about. */
static inline void reach(struct world *w, const char *host, uint16_t port,
			 enum reason reason)
{
	static const enum event_kind kinds[] = { EVENT_FLOW_OPEN,
						 EVENT_FLOW_DIAL,
						 EVENT_FLOW_CLOSE };

	w->flow++;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		record(w, event_of(w, kinds[i], host, port, reason));
}

static inline void refuse(struct world *w, const char *host, uint16_t port,
			  enum reason reason)
{
	w->flow++;
	record(w, event_of(w, EVENT_FLOW_OPEN, host, port, reason));
}

static inline void look_up(struct world *w, const char *host,
			   enum reason reason, uint16_t type)
{
	struct audit_event event =
		event_of(w, EVENT_DNS_QUERY, host, 53, reason);

	event.qtype = type;
	event.door = DOOR_DNS;
	record(w, event);
}

static inline char *slurp(const char *path)
{
	AUTO_FILE FILE *file = fopen(path, "r");
	char *text = calloc(1, 1 << 22);

	assert_non_null(file);
	assert_non_null(text);
	assert_in_range(fread(text, 1, (1 << 22) - 1, file), 0, (1 << 22) - 2);
	return text;
}

/* Runs `learn` with up to 8 @args; "LOG" is the log. */
static inline struct learned learn_with(struct world *w,
					const char *const *args)
{
	struct learned learned;
	char *argv[10] = { (char *)"learn" };
	int argc = 1, status;
	pid_t pid;

	fflush(NULL);
	for (; args[argc - 1]; argc++)
		argv[argc] = strcmp(args[argc - 1], "LOG") == 0
				     ? w->log
				     : (char *)args[argc - 1];
	pid = fork();
	if (pid == 0) {
		if (!freopen(w->out, "w", stdout) ||
		    !freopen(w->err, "w", stderr))
			_exit(99);
		exit(learn_main(argc, argv));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	learned.status = WEXITSTATUS(status);
	learned.yaml = slurp(w->out);
	learned.err = slurp(w->err);
	return learned;
}

#define LEARN(w, ...) learn_with(w, (const char *const[]){ __VA_ARGS__, NULL })

/* By the policy that was learned; a host may be an address. */
static inline bool allows(const struct learned *learned, const char *host,
			  uint16_t port)
{
	struct policy *policy = policy_of(learned->yaml);
	struct question question = { .port = port, .door = DOOR_CONNECT };
	bool allow;

	if (!ip_parse(host, &question.address))
		question.host = host;
	allow = policy_decide(policy, &question).allow;
	policy_unref(policy);
	return allow;
}

static inline void assert_has(const char *text, const char *want)
{
	if (!strstr(text, want))
		fail_msg("no \"%s\" in:\n%s", want, text);
}

static inline void assert_has_not(const char *text, const char *want)
{
	if (strstr(text, want))
		fail_msg("\"%s\" in:\n%s", want, text);
}

#endif
