/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_sandbox.c - the sandboxes, and what may be asked of them.
 *
 * One is made in steps: its state on the disk (daemon_policy.c), then its
 * namespace and its keeper, a few at a time (daemon_make.c, daemon_start.c). So
 * a thousand that are asked for at once are a queue, and whoever is killed in
 * between leaves nothing that is not found again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"
#include "cmd/gateway.h"

bool daemon_name_ok(const char *name)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	static const char rest[] = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
	size_t len = strlen(name);

	return len > 0 && len < DAEMON_NAME_MAX && strchr(first, *name) &&
	       strspn(name, rest) == len;
}

struct daemon_sandbox *daemon_find(struct daemon *daemon, const char *name)
{
	struct daemon_sandbox *s = daemon->first;

	while (s && strcmp(s->spec.name, name) != 0)
		s = s->next;
	return s;
}

struct daemon_sandbox *daemon_first(struct daemon *daemon)
{
	return daemon->first;
}

size_t daemon_count(const struct daemon *daemon)
{
	return daemon->count;
}

/* --- boxes --------------------------------------------------------------- */

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
	struct box *box = arg;

	(void)fd;
	(void)what;
	log_err("%s: its keeper takes too long to %s; killed",
		box->sandbox.spec.name, box->starting ? "start" : "end");
	keeper_kill(box->keeper);
}

static void on_wall(evutil_socket_t fd, short what, void *arg)
{
	struct box *box = arg;

	(void)fd;
	(void)what;
	log_warn("%s: its time is over", box->sandbox.spec.name);
	daemon_remove(box->daemon, &box->sandbox, ENDED_TIMEOUT, NULL, NULL);
}

void box_set_wall(struct box *box)
{
	int64_t left = box->sandbox.spec.ends_s - (int64_t)time(NULL);
	const struct timeval after = { .tv_sec = left > 0 ? left : 0 };

	if (box->sandbox.spec.ends_s)
		event_add(box->wall, &after);
}

struct box *box_new(struct daemon *daemon)
{
	struct box *box = calloc(1, sizeof(*box));

	if (!box)
		return NULL;
	box->daemon = daemon;
	box->last = &box->waiters;
	box->killer = box->killer_fd = box->maker_sock = box->ns = -1;
	box->policy = (struct box_policy){ .fd = -1, .leases = -1 };
	box->holder = -1;
	box->sandbox.summary = -1;
	box->limit = evtimer_new(daemon->base, on_limit, box);
	box->wall = evtimer_new(daemon->base, on_wall, box);
	*daemon->last = &box->sandbox;
	daemon->last = &box->sandbox.next;
	daemon->count++;
	if (!box->limit || !box->wall) {
		box_free(box);
		return NULL;
	}
	return box;
}

static void unlink_box(struct box *box)
{
	struct daemon *daemon = box->daemon;
	struct daemon_sandbox **at = &daemon->first;

	while (*at != &box->sandbox)
		at = &(*at)->next;
	*at = box->sandbox.next;
	if (daemon->last == &box->sandbox.next)
		daemon->last = at;
	if (daemon->asked == &box->sandbox)
		daemon->asked = box->sandbox.next;
	daemon->count--;
}

void box_free(struct box *box)
{
	const char *why =
		*box->sandbox.why ? box->sandbox.why : "the sandbox is gone";

	unlink_box(box);
	keeper_free(box->keeper);
	box_drop_killer(box);
	box_drop_maker(box);
	box_drop_policy(&box->policy);
	box_let_go(box);
	box_drop_waiters(box, -ECANCELED, why);
	if (box->created)
		box->created(box->created_arg, &box->sandbox,
			     box->err ? box->err : -ECANCELED, why);
	if (box->removed)
		box->removed(box->removed_arg, &box->sandbox, -ECANCELED, why);
	if (box->limit)
		event_free(box->limit);
	if (box->wall)
		event_free(box->wall);
	free(box);
}

struct waiter *box_wait(struct box *box, enum msg_type type,
			daemon_done_fn *done, void *arg)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter));

	if (!waiter)
		return NULL;
	*waiter = (struct waiter){ .type = type, .done = done, .arg = arg };
	*box->last = waiter;
	box->last = &waiter->next;
	return waiter;
}

void box_drop_waiters(struct box *box, int err, const char *why)
{
	struct waiter *waiter = box->waiters;

	/* Who is told may ask for more. */
	box->waiters = NULL;
	box->last = &box->waiters;
	while (waiter) {
		struct waiter *next = waiter->next;

		if (waiter->done)
			waiter->done(waiter->arg, &box->sandbox, err, why);
		free(waiter);
		waiter = next;
	}
}

/* --- making one ---------------------------------------------------------- */

