/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_judge.c - what the attacks say they saw, against what the log says.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cmd/log_read.h"
#include "cmd/prove.h"
#include "policy/policy.h"

#define REFUSALS_MAX 20000
#define WAIT_MS	     2000
#define STEP_MS	     50

/* A record of something that was refused. It speaks for one attack. */
struct refusal {
	struct ip ip;
	uint16_t port;
	bool used;
	char host[HOST_MAX + 1];
	char reason[24];
};

struct refusals {
	struct refusal *at;
	size_t n, cap;
	uint64_t since_ms;
};

/* --- reading -------------------------------------------------------------- */

static const char *text_in(const json_t *object, const char *a, const char *b)
{
	const char *s = json_string_value(
		json_object_get(json_object_get(object, a), b));

	return s ? s : "";
}

static struct refusal *room(struct refusals *all)
{
	if (all->n == REFUSALS_MAX)
		return NULL;
	if (all->n == all->cap) {
		size_t cap = all->cap ? 2 * all->cap : 256;
		struct refusal *at = reallocarray(all->at, cap, sizeof(*at));

		if (!at)
			return NULL;
		all->at = at;
		all->cap = cap;
	}
	return &all->at[all->n++];
}

static void take(struct refusals *all, const json_t *line)
{
	const char *host = text_in(line, "query", "hostname");
	const char *reason =
		json_string_value(json_object_get(line, "status_code"));
	struct refusal *r;

	if (json_integer_value(json_object_get(line, "action_id")) != 2 ||
	    json_integer_value(json_object_get(line, "time")) <
		    (json_int_t)all->since_ms)
		return;
	r = room(all);
	if (!r)
		return;
	*r = (struct refusal){ 0 };
	if (!*host)
		host = text_in(line, "dst_endpoint", "hostname");
	snprintf(r->host, sizeof(r->host), "%s", host);
	snprintf(r->reason, sizeof(r->reason), "%s", reason ? reason : "");
	ip_parse(text_in(line, "dst_endpoint", "ip"), &r->ip);
	r->port = (uint16_t)json_integer_value(
		json_object_get(json_object_get(line, "dst_endpoint"), "port"));
}

static void on_line(void *arg, const char *line, size_t len, uint64_t number,
		    enum log_fault fault)
{
	json_t *json;

	(void)number;
	if (fault != LOG_FINE)
		return;
	json = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	if (json)
		take(arg, json);
	json_decref(json);
}

static bool go_on(void *arg)
{
	(void)arg;
	return true;
}

static void other_part(void *arg, const char *path)
{
	(void)arg;
	(void)path;
}

static void read_refusals(struct refusals *all, const char *log)
{
	const struct log_sink sink = {
		.line = on_line, .part = other_part, .rest = go_on, .arg = all
	};

	all->n = 0;
	(void)log_read_parts(log, &sink);
}

/* --- finding -------------------------------------------------------------- */

/* What came by an IPv6 socket is an IPv4 packet; a request may still be of
 * either. */
static bool same_ip(const struct ip *a, const struct ip *b)
{
	struct ip inner = ip_embedded(b);

	return ip_equal(a, b) || ip_equal(a, &inner);
}

/* Where a rule lets ECH be, it is the outer name that is wrong. */
static bool same_reason(const char *found, const char *wanted)
{
	return strcmp(found, wanted) == 0 ||
	       (strcmp(wanted, "ech") == 0 &&
		strcmp(found, "name_mismatch") == 0);
}

static bool fits(const struct refusal *r, const struct prove_trace *trace)
{
	return !r->used && (!trace->ip.len || same_ip(&r->ip, &trace->ip)) &&
	       (!trace->port || r->port == trace->port) &&
	       (!*trace->host || strcasecmp(r->host, trace->host) == 0) &&
	       (!*trace->reason || same_reason(r->reason, trace->reason));
}

static bool find(struct refusals *all, const struct prove_trace *trace)
{
	for (size_t i = 0; i < all->n; i++) {
		if (!fits(&all->at[i], trace))
			continue;
		all->at[i].used = true;
		return true;
	}
	return false;
}

static bool wants_record(const struct prove_result *r)
{
	return r->trace.set &&
	       (r->seen == PROVE_REFUSED || r->seen == PROVE_SILENT);
}

/* What our own kernel refused may have been refused by the guard's rules. */
static bool may_have_record(const struct prove_result *r)
{
	return wants_record(r) || (r->trace.set && r->seen == PROVE_UNABLE);
}

/* Those that say most come first, so that none takes another's. */
static unsigned rank(const struct prove_trace *trace)
{
	if (*trace->host || (trace->ip.len && trace->port))
		return 0;
	return trace->port ? 1 : trace->ip.len ? 2 : 3;
}

/* How many are missing. */
static size_t match(const struct prove_sheet *sheet, size_t n,
		    struct refusals *all, bool found[PROVE_MAX])
{
	size_t missing = 0;

	for (unsigned pass = 0; pass <= 3; pass++)
		for (size_t i = 0; i < n; i++) {
			const struct prove_result *r = &sheet->result[i];

			if (!may_have_record(r) || rank(&r->trace) != pass)
				continue;
			found[i] = find(all, &r->trace);
			missing += !found[i] && wants_record(r);
		}
	return missing;
}

