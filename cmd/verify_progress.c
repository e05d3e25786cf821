/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_progress.c - how far a long verification is, on one line of a terminal
 * that is gone afterwards.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/verify.h"

#define BAR_LEN	 30
#define FIRST_MS 300 /* what is done by then needs no bar */
#define EVERY_MS 100

void verify_progress_begin(struct verify_progress *progress, bool quiet)
{
	*progress = (struct verify_progress){ .next_ms = INT64_MAX };
	if (!quiet && isatty(STDERR_FILENO))
		progress->next_ms = now_ms() + FIRST_MS;
}

bool verify_progress_on(void *arg, uint64_t bytes, uint64_t total)
{
	struct verify_progress *progress = arg;
	unsigned percent, filled;

	if (progress->next_ms == INT64_MAX || now_ms() < progress->next_ms)
		return true;
	progress->next_ms = now_ms() + EVERY_MS;
	percent = total ? (unsigned)(bytes / (total / 100 + 1)) : 0;
	if (percent > 100)
		percent = 100;
	filled = percent * BAR_LEN / 100;
	fprintf(stderr, "\r\033[Kverifying [%.*s%*s] %3u %% of %" PRIu64 " MB",
		(int)filled, "##############################",
		(int)(BAR_LEN - filled), "", percent, total / 1000000);
	fflush(stderr);
	progress->shown = true;
	return true;
}

void verify_progress_end(struct verify_progress *progress)
{
	if (!progress->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->shown = false;
}
