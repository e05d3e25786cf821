/* SPDX-License-Identifier: Apache-2.0
 *
 * lease.c - a file of fixed entries, and an index of it in our own memory.
 *
 * An entry is written once: name and checksum first, then its state as one
 * store, so that a gate killed in between leaves either a whole entry or one
 * that does not check. The latter is retired: it is no name any more, but its
 * address may be known to the sandbox, so it is never used again and still
 * counts against the limit.
 *
 * The address of slot i is LEASE_POOL_BASE + 1 + i. Those that end in .0 or
 * .255 are left out: too many programs take them for something special.
 *
 * Behind the entries there are pairs of a slot and a real address, which are
 * written in the same way. A pair is good only with the very name it was made
 * for: the entry's checksum is part of its own.
 */
#include "dns/lease.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define INDEX_SIZE 8192 /* a power of two, twice LEASE_MAX */
#define CHAINS	   4096
#define PAGE_MAX   65536 /* the largest there is */

enum state {
	STATE_FREE = 0,
	STATE_NAMED = 0x44454d4e,  /* counted; no address given out yet */
	STATE_LEASED = 0x4453454c, /* for good */
	STATE_PAIRED = 0x52494150, /* of a pair */
	STATE_RETIRED = 0x52495445 /* did not check: never used again */
};

struct entry {
	_Atomic uint32_t state;
	uint32_t zero;
	uint64_t check;
	uint64_t wildcard; /* hash of the rule's text; 0: no wildcard */
	char host[HOST_MAX + 3];
};

static_assert(sizeof(struct entry) == 280, "the file's format");

struct pair {
	_Atomic uint32_t state;
	uint16_t slot;
	uint8_t ip_len, zero;
	uint64_t check;
	uint8_t ip[16];
};

static_assert(sizeof(struct pair) == 32, "the file's format");

#define PAIRS_AT (LEASE_MAX * sizeof(struct entry))

struct wildcard {
	uint64_t hash;
	unsigned names;
};

struct lease_table {
	struct entry *entry; /* LEASE_MAX of them, shared */
	struct pair *pair;   /* LEASE_PAIRS_MAX, behind them */
	struct hash_key key;
	unsigned names; /* ever, retired ones included */
	size_t next;	/* no free slot before this one */
	bool taken[LEASE_MAX];
	uint16_t index[INDEX_SIZE]; /* slot + 1, by name; 0: none */
	struct wildcard wildcard[INDEX_SIZE];
	size_t pairs;		/* no pair was ever used from here on */
	uint16_t chain[CHAINS]; /* pair + 1, by address; 0: none */
	uint16_t after[LEASE_PAIRS_MAX]; /* the next one of its chain */
};

/* Stable from run to run, and only against accidents: FNV-1a. */
static uint64_t digest(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *at = data;
	uint64_t hash = seed ^ 0xcbf29ce484222325u;

	while (len--)
		hash = (hash ^ *at++) * 0x100000001b3u;
	return hash ? hash : 1;
}

static uint64_t entry_check(size_t slot, const struct entry *entry)
{
	uint64_t seed = digest(slot, &entry->wildcard, sizeof(entry->wildcard));

	return digest(seed, entry->host, sizeof(entry->host));
}

static bool slot_usable(size_t slot)
{
	unsigned last = (LEASE_POOL_BASE + 1 + (unsigned)slot) & 0xff;

	return last != 0 && last != 255;
}

size_t lease_table_size(void)
{
	size_t len = PAIRS_AT + LEASE_PAIRS_MAX * sizeof(struct pair);

	return (len + PAGE_MAX - 1) / PAGE_MAX * PAGE_MAX;
}

/* Where @host is in the index, or where it would be. */
static uint16_t *find(struct lease_table *table, const char *host)
{
	size_t i = hash_bytes(&table->key, host, strlen(host)) % INDEX_SIZE;

	while (table->index[i] &&
	       strcmp(table->entry[table->index[i] - 1].host, host) != 0)
		i = (i + 1) % INDEX_SIZE;
	return &table->index[i];
}

/* Its count, or where it would be: a row is taken only with a name. */
static struct wildcard *find_wildcard(struct lease_table *table, uint64_t hash)
{
	size_t i = hash % INDEX_SIZE;

	while (table->wildcard[i].hash && table->wildcard[i].hash != hash)
		i = (i + 1) % INDEX_SIZE;
	return &table->wildcard[i];
}

static bool is_blank(const struct entry *entry)
{
	static const struct entry blank;

	return memcmp(entry, &blank, sizeof(blank)) == 0;
}

static bool is_sound(struct lease_table *table, size_t slot)
{
	const struct entry *entry = &table->entry[slot];
	uint32_t state = atomic_load(&entry->state);
	size_t len = strnlen(entry->host, sizeof(entry->host));
	char host[HOST_MAX + 1];

	return (state == STATE_NAMED || state == STATE_LEASED) &&
	       entry->check == entry_check(slot, entry) && len <= HOST_MAX &&
	       host_canonical(entry->host, len, host) &&
	       strcmp(host, entry->host) == 0 && !*find(table, host);
}

