/* SPDX-License-Identifier: Apache-2.0
 *
 * attacks.h - what `sallyport prove` found, as receipts and statements have it.
 */
#ifndef AUDIT_ATTACKS_H
#define AUDIT_ATTACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

enum attack_result { ATTACK_HELD, ATTACK_GOT_OUT, ATTACK_SKIPPED };
#define ATTACK_RESULTS	  3
#define ATTACKS_MAX	  128
#define ATTACK_NAME_MAX	  24
#define ATTACKS_USERS_MAX 4

struct attacks {
	uint32_t n; /* 0: there were none */
	uint32_t duration_ms;
	/* Of a session that was there already: who said so, and how often; 0 of
	 * a session's own, which its warden saw. */
	uint32_t reports, users;
	uint32_t user[ATTACKS_USERS_MAX]; /* uids */
	struct attack {
		char name[ATTACK_NAME_MAX]; /* small letters, digits, '-' */
		uint8_t result;		    /* enum attack_result */
	} at[ATTACKS_MAX];
};

/* "held", "got_out", "skipped". */
const char *attack_word(enum attack_result result);
/* The way back; false if @word is none of them. */
bool attack_result(const char *word, enum attack_result *ret);
/* How many there are of each. */
void attacks_count(const struct attacks *attacks,
		   unsigned ret_count[ATTACK_RESULTS]);

/* One more: false if @name is no name of an attack, or was there, or @word is
 * no result, or there is no room. */
bool attacks_take(struct attacks *attacks, const char *name, const char *word);

/* Is that what it may be, whoever sent it? */
bool attacks_ok(const struct attacks *attacks);

/* One more report: what got out once stays so, and what was held once was not
 * skipped. So nobody hides what another one found. Those of either that there
 * is no room for are left out. */
void attacks_add(struct attacks *attacks, const struct attacks *report);

/* As the member "attacks" of what is open in @j; none of none. */
void attacks_put(struct json *j, const struct attacks *attacks);

#endif
