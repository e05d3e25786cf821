/* SPDX-License-Identifier: Apache-2.0
 *
 * keeper_talk.c - what the daemon asks for while the sandbox lives.
 *
 * One thing after the other: whoever asked waits, and so do others who would
 * ask of the same sandbox.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/keeper.h"
#include "launch/child.h"
#include "policy/bundle.h"

#define BYTES_MAX ((off_t)256 << 20) /* of a bundle */

void keeper_say(struct keeper *k, enum msg_type type, const void *payload)
{
	if (!k->gone && msg_send(CHILD_SOCKET, type, payload, -1) < 0) {
		k->gone = true;
		keeper_end(k, ENDED_FAILED, EXIT_SALLYPORT,
			   "the daemon does not listen");
	}
}

int keeper_bundle(int fd, struct bundle *ret)
{
	struct stat st;
	size_t done = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || st.st_size > BYTES_MAX)
		return -EFBIG;
	AUTO_FREE uint8_t *data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	while (done < (size_t)st.st_size) {
		ssize_t n = pread(fd, data + done, (size_t)st.st_size - done,
				  (off_t)done);

		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		done += (size_t)n;
	}
	*ret = (struct bundle){ .data = STEAL(data), .len = done };
	return 0;
}

/* --- another policy ------------------------------------------------------ */

static int change_policy(struct keeper *k, int fd, char *reterr, size_t cap)
{
	__attribute__((cleanup(bundle_free))) struct bundle bundle = { 0 };
	struct policy_error error = { 0 };
	struct policy *policy = NULL;
	int err = keeper_bundle(fd, &bundle);

	if (!err)
		err = policy_build(bundle.data, bundle.len, &policy, &error);
	if (err) {
		snprintf(reterr, cap, "%s",
			 *error.text ? error.text : strerror(-err));
		return err;
	}
	err = warden_reload(&k->warden, &bundle, policy, reterr, cap);
	if (err) {
		policy_unref(policy);
		return err;
	}
	policy_unref(k->session.policy);
	k->session.policy = policy;
	return 0;
}

static void take_policy(struct keeper *k, int fd)
{
	struct msg_keep_done done = { 0 };
	char text[sizeof(done.text) + 64];

	done.status = change_policy(k, fd, done.text, sizeof(done.text));
	/* A ledger that took no record takes this one no sooner. */
	if (done.status && done.status != -EIO) {
		snprintf(text, sizeof(text), "the policy was not reloaded: %s",
			 done.text);
		warden_finding(&k->warden, text);
	}
	keeper_say(k, MSG_KEEP_DONE, &done);
}

/* --- the namespace that an engine made ----------------------------------- */

static int join(struct keeper *k, int ns, char *reterr, size_t cap)
{
	int err = gateway_join(&k->gateway, ns, reterr, cap);

	if (err)
		return err;
	err = boundary_join(&k->warden);
	if (err)
		snprintf(reterr, cap, "%s", strerror(-err));
	return err;
}

static void take_netns(struct keeper *k, int ns)
{
	struct msg_keep_done done = { 0 };

	char text[sizeof(done.text) + 64];

	done.status = join(k, ns, done.text, sizeof(done.text));
	if (done.status) {
		snprintf(text, sizeof(text),
			 "the container's namespace could not be held: %s",
			 done.text);
		warden_finding(&k->warden, text);
	}
	keeper_say(k, MSG_KEEP_DONE, &done);
}

/* --- from the host to the sandbox ---------------------------------------- */

static void take_forward(struct keeper *k, const struct msg_keep_forward *msg,
			 int *fd)
{
	struct msg_keep_done done = { .status = warden_forward(
					      &k->warden, steal_fd(fd),
					      &msg->at, msg->port) };

	if (done.status)
		snprintf(done.text, sizeof(done.text), "publishing port %u: %s",
			 msg->port,
			 done.status == -ENOSPC ? "there are too many"
						: strerror(-done.status));
	keeper_say(k, MSG_KEEP_DONE, &done);
}

/* --- commands ------------------------------------------------------------ */

/* Its words are the user's; that there is one, and whose, is the daemon's. */
static void take_exec(struct keeper *k, const struct msg_keep_exec *msg)
{
	struct msg_keep_done done = { 0 };
	char detail[sizeof(msg->command) + 32];
	struct audit_event event = { .kind = EVENT_EXEC,
				     .sandbox = WARDEN_SANDBOX_ID,
				     .verdict = { .allow = true },
				     .src_ip = k->gateway.link.ip,
				     .detail = detail };

	snprintf(detail, sizeof(detail), "uid %u: %s", msg->uid, msg->command);
	done.status = warden_record(&k->warden, &event);
	if (done.status)
		snprintf(done.text, sizeof(done.text),
			 "the ledger does not take the record of a command: %s",
			 strerror(-done.status));
	keeper_say(k, MSG_KEEP_DONE, &done);
}

