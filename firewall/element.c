/* SPDX-License-Identifier: Apache-2.0
 *
 * element.c - elements by libmnl: attributes in attributes, keys of padded
 * fields in network byte order.
 */
#include "firewall/element.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>

#include "firewall/ruleset.h"

#define IFNAME_LEN  16
#define PER_MESSAGE 200 /* about 80 bytes each */
#define RETRIES	    8

bool element_ifname_ok(const char *name)
{
	size_t len = strnlen(name, IFNAME_LEN);

	return len > 0 && len < IFNAME_LEN;
}

static void make_key(uint8_t *key, const char *ifname, uint32_t ip,
		     uint16_t port)
{
	memset(key, 0, ELEMENT_FLOW_KEY);
	memcpy(key, ifname, strnlen(ifname, IFNAME_LEN - 1));
	key[16] = (uint8_t)(ip >> 24);
	key[17] = (uint8_t)(ip >> 16);
	key[18] = (uint8_t)(ip >> 8);
	key[19] = (uint8_t)ip;
	key[20] = (uint8_t)(port >> 8);
	key[21] = (uint8_t)port;
}

static void put_key(struct nlmsghdr *nlh, uint16_t attr, const uint8_t *key,
		    size_t len)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, attr);

	mnl_attr_put(nlh, NFTA_DATA_VALUE, len, key);
	mnl_attr_nest_end(nlh, nest);
}

static void put_element(struct nlmsghdr *nlh, const struct element *e,
			size_t key_len, bool ranges)
{
	uint8_t key[ELEMENT_FLOW_KEY];
	struct nlattr *nest = mnl_attr_nest_start(nlh, NFTA_LIST_ELEM);

	make_key(key, e->ifname, e->ip, e->port);
	put_key(nlh, NFTA_SET_ELEM_KEY, key, key_len);
	if (ranges) {
		make_key(key, e->ifname, e->ip_last, e->port_last);
		put_key(nlh, NFTA_SET_ELEM_KEY_END, key, key_len);
	}
	mnl_attr_nest_end(nlh, nest);
}

void element_put(struct nft *nft, uint16_t type, const char *set,
		 size_t key_len, bool ranges, const struct element *element,
		 size_t n)
{
	const uint16_t flags = type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0;

	for (size_t done = 0; done < n;) {
		struct nlmsghdr *nlh = nft_start(nft, type, flags);

		mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE,
				  nft_table(nft));
		mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, set);
		struct nlattr *list =
			mnl_attr_nest_start(nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
		for (size_t i = 0; i < PER_MESSAGE && done < n; i++, done++)
			put_element(nlh, &element[done], key_len, ranges);
		mnl_attr_nest_end(nlh, list);
		nft_end(nft, nlh);
	}
}

/* The value inside a key's attribute if it has @len bytes, or NULL. */
static const uint8_t *key_of(const struct nlattr *attr, size_t len)
{
	const struct nlattr *tb[NFTA_DATA_MAX + 1];

	if (!attr || nft_nested(attr, tb, NFTA_DATA_MAX) < 0 ||
	    !tb[NFTA_DATA_VALUE] ||
	    mnl_attr_get_payload_len(tb[NFTA_DATA_VALUE]) != len)
		return NULL;
	return mnl_attr_get_payload(tb[NFTA_DATA_VALUE]);
}

static uint32_t ip_at(const uint8_t *key)
{
	return (uint32_t)key[16] << 24 | (uint32_t)key[17] << 16 |
	       (uint32_t)key[18] << 8 | key[19];
}

static uint16_t port_at(const uint8_t *key, size_t len)
{
	return len < ELEMENT_FLOW_KEY ? 0 : (uint16_t)(key[20] << 8 | key[21]);
}

/* One name, printable, and nothing but zeroes after it. */
static bool name_plain(const uint8_t *key)
{
	size_t len = strnlen((const char *)key, IFNAME_LEN);

	if (len == 0 || len == IFNAME_LEN)
		return false;
	for (size_t i = 0; i < IFNAME_LEN; i++)
		if (i < len ? key[i] <= 0x20 || key[i] >= 0x7f : key[i] != 0)
			return false;
	return true;
}

/* Does an element carry something beside its key? */
static bool has_extras(const struct nlattr *const *tb)
{
	static const uint16_t extra[] = {
		NFTA_SET_ELEM_DATA,	   NFTA_SET_ELEM_TIMEOUT,
		NFTA_SET_ELEM_EXPR,	   NFTA_SET_ELEM_OBJREF,
		NFTA_SET_ELEM_EXPRESSIONS,
	};

	for (size_t i = 0; i < sizeof(extra) / sizeof(extra[0]); i++)
		if (tb[extra[i]])
			return true;
	return tb[NFTA_SET_ELEM_FLAGS] &&
	       mnl_attr_get_payload_len(tb[NFTA_SET_ELEM_FLAGS]) == 4 &&
	       mnl_attr_get_u32(tb[NFTA_SET_ELEM_FLAGS]) != 0;
}