static void take(struct lease_table *table, size_t slot)
{
	const struct entry *entry = &table->entry[slot];

	*find(table, entry->host) = (uint16_t)(slot + 1);
	if (entry->wildcard) {
		struct wildcard *wildcard =
			find_wildcard(table, entry->wildcard);

		wildcard->hash = entry->wildcard;
		wildcard->names++;
	}
}

static void check_all(struct lease_table *table, bool empty)
{
	for (size_t i = 0; i < LEASE_MAX; i++) {
		struct entry *entry = &table->entry[i];

		if (empty || is_blank(entry)) {
			table->taken[i] = !slot_usable(i);
			continue;
		}
		table->taken[i] = true;
		table->names++;
		if (slot_usable(i) && is_sound(table, i))
			take(table, i);
		else
			atomic_store(&entry->state, STATE_RETIRED);
	}
}

/* --- pairs of a name and a real address ---------------------------------- */

static uint64_t pair_check(const struct lease_table *table, size_t i,
			   const struct pair *pair)
{
	uint64_t seed =
		digest(i, &table->entry[pair->slot].check, sizeof(uint64_t));

	seed = digest(seed, &pair->ip_len, sizeof(pair->ip_len));
	return digest(seed, pair->ip, sizeof(pair->ip));
}

static struct ip pair_ip(const struct pair *pair)
{
	struct ip ip = { .len = pair->ip_len };

	memcpy(ip.byte, pair->ip, sizeof(ip.byte));
	return ip;
}

/* The end of the chain of @ip, or where @slot's pair with it is. */
static uint16_t *find_pair(struct lease_table *table, uint16_t slot,
			   const struct ip *ip)
{
	uint16_t *at = &table->chain[hash_bytes(&table->key, ip->byte,
						sizeof(ip->byte)) %
				     CHAINS];

	while (*at) {
		const struct pair *pair = &table->pair[*at - 1];
		struct ip own = pair_ip(pair);

		if (pair->slot == slot && ip_equal(&own, ip))
			break;
		at = &table->after[*at - 1];
	}
	return at;
}

static bool in_pool(const struct ip *ip)
{
	return ip->len == 4 && ip_v4_value(ip) >> 16 == LEASE_POOL_BASE >> 16;
}

static bool pair_sound(struct lease_table *table, size_t i)
{
	const struct pair *pair = &table->pair[i];
	struct ip ip = pair_ip(pair);

	return atomic_load(&pair->state) == STATE_PAIRED && !pair->zero &&
	       (ip.len == 4 || ip.len == 16) && !in_pool(&ip) &&
	       pair->slot < LEASE_MAX &&
	       pair->check == pair_check(table, i, pair) &&
	       *find(table, table->entry[pair->slot].host) == pair->slot + 1 &&
	       !*find_pair(table, pair->slot, &ip);
}

/* Entries come first: a pair of a retired one does not hold. */
static void check_pairs(struct lease_table *table)
{
	static const struct pair blank;

	for (size_t i = 0; i < LEASE_PAIRS_MAX; i++) {
		struct pair *pair = &table->pair[i];
		struct ip ip = pair_ip(pair);

		if (memcmp(pair, &blank, sizeof(blank)) == 0)
			continue;
		table->pairs = i + 1;
		if (pair_sound(table, i))
			*find_pair(table, pair->slot, &ip) = (uint16_t)(i + 1);
		else
			atomic_store(&pair->state, STATE_RETIRED);
	}
}

int lease_bind(struct lease_table *table, const char *host, const struct ip *ip)
{
	uint16_t found = *find(table, host), *link;
	uint16_t slot = (uint16_t)(found - 1);
	struct pair *pair;

	if (!ip->len || in_pool(ip))
		return -EINVAL;
	if (!found)
		return -ENOSPC;
	link = find_pair(table, slot, ip);
	if (*link)
		return 0;
	if (table->pairs == LEASE_PAIRS_MAX)
		return -ENOSPC;
	pair = &table->pair[table->pairs];
	pair->slot = slot;
	pair->ip_len = ip->len;
	memcpy(pair->ip, ip->byte, sizeof(pair->ip));
	pair->check = pair_check(table, table->pairs, pair);
	atomic_store(&pair->state, STATE_PAIRED);
	*link = (uint16_t)++table->pairs;
	return 0;
}

size_t lease_names_at(const struct lease_table *table, const struct ip *ip,
		      const char *ret_name[], size_t max)
{
	size_t count = 0;
	uint16_t at = table->chain[hash_bytes(&table->key, ip->byte,
					      sizeof(ip->byte)) %
				   CHAINS];

	for (; at && count < max; at = table->after[at - 1]) {
		const struct pair *pair = &table->pair[at - 1];
		struct ip own = pair_ip(pair);

		if (ip_equal(&own, ip))
			ret_name[count++] = table->entry[pair->slot].host;
	}
	return count;
}

