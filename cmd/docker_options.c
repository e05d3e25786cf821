/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_options.c - what people say with `docker network create -o` and with
 * `--network name=...,driver-opt=...`, and what of an engine's own wishes can't
 * be had. An option that was mistyped, or is meant for another driver, is an
 * error: a network that quietly has another policy than its command says is
 * worse than none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/docker_impl.h"
#include "dns/lease.h"

#define GENERIC	   "com.docker.network.generic"
#define PORTMAP	   "com.docker.network.portmap"
#define DNSSERVERS "com.docker.network.endpoint.dnsservers"
#define OF_ENGINE  "com.docker." /* these keys are its own */

const char *const docker_dns_words[DOCKER_DNS_COUNT] = { "auto", "require",
							 "tables" };

const char docker_no_publish[] =
	"-p is refused on this network: make it with -o publish=true, and what comes in goes through the gate and into the log";

/* "'a', 'b'" of those that @known does not have; "" if there is none. */
static void unknown_options(const json_t *options, const char *const known[],
			    bool engine, char *buf, size_t cap)
{
	const char *key;
	json_t *value;
	size_t len = 0;

	buf[0] = '\0';
	json_object_foreach((json_t *)(uintptr_t)options, key, value)
	{
		size_t i = 0;
		int n;

		while (known[i] && strcmp(known[i], key) != 0)
			i++;
		if (known[i] ||
		    (engine && strncmp(key, OF_ENGINE, strlen(OF_ENGINE)) == 0))
			continue;
		n = snprintf(buf + len, cap - len, "%s'%s'", len ? ", " : "",
			     key);
		if (n < 0 || (size_t)n >= cap - len)
			return;
		len += (size_t)n;
	}
}

static int word_of(const char *word, const char *const words[], size_t n,
		   size_t *ret)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, words[i]) == 0) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

static int take_policy(const char *said, char *ret, size_t cap, char *reterr,
		       size_t n)
{
	if (*said && strlen(said) < cap) {
		memcpy(ret, said, strlen(said) + 1);
		return 0;
	}
	snprintf(reterr, n, "-o policy= needs a policy's name or path");
	return -EINVAL;
}

/* All that is said with -o. @generic may be NULL, as JSON or at all. */
static int generic_options(const json_t *generic,
			   struct docker_network *network, char *reterr,
			   size_t cap)
{
	static const char *const known[] = { "policy", "publish", "dns", NULL };
	static const char *const truth[] = { "false", "true" };
	const char *value[ARRAY_SIZE(known)] = { NULL };
	char unknown[256];
	size_t word;

	if (!generic || json_is_null(generic))
		return 0;
	unknown_options(generic, known, false, unknown, sizeof(unknown));
	if (*unknown || !json_is_object(generic)) {
		snprintf(
			reterr, cap,
			"unknown option %s: a sallyport network has -o policy=, -o publish= and -o dns=",
			*unknown ? unknown : "list");
		return -EINVAL;
	}
	for (size_t i = 0; known[i]; i++) {
		value[i] = docker_text(generic, known[i]);
		if (!value[i] && json_object_get(generic, known[i])) {
			snprintf(reterr, cap, "-o %s= is not a text", known[i]);
			return -EINVAL;
		}
	}
	if (value[0] && take_policy(value[0], network->policy,
				    sizeof(network->policy), reterr, cap) < 0)
		return -EINVAL;
	if (value[1]) {
		if (word_of(value[1], truth, 2, &word) < 0) {
			snprintf(reterr, cap,
				 "-o publish= is true or false, not '%s'",
				 value[1]);
			return -EINVAL;
		}
		network->publish = word == 1;
	}
	if (value[2]) {
		if (word_of(value[2], docker_dns_words, DOCKER_DNS_COUNT,
			    &word) < 0) {
			snprintf(reterr, cap,
				 "-o dns= is require, tables or auto, not '%s'",
				 value[2]);
			return -EINVAL;
		}
		network->dns = (enum docker_dns)word;
	}
	return 0;
}

static bool overlap(const struct cidr *a, const struct cidr *b)
{
	return cidr_contains(a, &b->ip) || cidr_contains(b, &a->ip);
}

/* "172.18.0.1/16" as an address and its prefix's length. */
static int address_parse(const char *text, struct ip *ret_ip, uint8_t *ret_bits)
{
	const char *slash = text ? strchr(text, '/') : NULL;
	char buf[IP_TEXT_MAX];
	char *end;
	long bits;

	if (!slash || (size_t)(slash - text) >= sizeof(buf) || slash[1] < '0' ||
	    slash[1] > '9')
		return -EINVAL;
	memcpy(buf, text, (size_t)(slash - text));
	buf[slash - text] = '\0';
	bits = strtol(slash + 1, &end, 10);
	if (*end || bits < 0 || bits > 32 || !ip_parse(buf, ret_ip) ||
	    ret_ip->len != 4)
		return -EINVAL;
	*ret_bits = (uint8_t)bits;
	return 0;
}

