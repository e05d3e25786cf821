/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_nameset.c - what a list of a million names costs: to load, to hold, and
 * to look up, compared to a list of a thousand.
 *
 * Rounds of both lists take turns, each with questions that were not asked
 * before, in random order. Others that use this machine, or its memory, can
 * only make a round slower, and by multiples: so what counts is the round that
 * nine of ten are slower than, and a broken bound is measured again, later.
 */
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "policy/nameset.h"
#include "tests/policy/list_text.h"

#define SMALL	  1000
#define LARGE	  1000000
#define ROUNDS	  201
#define QUESTIONS 10000
#define TRIES	  8
#define PAUSE_S	  5
#define MIDDLE	  (ROUNDS / 2)
#define LOAD_MAX  2.0 /* seconds */
#define BYTES_MAX 64.0
#define RATIO_MAX 1.5

enum kind { EXACT, PARENT, MISS, KINDS };

static const char *const kind_name[] = { "exact hit", "hit by parent", "miss" };

struct question {
	char host[LIST_NAME_MAX];
};

struct list {
	struct nameset *set;
	uint64_t names;
	double load_s, bytes;
	double ns[KINDS][ROUNDS], sum_ns;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool load(struct list *list, uint64_t names)
{
	struct nameset_report report;
	size_t len;
	AUTO_FREE char *text = list_text(names, &len);
	double start = now_s();

	if (!text || nameset_new(text, len, &list->set, &report) < 0)
		return false;
	list->load_s = now_s() - start;
	list->names = names;
	list->bytes = (double)nameset_memory(list->set) / (double)names;
	return nameset_count(list->set) == names;
}

/* Any name of the list; a name below it; or one of which no part is listed,
 * with as many labels. */
static void ask(char *q, enum kind kind, const struct list *list, uint64_t r)
{
	switch (kind) {
	case EXACT:
		list_name(r % list->names, q);
		break;
	case PARENT:
		memcpy(q, "deep.", 5);
		list_name(r % list->names, q + 5);
		break;
	default:
		list_name(LARGE + r % (64ull * LARGE), q);
	}
}

static bool round_of(struct list *list, enum kind kind, int round,
		     struct question *q)
{
	static uint64_t seed;
	struct nameset_hit hit;
	size_t hits = 0;
	double start;

	for (int i = 0; i < QUESTIONS; i++)
		ask(q[i].host, kind, list, list_random(seed++));
	start = now_s();
	for (int i = 0; i < QUESTIONS; i++)
		hits += nameset_find(list->set, q[i].host, &hit);
	list->ns[kind][round] = (now_s() - start) * 1e9 / QUESTIONS;
	return hits == (kind == MISS ? 0 : QUESTIONS);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double decile(double *ns)
{
	qsort(ns, ROUNDS, sizeof(*ns), compare);
	return ns[ROUNDS / 10];
}

/* Adds up what one look-up of this kind takes. The ratio. */
static double measure(struct list *small, struct list *large, enum kind kind,
		      struct question *q)
{
	for (int round = 0; round < ROUNDS; round++) {
		if (!round_of(small, kind, round, q) ||
		    !round_of(large, kind, round, q)) {
			printf("a wrong answer\n");
			exit(1);
		}
	}
	double few = decile(small->ns[kind]), many = decile(large->ns[kind]);

	printf("%-14s %5.1f ns of %d, %5.1f ns of %d: ratio %.2f "
	       "(of medians %.2f)\n",
	       kind_name[kind], few, SMALL, many, LARGE, many / few,
	       large->ns[kind][MIDDLE] / small->ns[kind][MIDDLE]);
	small->sum_ns += few;
	large->sum_ns += many;
	return many / few;
}

/* The bound is for misses, which is what an honest client's look-ups are, and
 * for as many of each kind. */
static bool measure_again(struct list *small, struct list *large,
			  struct question *q)
{
	for (int i = 0; i < TRIES; i++) {
		double miss, all;

		if (i)
			sleep(PAUSE_S);
		small->sum_ns = large->sum_ns = 0;
		(void)measure(small, large, EXACT, q);
		(void)measure(small, large, PARENT, q);
		miss = measure(small, large, MISS, q);
		all = large->sum_ns / small->sum_ns;
		printf("as many of each: ratio %.2f\n", all);
		if (miss <= RATIO_MAX && all <= RATIO_MAX)
			return true;
	}
	return false;
}

static bool load_again(struct list *list)
{
	for (int i = 0; i < TRIES; i++) {
		nameset_free(list->set);
		list->set = NULL;
		if (!load(list, LARGE))
			return false;
		printf("load %.2f s, %.1f bytes a name\n", list->load_s,
		       list->bytes);
		if (list->load_s <= LOAD_MAX && list->bytes <= BYTES_MAX)
			return true;
	}
	return false;
}

int main(void)
{
	struct list small = { 0 }, large = { 0 };
	AUTO_FREE struct question *q = malloc(QUESTIONS * sizeof(*q));
	bool ok = q && load(&small, SMALL) && load_again(&large);

	ok = ok && measure_again(&small, &large, q);
	nameset_free(small.set);
	nameset_free(large.set);
	printf("%s\n", ok ? "all bounds hold" : "a bound is broken");
	return ok ? 0 : 1;
}
