/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_spoken.c - two rules that both allow, on one port: what has to be spoken
 * there.
 */
#include "policy/diff_impl.h"

static enum wanted wanted_at(const struct rule *rule, uint16_t port)
{
	if (rule && rule->wanted != WANTED_DEFAULT)
		return rule->wanted;
	return port == 443  ? WANTED_TLS
	       : port == 80 ? WANTED_HTTP
			    : WANTED_DEFAULT;
}

static void protocol(const struct rule *was, const struct rule *is,
		     uint16_t port, struct change *c)
{
	static const char *const word[] = {
		[WANTED_DEFAULT] = "any",
		[WANTED_TLS] = "TLS",
		[WANTED_HTTP] = "HTTP",
		[WANTED_ANY] = "any (also servers first)"
	};
	enum wanted a = wanted_at(was, port), b = wanted_at(is, port);
	enum diff_way way = DIFF_OTHERWISE;

	if (a == b)
		return;
	if (b == WANTED_ANY || (b == WANTED_DEFAULT && a != WANTED_ANY))
		way = DIFF_WIDER;
	else if (a == WANTED_ANY || a == WANTED_DEFAULT)
		way = DIFF_NARROWER;
	change_add(c, way, "protocol %s -> %s", word[a], word[b]);
}

static void ech(const struct rule *was, const struct rule *is, struct change *c)
{
	static const char *const word[] = {
		[ECH_DEFAULT] = "by its outer name",
		[ECH_ALLOW] = "allowed",
		[ECH_DENY] = "denied",
	};
	enum ech a = was ? was->ech : ECH_DEFAULT;
	enum ech b = is ? is->ech : ECH_DEFAULT;

	if (a != b)
		change_add(c,
			   ech_stricter(a, b) == a ? DIFF_WIDER : DIFF_NARROWER,
			   "encrypted ClientHello %s -> %s", word[a], word[b]);
}

void diff_spoken(const struct rule *was, const struct rule *is, uint16_t port,
		 struct change *c)
{
	protocol(was, is, port, c);
	ech(was, is, c);
}
