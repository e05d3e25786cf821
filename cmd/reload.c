/* SPDX-License-Identifier: Apache-2.0
 *
 * reload.c - from files to a policy in force, and the requests for it.
 */
#include "cmd/reload.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/control.h"
#include "cmd/options.h"
#include "cmd/prove_report.h"
#include "cmd/session.h"
#include "cmd/warden.h"
#include "policy/cell.h"
#include "policy/policy.h"

#define OTHER_BOUNDS                                                          \
	"'sandbox' of the policy has changed: that is for the next command, " \
	"this one keeps the bounds that it began with"

/* Whatever is in force was written by those who may. A file that was replaced
 * by another one of its name is no longer masked in the sandbox. */
static int check_exposed(const struct reload *reload,
			 const struct bundle *bundle,
			 struct policy_error *reterr)
{
	char path[PATH_MAX];

	for (size_t i = 0; bundle_file(bundle, i, path, sizeof(path)); i++) {
		if (!reload->exposed || !reload->exposed(reload->arg, path))
			continue;
		snprintf(reterr->text, sizeof(reterr->text),
			 "%.300s: the command can write to it\nIt is new, or "
			 "was replaced by another file. Keep policies out of "
			 "the working directory, or write to them in place.",
			 path);
		return -EPERM;
	}
	return policy_check_marks(bundle, reterr);
}

/* From the same bytes as what the gate will get. */
static int build(struct reload *reload, struct bundle *ret_bundle,
		 struct policy **ret_policy, struct policy_error *reterr)
{
	struct policy_choice *choice = &reload->options->policy;
	int err;

	choice->again = true;
	err = policy_read(choice, ret_bundle, reterr);
	if (!err)
		err = check_exposed(reload, ret_bundle, reterr);
	if (!err)
		err = policy_build(ret_bundle->data, ret_bundle->len,
				   ret_policy, reterr);
	if (err && !*reterr->text)
		snprintf(reterr->text, sizeof(reterr->text), "policy: %s",
			 strerror(-err));
	return err;
}

static void complain(struct reload *reload, const char *why)
{
	char text[sizeof(((struct policy_error *)NULL)->text) + 64];

	if (!reload->warden)
		return;
	snprintf(text, sizeof(text), "the policy was not reloaded: %s", why);
	warden_finding(reload->warden, text);
}

/* What a command began with it keeps: its bounds are not put on again. */
static void compare_bounds(struct reload *reload, const struct policy *policy)
{
	const struct policy *first = reload->options->built;
	bool was = reload->other_bounds;

	reload->other_bounds =
		first && !cell_same(policy_cell(first), policy_cell(policy));
	if (reload->other_bounds && !was && reload->warden)
		warden_finding(reload->warden, OTHER_BOUNDS);
}

static int put_in_force(struct reload *reload, const struct bundle *bundle,
			struct policy *policy, struct policy_error *reterr)
{
	if (!reload->warden)
		return reload->apply(reload->arg, bundle, reterr->text,
				     sizeof(reterr->text));
	return warden_reload(reload->warden, bundle, policy, reterr->text,
			     sizeof(reterr->text));
}

int reload_now(struct reload *reload, struct policy_error *reterr)
{
	__attribute__((cleanup(bundle_free))) struct bundle bundle = { 0 };
	struct session *session = reload->session;
	struct policy *policy = NULL;
	int err;

	*reterr = (struct policy_error){ 0 };
	err = build(reload, &bundle, &policy, reterr);
	if (!err)
		err = put_in_force(reload, &bundle, policy, reterr);
	if (err) {
		/* A ledger that took no record takes this one no sooner. */
		if (err != -EIO)
			complain(reload, reterr->text);
		policy_unref(policy);
		return err;
	}
	compare_bounds(reload, policy);
	policy_unref(session->policy);
	session->policy = policy;
	policy_describe(&reload->options->policy, &bundle, session->policy_text,
			sizeof(session->policy_text));
	return 0;
}

/* --- requests ------------------------------------------------------------ */

