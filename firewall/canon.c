/* SPDX-License-Identifier: Apache-2.0
 *
 * canon.c - lines.
 *
 * libnftnl knows how to print each expression; the rest we print ourselves, so
 * that nothing depends on what one of its versions leaves out.
 */
#include "firewall/canon.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* these want stdio.h */
#include <libnftnl/chain.h>
#include <libnftnl/expr.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <linux/netfilter/nf_tables.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "firewall/element.h"
#include "policy/digest.h"

void canon_free(struct canon *canon)
{
	for (size_t i = 0; i < canon->n; i++)
		free(canon->line[i]);
	free(canon->line);
	*canon = (struct canon){ 0 };
}

static int keep(struct canon *canon, const char *text)
{
	if (canon->n == CANON_LINES)
		return -E2BIG;
	if (canon->n == canon->cap) {
		size_t cap = canon->cap ? canon->cap * 2 : 64;
		char **more = reallocarray(canon->line, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		canon->line = more;
		canon->cap = cap;
	}
	char *copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	canon->line[canon->n++] = copy;
	return 0;
}

int canon_add(struct canon *canon, const char *fmt, ...)
{
	char line[CANON_LINE];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(line))
		return -E2BIG;
	/* A name may hold anything; a line is a line. */
	for (int i = 0; i < n; i++)
		if (line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	return keep(canon, line);
}

static const char *text_or_none(const char *s)
{
	return s ? s : "-";
}

int canon_table(struct canon *canon, uint32_t flags, uint32_t use)
{
	return canon_add(canon, "table flags %u holds %u", flags, use);
}

/* Where there is one, the kernel says it twice. */
static int add_devices(struct canon *canon, const char *name,
		       const struct nftnl_chain *chain)
{
	const char *dev = nftnl_chain_get_str(chain, NFTNL_CHAIN_DEV);
	const char *const *all =
		nftnl_chain_get_array(chain, NFTNL_CHAIN_DEVICES);
	int r = 0;

	if (!all && dev)
		return canon_add(canon, "chain %s on %s", name, dev);
	for (size_t i = 0; r == 0 && all && all[i]; i++)
		r = canon_add(canon, "chain %s on %s", name, all[i]);
	return r;
}

int canon_chain(struct canon *canon, const struct nftnl_chain *chain)
{
	const char *name = nftnl_chain_get_str(chain, NFTNL_CHAIN_NAME);
	/* "Is a base chain" is told by the hook. */
	const uint32_t flags = nftnl_chain_get_u32(chain, NFTNL_CHAIN_FLAGS) &
			       ~(uint32_t)NFT_CHAIN_BASE;

	if (!nftnl_chain_is_set(chain, NFTNL_CHAIN_HOOKNUM))
		return canon_add(canon, "chain %s flags %u", text_or_none(name),
				 flags);
	int r = canon_add(
		canon,
		"chain %s flags %u type %s hook %u priority %d policy %u",
		text_or_none(name), flags,
		text_or_none(nftnl_chain_get_str(chain, NFTNL_CHAIN_TYPE)),
		nftnl_chain_get_u32(chain, NFTNL_CHAIN_HOOKNUM),
		nftnl_chain_get_s32(chain, NFTNL_CHAIN_PRIO),
		nftnl_chain_get_u32(chain, NFTNL_CHAIN_POLICY));
	return r ? r : add_devices(canon, text_or_none(name), chain);
}

int canon_set(struct canon *canon, const struct nftnl_set *set)
{
	char fields[64] = "";
	uint32_t len = 0;
	const uint8_t *field =
		nftnl_set_get_data(set, NFTNL_SET_DESC_CONCAT, &len);
	size_t at = 0;

	for (uint32_t i = 0; field && i < len && i < 16; i++) {
		int n = snprintf(fields + at, sizeof(fields) - at, " %u",
				 field[i]);
		if (n > 0 && (size_t)n < sizeof(fields) - at)
			at += (size_t)n;
	}
	const uint64_t timeout = nftnl_set_get_u64(set, NFTNL_SET_TIMEOUT);
	return canon_add(
		canon,
		"set %s flags %x key %u of %u data %u of %u object %u "
		"size %u timeout %llu gc %u policy %u expressions %d fields%s",
		text_or_none(nftnl_set_get_str(set, NFTNL_SET_NAME)),
		nftnl_set_get_u32(set, NFTNL_SET_FLAGS),
		nftnl_set_get_u32(set, NFTNL_SET_KEY_TYPE),
		nftnl_set_get_u32(set, NFTNL_SET_KEY_LEN),
		nftnl_set_get_u32(set, NFTNL_SET_DATA_TYPE),
		nftnl_set_get_u32(set, NFTNL_SET_DATA_LEN),
		nftnl_set_get_u32(set, NFTNL_SET_OBJ_TYPE),
		nftnl_set_get_u32(set, NFTNL_SET_DESC_SIZE),
		(unsigned long long)timeout,
		nftnl_set_get_u32(set, NFTNL_SET_GC_INTERVAL),
		nftnl_set_get_u32(set, NFTNL_SET_POLICY),
		nftnl_set_is_set(set, NFTNL_SET_EXPR) ||
			nftnl_set_is_set(set, NFTNL_SET_EXPRESSIONS),
		fields);
}

int canon_counter(struct canon *canon, const struct nftnl_obj *obj)
{
	return canon_add(
		canon, "object %s type %u",
		text_or_none(nftnl_obj_get_str((struct nftnl_obj *)obj,
					       NFTNL_OBJ_NAME)),
		nftnl_obj_get_u32((struct nftnl_obj *)obj, NFTNL_OBJ_TYPE));
}

/* The number of the next rule of chain @name, or -1. */
static int next_rule(struct canon *canon, const char *name)
{
	size_t i = 0;

	while (i < canon->chains && strcmp(canon->chain[i].name, name) != 0)
		i++;
	if (i == canon->chains) {
		if (i == CANON_CHAINS ||
		    strlen(name) >= sizeof(canon->chain[i].name))
			return -1;
		memcpy(canon->chain[i].name, name, strlen(name) + 1);
		canon->chains++;
	}
	return (int)++canon->chain[i].rules;
}

/* Expressions of one rule, as they are printed. */
struct printing {
	char text[CANON_LINE - 128];
	size_t at;
	bool full;
};

static int print_expr(struct nftnl_expr *e, void *arg)
{
	struct printing *p = arg;
	const size_t room = sizeof(p->text) - p->at;

	/* libnftnl leaves the name to the caller. */
	int n = snprintf(p->text + p->at, room, " [%s ",
			 nftnl_expr_get_str(e, NFTNL_EXPR_NAME));
	if (n > 0 && (size_t)n < room)
		n += nftnl_expr_snprintf(p->text + p->at + n, room - (size_t)n,
					 e, NFTNL_OUTPUT_DEFAULT, 0);
	if (n < 0 || (size_t)n + sizeof("]") > room) {
		p->full = true;
		return 0;
	}
	p->at += (size_t)n;
	p->text[p->at++] = ']';
	p->text[p->at] = '\0';
	return 0;
}

int canon_rule(struct canon *canon, struct nftnl_rule *rule)
{
	const char *chain = nftnl_rule_get_str(rule, NFTNL_RULE_CHAIN);
	struct printing printing = { .at = 0 };

	int number = chain ? next_rule(canon, chain) : -1;
	if (number < 0)
		return -E2BIG;
	nftnl_expr_foreach(rule, print_expr, &printing);
	if (printing.full)
		return -E2BIG;
	return canon_add(canon, "rule %s %04d%s%s", chain, number,
			 nftnl_rule_is_set(rule, NFTNL_RULE_COMPAT_PROTO)
				 ? " compat"
				 : "",
			 printing.text);
}

int canon_element(struct canon *canon, const char *set, bool port,
		  const struct element_found *found)
{
	const struct element *e = &found->element;
	const struct ip ip = ip_v4(e->ip), last = ip_v4(e->ip_last);
	char a[IP_TEXT_MAX], b[IP_TEXT_MAX];

	if (!found->plain)
		return canon_add(canon, "element %s strange", set);
	ip_format(&ip, a);
	ip_format(&last, b);
	if (port)
		return canon_add(canon, "element %s %s %s-%s %u-%u", set,
				 e->ifname, a, b, e->port, e->port_last);
	return canon_add(canon, "element %s %s %s-%s", set, e->ifname, a, b);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void canon_sort(struct canon *canon)
{
	if (canon->n)
		qsort(canon->line, canon->n, sizeof(*canon->line), by_text);
}

int canon_compare(const struct canon *want, const struct canon *found,
		  char *reterr, size_t cap)
{
	size_t i = 0;

	while (i < want->n && i < found->n &&
	       strcmp(want->line[i], found->line[i]) == 0)
		i++;
	if (i == want->n && i == found->n)
		return 0;
	const char *w = i < want->n ? want->line[i] : NULL;
	const char *f = i < found->n ? found->line[i] : NULL;
	/* The lines are sorted: the smaller one is missing on the other side.
	 */
	if (f && (!w || strcmp(f, w) < 0))
		(void)snprintf(reterr, cap,
			       "the kernel has what is not ours: %s", f);
	else
		(void)snprintf(reterr, cap, "the kernel lacks: %s", w);
	return -EBADMSG;
}

int canon_digest(const struct canon *canon, char *ret_digest)
{
	struct digest sum;

	digest_begin(&sum);
	for (size_t i = 0; i < canon->n; i++) {
		digest_add(&sum, canon->line[i], strlen(canon->line[i]));
		digest_add(&sum, "\n", 1);
	}
	digest_end(&sum, ret_digest);
	return 0;
}
