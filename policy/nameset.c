/* SPDX-License-Identifier: Apache-2.0
 *
 * nameset.c - a table made for few cache misses. A look-up asks for all the
 * cache lines it may need before it looks at one, and works while memory
 * answers: it waits once, not once a label, and not for all of that.
 *
 * In the order of a look-up:
 *   buckets  a cache line of nine entries each: kinds and a hash. What does not
 *            fit goes into the buckets behind it, and the bucket says so
 *   lines    of each entry; like the names (nameset_names.c) not touched, let
 *            alone compared: that would be another wait
 *
 * Where a suffix belongs is a quick hash of it, what tells it apart is SipHash,
 * worked out while memory answers. An author of a list or a sandbox that knew
 * the keys could pile up names; neither does. Should it happen by chance, the
 * table is made again with others, so that what a look-up reads has a bound.
 */
#include "policy/nameset.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "policy/hostname.h"
#include "policy/nameset_impl.h"
#include "policy/nameset_words.h"

#define LINE	   64
#define SLOTS	   9
#define LOAD	   7 /* of these, on average */
#define KINDS	   (NAMESET_EXACT | NAMESET_BELOW)
#define LABELS_MAX ((HOST_MAX + 1) / 2)
#define SPILL_MAX  64 /* buckets behind the one where a name belongs */
#define KEYS_MAX   8  /* tries */
#define HUGE_PAGE  ((size_t)2 << 20)

/* 54 bits of the hash of an entry, with the kinds as its lowest two, are in
 * three parts. */
struct bucket {
	uint32_t high[SLOTS];
	uint16_t mid[SLOTS];
	uint8_t low[SLOTS]; /* no kind: free, and so are those behind it */
	uint8_t spilled;    /* bit n: some that belongs here and has n as
			     * low bits of its hash is in a bucket behind */
};
_Static_assert(sizeof(struct bucket) == LINE, "one cache line");

struct nameset {
	struct hash begin; /* with its key */
	uint64_t place_key[2];
	struct bucket *bucket;
	uint32_t *line; /* behind them: of each slot */
	size_t buckets, count;
	size_t size; /* of these two in bytes */
	struct names names;
};

struct suffix {
	uint64_t place, hash;
	size_t start; /* in the host */
};

/* A host and its suffixes, the shortest first. */
struct walk {
	size_t len, n;
	struct suffix suffix[LABELS_MAX];
	char text[HOST_MAX + 8]; /* the last word may stick out */
};

