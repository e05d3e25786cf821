/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_world.h - what the driver has around it, for its test and its fuzzer:
 * a daemon whose sandboxes are entries of a table, namespaces that are plain
 * files. The daemon answers when world_turn() says so, as one with a loop does.
 */
#ifndef TESTS_CMD_DOCKER_WORLD_H
#define TESTS_CMD_DOCKER_WORLD_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/daemon.h"
#include "cmd/daemon_config.h"
#include "cmd/docker.h"
#include "cmd/docker_watch.h"
#include "cmd/rights.h"

#define WORLD_MAX 64

/* An answer that the daemon owes. */
struct world_call {
	daemon_done_fn *done;
	void *arg;
	struct daemon_sandbox *sandbox;
	bool removes, creates;
	int err;
};

static struct world {
	struct daemon_config config;
	struct daemon_policy policy[2];
	struct daemon_sandbox *sandboxes;
	struct world_call call[WORLD_MAX];
	size_t calls;
	int forwards[WORLD_MAX]; /* listening sockets that it was given */
	size_t forward_count;
	struct docker_watch *watches;
	/* What is to go wrong. */
	int create_err; /* later */
	int refuse_err; /* at once */
	int lock_err, joined_err, forward_err;
	bool stopping;
	/* What was done. */
	unsigned locked, joined, killed, findings, broken;
	char finding[512];
	struct daemon_spec spec; /* of the last that was made */
} world;

struct docker_watch {
	char path[PATH_MAX];
	docker_watch_fn *fn;
	void *arg;
	struct docker_watch *next;
};

static inline void world_owe(struct world_call call)
{
	if (world.calls == WORLD_MAX)
		abort();
	if (call.done)
		world.call[world.calls++] = call;
}

static inline void world_drop(struct daemon_sandbox *sandbox)
{
	struct daemon_sandbox **at = &world.sandboxes;

	while (*at && *at != sandbox)
		at = &(*at)->next;
	if (*at)
		*at = sandbox->next;
	free(sandbox);
}

/* Gives the answers that are owed; those may bring others. */
static inline void world_turn(void)
{
	while (world.calls) {
		struct world_call call = world.call[0];

		memmove(world.call, world.call + 1,
			--world.calls * sizeof(call));
		if (call.creates && call.err)
			world_drop(call.sandbox);
		else if (call.creates)
			call.sandbox->state = SANDBOX_READY;
		call.done(call.arg, NULL, call.err, call.err ? "as told" : "");
	}
}

static inline size_t world_sandboxes(void)
{
	size_t n = 0;

	for (struct daemon_sandbox *i = world.sandboxes; i; i = i->next)
		n++;
	return n;
}

static inline struct daemon_sandbox *
world_sandbox(const struct daemon_spec *spec)
{
	struct daemon_sandbox *sandbox = calloc(1, sizeof(*sandbox));

	if (!sandbox)
		abort();
	sandbox->spec = *spec;
	snprintf(sandbox->facts.session, sizeof(sandbox->facts.session),
		 "of %.50s", spec->name);
	sandbox->next = world.sandboxes;
	world.sandboxes = sandbox;
	return sandbox;
}

/* --- the daemon ---------------------------------------------------------- */

int daemon_create(struct daemon *daemon, const struct daemon_spec *spec,
		  const struct bundle *bundle, daemon_done_fn *done, void *arg,
		  char *reterr, size_t cap)
{
	struct daemon_sandbox *sandbox;

	if (!bundle->data)
		abort();
	if (world.refuse_err || daemon_find(daemon, spec->name)) {
		snprintf(reterr, cap, "it is full");
		return world.refuse_err ? world.refuse_err : -EEXIST;
	}
	world.spec = *spec;
	sandbox = world_sandbox(spec);
	world_owe((struct world_call){ .done = done,
				       .arg = arg,
				       .sandbox = sandbox,
				       .creates = true,
				       .err = world.create_err });
	return 0;
}

int daemon_joined(struct daemon *daemon, struct daemon_sandbox *sandbox, int ns,
		  const char *path, daemon_done_fn *done, void *arg)
{
	(void)daemon;
	if (fcntl(ns, F_GETFD) < 0 || *path != '/')
		abort();
	world.joined++;
	world_owe((struct world_call){ .done = done,
				       .arg = arg,
				       .sandbox = sandbox,
				       .err = world.joined_err });
	return 0;
}

void daemon_finding(struct daemon *daemon, struct daemon_sandbox *sandbox,
		    bool broken, const char *text)
{
	(void)daemon;
	if (!sandbox)
		abort();
	world.findings++;
	world.broken += broken;
	snprintf(world.finding, sizeof(world.finding), "%s", text);
}

