/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_endpoint.c - a container's end of a network: from CreateEndpoint, when
 * its sandbox is made, to the last of Leave, DeleteEndpoint and what
 * docker_collect() finds out.
 *
 * The sandbox is made at CreateEndpoint, whose answer waits until it serves. So
 * Join has little left to do, and one that fails leaves an endpoint that the
 * engine deletes, or that is collected.
 *
 * The daemon calls back, and the engine may have changed its mind by then: an
 * endpoint is freed when all of its calls have come back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/docker_impl.h"
#include "cmd/docker_watch.h"

struct docker_endpoint *docker_endpoint_find(const struct docker *docker,
					     const char *id)
{
	struct docker_endpoint *endpoint = docker->endpoints;

	while (endpoint && strcmp(endpoint->id, id) != 0)
		endpoint = endpoint->next;
	return endpoint;
}

struct docker_endpoint *docker_endpoint_of(const struct docker *docker,
					   const json_t *call,
					   struct docker_reply *reply)
{
	const char *id = docker_id(call, "EndpointID", reply);
	const char *network = id ? docker_id(call, "NetworkID", reply) : NULL;
	struct docker_endpoint *endpoint;

	if (!network)
		return NULL;
	endpoint = docker_endpoint_find(docker, id);
	if (endpoint && strcmp(endpoint->network, network) == 0)
		return endpoint;
	docker_refuse(reply,
		      "sallyport knows no endpoint %.12s on network %.12s", id,
		      network);
	return NULL;
}

struct docker_endpoint *docker_endpoint_new(struct docker *docker,
					    const char *id)
{
	struct docker_endpoint *endpoint = calloc(1, sizeof(*endpoint));

	if (!endpoint)
		return NULL;
	endpoint->docker = docker;
	memcpy(endpoint->id, id, strlen(id));
	/* 48 bits of the engine's random ones; an interface has 15 letters. */
	snprintf(endpoint->name, sizeof(endpoint->name),
		 DAEMON_DOCKER_PREFIX "%.12s", id);
	snprintf(endpoint->link, sizeof(endpoint->link), "sp%.12s", id);
	endpoint->since = docker_now();
	return endpoint;
}

void docker_endpoint_add(struct docker_endpoint *endpoint)
{
	endpoint->next = endpoint->docker->endpoints;
	endpoint->docker->endpoints = endpoint;
}

/* Its memory stays until the daemon's calls have come back. */
void docker_endpoint_free(struct docker_endpoint *endpoint)
{
	if (!endpoint)
		return;
	docker_watch_free(endpoint->watch);
	endpoint->watch = NULL;
	endpoint->docker = NULL;
	if (endpoint->calls == 0)
		free(endpoint);
}

void docker_endpoint_phase(struct docker_endpoint *endpoint,
			   enum endpoint_phase phase)
{
	endpoint->phase = phase;
	endpoint->since = docker_now();
}

struct daemon_sandbox *docker_sandbox(const struct docker_endpoint *endpoint)
{
	struct daemon_sandbox *sandbox =
		daemon_find(endpoint->docker->daemon, endpoint->name);

	/* One that a user made has a policy of the user's. */
	return sandbox && sandbox->spec.docker ? sandbox : NULL;
}

/* --- the end ------------------------------------------------------------- */

static void unlist(struct docker_endpoint *endpoint)
{
	struct docker_endpoint **at = &endpoint->docker->endpoints;

	while (*at && *at != endpoint)
		at = &(*at)->next;
	if (*at)
		*at = endpoint->next;
}

/* The sandbox is gone: whoever waits hears of it. @endpoint may be gone, too.
 */
static void over(struct docker_endpoint *endpoint)
{
	struct docker_reply waiting[DOCKER_WAITERS_MAX], busy = endpoint->busy;

	memcpy(waiting, endpoint->ending, sizeof(waiting));
	memset(endpoint->ending, 0, sizeof(endpoint->ending));
	endpoint->busy = (struct docker_reply){ 0 };
	docker_endpoint_phase(endpoint, ENDPOINT_OVER);
	if (endpoint->forget) {
		unlist(endpoint);
		docker_endpoint_free(endpoint);
	}
	docker_refuse(&busy, "the container was stopped meanwhile");
	for (size_t i = 0; i < DOCKER_WAITERS_MAX; i++)
		docker_ok(&waiting[i]);
}

/* A call has come back. True: to nobody. */
static bool orphaned(struct docker_endpoint *endpoint)
{
	endpoint->calls--;
	if (endpoint->docker)
		return false;
	docker_endpoint_free(endpoint);
	return true;
}

