/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_restore.c - what is the case after somebody was killed: we, with
 * containers that ran on and reached nothing since; or the engine, which tells
 * nobody of the containers that it lost.
 *
 * A container runs if its namespace is where it was at Join, and the same. It
 * gets a new keeper, and by that a new link into that namespace, of the old
 * name, address and route.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/docker_impl.h"
#include "cmd/docker_watch.h"
#include "cmd/rights.h"
#include "firewall/lock.h"

/* What was left, and not deleted, is kept so long. */
#define FORGET_S 60

int docker_new(struct daemon *daemon, const char *dir,
	       struct docker **ret_docker)
{
	struct docker *docker = calloc(1, sizeof(*docker));
	int r;

	if (!docker)
		return -ENOMEM;
	docker->daemon = daemon;
	docker->resolv_conf = "/etc/resolv.conf";
	r = docker_state_open(dir, &docker->dir);
	if (r < 0) {
		free(docker);
		return r;
	}
	docker_load(docker);
	*ret_docker = docker;
	return 0;
}

void docker_resolver(struct docker *docker, const char *path)
{
	docker->resolv_conf = path;
}

void docker_free(struct docker *docker)
{
	if (!docker)
		return;
	for (struct docker_endpoint *i = docker->endpoints, *next; i;
	     i = next) {
		next = i->next;
		docker_endpoint_free(i);
	}
	for (struct docker_network *i = docker->networks, *next; i; i = next) {
		next = i->next;
		free(i);
	}
	close_fd(&docker->dir);
	free(docker);
}

/* --- what is gone -------------------------------------------------------- */

/* The engine numbers the interfaces of a container as it likes; after a restart
 * of ours the name has to be the same. */
static void learn_name(struct docker_endpoint *endpoint)
{
	AUTO_FD int ns = docker_netns_open(endpoint->key);

	if (ns >= 0 && rights_link(ns, &endpoint->inside) == 0) {
		docker_name_link(endpoint);
		docker_save_endpoint(endpoint);
	}
}

static void look_at(struct docker_endpoint *endpoint, int64_t now)
{
	const bool known = endpoint->key_inode != 0;
	const bool alive = known && docker_key_alive(endpoint);
	const int64_t age = now - endpoint->since;

	switch (endpoint->phase) {
	case ENDPOINT_STARTING:
	case ENDPOINT_ENDING:
		return; /* the daemon has its own limits */
	case ENDPOINT_CREATED:
		if (age < DOCKER_UNJOINED_S)
			return;
		break;
	case ENDPOINT_JOINED:
		if (alive && !*endpoint->inside)
			learn_name(endpoint);
		docker_ports_check(endpoint);
		if (alive || !known) /* not there yet: it is watched for */
			return;
		break;
	case ENDPOINT_OVER:
		if (alive || age < FORGET_S)
			return;
		break;
	}
	log_info("docker: %s: its container is gone", endpoint->name);
	docker_endpoint_end(endpoint, true, ENDED_EXIT, NULL);
}

void docker_collect(struct docker *docker)
{
	const int64_t now = docker_now();
	struct docker_endpoint *next;

	for (struct docker_endpoint *i = docker->endpoints; i; i = next) {
		next = i->next;
		look_at(i, now);
	}
}

/* --- what runs on -------------------------------------------------------- */

/* We were killed between Join and the container's namespace: its link is gone,
 * but the engine's resolver is there, and asks for it. */
static void lock_left(const struct docker_endpoint *endpoint)
{
	AUTO_FD int ns = docker_netns_open(endpoint->key);
	char why[256];

	if (ns >= 0 &&
	    rights_lock(ns, &endpoint->gateway, why, sizeof(why)) < 0)
		docker_not_contained(endpoint, why);
}

/* The daemon has taken its sandboxes up already, where the namespace is there,
 * and starts their keepers in its loop. */
static void take_up(struct docker_endpoint *endpoint)
{
	if (!endpoint->key_inode)
		lock_left(endpoint);
	if (!endpoint->key_inode || !docker_key_alive(endpoint) ||
	    !docker_sandbox(endpoint)) {
		log_info("docker: %s: its container is gone", endpoint->name);
		docker_endpoint_phase(endpoint, ENDPOINT_JOINED);
		docker_endpoint_end(endpoint, true, ENDED_FAILED, NULL);
		return;
	}
	docker_name_link(endpoint);
	docker_endpoint_phase(endpoint, ENDPOINT_JOINED);
}

static bool has_endpoint(const struct docker *docker, const char *name)
{
	for (const struct docker_endpoint *i = docker->endpoints; i;
	     i = i->next)
		if (strcmp(i->name, name) == 0)
			return true;
	return false;
}

/* One that was never joined, or whose end had begun. */
static void drop_sandboxes(struct docker *docker)
{
	struct daemon_sandbox *sandbox = daemon_first(docker->daemon), *next;

	for (; sandbox; sandbox = next) {
		next = sandbox->next;
		if (sandbox->spec.docker &&
		    !has_endpoint(docker, sandbox->spec.name))
			daemon_remove(docker->daemon, sandbox, ENDED_FAILED,
				      NULL, NULL);
	}
}

void docker_restore(struct docker *docker)
{
	struct docker_endpoint *next;

	for (struct docker_endpoint *i = docker->endpoints; i; i = next) {
		next = i->next;
		take_up(i);
	}
	drop_sandboxes(docker);
}
