/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_reply.c - see daemon_reply.h. A key whose text is empty is left out.
 */
#include "cmd/daemon_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/log_dir.h"
#include "base/cleanup.h"
#include "cmd/gateway.h"
#include "policy/reason.h"

static const char *const state_words[] = {
	[SANDBOX_STARTING] = "starting",
	[SANDBOX_READY] = "ready",
	[SANDBOX_ENDING] = "ending",
	[SANDBOX_FAILED] = "failed",
};
static const char *const held_words[] = {
	[BOUNDARY_UNKNOWN] = "unknown",
	[BOUNDARY_HELD] = "held",
	[BOUNDARY_RESTORED] = "restored",
	[BOUNDARY_BROKEN] = "broken",
};

/* More than summary_print() makes of a full tally. */
#define SUMMARY_MAX (2 << 20)

void reply_ip(struct json *j, const char *key, const struct ip *ip)
{
	char text[IP_TEXT_MAX];

	if (ip->len)
		json_text(j, key, ip_format(ip, text));
}

static void put_policy(struct json *j, const struct daemon_sandbox *s)
{
	json_open(j, "policy", '{');
	json_text(j, "digest", s->facts.policy_digest);
	json_text(j, "text", s->spec.policy_text);
	json_text(j, "name", s->spec.policy_name);
	json_close(j, '}');
}

void reply_publish(struct json *j, const struct daemon_sandbox *s)
{
	json_open(j, "publish", '[');
	for (size_t i = 0; i < s->publishes; i++) {
		json_open(j, NULL, '{');
		reply_ip(j, "address", &s->publish[i].at.ip);
		json_uint(j, "port", s->publish[i].at.port);
		json_uint(j, "inside", s->publish[i].inside);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_counts(struct json *j, const struct msg_keep_counts *counts)
{
	static const char *const packets[] = { "spoofed", "refused", "ipv6",
					       "forwarded" };

	json_open(j, "counts", '{');
	json_uint(j, "records", counts->records);
	json_uint(j, "checkpoint_ms", counts->checkpoint_ms);
	json_uint(j, "allowed", counts->allowed);
	json_uint(j, "refused", counts->refused);
	json_open(j, "by_reason", '{');
	for (int i = 0; i < REASON_COUNT; i++)
		if (counts->by_reason[i])
			json_uint(j, reason_word((enum reason)i),
				  counts->by_reason[i]);
	json_close(j, '}');
	json_uint(j, "up", counts->up);
	json_uint(j, "down", counts->down);
	json_open(j, "packets", '{');
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++)
		json_uint(j, packets[i], counts->packets[i]);
	json_close(j, '}');
	json_uint(j, "foreign_changes", counts->foreign_changes);
	json_uint(j, "gate_restarts", counts->gate_restarts);
	json_text(j, "held", held_words[counts->held]);
	json_close(j, '}');
}

void reply_sandbox(struct json *j, const struct daemon_sandbox *s,
		   const char *ceiling)
{
	json_open(j, NULL, '{');
	json_text(j, "name", s->spec.name);
	json_text(j, "state", state_words[s->state]);
	if (s->state == SANDBOX_FAILED)
		json_text(j, "why", s->why);
	json_uint(j, "uid", s->spec.uid);
	json_text(j, "session", s->facts.session);
	json_text(j, "log", s->facts.log_dir);
	json_text(j, "ruleset", s->facts.ruleset_digest);
	json_text(j, "netns", s->netns);
	json_text(j, "userns", s->userns);
	reply_ip(j, "ip", &s->spec.ip);
	reply_ip(j, "gateway", &s->spec.gateway);
	json_uint(j, "proxy_port", GATEWAY_PROXY_PORT);
	json_int(j, "made", s->made_s);
	if (s->spec.ends_s)
		json_int(j, "ends", s->spec.ends_s);
	json_bool(j, "docker", s->spec.docker);
	json_bool(j, "temporary", s->spec.holder != 0);
	put_policy(j, s);
	reply_publish(j, s);
	put_counts(j, &s->counts);
	if (ceiling)
		json_text(j, "ceiling_sandbox", ceiling);
	json_close(j, '}');
}

size_t reply_removed_max(const struct daemon_sandbox *s)
{
	struct stat st;

	if (s->summary < 0 || fstat(s->summary, &st) < 0 || st.st_size <= 0 ||
	    st.st_size > SUMMARY_MAX)
		return REPLY_SANDBOX_MAX;
	return REPLY_SANDBOX_MAX + (size_t)st.st_size;
}

/* As its keeper says it: what is wrong there is its own sandbox's loss. */
static void put_summary(struct json *j, const struct daemon_sandbox *s)
{
	const size_t len = reply_removed_max(s) - REPLY_SANDBOX_MAX;
	AUTO_FREE char *text = malloc(len + 1);

	if (!len || !text || pread(s->summary, text, len, 0) != (ssize_t)len)
		return;
	text[len] = '\0';
	json_members(j, text);
}

void reply_removed(struct json *j, const struct daemon_sandbox *s)
{
	char receipt[PATH_MAX];

	*receipt = '\0';
	if (s->ended.receipt)
		snprintf(receipt, sizeof(receipt), "%s/" LOG_DIR_RECEIPT,
			 s->facts.log_dir);
	json_open(j, NULL, '{');
	json_text(j, "name", s->spec.name);
	json_text(j, "session", s->facts.session);
	json_text(j, "log", s->facts.log_dir);
	json_text(j, "receipt", receipt);
	json_text(j, "held", held_words[s->ended.held]);
	json_bool(j, "whole", s->ended.whole);
	put_summary(j, s);
	json_close(j, '}');
}

void reply_error(struct json *j, const char *error, const char *hint)
{
	json_open(j, NULL, '{');
	json_text(j, "error", error);
	json_text(j, "hint", hint);
	json_close(j, '}');
}
