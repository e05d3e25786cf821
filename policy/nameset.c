/* SPDX-License-Identifier: Apache-2.0
 *
 * nameset.c - a table made for few cache misses. A look-up asks for all the
 * cache lines it may need before it looks at one: it waits for memory once, not
 * once a label.
 *
 * In the order of a look-up:
 *   filter   16 bits a name, small enough to stay in a cache; tells that most
 *            suffixes of most hosts are not listed, which ends it
 *   buckets  a cache line of ten entries each: kinds and a hash. What does not
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

#define LINE	   64
#define WORDS	   (LINE / sizeof(uint64_t))
#define SLOTS	   10
#define KINDS	   ((uint64_t)(NAMESET_EXACT | NAMESET_BELOW))
#define LABELS_MAX ((HOST_MAX + 1) / 2)
#define SPILL_MAX  64 /* buckets behind the one where a name belongs */
#define KEYS_MAX   8  /* tries */
#define HUGE_PAGE  ((size_t)2 << 20)

/* The hash of an entry, 46 bits of it with the kinds below, is in two parts. */
struct bucket {
	uint32_t high[SLOTS];
	uint16_t low[SLOTS]; /* no kind: free */
	uint16_t spilled;    /* bit n: some that belongs here and has n as top
			      * bits of its hash is in a bucket behind */
	uint16_t spill;	     /* how many buckets behind at most */
};
_Static_assert(sizeof(struct bucket) == LINE, "one cache line");

struct nameset {
	struct hash begin; /* with its key */
	uint64_t place_key[2];
	uint64_t *filter; /* in front of the buckets */
	struct bucket *bucket;
	uint32_t *line; /* behind them: of each slot */
	size_t filters, buckets, count;
	size_t size; /* of these three in bytes */
	struct names names;
};

struct suffix {
	uint64_t place, hash;
	uint8_t start; /* in the host */
	uint8_t words; /* of it */
	bool maybe;
};

struct walk {
	size_t n;
	struct suffix suffix[LABELS_MAX];
	uint64_t word[LABELS_MAX + HOST_MAX / 8 + 1];
};

/* Two keyed hashes of the words so far. @place is quick (a multiplication a
 * word) and only says which line to ask for; @hash decides. */
