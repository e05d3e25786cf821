/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_report.c - a report, and its two ways.
 */
#include "cmd/prove_report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/control.h"
#include "cmd/prove.h"

/* A ledger that syncs each record takes its time. */
#define REPORT_MS 15000

_Static_assert(PROVE_REPORT_MAX <= CONTROL_REQUEST_MAX, "it is one request");

/* --- what is said -------------------------------------------------------- */

static bool is_known(const char *id)
{
	const struct prove_attack *attack;
	size_t i = 0;

	while ((attack = prove_attack(i)) && strcmp(attack->id, id) != 0)
		i++;
	/* The one behind the last is what the witnesses say. */
	return attack || strcmp(prove_judged_attack(i)->id, id) == 0;
}

bool prove_report_known(const struct attacks *attacks)
{
	for (size_t i = 0; i < attacks->n; i++)
		if (!is_known(attacks->at[i].name))
			return false;
	return true;
}

bool prove_report_format(const struct attacks *attacks,
			 char buf[PROVE_REPORT_MAX])
{
	int len = snprintf(buf, PROVE_REPORT_MAX, "attacks\nduration_ms %u\n",
			   attacks->duration_ms);

	for (size_t i = 0; i < attacks->n; i++) {
		const size_t room = PROVE_REPORT_MAX - (size_t)len;
		int n = snprintf(
			buf + len, room, "%s %s\n",
			attack_word((enum attack_result)attacks->at[i].result),
			attacks->at[i].name);

		if (n < 0 || (size_t)n >= room)
			return false;
		len += n;
	}
	return true;
}

bool prove_report_parse(const char *request, struct attacks *ret)
{
	char word[16], id[ATTACK_NAME_MAX];
	const char *line = strchr(request, '\n');
	int used = 0;

	*ret = (struct attacks){ 0 };
	if (strncmp(request, "attacks\n", 8) != 0 || !line ||
	    sscanf(line, " duration_ms %9u%n", &ret->duration_ms, &used) != 1)
		return false;
	for (line += used; *line == '\n' && line[1]; line += used)
		if (sscanf(line, "\n%15s %23s%n", word, id, &used) != 2 ||
		    !attacks_take(ret, id, word))
			return false;
	return ret->n && strcmp(line, "\n") == 0 && prove_report_known(ret);
}

/* --- to a session of this user's, or the guard's -------------------------- */

static int ask_session(const char *dir, const struct attacks *attacks,
		       char *reterr, size_t cap)
{
	char request[PROVE_REPORT_MAX], reply[CONTROL_REPLY_MAX];
	const char *why;
	int err;

	snprintf(reterr, cap, "the report is too long");
	if (!prove_report_format(attacks, request))
		return -EMSGSIZE;
	err = control_ask(dir, request, REPORT_MS, reply);
	if (err) {
		snprintf(reterr, cap, "it does not answer: %s", strerror(-err));
		return err;
	}
	if (strncmp(reply, "ok\n", 3) == 0)
		return 0;
	why = reply + strcspn(reply, "\n");
	snprintf(reterr, cap, "%.*s", (int)strcspn(why + !!*why, "\n"),
		 why + !!*why);
	return -EPROTO;
}

static void told(struct prove *prove, const char *whom, int err,
		 const char *why)
{
	if (err)
		log_warn("the receipt of %s will not tell of the attacks: %s",
			 whom, why);
	else
		snprintf(prove->reported, sizeof(prove->reported), "%s", whom);
}

void prove_tell_session(struct prove *prove, const char *dir)
{
	struct attacks attacks;
	char why[512];
	int err;

	prove_attacks(&prove->verdict, &attacks);
	err = ask_session(dir, &attacks, why, sizeof(why));
	told(prove, dir, err, why);
}

void prove_tell_log(struct prove *prove)
{
	char dir[sizeof(prove->log)];
	char *slash;

	memcpy(dir, prove->log, sizeof(dir));
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	prove_tell_session(prove, slash ? dir : ".");
}

/* --- to the daemon -------------------------------------------------------- */

static json_t *body_of(const struct attacks *attacks)
{
	json_t *results = json_object();

	for (size_t i = 0; i < attacks->n; i++) {
		const struct attack *at = &attacks->at[i];
		const char *word = attack_word((enum attack_result)at->result);

		if (json_object_set_new(results, at->name, json_string(word))) {
			json_decref(results);
			return NULL;
		}
	}
	return json_pack("{s:I,s:o}", "duration_ms",
			 (json_int_t)attacks->duration_ms, "results", results);
}

static int ask_daemon(const char *socket, const char *name, const json_t *body,
		      char *reterr, size_t cap)
{
	const struct client_call call = { .socket = socket,
					  .method = "POST",
					  .name = name,
					  .path = "/attacks",
					  .body = body,
					  .patient = true };
	int status = 0;
	json_t *answer = client_try_json(&call, &status, reterr, cap);

	if (answer && status != 200)
		snprintf(reterr, cap, "%s", client_text(answer, "error"));
	json_decref(answer);
	return answer && status == 200 ? 0 : -EPROTO;
}

void prove_tell_daemon(struct prove *prove, const char *socket,
		       const char *name)
{
	struct attacks attacks;
	json_t *body;
	char why[512] = "out of memory";

	prove_attacks(&prove->verdict, &attacks);
	body = body_of(&attacks);
	told(prove, name,
	     body ? ask_daemon(socket, name, body, why, sizeof(why)) : -ENOMEM,
	     why);
	json_decref(body);
}