bool lease_pair_at(const struct lease_table *table, size_t i,
		   const char **ret_host, struct ip *ret_ip)
{
	const struct pair *pair = &table->pair[i];

	if (i >= table->pairs)
		return false;
	*ret_host = NULL;
	*ret_ip = (struct ip){ .len = 0 };
	if (atomic_load(&pair->state) == STATE_PAIRED) {
		*ret_host = table->entry[pair->slot].host;
		*ret_ip = pair_ip(pair);
	}
	return true;
}

/* --- the table ----------------------------------------------------------- */

/* A file that nobody wrote to has no pages: to look at it would make them. */
static bool has_data(int fd, size_t from, size_t to)
{
	off_t at = lseek(fd, (off_t)from, SEEK_DATA);

	return at < 0 ? errno != ENXIO : (size_t)at < to;
}

int lease_table_attach(int fd, struct lease_table **ret_table)
{
	AUTO_FREE struct lease_table *table = calloc(1, sizeof(*table));
	struct stat st;
	int err;

	if (!table)
		return -ENOMEM;
	err = hash_key_init(&table->key);
	if (err)
		return err;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)lease_table_size())
		return -EINVAL; /* reading past its end would kill us */
	table->entry = mmap(NULL, lease_table_size(), PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);
	if (table->entry == MAP_FAILED)
		return -errno;
	table->pair = (struct pair *)(table->entry + LEASE_MAX);
	check_all(table, !has_data(fd, 0, PAIRS_AT));
	if (has_data(fd, PAIRS_AT, lease_table_size()))
		check_pairs(table);
	*ret_table = STEAL(table);
	return 0;
}

void lease_table_free(struct lease_table *table)
{
	if (!table)
		return;
	munmap(table->entry, lease_table_size());
	free(table);
}

static void write_entry(struct lease_table *table, size_t slot,
			const char *host, uint64_t wildcard)
{
	struct entry *entry = &table->entry[slot];

	memcpy(entry->host, host, strlen(host));
	entry->wildcard = wildcard;
	entry->check = entry_check(slot, entry);
	atomic_store(&entry->state, STATE_NAMED);
	table->taken[slot] = true;
	table->names++;
	take(table, slot);
}

enum reason lease_admit(struct lease_table *table, const struct policy *policy,
			const char *host, const struct rule *rule)
{
	const struct limits *limits = policy_limits(policy);
	uint64_t wildcard = 0;

	if (*find(table, host))
		return REASON_RULE;
	if (table->names >= limits->names || strlen(host) > HOST_MAX)
		return REASON_LIMIT_NAMES;
	const char *text = rule ? rule_wildcard(rule) : NULL;
	if (text) {
		wildcard = digest(0, text, strlen(text));
		if (find_wildcard(table, wildcard)->names >=
		    limits->names_per_wildcard)
			return REASON_LIMIT_NAMES;
	}
	while (table->next < LEASE_MAX && table->taken[table->next])
		table->next++;
	if (table->next == LEASE_MAX)
		return REASON_LIMIT_NAMES;
	write_entry(table, table->next, host, wildcard);
	return REASON_RULE;
}

int lease_get(struct lease_table *table, const char *host, struct ip *ret_ip,
	      bool *ret_new)
{
	uint16_t found = *find(table, host);
	size_t slot = found - 1u;

	if (!found)
		return -ENOSPC;
	*ret_new = atomic_load(&table->entry[slot].state) == STATE_NAMED;
	if (*ret_new)
		atomic_store(&table->entry[slot].state, STATE_LEASED);
	*ret_ip = ip_v4(LEASE_POOL_BASE + 1 + (uint32_t)slot);
	return 0;
}

const char *lease_name(const struct lease_table *table, const struct ip *ip)
{
	uint32_t slot = ip_v4_value(ip) - LEASE_POOL_BASE - 1;
	const struct entry *entry;

	/* To look at an entry that nobody wrote would give it a page. */
	if (ip->len != 4 || slot >= LEASE_MAX || !table->taken[slot] ||
	    !slot_usable(slot))
		return NULL;
	entry = &table->entry[slot];
	return atomic_load(&entry->state) == STATE_LEASED ? entry->host : NULL;
}

bool lease_at(const struct lease_table *table, size_t i, const char **ret_host,
	      struct ip *ret_ip)
{
	struct ip ip;

	if (i >= LEASE_MAX)
		return false;
	ip = ip_v4(LEASE_POOL_BASE + 1 + (uint32_t)i);
	*ret_host = lease_name(table, &ip);
	*ret_ip = *ret_host ? ip : (struct ip){ .len = 0 };
	return true;
}