static uint64_t place_word(uint64_t place, uint64_t word, uint64_t key)
{
	unsigned __int128 product = (unsigned __int128)(place ^ word) * key;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Words of eight characters, then the rest with the length: no two names have
 * the same words, as characters have no high bit. Reads 8 bytes past the end.
 * Returns how many. */
static size_t label_words(const char *label, size_t len, uint64_t *ret_word)
{
	size_t n = 0, left = len;
	uint64_t word;

	for (; left >= sizeof(word); label += 8, left -= 8) {
		memcpy(&word, label, sizeof(word));
		ret_word[n++] = le64toh(word);
	}
	memcpy(&word, label, sizeof(word));
	word = le64toh(word) & ((1ull << 8 * left) - 1);
	ret_word[n++] = word | (uint64_t)(0x80 | len) << 56;
	return n;
}

/* Which four bits of a filter's word stand for this place. */
static uint64_t filter_bits(uint64_t place)
{
	return 1ull << (place & 63) | 1ull << (place >> 6 & 63) |
	       1ull << (place >> 12 & 63) | 1ull << (place >> 18 & 63);
}

static uint64_t *filter_of(const struct nameset *set, uint64_t place)
{
	return &set->filter[(place >> 32) * set->filters >> 32];
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

/* The place of the suffix of @len characters: its words, and what is left over
 * in front of them. Reads 8 bytes before that. */
static uint64_t place_of(const struct nameset *set, const uint64_t *chain,
			 const char *end, size_t len)
{
	size_t rest = len % 8;
	uint64_t word;

	memcpy(&word, end - len / 8 * 8 - 8, sizeof(word));
	word = rest ? le64toh(word) >> (64 - 8 * rest) : 0;
	return place_word(chain[len / 8], word, set->place_key[1]);
}

static void ask_for(const struct nameset *set, uint64_t place)
{
	__builtin_prefetch(filter_of(set, place));
	__builtin_prefetch(bucket_of(set, place));
}

/* Finds the place of every suffix of @host, the shortest first, and asks for
 * its word of the filter; first of all for what the host itself may need. */
static void split(const struct nameset *set, const char *host, size_t len,
		  struct walk *ret_walk)
{
	struct walk *w = ret_walk;
	char buf[8 + HOST_MAX + 8], *text = buf + 8;
	uint64_t chain[HOST_MAX / 8 + 1];
	size_t end = len, words = 0;

	memset(buf, 0, 8);
	memcpy(text, host, len);
	memset(text + len, 0, 8);
	chain_words(set, text + len, len, chain);
	ask_for(set, place_of(set, chain, text + len, len));
	for (w->n = 0; w->n < LABELS_MAX;) {
		struct suffix *s = &w->suffix[w->n++];
		size_t start = end;

		while (start && text[start - 1] != '.')
			start--;
		s->place = place_of(set, chain, text + len, len - start);
		__builtin_prefetch(filter_of(set, s->place));
		words +=
			label_words(text + start, end - start, w->word + words);
		s->start = (uint8_t)start;
		s->words = (uint8_t)words;
		if (!start)
			break;
		end = start - 1;
	}
}

/* Leaves out what the filter knows not to be listed, mostly all, and asks for
 * the buckets of the rest. No branch has to wait for the filter. */
static bool sift(const struct nameset *set, struct walk *w)
{
	bool any = false;

	for (size_t i = 0; i < w->n; i++) {
		struct suffix *s = &w->suffix[i];
		const struct bucket *b = bucket_of(set, s->place);
		const void *word = filter_of(set, s->place);

		s->maybe =
			!(~*filter_of(set, s->place) & filter_bits(s->place));
		__builtin_prefetch(s->maybe ? b : word);
		any |= s->maybe;
	}
	return any;
}

/* What takes longest, while memory answers. */
static void hash_suffixes(const struct nameset *set, struct walk *w)
{
	struct hash h = set->begin;
	size_t word = 0;

	for (size_t i = 0; i < w->n; i++) {
		while (word < w->suffix[i].words)
			hash_word(&h, w->word[word++]);
		w->suffix[i].hash = hash_end(h);
	}
}

static unsigned top_bits(uint64_t hash)
{
	return (unsigned)(hash >> 60);
}

static size_t entry_of(const struct nameset *set, const struct bucket *b,
		       int slot)
{
	return (size_t)(b - set->bucket) * SLOTS + (size_t)slot;
}

/* The slot of this bucket with one of @kinds, or -1. */
static int find_slot(const struct bucket *b, uint64_t hash, unsigned kinds)
{
	uint32_t high = (uint32_t)(hash >> 16);
	uint16_t low = (uint16_t)(hash & ~KINDS);
	int found = -1;

	for (int i = 0; i < SLOTS; i++)
		if (b->high[i] == high && (b->low[i] & ~KINDS) == low &&
		    b->low[i] & kinds)
			found = i;
	return found;
}

/* Finds the entry of this suffix with one of @kinds. */
static bool look_up(const struct nameset *set, const struct suffix *s,
		    unsigned kinds, size_t *ret_entry)
{
	const struct bucket *b = bucket_of(set, s->place);
	unsigned left = b->spilled >> top_bits(s->hash) & 1 ? b->spill : 0;

	for (;;) {
		int slot = find_slot(b, s->hash, kinds);

		if (slot >= 0) {
			*ret_entry = entry_of(set, b, slot);
			return true;
		}
		if (!left--)
			return false;
		if (++b == set->bucket + set->buckets)
			b = set->bucket;
	}
}

bool nameset_find(const struct nameset *set, const char *host,
		  struct nameset_hit *ret_hit)
{
	size_t len = strnlen(host, HOST_MAX + 1);
	struct walk w;

	if (len > HOST_MAX)
		return false;
	split(set, host, len, &w);
	if (!sift(set, &w))
		return false;
	hash_suffixes(set, &w);
	for (size_t n = w.n; n; n--) {
		unsigned kind = n == w.n ? NAMESET_EXACT : NAMESET_BELOW;
		size_t entry;

		if (!w.suffix[n - 1].maybe)
			continue;
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
	b->high[slot] = (uint32_t)(hash >> 16);
	b->low[slot] = (uint16_t)((hash & ~KINDS) | item->kind);
	set->line[entry_of(set, b, slot)] = item->line;
}

/* 0, or -EAGAIN if it takes another key. */
static int insert(struct nameset *set, const struct suffix *s,
		  const struct nameset_item *item)
{
	struct bucket *home = bucket_of(set, s->place), *b = home;

	*filter_of(set, s->place) |= filter_bits(s->place);
	for (uint16_t spill = 0; spill <= SPILL_MAX; spill++) {
		int slot = 0;

		while (slot < SLOTS && b->low[slot] & KINDS)
			slot++;
		if (slot < SLOTS) {
			place_at(set, b, slot, s->hash, item);
			if (spill)
				home->spilled |=
					(uint16_t)(1 << top_bits(s->hash));
			if (home->spill < spill)
				home->spill = spill;
			return 0;
		}
		if (++b == set->bucket + set->buckets)
			b = set->bucket;
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

		split(set, item.name, strlen(item.name), &w);
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

/* An empty table for @count names, and keys: eight to a bucket, 16
 * bits each in the filter. */
static int table_new(struct nameset *set, size_t count)
{
	size_t lines = count / 4 / WORDS + 1, buckets = count / 8 + 1;
	size_t size =
		(lines + buckets) * LINE + buckets * SLOTS * sizeof(uint32_t);
	bool huge = size >= HUGE_PAGE;
	struct hash_key key, place;
	void *block;

	if (hash_key_init(&key) < 0 || hash_key_init(&place) < 0)
		return -EIO;
	free(set->filter);
	set->filter = NULL;
	if (posix_memalign(&block, huge ? HUGE_PAGE : LINE, size) != 0)
		return -ENOMEM;
	set->filter = block;
	if (huge) /* advice: the TLB holds but 8 MB of small pages */
		(void)madvise(set->filter, size, MADV_HUGEPAGE);
	memset(set->filter, 0, size);
	set->filters = lines * WORDS;
	set->bucket = (struct bucket *)(set->filter + set->filters);
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
	free(set->filter);
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
