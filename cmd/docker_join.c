/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_join.c - the engine takes our end of the link into a container.
 *
 * The answer names the link, the gateway, and says that we want no gateway of
 * the engine's: without that word it adds an interface of its own, with a way
 * out to everywhere. The container's namespace gets our tables, as the engine
 * has a resolver in there that may ask the host's name servers. Where the
 * namespace is there already (engines from v28 on, and `docker network
 * connect`) that is done before the answer, and what fails is an error; where
 * it is not yet, it is watched for, and what fails ends the sandbox, and the
 * container: its names would leave past us.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/docker_impl.h"
#include "cmd/docker_watch.h"
#include "cmd/rights.h"

static uint64_t inode_of(int ns)
{
	struct stat st;

	return fstat(ns, &st) == 0 ? st.st_ino : 0;
}

bool docker_key_alive(const struct docker_endpoint *endpoint)
{
	AUTO_FD int ns = docker_netns_open(endpoint->key);

	return ns >= 0 && inode_of(ns) == endpoint->key_inode;
}

/* A container must not run without the tables: the engine would ask for names
 * past us. Who is in its namespace is killed, which is what the engine sees. */
const char *docker_not_contained(const struct docker_endpoint *endpoint,
				 const char *why)
{
	AUTO_FD int ns = docker_netns_open(endpoint->key);
	const int r = ns < 0 ? ns : rights_end(ns);

	if (r == 0 || r == -ENOENT) {
		log_err("docker: %s: its container could not be contained, and was ended: %s",
			endpoint->name, why);
		return "its container could not be contained, and was ended";
	}
	log_err("docker: %s: the container whose namespace is %s is NOT CONTAINED (%s), and can't be ended (%s): stop it",
		endpoint->name, endpoint->key, why, strerror(-r));
	return "its container is not contained, and could not be ended";
}

/* It is locked in, with nobody at the other end. */
static void cut(struct docker_endpoint *endpoint, const char *why)
{
	log_err("docker: %s: its container reaches nothing: %s", endpoint->name,
		why);
	docker_endpoint_end(endpoint, false, ENDED_FAILED, NULL);
}

/* For who reads the container's log, too: it is there, though nothing else of
 * it may be. */
static void find(const struct docker_endpoint *endpoint, bool broken,
		 const char *what, const char *why)
{
	struct daemon_sandbox *sandbox = docker_sandbox(endpoint);
	char text[512];

	snprintf(text, sizeof(text), "%s: %.400s", what, why);
	if (sandbox)
		daemon_finding(endpoint->docker->daemon, sandbox, broken, text);
}

static void told(void *arg, struct daemon_sandbox *sandbox, int err,
		 const char *why)
{
	struct docker_endpoint *endpoint = arg;

	(void)sandbox;
	if (docker_endpoint_back(endpoint))
		return;
	if (err < 0)
		cut(endpoint, why);
}

void docker_name_link(const struct docker_endpoint *endpoint)
{
	struct daemon_sandbox *sandbox = docker_sandbox(endpoint);

	if (sandbox)
		snprintf(sandbox->spec.ifname, sizeof(sandbox->spec.ifname),
			 "%s",
			 *endpoint->inside ? endpoint->inside
					   : DOCKER_IFNAME "0");
}

/* The keeper learns where the link is going. 0 or -errno. */
static int tell(struct docker_endpoint *endpoint, int ns)
{
	struct daemon_sandbox *sandbox = docker_sandbox(endpoint);
	int r;

	if (!sandbox)
		return -ENOENT;
	docker_name_link(endpoint);
	endpoint->calls++;
	r = daemon_joined(endpoint->docker->daemon, sandbox, ns, endpoint->key,
			  told, endpoint);
	if (r < 0)
		endpoint->calls--;
	return r;
}

static void appeared(void *arg, int err, int fd, const char *why)
{
	struct docker_endpoint *endpoint = arg;
	AUTO_FD int ns = fd;
	int r;

	endpoint->watch = NULL; /* it is freed */
	if (err == -ETIMEDOUT)
		log_warn("docker: %s: its container never came",
			 endpoint->name);
	else if (err < 0)
		find(endpoint, true, docker_not_contained(endpoint, why), why);
	if (err < 0) {
		docker_endpoint_end(endpoint, false, ENDED_FAILED, NULL);
		return;
	}
	endpoint->key_inode = inode_of(ns);
	/* Not written down: it is not found again after a restart, and cut. */
	docker_save_endpoint(endpoint);
	r = tell(endpoint, ns);
	if (r < 0)
		cut(endpoint, strerror(-r));
}

