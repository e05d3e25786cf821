/* SPDX-License-Identifier: Apache-2.0
 *
 * report_timeline.c - a session may last a second or a year, and nobody knows
 * before its last line: when the bars do not reach, each few become one. Widths
 * are of the kind that people read off a clock.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cmd/report.h"

#define S   1000
#define MIN (60 * S)
#define H   (60 * MIN)

/* Each is a multiple of the one before; beyond, they double. */
static const uint64_t widths[] = {
	S / 10,	  S / 2,    S, 5 * S, 10 * S, 30 * S, MIN,    5 * MIN,
	10 * MIN, 30 * MIN, H, 3 * H, 6 * H,  12 * H, 24 * H, 7 * 24 * H,
};

static uint64_t wider(uint64_t width)
{
	for (size_t i = 0; i + 1 < ARRAY_SIZE(widths); i++)
		if (widths[i] == width)
			return widths[i + 1];
	return 2 * width;
}

static void sum(struct report_bar *to, const struct report_bar *bar)
{
	to->allowed += bar->allowed;
	to->observed += bar->observed;
	to->refused += bar->refused;
}

static void widen(struct report_timeline *t)
{
	uint64_t width = wider(t->width_ms), times = width / t->width_ms;
	struct report_bar bar[REPORT_BARS] = { { .allowed = 0 } };
	uint64_t start = t->start / times, last = 0;

	for (size_t i = 0; i < t->count; i++) {
		last = (t->start + i) / times - start;
		sum(&bar[last], &t->bar[i]);
	}
	memcpy(t->bar, bar, sizeof(bar));
	t->width_ms = width;
	t->start = start;
	t->count = t->count ? (size_t)last + 1 : 0;
}

/* Is there a bar at @at, or can there be one? */
static bool reaches(const struct report_timeline *t, uint64_t at)
{
	uint64_t end = t->start + t->count;

	if (at >= t->start)
		return at - t->start < REPORT_BARS;
	return end - at <= REPORT_BARS;
}

void report_bar_add(struct report_timeline *t, uint64_t time_ms,
		    const struct report_bar *bar)
{
	uint64_t at;

	if (!t->width_ms)
		t->width_ms = widths[0];
	if (!t->count)
		t->start = time_ms / t->width_ms;
	while (at = time_ms / t->width_ms, !reaches(t, at))
		widen(t);
	if (at < t->start) {
		size_t by = (size_t)(t->start - at);

		memmove(&t->bar[by], t->bar, t->count * sizeof(t->bar[0]));
		memset(t->bar, 0, by * sizeof(t->bar[0]));
		t->start = at;
		t->count += by;
	}
	if (at - t->start >= t->count)
		t->count = (size_t)(at - t->start) + 1;
	sum(&t->bar[at - t->start], bar);
}
