/* SPDX-License-Identifier: Apache-2.0
 *
 * load_extras.c - the keys of an allowed entry that narrow it, or say how it is
 * reached.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/load_impl.h"
#include "policy/path.h"
#include "policy/values.h"

static int load_addresses(const struct loader *l, const struct node *list,
			  struct rule *rule)
{
	struct cidr cidr[ADDRESSES_MAX];
	size_t n = 0;
	int ret = expect_list(l, list, "addresses", "[10.0.0.0/8]");

	if (ret < 0)
		return ret;
	for (const struct node *c = list->child; c; c = c->next) {
		const char *why;

		if (n == ADDRESSES_MAX)
			return FAULT(l, c,
				     "more than %d ranges, use larger ones",
				     ADDRESSES_MAX);
		ret = expect_text(l, c, "addresses");
		if (ret < 0)
			return ret;
		why = target_parse_cidr(c->text, &cidr[n++]);
		if (why)
			return load_fault(l, c, "address range", why);
	}
	return rule_set_addresses(rule, cidr, n);
}

static int add_text(struct texts *texts, const char *text)
{
	char **grown =
		reallocarray(texts->at, texts->count + 1, sizeof(*texts->at));

	if (!grown)
		return -ENOMEM;
	texts->at = grown;
	grown[texts->count] = strdup(text);
	if (!grown[texts->count])
		return -ENOMEM;
	texts->count++;
	return 0;
}

/* RFC 9110 section 9.1: case counts, and the registered ones are upper. */
static const char *method_fault(const char *text)
{
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	if (text[n] && islower((unsigned char)text[n]))
		return "methods are upper case, like GET";
	if (!n || text[n] || n > 32)
		return "it is a method like GET or POST";
	if (strcmp(text, "CONNECT") == 0)
		return "CONNECT opens tunnels, it is no request of plain HTTP";
	return NULL;
}

static int load_texts(const struct loader *l, const struct node *list,
		      const char *what, const char *one, const char *hint,
		      size_t max, const char *(*fault)(const char *text),
		      struct texts *ret_texts)
{
	int ret;

	if (!list)
		return 0;
	ret = expect_list(l, list, what, hint);
	if (ret == 0 && !list->child)
		return FAULT(l, list, "'%s' is empty, leave it out or name one",
			     what);
	for (const struct node *c = ret == 0 ? list->child : NULL; c;
	     c = c->next) {
		const char *why;

		if (ret_texts->count == max)
			return FAULT(l, c, "more than %zu of '%s'", max, what);
		ret = expect_text(l, c, what);
		if (ret < 0)
			return ret;
		why = fault(c->text);
		if (why)
			return load_fault(l, c, one, why);
		ret = add_text(ret_texts, c->text);
		if (ret < 0)
			return ret;
	}
	return ret;
}

static int load_protocol(const struct loader *l, const struct node *node,
			 struct rule *rule)
{
	static const char *const words[] = { "tls", "http", "any" };
	static const enum wanted wanted[] = { WANTED_TLS, WANTED_HTTP,
					      WANTED_ANY };
	size_t i;
	int ret;

	if (!node)
		return 0;
	ret = load_word(l, node, "protocol", words, ARRAY_SIZE(words), &i);
	if (ret == 0)
		rule->wanted = wanted[i];
	return ret;
}

static int load_tls(const struct loader *l, const struct node *map,
		    struct rule *rule)
{
	static const char *const keys[] = { "ech" };
	static const char *const words[] = { "allow", "deny" };
	static const enum ech ech[] = { ECH_ALLOW, ECH_DENY };
	const struct node *value;
	size_t i;
	int ret;

	if (!map)
		return 0;
	if (rule->wanted == WANTED_HTTP)
		return FAULT(l, map,
			     "'tls' goes with TLS, and this rule is for plain "
			     "HTTP: leave it out");
	ret = expect_map(l, map, "'tls'");
	if (ret == 0)
		ret = load_keys(l, map, keys, ARRAY_SIZE(keys), &value);
	if (ret < 0 || !value)
		return ret;
	ret = load_word(l, value, "ech", words, ARRAY_SIZE(words), &i);
	if (ret == 0)
		rule->ech = ech[i];
	return ret;
}

/* Only of plain HTTP is every request seen. */
static int check_http(const struct loader *l, const struct node *const v[],
		      struct rule *rule)
{
	const struct node *node = v[E_METHODS] ? v[E_METHODS] : v[E_PATHS];
	const char *key = v[E_METHODS] ? "methods" : "paths";

