/* SPDX-License-Identifier: Apache-2.0
 *
 * counters.c - a file of fixed entries that outlives its writer.
 *
 * There is one writer, a gate, and never two at a time: no locks. A number is
 * one aligned word, so a gate that is killed leaves the old or the new one; and
 * a row is named only after it is whole. What more than one word must agree on
 * has a check.
 *
 * Damage is never taken for a new beginning. A row whose check is wrong names
 * no rule that could be believed, so once there is one, every rule without a
 * row of its own has used up its budget. Rows are made in order: a gap is
 * damage too. A bucket that does not check is empty, and fills up again.
 */
#include "policy/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "policy/ceiling.h"

#define RULE_ROWS 1024

struct row {
	_Atomic uint64_t key; /* rule_key(); stored last */
	uint64_t check;
	uint64_t used[2]; /* by direction */
};

struct bucket {
	uint64_t tokens; /* thousandths */
	uint64_t filled_ms;
	uint64_t check;
};

/* The file's format. */
struct area {
	uint64_t check; /* of the whole: it is ours, and was begun */
	uint64_t session[2];
	struct bucket bucket[RATE_COUNT];
	struct row row[RULE_ROWS];
};

struct counters {
	struct area *area;
	size_t rows;  /* all before are taken, also by damaged ones */
	bool damaged; /* a rule that is not found may have been */
};

