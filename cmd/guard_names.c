/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_names.c - whom the gate may ask for names, where the name servers of
 * /etc/resolv.conf are on loopback.
 *
 *	a process in here	refused: it would ask the gate
 *	an engine's, which asks	from in here	those that it asks are asked
 *			from elsewhere	only the gate reaches it
 *
 * Which of the two an engine's is, it does not say, but firewall/origin.h sees.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/guard.h"
#include "cmd/upstream.h"
#include "firewall/origin.h"

#define DNS_PORT    53
#define LOCAL_FIRST 0x7f000001u
/* Docker's own resolver, in each container of a network that has a name. */
#define DOCKER_RESOLVER 0x7f00000bu

#define UPSTREAM_HINT                                                             \
	"\nSay which name servers the gate shall ask: --upstream ADDRESS, or in " \
	"the policy\ndns: { upstream: [ADDRESS] }"

/* Is there a UDP socket in this namespace for @ip, port 53? */
static bool is_served_here(const struct ip *ip)
{
	AUTO_FILE FILE *file = fopen("/proc/net/udp", "re");
	const uint32_t wanted = htonl(ip_v4_value(ip));
	unsigned address, port;
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " %*d: %x:%x", &address, &port) == 2 &&
		    port == DNS_PORT && (address == wanted || address == 0))
			return true;
	return false;
}

static void add(struct guard_spec *spec, const struct ip *ip)
{
	for (size_t i = 0; i < spec->resolvers; i++)
		if (ip_equal(&spec->resolver[i], ip))
			return;
	if (spec->resolvers < GUARD_RESOLVERS_MAX)
		spec->resolver[spec->resolvers++] = *ip;
}

static int is_in_here(const struct ip *ip, char *reterr, size_t cap)
{
	char text[IP_TEXT_MAX];

	snprintf(reterr, cap,
		 "the name server %s is a process in here, whose own questions "
		 "would come to the guard again" UPSTREAM_HINT,
		 ip_format(ip, text));
	return -EADDRINUSE;
}

static int not_seen(const struct ip *ip, int err, char *reterr, size_t cap)
{
	char text[IP_TEXT_MAX];

	snprintf(reterr, cap,
		 "whom the name server %s asks could not be found out: "
		 "%s%s" UPSTREAM_HINT,
		 ip_format(ip, text), strerror(-err),
		 err == -EPERM ? " (CAP_NET_ADMIN is missing: docker run "
				 "--cap-add NET_ADMIN)"
			       : "");
	return err;
}

/* Does @ip ask from in here? Then whom it asks is put into @ret. */
static int look_behind(const struct ip *ip, uid_t uid,
		       struct upstream_instead *ret, char *reterr, size_t cap)
{
	struct upstream_instead found = { .of = *ip };
	char text[IP_TEXT_MAX];
	size_t count = 0;
	int err = origin_find(ip, uid, found.servers.server, MSG_SERVERS_MAX,
			      &count);

	if (err == -ETIMEDOUT)
		log_warn("the name server %s does not answer",
			 ip_format(ip, text));
	else if (err)
		return not_seen(ip, err, reterr, cap);
	if (!count)
		return 0;
	/* Two of them, and both in a circle. */
	if (ret->servers.count)
		return not_seen(ip, -E2BIG, reterr, cap);
	found.servers.count = (uint32_t)count;
	*ret = found;
	return 0;
}

int guard_find_resolvers(const struct policy *policy, struct guard_spec *spec,
			 struct upstream_instead *instead, char *reterr,
			 size_t cap)
{
	const struct ip docker = ip_v4(DOCKER_RESOLVER);
	const struct ip local = ip_v4(LOCAL_FIRST);
	struct msg_gate_servers servers = { 0 };
	int err = 0;

	add(spec, &docker);
	upstream_servers(policy, instead, &servers);
	for (size_t i = 0; !err && i < servers.count; i++) {
		const struct endpoint *at = &servers.server[i];

		if (at->ip.len != 4 || at->ip.byte[0] != 127)
			continue;
		if (at->port == DNS_PORT && is_served_here(&at->ip))
			return is_in_here(&at->ip, reterr, cap);
		/* 127.0.0.1 is everybody's. */
		if (!ip_equal(&at->ip, &local))
			add(spec, &at->ip);
		if (at->port == DNS_PORT)
			err = look_behind(&at->ip, spec->uid, instead, reterr,
					  cap);
	}
	return err;
}
