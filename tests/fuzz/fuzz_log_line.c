/* SPDX-License-Identifier: Apache-2.0
 *
 * A line of a log, which is anybody's, as `sallyport log` shows it: what goes
 * to a terminal is printable, and in columns there are no blanks.
 */
#include "cmd/log_record.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void plain(const char *text, size_t cap, char least)
{
	size_t i = 0;

	for (; i < cap && text[i]; i++)
		must(text[i] >= least && text[i] <= '~');
	must(i < cap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct log_record record;

	if (log_record_parse((const char *)data, size, &record) != LOG_FINE)
		return 0;
	plain(record.where, sizeof(record.where), '!');
	plain(record.rule, sizeof(record.rule), '!');
	plain(record.detail, sizeof(record.detail), ' ');
	must(record.verdict < LOG_VERDICT_COUNT &&
	     record.kind < LOG_KIND_COUNT && record.host < HOSTLOG_EVENT_COUNT);
	must(log_verdict_word(record.verdict) && log_kind_word(record.kind));
	return 0;
}