static int check_spec(struct daemon *daemon, const struct daemon_spec *spec,
		      char *reterr, size_t cap)
{
	const struct daemon_config *config = daemon->config;
	size_t own = 0;

	if (!daemon_name_ok(spec->name)) {
		snprintf(reterr, cap,
			 "a name has small letters, digits, '-', '_' and '.', "
			 "begins with a letter or a digit, and has at most %d",
			 DAEMON_NAME_MAX - 1);
		return -EINVAL;
	}
	/* An endpoint finds its sandbox by its name. */
	if (!spec->docker && strncmp(spec->name, DAEMON_DOCKER_PREFIX,
				     strlen(DAEMON_DOCKER_PREFIX)) == 0) {
		snprintf(reterr, cap,
			 "names that begin with " DAEMON_DOCKER_PREFIX
			 " are those of containers");
		return -EINVAL;
	}
	if (daemon_find(daemon, spec->name)) {
		snprintf(reterr, cap, "the name %s is taken", spec->name);
		return -EEXIST;
	}
	for (const struct daemon_sandbox *s = daemon->first; s; s = s->next)
		own += s->spec.uid == spec->uid && !s->spec.docker;
	if (daemon->count >= config->max_sandboxes) {
		snprintf(reterr, cap,
			 "there are %zu sandboxes, and the operator allows no "
			 "more (limits.max_sandboxes)",
			 daemon->count);
		return -ENOSPC;
	}
	if (spec->uid != 0 && own >= config->max_sandboxes_per_user) {
		snprintf(reterr, cap,
			 "you have %zu sandboxes, and the operator allows no "
			 "more (limits.max_sandboxes_per_user)",
			 own);
		return -ENOSPC;
	}
	return 0;
}

static int place(const struct box *box, const char *below, char *ret)
{
	int len = snprintf(ret, PATH_MAX, "%s/%s/%s", box->daemon->options.run,
			   below, box->sandbox.spec.name);

	return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* An engine's is where the engine says, later. */
static int place_namespaces(struct box *box)
{
	struct daemon_sandbox *s = &box->sandbox;
	int err = 0;

	if (s->spec.link == KEEP_LINK_OWN)
		err = place(box, "netns", s->netns);
	if (!err && s->spec.link == KEEP_LINK_OWN && s->spec.uid != 0)
		err = place(box, "user", s->userns);
	return err;
}

static void fill(struct box *box, const struct daemon_spec *spec)
{
	struct daemon_spec *own = &box->sandbox.spec;

	*own = *spec;
	/* Each is alone with its gateway: they may be the same in all. */
	if (!own->ip.len || !own->gateway.len) {
		own->gateway = ip_v4(GATEWAY_LINK_BASE | 1);
		own->ip = ip_v4(GATEWAY_LINK_BASE | 2);
		own->bits = 30;
	}
	if (!*own->ifname)
		memcpy(own->ifname, "eth0", sizeof("eth0"));
	box->sandbox.state = SANDBOX_STARTING;
	box->sandbox.made_s = time(NULL);
}

int daemon_create(struct daemon *daemon, const struct daemon_spec *spec,
		  const struct bundle *bundle, daemon_done_fn *done, void *arg,
		  char *reterr, size_t cap)
{
	struct box *box;
	int err = check_spec(daemon, spec, reterr, cap);

	if (err)
		return err;
	snprintf(reterr, cap, "out of memory");
	box = box_new(daemon);
	if (!box)
		return -ENOMEM;
	fill(box, spec);
	err = place_namespaces(box);
	if (!err) {
		err = box_hold(box);
		if (err)
			snprintf(reterr, cap, "the process that it is for: %s",
				 strerror(-err));
	}
	if (!err)
		err = box_make(box, bundle, reterr, cap);
	if (err) {
		box_free(box);
		return err;
	}
	box->created = done;
	box->created_arg = arg;
	box_set_wall(box);
	return 0;
}

/* --- asking one ---------------------------------------------------------- */

void box_ask(struct box *box, const void *payload, int fd,
	     const struct waiter *waiter)
{
	if (keeper_tell(box->keeper, waiter->type, payload, fd))
		keeper_kill(box->keeper);
}

static bool serves(const struct daemon_sandbox *s)
{
	return s->state == SANDBOX_READY;
}

int daemon_joined(struct daemon *daemon, struct daemon_sandbox *sandbox, int ns,
		  const char *path, daemon_done_fn *done, void *arg)
{
	struct box *box = box_of(sandbox);
	struct waiter *waiter;

	(void)daemon;
	if (!serves(sandbox))
		return -EBUSY;
	if (strlen(path) >= sizeof(sandbox->netns))
		return -ENAMETOOLONG;
	waiter = box_wait(box, MSG_KEEP_NETNS, done, arg);
	if (!waiter)
		return -ENOMEM;
	memcpy(sandbox->netns, path, strlen(path) + 1);
	box_keep(box, NULL);
	box_ask(box, NULL, ns, waiter);
	return 0;
}

void daemon_finding(struct daemon *daemon, struct daemon_sandbox *sandbox,
		    bool broken, const char *text)
{
	struct msg_keep_finding finding = { .broken = broken };

	(void)daemon;
	snprintf(finding.text, sizeof(finding.text), "%s", text);
	if (serves(sandbox))
		keeper_tell(box_of(sandbox)->keeper, MSG_KEEP_FINDING, &finding,
			    -1);
}

int daemon_forward(struct daemon *daemon, struct daemon_sandbox *sandbox,
		   int fd, const struct endpoint *at, uint16_t port,
		   daemon_done_fn *done, void *arg)
{
	const struct msg_keep_forward msg = { .at = *at, .port = port };
	AUTO_FD int taken = fd;
	struct waiter *waiter;

	(void)daemon;
	if (!serves(sandbox))
		return -EBUSY;
	if (sandbox->publishes == DAEMON_PUBLISH_MAX)
		return -ENOSPC;
	waiter = box_wait(box_of(sandbox), MSG_KEEP_FORWARD, done, arg);
	if (!waiter)
		return -ENOMEM;
	waiter->publish = (struct daemon_publish){ .at = *at, .inside = port };
	box_ask(box_of(sandbox), &msg, taken, waiter);
	return 0;
}