/* Only against accidents; never 0. */
static uint64_t mix(uint64_t seed, uint64_t a, uint64_t b)
{
	const uint64_t word[] = { seed, a, b };
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < ARRAY_SIZE(word); i++) {
		hash = (hash ^ word[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	return hash ? hash : 1;
}

static uint64_t area_check(void)
{
	return mix(sizeof(struct area), RULE_ROWS, RATE_COUNT);
}

static uint64_t row_check(size_t i, uint64_t key)
{
	return mix(0x524f57, i, key);
}

static uint64_t bucket_check(enum rate rate, const struct bucket *bucket)
{
	return mix((uint64_t)rate + 1, bucket->tokens, bucket->filled_ms);
}

size_t counters_size(void)
{
	return sizeof(struct area);
}

static bool is_blank(const void *data, size_t len)
{
	const uint8_t *at = data;

	for (size_t i = 0; i < len; i++) {
		if (at[i])
			return false;
	}
	return true;
}

static struct row *find(const struct counters *counters, uint64_t key)
{
	for (size_t i = 0; i < counters->rows; i++) {
		struct row *row = &counters->area->row[i];

		if (row->key == key && row->check == row_check(i, key))
			return row;
	}
	return NULL;
}

static void use_up(uint64_t used[2])
{
	used[UP] = used[DOWN] = UINT64_MAX;
}

/* Never written, or by a gate that died before it could name it: nothing was
 * counted there. */
static bool is_free(const struct row *row)
{
	return !row->key && !row->used[UP] && !row->used[DOWN];
}

static void check_rows(struct counters *counters)
{
	struct row *row = counters->area->row;

	for (size_t i = 0; i < RULE_ROWS; i++) {
		struct row *twin;

		if (is_free(&row[i]))
			continue;
		if (counters->rows < i)
			counters->damaged = true;
		twin = find(counters, row[i].key);
		if (!row[i].key || row[i].check != row_check(i, row[i].key) ||
		    twin)
			counters->damaged = true;
		if (twin)
			use_up(twin->used);
		counters->rows = i + 1;
	}
}

static void begin(struct area *area)
{
	area->check = area_check();
}

static void check_all(struct counters *counters, bool empty)
{
	struct area *area = counters->area;

	if (empty || is_blank(area, sizeof(*area))) {
		begin(area);
		return;
	}
	check_rows(counters);
	if (area->check == area_check())
		return;
	/* Then nothing in it says what was used. */
	use_up(area->session);
	for (size_t i = 0; i < counters->rows; i++)
		use_up(area->row[i].used);
	memset(area->bucket, 0xff, sizeof(area->bucket));
	counters->damaged = true;
}

/* A file nobody wrote to has no pages: to look at it would make them. */
static bool has_no_data(int fd, size_t offset)
{
	return lseek(fd, (off_t)offset, SEEK_DATA) < 0 && errno == ENXIO;
}

int counters_attach(int fd, size_t offset, struct counters **ret_counters)
{
	AUTO_FREE struct counters *counters = calloc(1, sizeof(*counters));
	struct stat st;

	if (!counters)
		return -ENOMEM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (offset > SIZE_MAX / 2 ||
	    st.st_size < (off_t)(offset + sizeof(struct area)))
		return -EINVAL; /* reading past its end would kill us */
	counters->area = mmap(NULL, sizeof(struct area), PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, (off_t)offset);
	if (counters->area == MAP_FAILED)
		return -errno;
	check_all(counters, has_no_data(fd, offset));
	*ret_counters = STEAL(counters);
	return 0;
}

void counters_free(struct counters *counters)
{
	if (!counters)
		return;
	munmap(counters->area, sizeof(struct area));
	free(counters);
}

/* --- rates --------------------------------------------------------------- */

/* A bucket that was never used is full. */
static void refill(struct bucket *bucket, enum rate rate, uint64_t per_second,
		   uint64_t now_ms)
{
	const uint64_t full = per_second * 1000;
	uint64_t passed = 0;

	if (is_blank(bucket, sizeof(*bucket)))
		bucket->tokens = full;
	else if (bucket->check != bucket_check(rate, bucket))
		bucket->tokens = 0;
	else if (now_ms > bucket->filled_ms)
		passed = now_ms - bucket->filled_ms;
	/* A clock that went backwards gives nothing. */
	if (passed >= 1000 || full - passed * per_second < bucket->tokens)
		bucket->tokens = full;
	else
		bucket->tokens += passed * per_second;
	bucket->filled_ms = now_ms;
}

bool counters_take(struct counters *counters, enum rate rate,
		   unsigned per_second, uint64_t now_ms)
{
	struct bucket bucket = counters->area->bucket[rate];
	bool may;

	refill(&bucket, rate, per_second, now_ms);
	may = bucket.tokens >= 1000;
	if (may)
		bucket.tokens -= 1000;
	bucket.check = bucket_check(rate, &bucket);
	counters->area->bucket[rate] = bucket;
	return may;
}

/* --- budgets ------------------------------------------------------------- */

static struct row *find_or_make(struct counters *counters, uint64_t key)
{
	struct row *row = find(counters, key);
	size_t i = counters->rows;

	if (row || i == RULE_ROWS)
		return row;
	row = &counters->area->row[i];
	if (counters->damaged)
		use_up(row->used);
	row->check = row_check(i, key);
	row->key = key;
	counters->rows++;
	return row;
}

static bool has_budget(const struct rule *rule)
{
	return rule && (rule_budget(rule, UP) || rule_budget(rule, DOWN));
}

static int meter_rule(struct counters *counters, const struct rule *rule,
		      unsigned which, struct meters *meters)
{
	struct row *row;

	if (!has_budget(rule))
		return 0;
	row = find_or_make(counters, rule_key(rule));
	if (!row)
		return -ENOSPC;
	for (unsigned d = 0; d < 2; d++) {
		struct meter *at = &meters->at[d][which];

		at->used = &row->used[d];
		at->limit = rule_budget(rule, (enum direction)d);
	}
	return 0;
}

int counters_meters(struct counters *counters, const struct limits *limits,
		    const struct rule *rule, struct meters *ret_meters)
{
	const struct rule_sides of = rule_sides(rule);
	struct meters meters = { 0 };

	for (unsigned d = 0; d < 2; d++) {
		struct meter *at = &meters.at[d][METER_SESSION];

		at->used = &counters->area->session[d];
		at->limit = limits->budget[d];
	}
	if (meter_rule(counters, of.user, METER_RULE, &meters) < 0 ||
	    meter_rule(counters, of.ceiling, METER_CEILING, &meters) < 0)
		return -ENOSPC;
	*ret_meters = meters;
	return 0;
}
