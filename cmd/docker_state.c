/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_state.c - an engine says once what its networks and endpoints are, and
 * does not repeat it when we, or it, were restarted. So each is a file of JSON:
 * network-ID.json, endpoint-ID.json, whole or not there (written aside, synced,
 * renamed). An endpoint's is there from Join until its end begins: what was
 * never joined needs no keeper after a restart.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "cmd/docker_impl.h"

#define STATE_VERSION 1
#define STATE_MAX     (64u << 10) /* of a file */
#define NAME_CAP      (DOCKER_ID_MAX + 32)

int docker_state_open(const char *dir, int *ret_fd)
{
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	*ret_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? -errno : 0;
}

static void name_of(char buf[NAME_CAP], const char *kind, const char *id)
{
	snprintf(buf, NAME_CAP, "%s-%s.json", kind, id);
}

static int write_file(int dir, const char *name, const char *text)
{
	int r = file_put(dir, name, text, strlen(text));

	return r == 0 && fsync(dir) < 0 ? -errno : r;
}

/* @object is taken. */
static int save(int dir, const char *kind, const char *id, json_t *object)
{
	char name[NAME_CAP];
	AUTO_FREE char *text =
		object ? json_dumps(object, JSON_INDENT(1)) : NULL;
	int r;

	json_decref(object);
	name_of(name, kind, id);
	r = text ? write_file(dir, name, text) : -ENOMEM;
	if (r < 0)
		log_err("docker: the state %s is not written: %s", name,
			strerror(-r));
	return r;
}

static void unsave(int dir, const char *kind, const char *id)
{
	char name[NAME_CAP];

	name_of(name, kind, id);
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		log_warn("docker: the state %s stays: %s", name,
			 strerror(errno));
}

int docker_save_network(const struct docker_network *network, int dir)
{
	char pool[CIDR_TEXT_MAX], gateway[IP_TEXT_MAX];

	return save(dir, "network", network->id,
		    json_pack("{s:i,s:s,s:s,s:s,s:s,s:b,s:s}", "version",
			      STATE_VERSION, "id", network->id, "pool",
			      cidr_format(&network->pool, pool), "gateway",
			      ip_format(&network->gateway, gateway), "policy",
			      network->policy, "publish", network->publish,
			      "dns", docker_dns_words[network->dns]));
}

