/* SPDX-License-Identifier: Apache-2.0
 *
 * attacks.c - words, counts, and what several reports come to.
 */
#include "audit/attacks.h"

#include <string.h>

#include "base/cleanup.h"

static const char *const words[ATTACK_RESULTS] = {
	[ATTACK_HELD] = "held",
	[ATTACK_GOT_OUT] = "got_out",
	[ATTACK_SKIPPED] = "skipped",
};

const char *attack_word(enum attack_result result)
{
	return words[result];
}

bool attack_result(const char *word, enum attack_result *ret)
{
	for (unsigned i = 0; word && i < ATTACK_RESULTS; i++) {
		if (strcmp(words[i], word) != 0)
			continue;
		*ret = (enum attack_result)i;
		return true;
	}
	return false;
}

void attacks_count(const struct attacks *attacks,
		   unsigned ret_count[ATTACK_RESULTS])
{
	memset(ret_count, 0, ATTACK_RESULTS * sizeof(*ret_count));
	for (size_t i = 0; i < attacks->n; i++)
		ret_count[attacks->at[i].result]++;
}

static bool is_name(const char *name)
{
	const size_t len = strnlen(name, ATTACK_NAME_MAX);

	return len < ATTACK_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

bool attacks_take(struct attacks *attacks, const char *name, const char *word)
{
	enum attack_result result;

	if (attacks->n == ATTACKS_MAX || !*name || !is_name(name) ||
	    !attack_result(word, &result))
		return false;
	for (size_t i = 0; i < attacks->n; i++)
		if (strcmp(attacks->at[i].name, name) == 0)
			return false;
	memcpy(attacks->at[attacks->n].name, name, strlen(name) + 1);
	attacks->at[attacks->n++].result = (uint8_t)result;
	return true;
}

bool attacks_ok(const struct attacks *attacks)
{
	if (attacks->n > ATTACKS_MAX || attacks->users > ATTACKS_USERS_MAX)
		return false;
	for (size_t i = 0; i < attacks->n; i++)
		if (!is_name(attacks->at[i].name) ||
		    attacks->at[i].result >= ATTACK_RESULTS)
			return false;
	return true;
}

/* --- reports ------------------------------------------------------------- */

static uint8_t worse(uint8_t a, uint8_t b)
{
	if (a == ATTACK_GOT_OUT || b == ATTACK_GOT_OUT)
		return ATTACK_GOT_OUT;
	return a == ATTACK_HELD || b == ATTACK_HELD ? ATTACK_HELD
						    : ATTACK_SKIPPED;
}

static void add_one(struct attacks *attacks, const struct attack *attack)
{
	for (size_t i = 0; i < attacks->n; i++) {
		struct attack *own = &attacks->at[i];

		if (strcmp(own->name, attack->name) != 0)
			continue;
		own->result = worse(own->result, attack->result);
		return;
	}
	if (attacks->n < ATTACKS_MAX)
		attacks->at[attacks->n++] = *attack;
}

static void add_user(struct attacks *attacks, uint32_t user)
{
	for (size_t i = 0; i < attacks->users; i++)
		if (attacks->user[i] == user)
			return;
	if (attacks->users < ATTACKS_USERS_MAX)
		attacks->user[attacks->users++] = user;
}

void attacks_add(struct attacks *attacks, const struct attacks *report)
{
	const uint64_t ms =
		(uint64_t)attacks->duration_ms + report->duration_ms;
	const uint64_t reports = (uint64_t)attacks->reports + report->reports;

	attacks->duration_ms = ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
	attacks->reports =
		reports > UINT32_MAX ? UINT32_MAX : (uint32_t)reports;
	for (size_t i = 0; i < report->n; i++)
		add_one(attacks, &report->at[i]);
	for (size_t i = 0; i < report->users; i++)
		add_user(attacks, report->user[i]);
}

/* --- JSON ---------------------------------------------------------------- */

static void put_reports(struct json *j, const struct attacks *attacks)
{
	if (!attacks->reports)
		return;
	json_uint(j, "reports", attacks->reports);
	json_open(j, "reported_by", '[');
	for (size_t i = 0; i < attacks->users; i++)
		json_uint(j, NULL, attacks->user[i]);
	json_close(j, ']');
}

void attacks_put(struct json *j, const struct attacks *attacks)
{
	unsigned count[ATTACK_RESULTS];

	if (!attacks || !attacks->n)
		return;
	attacks_count(attacks, count);
	json_open(j, "attacks", '{');
	for (unsigned i = 0; i < ATTACK_RESULTS; i++)
		json_uint(j, words[i], count[i]);
	json_uint(j, "duration_ms", attacks->duration_ms);
	put_reports(j, attacks);
	json_open(j, "results", '{');
	for (size_t i = 0; i < attacks->n; i++)
		json_text(j, attacks->at[i].name, words[attacks->at[i].result]);
	json_close(j, '}');
	json_close(j, '}');
}