static void search(const struct prove_sheet *sheet, size_t n,
		   const struct prove_evidence *evidence, bool found[PROVE_MAX])
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000000 };
	struct refusals all = { .since_ms = evidence->since_ms };

	for (unsigned ms = 0; ms < WAIT_MS; ms += STEP_MS) {
		read_refusals(&all, evidence->log);
		if (!match(sheet, n, &all, found))
			break;
		nanosleep(&step, NULL);
	}
	free(all.at);
}

/* --- judging -------------------------------------------------------------- */

/* What the policy allows is no attack. */
static bool is_allowed(const struct policy *policy,
		       const struct prove_trace *trace)
{
	struct question question = { .port = trace->port,
				     .door = trace->port ? DOOR_TRANSPARENT
							 : DOOR_DNS,
				     .now_s = time(NULL) };

	if (!policy || !trace->set)
		return false;
	if (*trace->reason)
		return policy_observes(policy);
	if (*trace->host)
		question.host = trace->host;
	else
		question.address = ip_embedded(&trace->ip);
	if (!question.host && (!question.address.len || !question.port))
		return false;
	return policy_decide(policy, &question).allow;
}

static void say(struct prove_judged *j, enum attack_result result,
		const char *more, const char *detail)
{
	j->result = result;
	snprintf(j->detail, sizeof(j->detail), "%s%s%s", detail,
		 *detail && *more ? "; " : "", more);
}

static void judge_one(const struct prove_result *r, bool found,
		      const struct prove_evidence *evidence,
		      struct prove_judged *j)
{
	const bool wanted = evidence->log && wants_record(r);

	*j = (struct prove_judged){ .recorded = found };
	if (is_allowed(evidence->policy, &r->trace) && !found)
		say(j, ATTACK_SKIPPED, "the policy allows it", "");
	else if (r->seen == PROVE_OUT)
		say(j, ATTACK_GOT_OUT, "", r->detail);
	else if (r->seen == PROVE_UNABLE)
		say(j, ATTACK_HELD, "", r->detail);
	else if (r->seen == PROVE_SKIPPED)
		say(j, ATTACK_SKIPPED, "", r->detail);
	else if (r->seen == PROVE_NOTHING || r->seen >= PROVE_SEEN_COUNT)
		say(j, ATTACK_SKIPPED, "it was not tried", "");
	else if (wanted && !found)
		say(j, ATTACK_GOT_OUT,
		    r->seen == PROVE_SILENT
			    ? "the gate has not seen it: it went another way"
			    : "the gate has not seen it: somebody else "
			      "answered",
		    r->detail);
	else if (r->seen == PROVE_SILENT && !wanted)
		say(j, ATTACK_SKIPPED,
		    "without a log nobody can say where it went", r->detail);
	else
		say(j, ATTACK_HELD, "", r->detail);
}

/* The sheet's texts, ended, and plain. */
static void clean(struct prove_sheet *sheet)
{
	for (size_t i = 0; i < PROVE_MAX; i++) {
		struct prove_result *r = &sheet->result[i];

		r->detail[sizeof(r->detail) - 1] = '\0';
		r->trace.host[sizeof(r->trace.host) - 1] = '\0';
		r->trace.reason[sizeof(r->trace.reason) - 1] = '\0';
		if (r->trace.ip.len != 4 && r->trace.ip.len != 16)
			r->trace.ip = (struct ip){ 0 };
		for (char *c = r->detail; *c; c++)
			if (*c < ' ' || *c > '~')
				*c = '?';
	}
}

static void add_witness(const struct prove_evidence *evidence,
			struct prove_verdict *ret)
{
	struct prove_judged *j = &ret->at[ret->n++];

	*j = (struct prove_judged){ 0 };
	if (evidence->heard)
		say(j, ATTACK_GOT_OUT, "", evidence->heard);
	else
		say(j, ATTACK_HELD, "", "nothing arrived at it");
}

void prove_judge(const struct prove_sheet *sheet,
		 const struct prove_evidence *evidence,
		 struct prove_verdict *ret)
{
	static struct prove_sheet copy;
	bool found[PROVE_MAX] = { false };

	copy = *sheet;
	clean(&copy);
	memset(ret, 0, sizeof(*ret));
	while (ret->n < PROVE_MAX - 1 && prove_attack(ret->n))
		ret->n++;
	if (evidence->log)
		search(&copy, ret->n, evidence, found);
	for (size_t i = 0; i < ret->n; i++) {
		judge_one(&copy.result[i], found[i], evidence, &ret->at[i]);
		ret->at[i].us = copy.result[i].us;
	}
	add_witness(evidence, ret);
	for (size_t i = 0; i < ret->n; i++) {
		ret->count[ret->at[i].result]++;
		ret->duration_ms += ret->at[i].us / 1000;
	}
}

const struct prove_attack *prove_judged_attack(size_t i)
{
	static const struct prove_attack witness = {
		.id = "witness", .threat = "P1", .title = "listeners outside"
	};
	const struct prove_attack *attack = prove_attack(i);

	return attack ? attack : &witness;
}

void prove_attacks(const struct prove_verdict *verdict, struct attacks *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->n = (uint32_t)verdict->n;
	ret->duration_ms = verdict->duration_ms;
	for (size_t i = 0; i < verdict->n; i++) {
		snprintf(ret->at[i].name, sizeof(ret->at[i].name), "%s",
			 prove_judged_attack(i)->id);
		ret->at[i].result = (uint8_t)verdict->at[i].result;
	}
}