	if (!node)
		return 0;
	if (v[E_PROTOCOL] && rule->wanted != WANTED_HTTP)
		return FAULT(l, v[E_PROTOCOL],
			     "'%s' is about plain HTTP, write \"protocol: "
			     "http\" or leave it out",
			     key);
	if (rule_has_port(rule, 443))
		return FAULT(l, v[E_PORTS] ? v[E_PORTS] : node,
			     "'%s' can't be seen inside TLS, and port 443 is "
			     "TLS: write \"ports: [80]\"",
			     key);
	rule->wanted = WANTED_HTTP;
	return 0;
}

static int load_connect(const struct loader *l, const struct node *node,
			struct rule *rule)
{
	int ret;

	if (!node)
		return 0;
	ret = expect_scalar(l, node, "connect");
	if (ret < 0)
		return ret;
	if (rule->wildcard)
		return FAULT(l, node,
			     "'connect' is for one name, not for a wildcard");
	if (!endpoint_parse(node->text, &rule->connect.ip, &rule->connect.port))
		return load_fault(l, node, "connect",
				  "it is ADDR:PORT, like 127.0.0.1:11434");
	return 0;
}

static int load_bits(const struct loader *l, const struct node *list,
		     const char *what, const char *hint,
		     const char *const words[], size_t n, uint8_t *ret_bits)
{
	uint8_t bits = 0;
	size_t i;
	int ret = expect_list(l, list, what, hint);

	if (ret < 0)
		return ret;
	for (const struct node *c = list->child; c; c = c->next) {
		ret = load_word(l, c, what, words, n, &i);
		if (ret < 0)
			return ret;
		bits |= (uint8_t)(1u << i);
	}
	if (!bits)
		return FAULT(l, list, "'%s' is empty, leave it out or name one",
			     what);
	*ret_bits = bits;
	return 0;
}

static int load_doors(const struct loader *l, const struct node *list,
		      struct rule *rule)
{
	/* In the order of DOORS_*. */
	static const char *const words[] = { "proxy", "transparent" };

	return list ? load_bits(l, list, "doors", "[proxy]", words,
				ARRAY_SIZE(words), &rule->doors)
		    : 0;
}

static int load_rule_dns(const struct loader *l, const struct node *map,
			 struct rule *rule)
{
	static const char *const keys[] = { "types" };
	/* In the order of RULE_DNS_*. */
	static const char *const words[] = { "TXT", "MX", "SRV" };
	const struct node *types;
	int ret;

	if (!map)
		return 0;
	ret = expect_map(l, map, "'dns'");
	if (ret == 0)
		ret = load_keys(l, map, keys, ARRAY_SIZE(keys), &types);
	if (ret == 0 && types)
		ret = load_bits(l, types, "types", "[TXT]", words,
				ARRAY_SIZE(words), &rule->dns_types);
	return ret;
}

static int load_expires(const struct loader *l, const struct node *node,
			struct rule *rule)
{
	const char *why;
	int ret;

	if (!node)
		return 0;
	ret = expect_scalar(l, node, "expires");
	if (ret < 0)
		return ret;
	why = value_time(node->text, &rule->expires_s);
	return why ? load_fault(l, node, "time", why) : 0;
}

static int load_budgets(const struct loader *l, const struct node *const v[],
			struct rule *rule)
{
	const struct node *any = v[E_UPLOAD] ? v[E_UPLOAD] : v[E_DOWNLOAD];
	int ret = load_budget(l, v[E_UPLOAD], "upload", &rule->budget[UP]);

	if (ret == 0)
		ret = load_budget(l, v[E_DOWNLOAD], "download",
				  &rule->budget[DOWN]);
	if (ret == 0 && any && ++l->draft->budgets > BUDGETS_MAX)
		return FAULT(l, any, "more than %d rules with a budget",
			     BUDGETS_MAX);
	return ret;
}

int load_extras(const struct loader *l, const struct node *const v[],
		struct rule *rule)
{
	int ret = v[E_ADDRESSES] ? load_addresses(l, v[E_ADDRESSES], rule) : 0;

	if (ret == 0)
		ret = load_protocol(l, v[E_PROTOCOL], rule);
	if (ret == 0)
		ret = load_texts(l, v[E_METHODS], "methods", "method",
				 "[GET, HEAD]", METHODS_MAX, method_fault,
				 &rule->methods);
	if (ret == 0)
		ret = load_texts(l, v[E_PATHS], "paths", "path", "[/v1/**]",
				 PATHS_MAX, path_pattern_fault, &rule->paths);
	if (ret == 0)
		ret = check_http(l, v, rule);
	if (ret == 0)
		ret = load_tls(l, v[E_TLS], rule);
	if (ret == 0)
		ret = load_connect(l, v[E_CONNECT], rule);
	if (ret == 0)
		ret = load_doors(l, v[E_DOORS], rule);
	if (ret == 0)
		ret = load_rule_dns(l, v[E_DNS], rule);
	if (ret == 0)
		ret = load_expires(l, v[E_EXPIRES], rule);
	return ret == 0 ? load_budgets(l, v, rule) : ret;
}
