/* SPDX-License-Identifier: Apache-2.0
 *
 * upstream.c - what the gate must be told of the machine's own network.
 */
#include "cmd/upstream.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "launch/link.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define DNS_PORT    53

static void add_server(struct msg_gate_servers *ret, char *line)
{
	char *save, *word = strtok_r(line, " \t\r\n", &save);
	struct endpoint server = { .port = DNS_PORT };

	if (!word || strcmp(word, "nameserver") != 0 ||
	    ret->count == MSG_SERVERS_MAX)
		return;
	word = strtok_r(NULL, " \t\r\n", &save);
	/* A zone index (fe80::1%eth0) is no global server: left out. */
	if (word && ip_parse(word, &server.ip))
		ret->server[ret->count++] = server;
}

static void add(struct msg_gate_servers *ret, const struct endpoint *server)
{
	if (ret->count < MSG_SERVERS_MAX)
		ret->server[ret->count++] = *server;
}

static void add_all(struct msg_gate_servers *ret,
		    const struct msg_gate_servers *more)
{
	for (size_t i = 0; i < more->count; i++)
		add(ret, &more->server[i]);
}

bool upstream_read(FILE *file, struct msg_gate_servers *ret)
{
	AUTO_FREE char *line = NULL;
	size_t cap = 0;

	while (getline(&line, &cap, file) >= 0)
		add_server(ret, line);
	return feof(file) || errno != ENOMEM;
}

/* False if it is we who can't read it. */
static bool read_system(struct msg_gate_servers *ret)
{
	AUTO_FILE FILE *file = fopen(RESOLV_CONF, "re");

	if (!file)
		return errno != ENOMEM && errno != EMFILE && errno != ENFILE;
	return upstream_read(file, ret);
}

static void replace(const struct upstream_instead *instead,
		    struct msg_gate_servers *ret)
{
	const struct msg_gate_servers all = *ret;

	*ret = (struct msg_gate_servers){ 0 };
	for (size_t i = 0; i < all.count; i++)
		if (ip_equal(&all.server[i].ip, &instead->of))
			add_all(ret, &instead->servers);
		else
			add(ret, &all.server[i]);
}

void upstream_servers(const struct policy *policy,
		      const struct upstream_instead *instead,
		      struct msg_gate_servers *ret)
{
	struct msg_gate_servers all = { 0 };
	struct endpoint server;

	while (all.count < MSG_SERVERS_MAX &&
	       policy_upstream(policy, all.count, &server.ip, &server.port))
		add(&all, &server);
	if (!all.count || policy_upstream_system(policy)) {
		if (instead->servers.count && !instead->of.len)
			add_all(&all, &instead->servers);
		else if (!read_system(&all))
			return;
	}
	if (instead->servers.count && instead->of.len)
		replace(instead, &all);
	*ret = all;
}

int upstream_prefixes(struct msg_gate_uplink *ret)
{
	AUTO_FD int route =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	size_t count = 0;
	int err;

	*ret = (struct msg_gate_uplink){ 0 };
	if (route < 0)
		return -errno;
	err = link_prefixes(route, ret->prefix, MSG_UPLINK_MAX, &count);
	ret->count = (uint32_t)count;
	return err;
}
