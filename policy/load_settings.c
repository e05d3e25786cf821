/* SPDX-License-Identifier: Apache-2.0
 *
 * load_settings.c - what a file says beside its rules.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/load_impl.h"
#include "policy/values.h"

/* Smaller parts would hardly hold a record or two. */
#define ROTATE_MIN (64u << 10)

/* What dns/lease.h has room for. */
#define NAMES_MAX 4000

int load_name(const struct loader *l, const struct node *node,
	      struct settings *settings)
{
	size_t len;
	int ret;

	if (!node)
		return 0;
	ret = expect_text(l, node, "name");
	if (ret < 0)
		return ret;
	len = strlen(node->text);
	if (!len || len >= sizeof(settings->name) ||
	    strpbrk(node->text, "\n\t"))
		return FAULT(l, node, "'name' is one line of 1 to %d bytes",
			     (int)sizeof(settings->name) - 1);
	memcpy(settings->name, node->text, len + 1);
	return 0;
}

int load_said(const struct loader *l, const struct node *node, const char *what,
	      const char *const words[2], enum said *ret_said)
{
	size_t i;
	int ret;

	if (!node)
		return 0;
	ret = load_word(l, node, what, words, 2, &i);
	if (ret == 0)
		*ret_said = i ? SAID_YES : SAID_NO;
	return ret;
}

static int load_server(const struct loader *l, const struct node *node,
		       struct settings *settings)
{
	struct ip ip;
	uint16_t port = 53;
	int ret = expect_text(l, node, "upstream");

	if (ret < 0)
		return ret;
	if (strcmp(node->text, "system") == 0) {
		settings->upstream_system = true;
		return 0;
	}
	if (!ip_parse(node->text, &ip) &&
	    !endpoint_parse(node->text, &ip, &port))
		return load_fault(l, node, "name server",
				  "it is 'system', ADDR, ADDR:PORT or "
				  "[ADDR]:PORT");
	if (settings->upstream_count == UPSTREAM_MAX)
		return FAULT(l, node, "more than %d name servers, a few do",
			     UPSTREAM_MAX);
	settings->upstream[settings->upstream_count] = ip;
	settings->upstream_port[settings->upstream_count++] = port;
	return 0;
}

static int load_upstream(const struct loader *l, const struct node *list,
			 struct settings *settings)
{
	int ret = expect_list(l, list, "upstream", "[system] or [192.0.2.53]");

	if (ret < 0)
		return ret;
	if (!list->child)
		return FAULT(l, list, "'upstream' is empty, write [system]");
	settings->upstream_given = true;
	settings->upstream_line = list->line;
	settings->upstream_column = list->column;
	for (const struct node *c = list->child; c && ret == 0; c = c->next)
		ret = load_server(l, c, settings);
	return ret;
}

int load_dns(const struct loader *l, const struct node *map,
	     struct settings *settings)
{
	enum { D_ANSWERS, D_UPSTREAM, D_COUNT };
	static const char *const keys[D_COUNT] = { "answers", "upstream" };
	static const char *const answers[] = { "synthetic", "real" };
	const struct node *v[D_COUNT];
	int ret;

	if (!map)
		return 0;
	ret = expect_map(l, map, "'dns'");
	if (ret == 0)
		ret = load_keys(l, map, keys, D_COUNT, v);
	if (ret == 0)
		ret = load_said(l, v[D_ANSWERS], "answers", answers,
				&settings->answers_real);
	if (ret == 0 && v[D_UPSTREAM])
		ret = load_upstream(l, v[D_UPSTREAM], settings);
	return ret;
}

static int load_count(const struct loader *l, const struct node *node,
		      const char *what, unsigned max, unsigned *ret_count)
{
	char why[64];
	int ret;

	if (!node)
		return 0;
	ret = expect_scalar(l, node, what);
	if (ret < 0 || value_count(node->text, max, ret_count))
		return ret;
	snprintf(why, sizeof(why), "it is a whole number from 1 to %u", max);
	return load_fault(l, node, what, why);
}

int load_budget(const struct loader *l, const struct node *node,
		const char *what, uint64_t *ret_bytes)
{
	const char *why;
	int ret;

	if (!node)
		return 0;
	ret = expect_scalar(l, node, what);
	if (ret < 0)
		return ret;
	why = value_size(node->text, ret_bytes);
	return why ? load_fault(l, node, what, why) : 0;
}

int load_limits(const struct loader *l, const struct node *map,
		struct settings *settings)
{
	static const char *const keys[] = {
		"connections",	      "connections_per_second", "names",
		"names_per_wildcard", "dns_per_second",		"upload",
		"download",
	};
	static const unsigned max[] = { LIMIT_CONNECTIONS_MAX, 100000,
					NAMES_MAX, NAMES_MAX, 100000 };
	struct limits *limits = &settings->limits;
	unsigned *const count[] = {
		&limits->connections,	 &limits->connections_per_second,
		&limits->names,		 &limits->names_per_wildcard,
		&limits->dns_per_second,
	};
	const struct node *v[ARRAY_SIZE(keys)];
	int ret;

	if (!map)
		return 0;
	ret = expect_map(l, map, "'limits'");
	if (ret == 0)
		ret = load_keys(l, map, keys, ARRAY_SIZE(keys), v);
	for (size_t i = 0; i < ARRAY_SIZE(count) && ret == 0; i++)
		ret = load_count(l, v[i], keys[i], max[i], count[i]);
	if (ret == 0)
		ret = load_budget(l, v[5], keys[5], &limits->budget[UP]);
	if (ret == 0)
		ret = load_budget(l, v[6], keys[6], &limits->budget[DOWN]);
	return ret;
}

static int load_rotate(const struct loader *l, const struct node *node,
		       uint64_t *ret_bytes)
{
	const char *why;
	int ret;

	if (!node)
		return 0;
	ret = expect_scalar(l, node, "rotate");
	if (ret < 0)
		return ret;
	why = value_size_from(node->text, ROTATE_MIN,
			      "a part of a log is 64 KiB or more", ret_bytes);
	return why ? load_fault(l, node, "rotate", why) : 0;
}

static int load_rotate_after(const struct loader *l, const struct node *node,
			     uint32_t *ret_s)
{
	const char *why;
	int ret;

	if (!node)
		return 0;
	ret = expect_scalar(l, node, "rotate_after");
	if (ret < 0)
		return ret;
	why = value_duration(node->text, ret_s);
	return why ? load_fault(l, node, "rotate_after", why) : 0;
}

int load_log(const struct loader *l, const struct node *map,
	     struct settings *settings)
{
	enum { L_SIGN, L_DURABILITY, L_ROTATE, L_ROTATE_AFTER, L_COUNT };
	static const char *const keys[L_COUNT] = { "sign", "durability",
						   "rotate", "rotate_after" };
	static const char *const signs[] = { "batch", "every" };
	static const char *const durable[] = { "batch", "record" };
	const struct node *v[L_COUNT];
	int ret;

	if (!map)
		return 0;
	ret = expect_map(l, map, "'log'");
	if (ret == 0)
		ret = load_keys(l, map, keys, L_COUNT, v);
	if (ret == 0)
		ret = load_said(l, v[L_SIGN], "sign", signs,
				&settings->sign_every);
	if (ret == 0)
		ret = load_said(l, v[L_DURABILITY], "durability", durable,
				&settings->durable);
	if (ret == 0)
		ret = load_rotate(l, v[L_ROTATE], &settings->rotate_bytes);
	if (ret == 0)
		ret = load_rotate_after(l, v[L_ROTATE_AFTER],
					&settings->rotate_s);
	return ret;
}