static void removed(void *arg, struct daemon_sandbox *sandbox, int err,
		    const char *why)
{
	struct docker_endpoint *endpoint = arg;

	(void)sandbox;
	if (orphaned(endpoint))
		return;
	if (err < 0)
		log_warn("docker: %s: %s", endpoint->name, why);
	over(endpoint);
}

static void remove_sandbox(struct docker_endpoint *endpoint,
			   enum ended_by ended)
{
	struct daemon_sandbox *sandbox = docker_sandbox(endpoint);
	int r = 0;

	docker_watch_free(endpoint->watch);
	endpoint->watch = NULL;
	docker_endpoint_phase(endpoint, ENDPOINT_ENDING);
	/* First: what is ending is never taken up again. */
	docker_unsave_endpoint(endpoint);
	if (sandbox) {
		endpoint->calls++;
		r = daemon_remove(endpoint->docker->daemon, sandbox, ended,
				  removed, endpoint);
		if (r == 0)
			return;
		endpoint->calls--;
		log_warn("docker: %s is not ended: %s", endpoint->name,
			 strerror(-r));
	}
	over(endpoint);
}

static bool wait_for_end(struct docker_endpoint *endpoint,
			 struct docker_reply *reply)
{
	for (size_t i = 0; i < DOCKER_WAITERS_MAX; i++)
		if (!endpoint->ending[i].fn) {
			endpoint->ending[i] = *reply;
			*reply = (struct docker_reply){ 0 };
			return true;
		}
	docker_refuse(reply, "the container's endpoint is being ended");
	return false;
}

void docker_endpoint_end(struct docker_endpoint *endpoint, bool forget,
			 enum ended_by ended, struct docker_reply *reply)
{
	if (reply && !wait_for_end(endpoint, reply))
		return;
	endpoint->forget |= forget;
	switch (endpoint->phase) {
	case ENDPOINT_STARTING:
		endpoint->doomed = true;
		break;
	case ENDPOINT_CREATED:
	case ENDPOINT_JOINED:
		remove_sandbox(endpoint, ended);
		break;
	case ENDPOINT_ENDING:
		break;
	case ENDPOINT_OVER:
		over(endpoint);
		break;
	}
}

bool docker_endpoint_back(struct docker_endpoint *endpoint)
{
	if (orphaned(endpoint))
		return true;
	return endpoint->phase == ENDPOINT_ENDING ||
	       endpoint->phase == ENDPOINT_OVER ||
	       daemon_stopping(endpoint->docker->daemon);
}

/* --- CreateEndpoint ------------------------------------------------------ */

void docker_endpoint_spec(const struct docker_endpoint *endpoint,
			  struct daemon_spec *ret)
{
	*ret = (struct daemon_spec){
		.link = KEEP_LINK_JOIN,
		.docker = true,
		.ip = endpoint->ip,
		.gateway = endpoint->gateway,
		.bits = endpoint->bits,
	};
	memcpy(ret->name, endpoint->name, sizeof(ret->name));
	memcpy(ret->ifname, endpoint->link, sizeof(ret->ifname));
	if (endpoint->policy[0] != '/')
		snprintf(ret->policy_name, sizeof(ret->policy_name), "%.63s",
			 endpoint->policy);
	snprintf(ret->policy_text, sizeof(ret->policy_text), "%.511s",
		 endpoint->policy);
}

static void created(void *arg, struct daemon_sandbox *sandbox, int err,
		    const char *why)
{
	struct docker_endpoint *endpoint = arg;

	(void)sandbox;
	if (orphaned(endpoint))
		return;
	if (err < 0) {
		docker_refuse(&endpoint->busy, "%s", why);
		/* A failed CreateEndpoint is not followed by a Delete. */
		endpoint->forget = true;
		over(endpoint);
		return;
	}
	docker_endpoint_phase(endpoint, ENDPOINT_CREATED);
	if (endpoint->doomed) {
		remove_sandbox(endpoint, ENDED_SIGNAL);
		return;
	}
	docker_answer(&endpoint->busy, json_pack("{s:{}}", "Interface"));
}

/* The address that the engine chose, in the network's subnet. */
static int take_address(const json_t *interface,
			const struct docker_network *network,
			struct docker_endpoint *endpoint)
{
	const char *text = docker_text(interface, "Address");
	const char *v6 = docker_text(interface, "AddressIPv6");
	const char *slash = text ? strchr(text, '/') : NULL;
	char ip[IP_TEXT_MAX];