static void take_attacks(struct keeper *k, const struct attacks *attacks)
{
	struct msg_keep_done done = {
		.status = attacks->users != 1
				  ? -EINVAL
				  : warden_reported(&k->warden, attacks)
	};

	if (done.status)
		snprintf(done.text, sizeof(done.text),
			 "the ledger does not take the report: %s",
			 strerror(-done.status));
	keeper_say(k, MSG_KEEP_DONE, &done);
}

/* --- counts -------------------------------------------------------------- */

static void ask_counts(struct keeper *k)
{
	/* One question is enough for all who wait. */
	if (k->asked++ || warden_ask_sums(&k->warden) == 0)
		return;
	/* Its death is seen elsewhere. */
	log_warn("the ledger can't be asked what it counted");
	k->asked = 0;
}

void keeper_on_sums(void *arg, const struct msg_ledger_sums *sums)
{
	struct keeper *k = arg;
	const struct boundary *boundary = &k->warden.watched;
	struct ruleset_counters packets = { 0 };
	struct msg_keep_counts counts = {
		.records = sums->records,
		.checkpoint_ms = sums->checkpoint_ms,
		.allowed = sums->allowed,
		.refused = sums->refused,
		.up = sums->up,
		.down = sums->down,
		.foreign_changes = boundary->changes + boundary->links,
		.gate_restarts = k->warden.starts - 1,
		.held = (uint8_t)warden_held(&k->warden),
	};

	memcpy(counts.by_reason, sums->by_reason, sizeof(counts.by_reason));
	(void)gateway_counters(&k->gateway, &packets);
	counts.packets[0] = packets.spoofed;
	counts.packets[1] = packets.refused;
	counts.packets[2] = packets.ipv6;
	counts.packets[3] = packets.forwarded;
	for (; k->asked; k->asked--)
		keeper_say(k, MSG_KEEP_COUNTS, &counts);
}

/* --- */

static const char *const ended_text[] = {
	[ENDED_EXIT] = "it was removed",
	[ENDED_TIMEOUT] = "its time was over",
	[ENDED_SIGNAL] = "the daemon was stopped",
	[ENDED_FAILED] = "the daemon gave it up",
};

/* One that is for a single command ends with that, unless it is the daemon that
 * ends. */
static void take_end(struct keeper *k, const struct msg_keep_end *end)
{
	const char *why = ended_text[end->ended];

	if (k->start.summary && end->ended == ENDED_EXIT)
		why = "its command ended";
	else if (end->ended == ENDED_SIGNAL && end->status)
		why = "its run was killed";
	keeper_end(k, (enum ended_by)end->ended, end->status, why);
}

static void obey(struct keeper *k, struct msg *msg)
{
	switch (msg->type) {
	case MSG_KEEP_POLICY:
		take_policy(k, msg->fd);
		break;
	case MSG_KEEP_NETNS:
		take_netns(k, msg->fd);
		break;
	case MSG_KEEP_FORWARD:
		take_forward(k, &msg->keep_forward, &msg->fd);
		break;
	case MSG_KEEP_EXEC:
		take_exec(k, &msg->keep_exec);
		break;
	case MSG_KEEP_ATTACKS:
		take_attacks(k, &msg->attacks);
		break;
	case MSG_KEEP_STATS:
		boundary_look_every(&k->warden, msg->keep_stats.look_s);
		ask_counts(k);
		break;
	case MSG_KEEP_FINDING:
		warden_finding(&k->warden, msg->keep_finding.text);
		if (msg->keep_finding.broken)
			k->warden.watched.held = BOUNDARY_BROKEN;
		break;
	case MSG_KEEP_END:
		take_end(k, &msg->keep_end);
		break;
	default:
		keeper_end(k, ENDED_FAILED, EXIT_SALLYPORT,
			   "the daemon sent what a keeper does not expect");
	}
}

void keeper_on_daemon(int fd, short what, void *arg)
{
	struct keeper *k = arg;
	struct msg msg;
	int got;

	(void)what;
	while (!k->why && (got = msg_recv(fd, &msg, MSG_DONTWAIT)) != -EAGAIN) {
		if (got == 1) {
			obey(k, &msg);
			close_fd(&msg.fd);
			continue;
		}
		k->gone = got == 0;
		keeper_end(k, ENDED_FAILED, EXIT_SALLYPORT,
			   got ? "the daemon sent nonsense"
			       : "the daemon is gone");
	}
}