/* Quick, a multiplication a word, as it only says which line to ask for. */
static uint64_t place_word(uint64_t place, uint64_t word, uint64_t key)
{
	unsigned __int128 product = (unsigned __int128)(place ^ word) * key;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static struct bucket *bucket_of(const struct nameset *set, uint64_t place)
{
	return &set->bucket[(place >> 32) * set->buckets >> 32];
}

/* Hashes the name that ends at @end by words of eight characters, from its end:
 * @ret_chain[n] is of n of them. */
static void chain_words(const struct nameset *set, const char *end, size_t len,
			uint64_t *ret_chain)
{
	uint64_t word;

	ret_chain[0] = set->place_key[0];
	for (size_t n = 0; n < len / 8; n++) {
		end -= sizeof(word);
		memcpy(&word, end, sizeof(word));
		ret_chain[n + 1] = place_word(ret_chain[n], le64toh(word),
					      set->place_key[1]);
	}
}

/* The place of a suffix: its words, and what is left over in front of them.
 * Reads 8 bytes. */
static uint64_t place_of(const struct nameset *set, const uint64_t *chain,
			 const char *suffix, size_t len)
{
	uint64_t word;

	memcpy(&word, suffix, sizeof(word));
	word = le64toh(word) & ((1ull << 8 * (len % 8)) - 1);
	return place_word(chain[len / 8], word, set->place_key[1]);
}

static void prefetch(const struct nameset *set, uint64_t place)
{
	__builtin_prefetch(bucket_of(set, place));
}

/* Where the suffixes start. Nothing here depends on a guess of how long labels
 * are, as the processor would make one, badly. */
static void find_suffixes(struct walk *w)
{
	uint64_t dots[HOST_MAX / 64 + 1] = { 0 };

	for (size_t i = 0; i < w->len; i += 8)
		dots[i / 64] |= dots_of(w->text + i) << i % 64;
	w->n = 0;
	for (size_t i = ARRAY_SIZE(dots); i--;)
		while (dots[i] && w->n < LABELS_MAX - 1) {
			unsigned bit = 63u - (unsigned)__builtin_clzll(dots[i]);

			w->suffix[w->n++].start = i * 64 + bit + 1;
			dots[i] ^= 1ull << bit;
		}
	w->suffix[w->n++].start = 0;
}

/* Finds the place of every suffix of @host and asks for its bucket; first of
 * all for that of the host. */
static void ask(const struct nameset *set, const char *host, size_t len,
		struct walk *ret_walk)
{
	struct walk *w = ret_walk;
	uint64_t chain[HOST_MAX / 8 + 1];

	memcpy(w->text, host, len);
	memset(w->text + len, 0, 8);
	w->len = len;
	chain_words(set, host + len, len, chain);
	prefetch(set, place_of(set, chain, w->text, len));
	find_suffixes(w);
	for (size_t i = w->n; i--;) {
		struct suffix *s = &w->suffix[i];

		s->place = place_of(set, chain, w->text + s->start,
				    len - s->start);
		prefetch(set, s->place);
	}
}

/* What takes longest, while memory answers. */
static void hash_suffixes(const struct nameset *set, struct walk *w)
{
	struct hash h = set->begin;
	size_t end = w->len;

	for (size_t i = 0; i < w->n; i++) {
		struct suffix *s = &w->suffix[i];

		hash_label(&h, w->text + s->start, end - s->start);
		s->hash = hash_end(h);
		end = s->start - 1;
	}
}

static size_t entry_of(const struct nameset *set, const struct bucket *b,
		       int slot)
{
	return (size_t)(b - set->bucket) * SLOTS + (size_t)slot;
}

static uint8_t low_part(uint64_t hash, unsigned kinds)
{
	return (uint8_t)((hash >> 8 & ~(uint64_t)KINDS) | kinds);
}

static unsigned spill_bit(uint64_t hash)
{
	return 1u << (hash & 7);
}

static struct bucket *behind(const struct nameset *set, const struct bucket *b)
{
	size_t next = (size_t)(b - set->bucket) + 1;

	return &set->bucket[next < set->buckets ? next : 0];
}

/* The slot of this bucket with one of @kinds, or -1. */
static int find_slot(const struct bucket *b, uint64_t hash, unsigned kinds)
{
	uint32_t high = (uint32_t)(hash >> 32);
	uint16_t mid = (uint16_t)(hash >> 16);
	unsigned same = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		same |= (unsigned)(b->high[i] == high) << i;
	for (; same; same &= same - 1) {
		int i = __builtin_ctz(same);

		if (b->mid[i] == mid && b->low[i] & kinds &&
		    low_part(hash, b->low[i] & KINDS) == b->low[i])
			return i;
	}
	return -1;
}

/* Finds the entry of this suffix with one of @kinds. */
static bool look_up(const struct nameset *set, const struct suffix *s,
		    unsigned kinds, size_t *ret_entry)
{
	const struct bucket *b = bucket_of(set, s->place);
	int more = b->spilled & spill_bit(s->hash) ? SPILL_MAX : 0;

	for (; more >= 0; more--, b = behind(set, b)) {
		int slot = find_slot(b, s->hash, kinds);

		if (slot >= 0) {
			*ret_entry = entry_of(set, b, slot);
			return true;
		}
		if (!(b->low[SLOTS - 1] & KINDS))
			break;
	}
	return false;
}

bool nameset_find(const struct nameset *set, const char *host,
		  struct nameset_hit *ret_hit)
{
	size_t len = strnlen(host, HOST_MAX + 1);
	struct walk w;

	if (len > HOST_MAX)
		return false;
	ask(set, host, len, &w);
	hash_suffixes(set, &w);
	for (size_t n = w.n; n; n--) {
		unsigned kind = n == w.n ? NAMESET_EXACT : NAMESET_BELOW;
		size_t entry;

		if (!look_up(set, &w.suffix[n - 1], kind, &entry))
			continue;
		*ret_hit = (struct nameset_hit){
			.name = host + w.suffix[n - 1].start,
			.entry = entry,
			.exact = n == w.n,
		};
		return true;
	}
	return false;
}

uint32_t nameset_line(const struct nameset *set, const struct nameset_hit *hit)
{
	return set->line[hit->entry];
}

static void place_at(struct nameset *set, struct bucket *b, int slot,
		     uint64_t hash, const struct nameset_item *item)
{
	b->high[slot] = (uint32_t)(hash >> 32);
	b->mid[slot] = (uint16_t)(hash >> 16);
	b->low[slot] = low_part(hash, item->kind);
	set->line[entry_of(set, b, slot)] = item->line;
}

/* 0, or -EAGAIN if it takes another key. */
static int insert(struct nameset *set, const struct suffix *s,
		  const struct nameset_item *item)
{
	struct bucket *home = bucket_of(set, s->place), *b = home;

	for (int spill = 0; spill <= SPILL_MAX; spill++, b = behind(set, b)) {
		int slot = 0;

		while (slot < SLOTS && b->low[slot] & KINDS)
			slot++;
		if (slot == SLOTS)
			continue;
		place_at(set, b, slot, s->hash, item);
		if (spill)
			home->spilled |= (uint8_t)spill_bit(s->hash);
		return 0;
	}
	return -EAGAIN;
}

/* Which of @kinds is not there yet. */
static uint8_t missing(const struct nameset *set, const struct suffix *s,
		       uint8_t kinds)
{
	size_t entry;

	for (uint8_t kind = 1; kind <= NAMESET_BELOW; kind <<= 1)
		if (look_up(set, s, kind, &entry))
			kinds &= (uint8_t)~kind;
	return kinds;
}

/* Puts all names into the empty table; what is a duplicate leaves the names.
 * -EAGAIN, the names still whole, if it takes another key. */
static int fill(struct nameset *set)
{
	struct names kept = { .data = set->names.data, .cap = set->names.cap };
	struct nameset_cursor cursor = { 0 };
	struct nameset_item item;
	struct walk w;
	int ret = 0;

	while (names_next(&set->names, &cursor, &item)) {
		const struct suffix *s;

		ask(set, item.name, strlen(item.name), &w);
		hash_suffixes(set, &w);
		s = &w.suffix[w.n - 1];
		item.kind = missing(set, s, item.kind);
		if (!item.kind)
			continue;
		if (ret == 0)
			ret = insert(set, s, &item);
		set->count++;
		names_keep(&kept, &item);
	}
	set->names = kept;
	return ret;
}

/* An empty table for @count names, and keys. */
static int table_new(struct nameset *set, size_t count)
{
	size_t buckets = count / LOAD + 1;
	size_t size = buckets * (LINE + SLOTS * sizeof(uint32_t));
	bool huge = size >= HUGE_PAGE;
	struct hash_key key, place;
	void *block;

	if (hash_key_init(&key) < 0 || hash_key_init(&place) < 0)
		return -EIO;
	free(set->bucket);
	set->bucket = NULL;
	if (posix_memalign(&block, huge ? HUGE_PAGE : LINE, size) != 0)
		return -ENOMEM;
	set->bucket = block;
	if (huge) /* advice: the TLB holds but 8 MB of small pages */
		(void)madvise(block, size, MADV_HUGEPAGE);
	memset(block, 0, size);
	set->buckets = buckets;
	set->line = (uint32_t *)(set->bucket + buckets);
	set->size = size;
	set->begin = hash_begin(&key);
	set->place_key[0] = place.k0;
	set->place_key[1] = place.k1 | 1;
	set->count = 0;
	return 0;
}

/* Makes the table for @count names or fewer. If more than a quarter were
 * duplicates, it is made again, smaller. */
static int build(struct nameset *set, size_t count)
{
	int ret = -EAGAIN;

	for (int i = 0; i < KEYS_MAX && ret == -EAGAIN; i++) {
		ret = table_new(set, count);
		if (ret == 0)
			ret = fill(set);
		if (ret == 0 && set->count < count - count / 4) {
			count = set->count;
			ret = -EAGAIN;
		}
	}
	return ret == -EAGAIN ? -EIO : ret;
}

int nameset_new(const char *text, size_t len, struct nameset **ret_set,
		struct nameset_report *ret_report)
{
	struct nameset_report report = { 0 };
	struct nameset *set = calloc(1, sizeof(*set));
	int ret = -ENOMEM;

	if (set)
		ret = nameset_parse(text, len, &set->names, &report);
	if (ret == 0)
		ret = build(set, report.names);
	if (ret == 0) {
		names_trim(&set->names);
		report.duplicates = report.names - set->count;
		report.names = set->count;
		*ret_set = STEAL(set);
	}
	*ret_report = report;
	nameset_free(set);
	return ret;
}

void nameset_free(struct nameset *set)
{
	if (!set)
		return;
	free(set->names.data);
	free(set->bucket);
	free(set);
}

size_t nameset_count(const struct nameset *set)
{
	return set->count;
}

size_t nameset_memory(const struct nameset *set)
{
	return sizeof(*set) + set->size + set->names.cap;
}

bool nameset_next(const struct nameset *set, struct nameset_cursor *cursor,
		  struct nameset_item *ret_item)
{
	return names_next(&set->names, cursor, ret_item);
}