static void __attribute__((format(printf, 3, 4)))
say(char *reply, const char *key, const char *format, ...)
{
	size_t len = strlen(reply), key_len = strlen(key);
	va_list ap;

	if (len + key_len + 2 >= CONTROL_REPLY_MAX)
		return;
	memcpy(reply + len, key, key_len);
	reply[len + key_len] = ' ';
	len += key_len + 1;
	va_start(ap, format);
	vsnprintf(reply + len, CONTROL_REPLY_MAX - len, format, ap);
	va_end(ap);
	/* A value is one line. */
	for (char *at = reply + len; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	len += strlen(reply + len);
	if (len + 1 < CONTROL_REPLY_MAX)
		memcpy(reply + len, "\n", 2);
}

static void answer_reload(struct reload *reload, char *reply)
{
	struct policy_error error;
	char old[65];

	snprintf(old, sizeof(old), "%s",
		 policy_digest(reload->session->policy));
	if (reload_now(reload, &error)) {
		snprintf(reply, CONTROL_REPLY_MAX, "error\n%s\n", error.text);
		return;
	}
	snprintf(reply, CONTROL_REPLY_MAX, "ok\n");
	say(reply, "session", "%s", reload->session->id);
	say(reply, "old", "sha256:%s", old);
	say(reply, "new", "sha256:%s", policy_digest(reload->session->policy));
	say(reply, "name", "%s", policy_name(reload->session->policy));
	say(reply, "rules", "%zu", policy_rules(reload->session->policy));
	if (reload->other_bounds)
		say(reply, "note", OTHER_BOUNDS);
}

static void answer_status(struct reload *reload, char *reply)
{
	snprintf(reply, CONTROL_REPLY_MAX, "ok\n");
	say(reply, "session", "%s", reload->session->id);
	say(reply, "name", "%s", reload->session->name);
	say(reply, "what", "%s", reload->what);
	say(reply, "policy", "sha256:%s",
	    policy_digest(reload->session->policy));
	/* A daemon's processes are its own affair. */
	if (reload->warden)
		say(reply, "separation", "%s",
		    warden_separation(reload->warden));
}

/* Of a daemon's sandbox it is the daemon that is told. */
static void answer_attacks(struct reload *reload, uid_t uid,
			   const char *request, char *reply)
{
	static struct attacks attacks;
	int err = -EINVAL;

	if (reload->warden && prove_report_parse(request, &attacks)) {
		attacks.reports = attacks.users = 1;
		attacks.user[0] = uid;
		err = warden_reported(reload->warden, &attacks);
	}
	if (err)
		snprintf(reply, CONTROL_REPLY_MAX,
			 "error\nthe report is not taken: %s\n",
			 !reload->warden ? "the daemon has that session"
					 : strerror(-err));
	else
		snprintf(reply, CONTROL_REPLY_MAX, "ok\n");
}

static void on_request(void *arg, uid_t uid, const char *request, char *reply)
{
	size_t word = strcspn(request, "\n");

	if (word == 6 && memcmp(request, "reload", word) == 0)
		answer_reload(arg, reply);
	else if (word == 6 && memcmp(request, "status", word) == 0)
		answer_status(arg, reply);
	else if (word == 7 && memcmp(request, "attacks", word) == 0)
		answer_attacks(arg, uid, request, reply);
	else
		snprintf(reply, CONTROL_REPLY_MAX,
			 "error\nno such request: is this another version of "
			 "sallyport?\n");
}

void reload_listen(struct reload *reload)
{
	int err = control_listen(reload->session->dir, &reload->control);

	if (err == -EADDRINUSE)
		log_warn("%s: another session has its log there; this one "
			 "can't be reloaded",
			 reload->session->dir);
	else if (err)
		log_warn("%s/" CONTROL_NAME ": %s: this session can't be "
			 "reloaded",
			 reload->session->dir, strerror(-err));
}

void reload_attach(struct reload *reload, struct event_base *base)
{
	if (reload->control &&
	    control_attach(reload->control, base, on_request, reload))
		log_warn("out of memory: this session can't be reloaded");
}

void reload_close(struct reload *reload)
{
	control_close(reload->control);
	reload->control = NULL;
}
