/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_print.c - the table of attacks, and the same as JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cmd/print.h"
#include "cmd/prove.h"

static const enum tone tones[ATTACK_RESULTS] = { [ATTACK_HELD] = TONE_GOOD,
						 [ATTACK_GOT_OUT] = TONE_BAD,
						 [ATTACK_SKIPPED] =
							 TONE_FAINT };
static const char *const words[ATTACK_RESULTS] = { [ATTACK_HELD] = "held",
						   [ATTACK_GOT_OUT] = "GOT OUT",
						   [ATTACK_SKIPPED] =
							   "skipped" };

static void print_row(FILE *out, size_t i, const struct prove_judged *j)
{
	const struct prove_attack *attack = prove_judged_attack(i);

	print_text(out, tones[j->result], "%-8s", words[j->result]);
	print_text(out, TONE_PLAIN, "%5u.%u ms  %-4s %-17s %-35s %s%s\n",
		   j->us / 1000, j->us / 100 % 10, attack->threat, attack->id,
		   attack->title, j->detail, j->recorded ? "; recorded" : "");
}

void prove_print(FILE *out, const struct prove_verdict *v,
		 const struct prove_about *about, bool quiet)
{
	for (size_t i = 0; i < v->n; i++)
		if (!quiet || v->at[i].result == ATTACK_GOT_OUT)
			print_row(out, i, &v->at[i]);
	print_text(out, v->count[ATTACK_GOT_OUT] ? TONE_BAD : TONE_PLAIN,
		   "%s: %u attacks held, %u got out, %u skipped, in %u.%u s\n",
		   about->what, v->count[ATTACK_HELD], v->count[ATTACK_GOT_OUT],
		   v->count[ATTACK_SKIPPED], v->duration_ms / 1000,
		   v->duration_ms / 100 % 10);
	if (*about->receipt)
		print_text(out, TONE_PLAIN, "receipt: %s\n", about->receipt);
	if (*about->reported)
		print_text(out, TONE_PLAIN,
			   "reported to %s, whose receipt will tell of it\n",
			   about->reported);
	if (!*about->log)
		print_text(out, TONE_WARNING,
			   "no log was looked at: what was refused counts as "
			   "held\n");
	fflush(out);
}

void prove_print_json(FILE *out, const struct prove_verdict *v,
		      const struct prove_about *about)
{
	/* Each text may become six times as long. */
	const size_t cap = (v->n + 8) * 8 * (PROVE_DETAIL_MAX + 200) +
			   6 * (strlen(about->log) + strlen(about->receipt) +
				strlen(about->reported));
	AUTO_FREE char *buf = malloc(cap);
	struct json j = json_of(buf, buf ? cap : 0);

	json_open(&j, NULL, '{');
	json_text(&j, "what", about->what);
	json_text(&j, "log", about->log);
	json_text(&j, "receipt", about->receipt);
	json_text(&j, "reported", about->reported);
	for (unsigned i = 0; i < ATTACK_RESULTS; i++)
		json_uint(&j, attack_word((enum attack_result)i), v->count[i]);
	json_uint(&j, "duration_ms", v->duration_ms);
	json_open(&j, "attacks", '[');
	for (size_t i = 0; i < v->n; i++) {
		const struct prove_attack *attack = prove_judged_attack(i);

		json_open(&j, NULL, '{');
		json_text(&j, "id", attack->id);
		json_text(&j, "threat", attack->threat);
		json_text(&j, "title", attack->title);
		json_text(&j, "result", attack_word(v->at[i].result));
		json_bool(&j, "recorded", v->at[i].recorded);
		json_text(&j, "detail", v->at[i].detail);
		json_uint(&j, "us", v->at[i].us);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	fprintf(out, "%.*s\n", j.full ? 2 : (int)j.len, j.full ? "{}" : buf);
	fflush(out);
}
