/* SPDX-License-Identifier: Apache-2.0
 *
 * warden_log.c - what the ledger needs while it writes, and at its end: other
 * files, and what only the warden knows.
 *
 * The ledger has no file system. It asks for the next part of its log and goes
 * on in the old one until that comes, so that nothing here needs haste.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "audit/tally.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/session.h"
#include "cmd/warden.h"
#include "cmd/warden_give.h"

/* A log that can't be rotated is still a log. */
static int give_part(struct warden *w, unsigned number)
{
	struct msg_ledger_part part = { .number = number };
	AUTO_FD int fd = session_log_rotate(&w->session->files, number);
	int err;

	if (fd == -EBADMSG)
		return fd;
	if (fd < 0) {
		log_err("%s goes on in one file: %s", w->session->log,
			strerror(-fd));
		return 0;
	}
	err = msg_send(w->ledger.sock, MSG_LEDGER_PART, &part, fd);
	/* Its end is seen elsewhere. */
	return err == -EPIPE || err == -ECONNRESET ? 0 : err;
}

int warden_ask_sums(struct warden *w)
{
	return msg_send(w->ledger.sock, MSG_LEDGER_SUMS, NULL, -1);
}

int warden_attacks(struct warden *w, const struct attacks *attacks)
{
	return msg_send(w->ledger.sock, MSG_LEDGER_ATTACKS, attacks, -1);
}

/* "tcp, dot": as many as there is room for. */
static void list_out(const struct attacks *attacks, char *buf, size_t cap)
{
	size_t len = 0;

	*buf = '\0';
	for (size_t i = 0; i < attacks->n; i++) {
		const char *name = attacks->at[i].name;

		if (attacks->at[i].result != ATTACK_GOT_OUT)
			continue;
		if (len + strlen(name) + sizeof(", , ...") > cap) {
			snprintf(buf + len, cap - len, ", ...");
			return;
		}
		len += (size_t)snprintf(buf + len, cap - len, "%s%s",
					len ? ", " : "", name);
	}
}

/* It is the user's word: nobody here has seen the attacks. */
int warden_reported(struct warden *w, const struct attacks *attacks)
{
	char detail[400], out[320];
	unsigned count[ATTACK_RESULTS];
	struct audit_event event = { .kind = EVENT_ATTACKS,
				     .sandbox = WARDEN_SANDBOX_ID,
				     .verdict = { .allow = true },
				     .detail = detail };
	int err;

	attacks_count(attacks, count);
	snprintf(detail, sizeof(detail),
		 "uid %u: %u held, %u got out, %u skipped", attacks->user[0],
		 count[ATTACK_HELD], count[ATTACK_GOT_OUT],
		 count[ATTACK_SKIPPED]);
	err = warden_record(w, &event);
	if (err)
		return err;
	/* The receipt quotes few findings: a user can't fill it with his. What
	 * got out is there, and in the record, whatever became of this. */
	if (count[ATTACK_GOT_OUT] && w->reported < WARDEN_REPORT_FINDINGS_MAX) {
		w->reported++;
		list_out(attacks, out, sizeof(out));
		snprintf(detail, sizeof(detail),
			 "uid %u reports attacks that got out: %s",
			 attacks->user[0], out);
		warden_finding(w, detail);
	}
	return warden_attacks(w, attacks);
}

/* 0 or -errno: it makes no sense. */
static int take_word(struct warden *w, const struct msg *msg)
{
	switch (msg->type) {
	case MSG_LEDGER_ROTATE:
		return give_part(w, msg->ledger_part.number);
	case MSG_LEDGER_SUMS_ARE:
		if (!w->sums)
			return -EBADMSG;
		w->sums(w->arg, &msg->ledger_sums);
		return 0;
	default:
		return -EBADMSG;
	}
}

int warden_take_ledger(struct warden *w)
{
	struct msg msg;
	int r;

	while ((r = msg_recv(w->ledger.sock, &msg, MSG_DONTWAIT)) > 0) {
		close_fd(&msg.fd);
		r = take_word(w, &msg);
		if (r < 0)
			return r;
	}
	return r == -EAGAIN ? 0 : r;
}

/* --- the end ------------------------------------------------------------- */

static void read_counters(struct warden *w, struct msg_ledger_end *end)
{
	struct ruleset_counters counters = { 0 };

	end->counted = gateway_counters(w->gateway, &counters) == 0;
	if (!end->counted)
		return;
	end->spoofed = counters.spoofed;
	end->refused = counters.refused;
	end->ipv6 = counters.ipv6;
	end->forwarded = counters.forwarded;
}

static void read_rules(struct warden *w, struct msg_ledger_end *end)
{
	char why[256] = "", text[400];

	end->held = (uint8_t)warden_held(w);
	if (gateway_verify(w->gateway, why, sizeof(why)) == 0) {
		snprintf(end->ruleset_digest, sizeof(end->ruleset_digest), "%s",
			 w->gateway->digest);
		return;
	}
	if (end->held != BOUNDARY_BROKEN) {
		snprintf(text, sizeof(text),
			 "at the end the rules are not those that were "
			 "loaded: %s",
			 why);
		warden_finding(w, text);
	}
	end->held = BOUNDARY_BROKEN;
}

int warden_tell_end(struct warden *w, struct warden_end *end)
{
	struct msg_ledger_end msg = { .status = end->status,
				      .ended = (uint8_t)end->ended,
				      .held = BOUNDARY_UNKNOWN };
	int err;

	if (w->gateway)
		read_rules(w, &msg);
	/* It reports packets to its end: only then are they counted. */
	warden_end_gate(w);
	if (w->gateway)
		read_counters(w, &msg);
	end->held = (enum boundary_held)msg.held;
	err = warden_give_host_log(w, true);
	if (err)
		return err;
	return msg_send(w->ledger.sock, MSG_LEDGER_END, &msg, -1);
}

/* 1 for the last message, 0, or -errno. */
static int take_last(struct warden *w, const struct msg *msg,
		     struct warden_end *end, struct tally *ret)
{
	switch (msg->type) {
	case MSG_LEDGER_ROTATE:
		return give_part(w, msg->ledger_part.number);
	case MSG_LEDGER_SUMS_ARE: /* nobody waits for it any more */
		return 0;
	case MSG_TALLY_ROW:
		if (ret->rows == TALLY_MAX)
			return -EBADMSG;
		ret->row[ret->rows++] = msg->tally_row;
		return 0;
	case MSG_TALLY_DONE:
		ret->records = msg->tally_done.records;
		end->receipt = msg->tally_done.receipt;
		return 1;
	default:
		return -EBADMSG;
	}
}

int warden_take_tally(struct warden *w, struct warden_end *end,
		      struct tally *ret)
{
	struct pollfd ready = { .fd = w->ledger.sock, .events = POLLIN };
	struct msg msg;
	int r;

	do {
		r = poll(&ready, 1, WARDEN_CHILD_MS);
		if (r <= 0)
			return r < 0 ? -errno : -ETIMEDOUT;
		r = msg_recv(w->ledger.sock, &msg, 0);
		if (r <= 0)
			return r < 0 ? r : -EIO;
		close_fd(&msg.fd);
		r = take_last(w, &msg, end, ret);
	} while (r == 0);
	return r < 0 ? r : 0;
}