int daemon_forward(struct daemon *daemon, struct daemon_sandbox *sandbox,
		   int fd, const struct endpoint *at, uint16_t port,
		   daemon_done_fn *done, void *arg)
{
	(void)daemon;
	if (!at->port || !port || world.forward_count == WORLD_MAX)
		abort();
	if (world.forward_err)
		close(fd);
	else
		world.forwards[world.forward_count++] = fd;
	world_owe((struct world_call){ .done = done,
				       .arg = arg,
				       .sandbox = sandbox,
				       .err = world.forward_err });
	return 0;
}

static inline void world_close_forwards(void)
{
	while (world.forward_count)
		close(world.forwards[--world.forward_count]);
}

int daemon_remove(struct daemon *daemon, struct daemon_sandbox *sandbox,
		  enum ended_by ended, daemon_done_fn *done, void *arg)
{
	(void)daemon;
	(void)ended;
	world_close_forwards();
	world_drop(sandbox);
	world_owe((struct world_call){
		.done = done, .arg = arg, .removes = true });
	return 0;
}

struct daemon_sandbox *daemon_find(struct daemon *daemon, const char *name)
{
	struct daemon_sandbox *sandbox = world.sandboxes;

	(void)daemon;
	while (sandbox && strcmp(sandbox->spec.name, name) != 0)
		sandbox = sandbox->next;
	return sandbox;
}

struct daemon_sandbox *daemon_first(struct daemon *daemon)
{
	(void)daemon;
	return world.sandboxes;
}

const struct daemon_config *daemon_config(const struct daemon *daemon)
{
	(void)daemon;
	return &world.config;
}

bool daemon_stopping(const struct daemon *daemon)
{
	(void)daemon;
	return world.stopping;
}

struct event_base *daemon_base(const struct daemon *daemon)
{
	(void)daemon;
	return NULL;
}

const struct daemon_policy *
daemon_config_policy(const struct daemon_config *config, const char *name)
{
	for (size_t i = 0; i < config->policies; i++)
		if (strcmp(config->policy[i].name, name) == 0)
			return &config->policy[i];
	return NULL;
}

/* --- namespaces ---------------------------------------------------------- */

int docker_netns_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* None of the container's links has a name that we would know. */
int rights_link(int ns, char (*ret_name)[16])
{
	(void)ns;
	(void)ret_name;
	return -ENODEV;
}

int rights_lock(int ns, const struct ip *gateway, char *reterr, size_t cap)
{
	(void)gateway;
	if (fcntl(ns, F_GETFD) < 0)
		abort();
	if (world.lock_err)
		snprintf(reterr, cap, "no tables");
	else
		world.locked++;
	return world.lock_err;
}

int rights_end(int ns)
{
	if (fcntl(ns, F_GETFD) < 0)
		abort();
	world.killed++;
	return 0;
}

int docker_watch(struct event_base *base, const char *path,
		 const struct ip *gateway, docker_watch_fn *fn, void *arg,
		 struct docker_watch **ret_watch)
{
	struct docker_watch *watch = calloc(1, sizeof(*watch));

	(void)base;
	(void)gateway;
	if (!watch)
		abort();
	snprintf(watch->path, sizeof(watch->path), "%s", path);
	watch->fn = fn;
	watch->arg = arg;
	watch->next = world.watches;
	world.watches = watch;
	*ret_watch = watch;
	return 0;
}

void docker_watch_free(struct docker_watch *watch)
{
	struct docker_watch **at = &world.watches;

	while (*at && *at != watch)
		at = &(*at)->next;
	if (*at)
		*at = watch->next;
	free(watch);
}

/* The engine has made the namespace that is waited for, or not (@err). */
static inline void world_appear(int err)
{
	struct docker_watch *watch = world.watches;
	const struct docker_watch was = *watch;
	int ns =
		err ? -1 : open(was.path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);

	docker_watch_free(watch);
	was.fn(was.arg, err, ns, err ? "as told" : NULL);
}

/* --- all of it ----------------------------------------------------------- */

static inline void world_begin(void)
{
	static uint8_t text[] = "version: 1\n";

	memset(&world, 0, sizeof(world));
	world.policy[0] =
		(struct daemon_policy){ .name = "agent",
					.bundle = { text, sizeof(text) - 1 } };
	world.policy[1] =
		(struct daemon_policy){ .name = "strict",
					.bundle = { text, sizeof(text) - 1 } };
	world.config.policy = world.policy;
	world.config.policies = 2;
	snprintf(world.config.default_policy,
		 sizeof(world.config.default_policy), "agent");
}

static inline void world_end(void)
{
	world_close_forwards();
	while (world.watches)
		docker_watch_free(world.watches);
	while (world.sandboxes)
		world_drop(world.sandboxes);
}

#endif