	if (!slash || (size_t)(slash - text) >= sizeof(ip) || (v6 && *v6))
		return -EINVAL;
	memcpy(ip, text, (size_t)(slash - text));
	ip[slash - text] = '\0';
	if (!ip_parse(ip, &endpoint->ip) || endpoint->ip.len != 4 ||
	    !cidr_contains(&network->pool, &endpoint->ip) ||
	    ip_equal(&endpoint->ip, &network->gateway))
		return -EINVAL;
	endpoint->gateway = network->gateway;
	endpoint->bits = network->pool.bits;
	memcpy(endpoint->network, network->id, sizeof(endpoint->network));
	return 0;
}

static bool address_is_free(const struct docker *docker,
			    const struct docker_endpoint *endpoint)
{
	for (const struct docker_endpoint *i = docker->endpoints; i;
	     i = i->next)
		if (i->phase != ENDPOINT_ENDING && i->phase != ENDPOINT_OVER &&
		    strcmp(i->network, endpoint->network) == 0 &&
		    ip_equal(&i->ip, &endpoint->ip))
			return false;
	return true;
}

/* All that can be wrong with what is asked for. 0, or -EINVAL and @reterr. */
static int check(const struct docker *docker, const json_t *call,
		 const struct docker_network *network,
		 struct docker_endpoint *endpoint, char *reterr, size_t cap)
{
	if (take_address(json_object_get(call, "Interface"), network,
			 endpoint) < 0) {
		snprintf(
			reterr, cap,
			"the engine gave no IPv4 address of the network's subnet");
		return -EINVAL;
	}
	if (!address_is_free(docker, endpoint)) {
		snprintf(reterr, cap,
			 "another container of the network has that address");
		return -EINVAL;
	}
	return docker_endpoint_options(docker, json_object_get(call, "Options"),
				       network, endpoint, reterr, cap);
}

static int start(struct docker_endpoint *endpoint, char *reterr, size_t cap)
{
	struct docker *docker = endpoint->docker;
	const struct bundle *bundle;
	struct daemon_spec spec;
	struct bundle own;
	int r = docker_policy(docker, endpoint->policy, &own, &bundle, reterr,
			      cap);

	if (r == 0) {
		docker_endpoint_spec(endpoint, &spec);
		r = daemon_create(docker->daemon, &spec, bundle, created,
				  endpoint, reterr, cap);
	}
	bundle_free(&own);
	return r;
}

void docker_create_endpoint(struct docker *docker, const json_t *call,
			    struct docker_reply *reply)
{
	const char *id = docker_id(call, "EndpointID", reply);
	const char *network_id =
		id ? docker_id(call, "NetworkID", reply) : NULL;
	const struct docker_network *network;
	struct docker_endpoint *endpoint;
	char why[768] = "out of memory";

	if (!network_id)
		return;
	network = docker_network_find(docker, network_id);
	if (!network) {
		docker_refuse(
			reply,
			"sallyport knows no network %.12s: remove it and create it again",
			network_id);
		return;
	}
	if (docker_endpoint_find(docker, id)) {
		docker_refuse(reply, "there is an endpoint %.12s already", id);
		return;
	}
	endpoint = docker_endpoint_new(docker, id);
	if (!endpoint ||
	    check(docker, call, network, endpoint, why, sizeof(why)) < 0 ||
	    start(endpoint, why, sizeof(why)) < 0) {
		docker_endpoint_free(endpoint);
		docker_refuse(reply, "%s", why);
		return;
	}
	endpoint->calls++;
	endpoint->busy = *reply;
	docker_endpoint_add(endpoint);
}

/* --- the other calls ----------------------------------------------------- */

/* An engine leaves and deletes what it may not have joined, and twice; it gets
 * no error for that, as it could do nothing about it. */
static void end(struct docker *docker, const json_t *call, bool forget,
		struct docker_reply *reply)
{
	const char *id = docker_id(call, "EndpointID", reply);
	struct docker_endpoint *endpoint;

	if (!id)
		return;
	endpoint = docker_endpoint_find(docker, id);
	if (endpoint)
		docker_endpoint_end(endpoint, forget, ENDED_EXIT, reply);
	else
		docker_ok(reply);
}

void docker_leave(struct docker *docker, const json_t *call,
		  struct docker_reply *reply)
{
	end(docker, call, false, reply);
}

void docker_delete_endpoint(struct docker *docker, const json_t *call,
			    struct docker_reply *reply)
{
	end(docker, call, true, reply);
}