/* Locks the namespace, or waits for it. 0, or -errno and @reterr. */
static int hold(struct docker_endpoint *endpoint, char *reterr, size_t cap)
{
	AUTO_FD int ns = docker_netns_open(endpoint->key);
	int r = ns;

	if (ns == -ENOENT && endpoint->races) {
		docker_dns_hint(&endpoint->gateway, reterr, cap);
		return -EPERM;
	}
	if (ns == -ENOENT)
		r = docker_watch(daemon_base(endpoint->docker->daemon),
				 endpoint->key, &endpoint->gateway, appeared,
				 endpoint, &endpoint->watch);
	if (r < 0) {
		snprintf(reterr, cap, "the container's namespace %s: %s",
			 endpoint->key, strerror(-r));
		return r;
	}
	if (ns < 0)
		return 0;
	endpoint->key_inode = inode_of(ns);
	r = rights_lock(ns, &endpoint->gateway, reterr, cap);
	if (r < 0)
		find(endpoint, false, "its container was not started", reterr);
	if (r == 0) {
		r = tell(endpoint, ns);
		if (r < 0)
			snprintf(reterr, cap, "%s", strerror(-r));
	}
	return r;
}

/* Has the container another link of ours? Its namespace has one gateway, whose
 * policy it has. */
static bool has_network(const struct docker_endpoint *endpoint)
{
	for (const struct docker_endpoint *i = endpoint->docker->endpoints; i;
	     i = i->next)
		if (i != endpoint && i->phase == ENDPOINT_JOINED &&
		    strcmp(i->key, endpoint->key) == 0)
			return true;
	return false;
}

static bool joinable(const struct docker_endpoint *endpoint,
		     struct docker_reply *reply)
{
	const struct daemon_sandbox *sandbox = docker_sandbox(endpoint);

	if (endpoint->phase == ENDPOINT_JOINED)
		docker_refuse(reply, "it is in a container already");
	else if (endpoint->phase != ENDPOINT_CREATED || !sandbox)
		docker_refuse(reply, "its sandbox %s",
			      endpoint->phase == ENDPOINT_STARTING
				      ? "is not ready"
				      : "has ended");
	else if (sandbox->state != SANDBOX_READY)
		docker_refuse(reply, "its sandbox is gone: %s", sandbox->why);
	else
		return true;
	return false;
}

static bool take_key(const json_t *call, struct docker_endpoint *endpoint)
{
	const char *key = docker_text(call, "SandboxKey");

	if (!key || *key != '/' || strlen(key) >= sizeof(endpoint->key))
		return false;
	memcpy(endpoint->key, key, strlen(key) + 1);
	return true;
}

void docker_join(struct docker *docker, const json_t *call,
		 struct docker_reply *reply)
{
	struct docker_endpoint *endpoint =
		docker_endpoint_of(docker, call, reply);
	char gateway[IP_TEXT_MAX], why[512];

	if (!endpoint || !joinable(endpoint, reply))
		return;
	if (!take_key(call, endpoint)) {
		docker_refuse(reply, "the engine's call has no SandboxKey");
		return;
	}
	if (has_network(endpoint)) {
		docker_refuse(
			reply,
			"a container has one sallyport network: this one is on another already");
		return;
	}
	if (hold(endpoint, why, sizeof(why)) < 0) {
		docker_refuse(reply, "%s", why);
		return;
	}
	docker_endpoint_phase(endpoint, ENDPOINT_JOINED);
	if (docker_save_endpoint(endpoint) < 0) {
		docker_endpoint_end(endpoint, false, ENDED_FAILED, NULL);
		docker_refuse(
			reply,
			"the container can't be written down: the log of sallyport says why");
		return;
	}
	docker_answer(reply, json_pack("{s:{s:s,s:s},s:s,s:b}", "InterfaceName",
				       "SrcName", endpoint->link, "DstPrefix",
				       DOCKER_IFNAME, "Gateway",
				       ip_format(&endpoint->gateway, gateway),
				       "DisableGatewayService", 1));
}

void docker_program(struct docker *docker, const json_t *call,
		    struct docker_reply *reply)
{
	const json_t *options = json_object_get(call, "Options");
	struct docker_endpoint *endpoint =
		docker_endpoint_of(docker, call, reply);
	const struct docker_network *network;
	const size_t before = endpoint ? endpoint->ports : 0;
	char why[256];

	if (!endpoint)
		return;
	network = docker_network_find(docker, endpoint->network);
	if (endpoint->busy.fn || endpoint->phase == ENDPOINT_ENDING ||
	    endpoint->phase == ENDPOINT_OVER) {
		docker_refuse(reply, "the container is being started or ended");
		return;
	}
	if (docker_ports_parse(
		    json_object_get(options, "com.docker.network.portmap"),
		    endpoint, why, sizeof(why)) < 0) {
		endpoint->ports = before;
		docker_refuse(reply, "%s", why);
		return;
	}
	if (endpoint->ports && (!network || !network->publish)) {
		endpoint->ports = before;
		docker_refuse(reply, "%s", docker_no_publish);
		return;
	}
	endpoint->busy = *reply;
	docker_ports_open(endpoint);
}

/* What `docker inspect` may show. */
void docker_oper_info(struct docker *docker, const json_t *call,
		      struct docker_reply *reply)
{
	struct docker_endpoint *endpoint =
		docker_endpoint_of(docker, call, reply);

	if (endpoint)
		docker_answer(reply, json_pack("{s:{s:s}}", "Value", "sandbox",
					       endpoint->name));
}
