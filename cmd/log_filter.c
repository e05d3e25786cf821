/* SPDX-License-Identifier: Apache-2.0
 *
 * log_filter.c - what was asked for is checked before a log is read: a word
 * that no record can have would show nothing, as if nothing had happened.
 */
#include "cmd/log_filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/values.h"
#include "policy/words.h"

_Static_assert(REASON_COUNT <= 64, "a bit each");

/* The place of @text in @words, or -1 with what is wrong in @buf. */
static int find_word(const char *text, const char *const words[], size_t n,
		     const char *what, char buf[LOG_WHY_MAX])
{
	char shown[WORD_SHOWN_MAX], all[LOG_WHY_MAX / 2];
	const char *guess;

	for (size_t i = 0; i < n; i++)
		if (strcmp(text, words[i]) == 0)
			return (int)i;
	word_show(text, strlen(text), shown);
	guess = word_guess(text, words, n);
	if (guess)
		snprintf(buf, LOG_WHY_MAX, "unknown %s %s, did you mean '%s'?",
			 what, shown, guess);
	else
		snprintf(buf, LOG_WHY_MAX, "unknown %s %s; there are %s", what,
			 shown, word_join(words, n, all, sizeof(all)));
	return -1;
}

const char *log_filter_verdict(struct log_filter *filter, const char *text,
			       char buf[LOG_WHY_MAX])
{
	const char *words[LOG_VERDICT_COUNT];
	int i;

	for (i = 0; i < LOG_VERDICT_COUNT; i++)
		words[i] = log_verdict_word((enum log_verdict)i);
	i = find_word(text, words, ARRAY_SIZE(words), "verdict", buf);
	if (i < 0)
		return buf;
	filter->verdicts |= 1u << i;
	return NULL;
}

const char *log_filter_kind(struct log_filter *filter, const char *text,
			    char buf[LOG_WHY_MAX])
{
	const char *words[LOG_KIND_COUNT];
	int i;

	for (i = 0; i < LOG_KIND_COUNT; i++)
		words[i] = log_kind_word((enum log_kind)i);
	i = find_word(text, words, ARRAY_SIZE(words), "kind", buf);
	if (i < 0)
		return buf;
	filter->kinds |= 1u << i;
	return NULL;
}

const char *log_filter_reason(struct log_filter *filter, const char *text,
			      char buf[LOG_WHY_MAX])
{
	const char *words[REASON_COUNT];
	int i;

	for (i = 0; i < REASON_COUNT; i++)
		words[i] = reason_word((enum reason)i);
	i = find_word(text, words, ARRAY_SIZE(words), "reason", buf);
	if (i < 0)
		return buf;
	filter->reasons |= UINT64_C(1) << i;
	return NULL;
}

const char *log_filter_host(struct log_filter *filter, const char *text,
			    char buf[LOG_WHY_MAX])
{
	char shown[WORD_SHOWN_MAX];

	filter->has_host = true;
	filter->below = strncmp(text, "*.", 2) == 0;
	filter->host[0] = '\0';
	if (ip_parse(text, &filter->address))
		return NULL;
	filter->address.len = 0;
	if (host_from_policy(filter->below ? text + 2 : text, filter->host))
		return NULL;
	snprintf(buf, LOG_WHY_MAX, "no host, *.HOST or address: %s",
		 word_show(text, strlen(text), shown));
	return buf;
}

bool log_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || value > max)
		return false;
	*ret = value;
	return true;
}

bool log_moment(const char *text, int64_t now_s, uint64_t *ret_ms)
{
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	size_t digits = strspn(text, "0123456789");
	uint64_t value, now = now_s > 0 ? (uint64_t)now_s : 0;
	char number[10];
	int64_t at;

	if (!value_time(text, &at)) {
		*ret_ms = (uint64_t)at * 1000;
		return true;
	}
	if (!digits || digits >= sizeof(number) || !text[digits] ||
	    (text[digits + 1] && strcmp(text + digits + 1, " ago") != 0))
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)digits, text);
	value = strtoull(number, NULL, 10);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (text[digits] != units[i].unit)
			continue;
		value *= units[i].seconds;
		*ret_ms = value < now ? (now - value) * 1000 : 0;
		return true;
	}
	return false;
}

/* --- does it fit? -------------------------------------------------------- */

static bool match_host(const struct log_filter *filter,
		       const struct log_record *record)
{
	const char *host = record->seen.host;
	size_t len = strlen(host), end = strlen(filter->host);

	if (filter->address.len)
		return ip_equal(&filter->address, &record->seen.address);
	if (!filter->below)
		return strcmp(host, filter->host) == 0;
	return len > end + 1 && host[len - end - 1] == '.' &&
	       strcmp(host + len - end, filter->host) == 0;
}

static bool match_reason(const struct log_filter *filter,
			 const struct log_record *record)
{
	const struct verdict *verdict = &record->seen.verdict;

	if (!record->judged)
		return false;
	if (filter->reasons >> verdict->reason & 1)
		return true;
	return verdict->reason == REASON_OBSERVE &&
	       filter->reasons >> verdict->observed & 1;
}

bool log_filter_match(const struct log_filter *filter,
		      const struct log_record *record)
{
	const struct observation *seen = &record->seen;

	if (filter->verdicts && !(filter->verdicts >> record->verdict & 1))
		return false;
	if (filter->kinds && !(filter->kinds >> record->kind & 1))
		return false;
	if (filter->has_sandbox && filter->sandbox != seen->sandbox)
		return false;
	if (filter->has_flow && filter->flow != record->flow)
		return false;
	if (seen->time_ms < filter->since_ms ||
	    (filter->until_ms && seen->time_ms >= filter->until_ms))
		return false;
	if (filter->reasons && !match_reason(filter, record))
		return false;
	return !filter->has_host || match_host(filter, record);
}
