/* SPDX-License-Identifier: Apache-2.0
 *
 * target.c - see target.h.
 */
#include "policy/target.h"

#include <string.h>

#include "policy/rule.h"

const char *target_parse_host(const char *text, struct target *ret)
{
	struct target target = { 0 };
	const char *name = text, *fault;

	if (strncmp(text, "*.", 2) == 0) {
		target.wildcard = true;
		name += 2;
	}
	fault = host_fault(name, target.host);
	if (fault)
		return fault;
	*ret = target;
	return NULL;
}

const char *target_parse_cidr(const char *text, struct cidr *ret_cidr)
{
	const char *slash = strchr(text, '/');
	char buf[IP_TEXT_MAX];
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	struct ip ip;

	if (cidr_parse(text, ret_cidr))
		return NULL;
	if (len >= sizeof(buf))
		return "it is not an address range like 10.0.0.0/8";
	memcpy(buf, text, len);
	buf[len] = '\0';
	if (ip_parse(buf, &ip))
		return "the prefix length is wrong, or bits of the address "
		       "behind it are not zero";
	return "it is not an address range like 10.0.0.0/8";
}

/* "[2001:db8::1]", "[2001:db8::/32]:22" */
static const char *parse_bracketed(const char *text, struct target *target)
{
	const char *end = strchr(text, ']');
	char inner[CIDR_TEXT_MAX + 1];
	size_t len;

	if (!end)
		return "a ']' is missing";
	len = (size_t)(end - text) - 1;
	if (len >= sizeof(inner))
		return "brackets are for IPv6 addresses";
	memcpy(inner, text + 1, len);
	inner[len] = '\0';
	if (!strchr(inner, ':'))
		return "brackets are for IPv6 addresses";
	const char *fault = target_parse_cidr(inner, &target->literal);
	if (fault || !end[1])
		return fault;
	if (end[1] != ':')
		return "only \":PORT\" may follow the ']'";
	target->has_ports = true;
	return ports_parse(end + 2, &target->ports);
}

static bool looks_like_address(const char *text)
{
	size_t n = strspn(text, "0123456789.");

	return n && (!text[n] || text[n] == '/');
}

const char *target_parse(const char *text, struct target *ret)
{
	char buf[4 * HOST_MAX + CIDR_TEXT_MAX];
	struct target target = { 0 };
	const char *fault;
	char *colon;

	if (!*text)
		return "it is empty";
	if (text[0] == '[') {
		fault = parse_bracketed(text, &target);
		goto out;
	}
	if (cidr_parse(text, &target.literal)) {
		*ret = target;
		return NULL;
	}
	if (strlen(text) >= sizeof(buf))
		return "it is too long";
	memcpy(buf, text, strlen(text) + 1);
	colon = strchr(buf, ':');
	if (colon && strncmp(colon, "://", 3) == 0)
		return "write the name alone, without scheme or path";
	if (colon && strchr(colon + 1, ':'))
		return "it is no IPv6 address range (with a port, write "
		       "[ADDR]:PORT)";
	if (colon) {
		*colon = '\0';
		fault = ports_parse(colon + 1, &target.ports);
		if (fault)
			return fault;
	}
	struct port_range ports = target.ports;
	fault = looks_like_address(buf)
			? target_parse_cidr(buf, &target.literal)
			: target_parse_host(buf, &target);
	target.has_ports = colon;
	target.ports = ports;
out:
	if (!fault)
		*ret = target;
	return fault;
}