/* The one pool of addresses, and in it the gateway, which is us. */
static int pool_options(const json_t *call, struct docker_network *network,
			char *reterr, size_t cap)
{
	const struct cidr leases = { ip_v4(LEASE_POOL_BASE), 16 };
	const json_t *list = json_object_get(call, "IPv4Data");
	const json_t *data = json_array_get(list, 0);
	const char *pool = docker_text(data, "Pool");
	const char *gateway = docker_text(data, "Gateway");
	uint8_t bits;

	if (json_array_size(list) != 1 || !pool ||
	    !cidr_parse(pool, &network->pool) || network->pool.ip.len != 4 ||
	    network->pool.bits < 8 || network->pool.bits > 30) {
		snprintf(
			reterr, cap,
			"a sallyport network has one IPv4 subnet, /8 to /30 (this has %s): say --subnet 172.30.0.0/16, or nothing, but not --ipam-driver null",
			pool ? pool : "none");
		return -EINVAL;
	}
	if (!gateway ||
	    (address_parse(gateway, &network->gateway, &bits) < 0 &&
	     !ip_parse(gateway, &network->gateway)) ||
	    !cidr_contains(&network->pool, &network->gateway)) {
		snprintf(
			reterr, cap,
			"a sallyport network needs a gateway in its subnet %s, where it answers",
			pool);
		return -EINVAL;
	}
	if (overlap(&network->pool, &leases)) {
		snprintf(
			reterr, cap,
			"subnet %s overlaps 198.18.0.0/16, whose addresses stand for names inside: choose another --subnet",
			pool);
		return -EINVAL;
	}
	return 0;
}

int docker_network_options(const json_t *call, struct docker_network *network,
			   char *reterr, size_t cap)
{
	const json_t *options = json_object_get(call, "Options");
	const json_t *v4 =
		json_object_get(options, "com.docker.network.enable_ipv4");

	if (json_array_size(json_object_get(call, "IPv6Data")) ||
	    json_is_true(json_object_get(options,
					 "com.docker.network.enable_ipv6")) ||
	    json_is_false(v4)) {
		snprintf(
			reterr, cap,
			"a sallyport network is IPv4 only inside (what it reaches may be IPv6): leave out --ipv6");
		return -EINVAL;
	}
	if (json_is_true(
		    json_object_get(options, "com.docker.network.internal"))) {
		snprintf(
			reterr, cap,
			"leave out --internal: a sallyport network has no way out but its policy's; for none at all, use a policy that allows nothing");
		return -EINVAL;
	}
	if (generic_options(json_object_get(options, GENERIC), network, reterr,
			    cap) < 0)
		return -EINVAL;
	return pool_options(call, network, reterr, cap);
}

/* --- of an endpoint ------------------------------------------------------ */

static bool resolver_is_loopback(const char *path)
{
	AUTO_FILE FILE *file = fopen(path, "re");
	char line[512], word[64];
	struct ip ip;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " nameserver %63s", word) == 1 &&
		    ((ip_parse(word, &ip) && ip_special(&ip) &&
		      strcmp(ip_special(&ip), "loopback") == 0)))
			return true;
	return false;
}

/* Has every name of the container to come to us, by the engine's own doing? */
static bool dns_is_ours(const json_t *options, const struct ip *gateway)
{
	const json_t *servers = json_object_get(options, DNSSERVERS);
	const char *server = json_string_value(json_array_get(servers, 0));
	struct ip ip;

	return json_array_size(servers) == 1 && server &&
	       ip_parse(server, &ip) && ip_equal(&ip, gateway);
}

void docker_dns_hint(const struct ip *gateway, char *buf, size_t cap)
{
	char text[IP_TEXT_MAX];

	ip_format(gateway, text);
	snprintf(
		buf, cap,
		"the engine would ask the host's name server for this container, past its policy. Say so that it asks sallyport: docker run --dns %s (compose: \"dns: %s\"), and no other server. Or make the network with -o dns=tables: sallyport-docker(7)",
		text, text);
}

/* Before v28 an engine starts a container without waiting for our tables, and
 * none says which it is; but at Join it shows, when the container's namespace
 * is there already, or not. */
static int dns_options(const struct docker *docker, const json_t *options,
		       const struct docker_network *network,
		       struct docker_endpoint *endpoint, char *reterr,
		       size_t cap)
{
	enum docker_dns dns = network->dns;
	const char *word = daemon_config(docker->daemon)->docker_dns;
	size_t i;

	if (dns == DOCKER_DNS_AUTO &&
	    word_of(word, docker_dns_words, DOCKER_DNS_COUNT, &i) == 0)
		dns = (enum docker_dns)i;
	if (dns == DOCKER_DNS_TABLES || dns_is_ours(options, &network->gateway))
		return 0;
	if (dns == DOCKER_DNS_AUTO) {
		endpoint->races = resolver_is_loopback(docker->resolv_conf);
		return 0;
	}
	docker_dns_hint(&network->gateway, reterr, cap);
	return -EINVAL;
}

int docker_endpoint_options(const struct docker *docker, const json_t *options,
			    const struct docker_network *network,
			    struct docker_endpoint *endpoint, char *reterr,
			    size_t cap)
{
	static const char *const known[] = { "policy", NULL };
	const json_t *policy = json_object_get(options, known[0]);
	const char *said = policy ? json_string_value(policy) : network->policy;
	char unknown[256];

	unknown_options(options, known, true, unknown, sizeof(unknown));
	if (*unknown) {
		snprintf(
			reterr, cap,
			"unknown driver-opt %s: a container on a sallyport network has driver-opt=policy=",
			unknown);
		return -EINVAL;
	}
	if (policy &&
	    (!said || take_policy(said, endpoint->policy,
				  sizeof(endpoint->policy), reterr, cap) < 0)) {
		snprintf(reterr, cap,
			 "driver-opt=policy= needs a policy's name or path");
		return -EINVAL;
	}
	if (!policy)
		memcpy(endpoint->policy, network->policy,
		       sizeof(endpoint->policy));
	if (!*endpoint->policy)
		snprintf(endpoint->policy, sizeof(endpoint->policy), "%s",
			 daemon_config(docker->daemon)->default_policy);
	if (docker_ports_parse(json_object_get(options, PORTMAP), endpoint,
			       reterr, cap) < 0)
		return -EINVAL;
	if (endpoint->ports && !network->publish) {
		snprintf(reterr, cap, "%s", docker_no_publish);
		return -EINVAL;
	}
	return dns_options(docker, options, network, endpoint, reterr, cap);
}