static struct element_found read_element(const struct nlattr *attr,
					 size_t key_len)
{
	const struct nlattr *tb[NFTA_SET_ELEM_MAX + 1];
	struct element_found found = { .plain = false };
	struct element *e = &found.element;

	if (nft_nested(attr, tb, NFTA_SET_ELEM_MAX) < 0)
		return found;
	const uint8_t *key = key_of(tb[NFTA_SET_ELEM_KEY], key_len);
	const uint8_t *end = key_of(tb[NFTA_SET_ELEM_KEY_END], key_len);
	if (!key)
		return found;
	if (!end)
		end = key;
	memcpy(e->ifname, key, IFNAME_LEN - 1);
	e->ip = ip_at(key);
	e->ip_last = ip_at(end);
	e->port = port_at(key, key_len);
	e->port_last = port_at(end, key_len);
	found.plain = name_plain(key) && memcmp(key, end, IFNAME_LEN) == 0 &&
		      !has_extras(tb);
	return found;
}

/* What one dump of a set has shown. */
struct listing {
	size_t key_len;
	struct element_found *at;
	size_t n, cap;
};

static int add_found(struct listing *listing, const struct element_found *found)
{
	if (listing->n == listing->cap) {
		size_t cap = listing->cap ? listing->cap * 2 : 64;
		struct element_found *more =
			reallocarray(listing->at, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		listing->at = more;
		listing->cap = cap;
	}
	listing->at[listing->n++] = *found;
	return 0;
}

static int each_cb(const struct nlattr *attr, void *arg)
{
	struct listing *listing = arg;

	const struct element_found found = read_element(attr, listing->key_len);
	int r = add_found(listing, &found);
	if (r == 0)
		return MNL_CB_OK;
	errno = -r;
	return MNL_CB_ERROR;
}

static int list_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[NFTA_SET_ELEM_LIST_MAX + 1];

	if (nft_attrs(nlh, tb, NFTA_SET_ELEM_LIST_MAX) < 0) {
		errno = EBADMSG;
		return MNL_CB_ERROR;
	}
	if (!tb[NFTA_SET_ELEM_LIST_ELEMENTS])
		return MNL_CB_OK;
	return mnl_attr_parse_nested(tb[NFTA_SET_ELEM_LIST_ELEMENTS], each_cb,
				     arg);
}

static int order(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

/* What differs most comes first. */
static int compare(const void *a, const void *b)
{
	const struct element_found *found[] = { a, b };
	const struct element *x = &found[0]->element, *y = &found[1]->element;
	int r = order(x->ip, y->ip);

	r = r ? r : order(x->port, y->port);
	r = r ? r : order(x->ip_last, y->ip_last);
	r = r ? r : order(x->port_last, y->port_last);
	r = r ? r : order(found[0]->plain, found[1]->plain);
	return r ? r : memcmp(x->ifname, y->ifname, IFNAME_LEN);
}

/*
 * Puts them in order. The kernel moves a set without intervals to a table of
 * another size whenever it likes, after the change that asked for it, and a
 * dump does not say so: what it moves meanwhile is shown twice. And as it goes
 * on, in the next message, after as many elements as it has shown, of what is
 * now a table of another order, others are not shown at all. In sum it shows no
 * fewer than there are: where none is shown twice, none is missed. (What is not
 * ours may look the same.)
 */
static bool shown_once(struct listing *listing)
{
	if (listing->n)
		qsort(listing->at, listing->n, sizeof(*listing->at), compare);
	for (size_t i = 1; i < listing->n; i++)
		if (listing->at[i].plain &&
		    compare(&listing->at[i - 1], &listing->at[i]) == 0)
			return false;
	return true;
}

static int read_list(struct nft *nft, const char *set, struct listing *list)
{
	struct nlmsghdr *nlh =
		nft_ask(nft, NFT_MSG_GETSETELEM, NLM_F_DUMP, NFPROTO_INET);

	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, nft_table(nft));
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, set);
	list->n = 0;
	int r = nft_read(nft, nlh, list_cb, list);
	return r == 0 && !shown_once(list) ? -EINTR : r;
}

int element_list(struct nft *nft, const char *set, size_t key_len,
		 element_fn *fn, void *arg)
{
	struct listing list = { .key_len = key_len };
	int r = -EINTR;

	for (int tries = 0; r == -EINTR && tries < RETRIES; tries++)
		r = read_list(nft, set, &list);
	for (size_t i = 0; r == 0 && i < list.n; i++)
		r = fn(arg, &list.at[i]);
	free(list.at);
	return r;
}