static json_t *ports_json(const struct docker_endpoint *endpoint)
{
	json_t *list = json_array();
	char ip[IP_TEXT_MAX];

	for (size_t i = 0; list && i < endpoint->ports; i++) {
		const struct docker_port *port = &endpoint->port[i];
		json_t *one = json_pack("{s:s,s:i,s:i}", "ip",
					ip_format(&port->at.ip, ip), "port",
					port->at.port, "inside", port->inside);

		if (json_array_append_new(list, one) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

int docker_save_endpoint(const struct docker_endpoint *endpoint)
{
	char ip[IP_TEXT_MAX], gateway[IP_TEXT_MAX];

	return save(endpoint->docker->dir, "endpoint", endpoint->id,
		    json_pack("{s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:s,s:o}",
			      "version", STATE_VERSION, "id", endpoint->id,
			      "network", endpoint->network, "address",
			      ip_format(&endpoint->ip, ip), "gateway",
			      ip_format(&endpoint->gateway, gateway), "policy",
			      endpoint->policy, "key", endpoint->key, "inode",
			      (json_int_t)endpoint->key_inode, "inside",
			      endpoint->inside, "ports", ports_json(endpoint)));
}

void docker_unsave_network(const struct docker *docker, const char *id)
{
	unsave(docker->dir, "network", id);
}

void docker_unsave_endpoint(const struct docker_endpoint *endpoint)
{
	unsave(endpoint->docker->dir, "endpoint", endpoint->id);
}

/* --- reading ------------------------------------------------------------- */

static bool copy(char *ret, size_t cap, const char *text)
{
	const size_t len = text ? strlen(text) : cap;

	if (len >= cap)
		return false;
	memcpy(ret, text, len + 1);
	return true;
}

static bool read_network(struct docker *docker, const json_t *object,
			 const char *id)
{
	AUTO_FREE struct docker_network *network = calloc(1, sizeof(*network));
	const char *pool = docker_text(object, "pool");
	const char *gateway = docker_text(object, "gateway");
	const char *dns = docker_text(object, "dns");

	if (!network || !copy(network->id, sizeof(network->id), id) ||
	    !copy(network->policy, sizeof(network->policy),
		  docker_text(object, "policy")) ||
	    !pool || !cidr_parse(pool, &network->pool) || !gateway ||
	    !ip_parse(gateway, &network->gateway) || !dns)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(docker_dns_words); i++)
		if (strcmp(dns, docker_dns_words[i]) == 0)
			network->dns = (enum docker_dns)i;
	network->publish = json_is_true(json_object_get(object, "publish"));
	network->next = docker->networks;
	docker->networks = STEAL(network);
	return true;
}

static bool read_port(struct docker_endpoint *endpoint, const json_t *object)
{
	struct docker_port *port = &endpoint->port[endpoint->ports];
	const json_int_t at =
		json_integer_value(json_object_get(object, "port"));
	const json_int_t inside =
		json_integer_value(json_object_get(object, "inside"));
	const char *ip = docker_text(object, "ip");

	if (endpoint->ports == DOCKER_PORTS_MAX || !ip ||
	    !ip_parse(ip, &port->at.ip) || at < 1 || at > 65535 || inside < 1 ||
	    inside > 65535)
		return false;
	port->at.port = (uint16_t)at;
	port->inside = (uint16_t)inside;
	endpoint->ports++;
	return true;
}

static bool fill_endpoint(struct docker_endpoint *endpoint,
			  const json_t *object)
{
	const json_t *ports = json_object_get(object, "ports");
	const char *ip = docker_text(object, "address");
	const char *gateway = docker_text(object, "gateway");

	if (!copy(endpoint->network, sizeof(endpoint->network),
		  docker_text(object, "network")) ||
	    !copy(endpoint->policy, sizeof(endpoint->policy),
		  docker_text(object, "policy")) ||
	    !copy(endpoint->key, sizeof(endpoint->key),
		  docker_text(object, "key")) ||
	    !copy(endpoint->inside, sizeof(endpoint->inside),
		  docker_text(object, "inside")) ||
	    !ip || !ip_parse(ip, &endpoint->ip) || !gateway ||
	    !ip_parse(gateway, &endpoint->gateway))
		return false;
	endpoint->key_inode =
		(uint64_t)json_integer_value(json_object_get(object, "inode"));
	for (size_t i = 0; i < json_array_size(ports); i++)
		if (!read_port(endpoint, json_array_get(ports, i)))
			return false;
	return true;
}

static bool read_endpoint(struct docker *docker, const json_t *object,
			  const char *id)
{
	struct docker_endpoint *endpoint = docker_endpoint_new(docker, id);

	if (!endpoint || !fill_endpoint(endpoint, object)) {
		docker_endpoint_free(endpoint);
		return false;
	}
	endpoint->phase = ENDPOINT_OVER; /* until it has a sandbox again */
	docker_endpoint_add(endpoint);
	return true;
}

static json_t *read_file(int dir, const char *name)
{
	AUTO_FREE char *text = NULL;
	size_t len;

	if (file_get(dir, name, STATE_MAX, &text, &len) < 0)
		return NULL;
	return json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
}

/* The id in "KIND-ID.json". */
static bool id_of(const char *name, const char *kind,
		  char ret[DOCKER_ID_MAX + 1])
{
	const size_t before = strlen(kind), len = strlen(name);
	const size_t after = strlen(".json");

	if (len < before + after + 12 || len > before + after + DOCKER_ID_MAX ||
	    strncmp(name, kind, before) != 0 ||
	    strcmp(name + len - after, ".json") != 0)
		return false;
	memcpy(ret, name + before, len - before - after);
	ret[len - before - after] = '\0';
	return true;
}

void docker_load(struct docker *docker)
{
	int fd = openat(docker->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	char id[DOCKER_ID_MAX + 1];
	const struct dirent *at;

	if (!list) {
		log_err("docker: the state can't be read: %s", strerror(errno));
		close_fd(&fd);
		return;
	}
	while ((at = readdir(list))) {
		const bool network = id_of(at->d_name, "network-", id);
		const bool endpoint = id_of(at->d_name, "endpoint-", id);
		json_t *object = network || endpoint
					 ? read_file(docker->dir, at->d_name)
					 : NULL;
		bool ok = json_is_object(object);

		if (ok)
			ok = network ? read_network(docker, object, id)
				     : read_endpoint(docker, object, id);
		if (!ok && (network || endpoint))
			log_warn("docker: the state %s is not understood",
				 at->d_name);
		/* A container of which we know nothing has no link. */
		if (!ok && endpoint)
			unlinkat(docker->dir, at->d_name, 0);
		json_decref(object);
	}
	closedir(list);
}
