/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_network.c - a network is what its containers have in common: a policy,
 * and the engine's addresses. There is no wire between them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/cell_notice.h"
#include "cmd/docker_impl.h"
#include "cmd/session.h"

struct docker_network *docker_network_find(const struct docker *docker,
					   const char *id)
{
	struct docker_network *network = docker->networks;

	while (network && strcmp(network->id, id) != 0)
		network = network->next;
	return network;
}

static size_t count(const struct docker *docker)
{
	size_t n = 0;

	for (const struct docker_network *i = docker->networks; i; i = i->next)
		n++;
	return n;
}

/* Its policy is there, and is one. */
static int check_policy(const struct docker *docker,
			const struct docker_network *network, char *reterr,
			size_t cap)
{
	const struct bundle *bundle;
	struct bundle own;
	int r = docker_policy(docker, network->policy, &own, &bundle, reterr,
			      cap);

	if (r == 0)
		cell_notice(bundle, "in a container");
	bundle_free(&own);
	return r;
}

void docker_create_network(struct docker *docker, const json_t *call,
			   struct docker_reply *reply)
{
	const char *id = docker_id(call, "NetworkID", reply);
	AUTO_FREE struct docker_network *network = NULL;
	char why[768];

	if (!id)
		return;
	if (docker_network_find(docker, id)) {
		docker_refuse(reply, "there is a network %s already", id);
		return;
	}
	if (count(docker) >= DOCKER_NETWORKS_MAX) {
		docker_refuse(reply, "there are %d sallyport networks already",
			      DOCKER_NETWORKS_MAX);
		return;
	}
	network = calloc(1, sizeof(*network));
	if (!network) {
		docker_refuse(reply, "out of memory");
		return;
	}
	memcpy(network->id, id, strlen(id));
	if (docker_network_options(call, network, why, sizeof(why)) < 0 ||
	    check_policy(docker, network, why, sizeof(why)) < 0) {
		docker_refuse(reply, "%s", why);
		return;
	}
	/* Before the answer: the engine says it once, and never again. */
	if (docker_save_network(network, docker->dir) < 0) {
		docker_refuse(
			reply,
			"the network can't be written down: the log of sallyport says why");
		return;
	}
	network->next = docker->networks;
	docker->networks = STEAL(network);
	docker_ok(reply);
}

/* The engine deletes none that has containers. If it has forgotten some, they
 * are gone. */
void docker_delete_network(struct docker *docker, const json_t *call,
			   struct docker_reply *reply)
{
	const char *id = docker_id(call, "NetworkID", reply);
	struct docker_endpoint *next;

	if (!id)
		return;
	for (struct docker_endpoint *i = docker->endpoints; i; i = next) {
		next = i->next;
		if (strcmp(i->network, id) == 0)
			docker_endpoint_end(i, true, ENDED_SIGNAL, NULL);
	}
	for (struct docker_network **at = &docker->networks; *at;
	     at = &(*at)->next)
		if (strcmp((*at)->id, id) == 0) {
			struct docker_network *network = *at;

			*at = network->next;
			docker_unsave_network(docker, id);
			free(network);
			break;
		}
	docker_ok(reply);
}
