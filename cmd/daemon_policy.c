/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_policy.c - policies of sandboxes: read, put together with the ceiling,
 * looked at, and sealed for a keeper, all of it beside the loop: one of a
 * million names takes more than a second.
 *
 *	POLICY_MAKE	of a new sandbox, whose state is written with it
 *	POLICY_START	of one that gets a keeper
 *	POLICY_CHANGE	another one, which its user wants
 *	POLICY_RELOAD	whatever the operator's configuration says now
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"
#include "cmd/warden_give.h"
#include "policy/policy.h"

/* What is longer is left for its keeper to find wrong: that builds it all the
 * same. */
#define CHECKED_HERE_MAX ((size_t)1 << 20)

enum policy_for { POLICY_MAKE, POLICY_START, POLICY_CHANGE, POLICY_RELOAD };

struct policy_work {
	struct work work;
	enum policy_for what;
	struct box *box;
	const struct daemon *daemon;  /* its directories, which stay */
	struct daemon_config *config; /* a reference */
	unsigned generation;
	struct daemon_sandbox s; /* as it is, or is to be */
	bool given;
	struct bundle own; /* .given: what came; else what the disk had */
	daemon_done_fn *done;
	void *arg;
	/* What came of it. */
	struct box_policy policy;
	char digest[DIGEST_HEX], why[512];
	bool same, staged;
	int err;
};

static struct policy_work *policy_work(struct work *work)
{
	return (struct policy_work *)(void *)work;
}

/* --- beside the loop ----------------------------------------------------- */

/* The operator's own, by its name; or else what its user sent. */
static int own_bundle(struct policy_work *p, const struct bundle **ret)
{
	const char *name = p->s.spec.policy_name;
	const struct daemon_policy *named =
		!p->given && *name ? daemon_config_policy(p->config, name)
				   : NULL;
	int err = 0;

	*ret = named ? &named->bundle : &p->own;
	if (!named && !p->given)
		err = state_bundle(p->daemon, p->s.spec.name, &p->own);
	return err;
}

/* With the ceiling, unless it is the operator's. A name that he has taken back
 * is nobody's word. */
static int compose(const struct policy_work *p, const struct bundle *own,
		   struct bundle *ret)
{
	const struct daemon_config *config = p->config;
	struct bundle all = { .data = malloc(own->len + 1), .len = own->len };
	const bool named =
		*p->s.spec.policy_name && (p->given || own != &p->own);
	int err = 0;

	if (!all.data)
		return -ENOMEM;
	if (own->len)
		memcpy(all.data, own->data, own->len);
	if (!named && config->ceiling.len)
		err = bundle_add_ceiling(&all, &config->ceiling,
					 config->ceiling_path);
	if (err)
		bundle_free(&all);
	else
		*ret = all;
	return err;
}

static int check_policy(const struct bundle *bundle, char *reterr, size_t cap)
{
	struct policy_error why;
	struct policy *policy;
	int err;

	if (bundle->len > CHECKED_HERE_MAX)
		return 0;
	err = policy_build(bundle->data, bundle->len, &policy, &why);
	if (err == -EINVAL)
		snprintf(reterr, cap, "%s", why.text);
	if (err == 0)
		policy_unref(policy);
	return err;
}

static void bundle_digest(const struct bundle *bundle, char *ret_hex)
{
	struct digest digest;

	digest_begin(&digest);
	digest_add(&digest, bundle->data, bundle->len);
	digest_end(&digest, ret_hex);
}

/* On the disk. */
static int keep(struct policy_work *p, const struct bundle *own)
{
	const char *name = p->s.spec.name;
	int err = 0;

	if (p->what == POLICY_MAKE)
		err = state_make(p->daemon, &p->s, own);
	else if (p->what == POLICY_CHANGE ||
		 (p->what == POLICY_RELOAD && own != &p->own))
		err = state_stage_bundle(p->daemon, name, own);
	p->staged = p->what != POLICY_START && p->what != POLICY_MAKE &&
		    (p->given || own != &p->own);
	if (err)
		snprintf(p->why, sizeof(p->why),
			 "its state can't be written: %s", strerror(-err));
	return err;
}

/* For a keeper. */
static int seal(struct policy_work *p, const struct bundle *whole)
{
	struct box_policy *ret = &p->policy;

	ret->len = whole->len;
	ret->fd = warden_memfd("policy", whole->data, whole->len);
	if (ret->fd < 0)
		return ret->fd;
	if (p->what == POLICY_MAKE || p->what == POLICY_START)
		ret->leases = state_leases(p->daemon, p->s.spec.name);
	return ret->leases < -1 ? ret->leases : 0;
}

static void run(struct work *work)
{
	struct policy_work *p = policy_work(work);
	__attribute__((cleanup(bundle_free))) struct bundle whole = { 0 };
	const struct bundle *own;
	int err = own_bundle(p, &own);

	if (!err)
		err = compose(p, own, &whole);
	if (!err && p->given)
		err = check_policy(&whole, p->why, sizeof(p->why));
	if (!err && p->what != POLICY_START)
		bundle_digest(&whole, p->digest);
	p->same = !err && p->what == POLICY_RELOAD &&
		  strcmp(p->digest, p->s.facts.policy_digest) == 0;
	if (!err && !p->same)
		err = keep(p, own);
	if (!err && !p->same)
		err = seal(p, &whole);
	/* What is the operator's is no user's burden. */
	p->policy.own_len = *p->s.spec.policy_name ? 0 : p->own.len;
	p->err = err;
}

/* --- in the loop --------------------------------------------------------- */

void box_drop_policy(struct box_policy *policy)
{
	close_fd(&policy->fd);
	close_fd(&policy->leases);
}

static void release(struct policy_work *p)
{
	box_drop_policy(&p->policy);
	bundle_free(&p->own);
	daemon_config_free(p->config);
	free(p);
}

/* The bundle comes from the disk, unless one is given. */
static struct policy_work *begin(struct box *box, enum policy_for what,
				 void (*done)(struct work *work))
{
	struct policy_work *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->work.run = run;
	p->work.done = done;
	p->what = what;
	p->box = box;
	p->daemon = box->daemon;
	p->config = daemon_config_ref(box->daemon->config);
	p->generation = box->daemon->generation;
	p->s = box->sandbox;
	p->policy = (struct box_policy){ .fd = -1, .leases = -1 };
	memcpy(p->work.key, p->s.spec.name, sizeof(p->work.key));
	p->work.uid = p->s.spec.uid;
	p->work.bytes = box->bytes;
	return p;
}

static int give(struct policy_work *p, const struct bundle *bundle)
{
	p->given = true;
	p->own.data = malloc(bundle->len + 1);
	if (!p->own.data)
		return -ENOMEM;
	if (bundle->len)
		memcpy(p->own.data, bundle->data, bundle->len);
	p->own.len = p->work.bytes = bundle->len;
	return 0;
}

static void add(struct policy_work *p)
{
	p->box->works++;
	work_add(p->box->daemon->workers, &p->work);
}

/* Its user's part of the memory and the disk. */
static int check_room(const struct box *box, const char *policy_name,
		      const struct bundle *bundle, char *reterr, size_t cap)
{
	const struct daemon *daemon = box->daemon;
	const uid_t uid = box->sandbox.spec.uid;
	const uint64_t max = daemon->config->policy_bytes_per_user;
	uint64_t held = bundle->len + work_bytes(daemon->workers, uid);

	for (struct daemon_sandbox *s = daemon->first; s; s = s->next)
		if (s->spec.uid == uid && s != &box->sandbox)
			held += box_of(s)->bytes;
	if (!uid || *policy_name || held <= max)
		return 0;
	snprintf(reterr, cap,
		 "all your policies may have %llu bytes, and would have more "
		 "with this one (limits.policy_bytes_per_user)",
		 (unsigned long long)max);
	return -ENOSPC;
}

/* --- of a keeper that is to start ---------------------------------------- */

static void on_prepared(struct work *work)
{
	struct policy_work *p = policy_work(work);
	struct box *box = p->box;

	box->works--;
	if (!p->err) {
		box->policy = p->policy;
		box->bytes = p->policy.own_len;
		box->generation = p->generation;
		p->policy = (struct box_policy){ .fd = -1, .leases = -1 };
	}
	box_prepared(box, p->err, p->why);
	release(p);
}

int box_prepare(struct box *box)
{
	struct policy_work *p = begin(box, POLICY_START, on_prepared);

	if (!p)
		return -ENOMEM;
	add(p);
	return 0;
}

int box_make(struct box *box, const struct bundle *bundle, char *reterr,
	     size_t cap)
{
	int err = check_room(box, box->sandbox.spec.policy_name, bundle, reterr,
			     cap);
	struct policy_work *p =
		err ? NULL : begin(box, POLICY_MAKE, on_prepared);

	if (!p)
		return err ? err : -ENOMEM;
	err = give(p, bundle);
	if (err)
		release(p);
	else
		add(p);
	return err;
}

/* --- of one that serves -------------------------------------------------- */

static int send_it(struct policy_work *p)
{
	const struct msg_gate_policy msg = { .len = p->policy.len };
	struct box *box = p->box;
	struct waiter *waiter;

	if (box->sandbox.state != SANDBOX_READY) {
		snprintf(p->why, sizeof(p->why), "it is not ready any more");
		return -EBUSY;
	}
	waiter = box_wait(box, MSG_KEEP_POLICY, p->done, p->arg);
	if (!waiter)
		return -ENOMEM;
	memcpy(waiter->text, p->s.spec.policy_text, sizeof(waiter->text));
	memcpy(waiter->name, p->s.spec.policy_name, sizeof(waiter->name));
	memcpy(waiter->digest, p->digest, sizeof(waiter->digest));
	waiter->staged = p->staged;
	waiter->bytes = p->policy.own_len;
	box->generation = p->generation;
	box_ask(box, &msg, p->policy.fd, waiter);
	return 0;
}

static void on_changed(struct work *work)
{
	struct policy_work *p = policy_work(work);
	struct box *box = p->box;

	box->works--;
	box->changes = false;
	if (!p->err && !p->same)
		p->err = send_it(p);
	else if (p->same)
		box->generation = p->generation;
	if (p->err)
		p->done(p->arg, &box->sandbox, p->err, p->why);
	release(p);
	box_reload_late(box);
	daemon_kick(box->daemon);
}

bool box_changes_policy(const struct box *box)
{
	const struct waiter *waiter = box->waiters;

	while (waiter && waiter->type != MSG_KEEP_POLICY)
		waiter = waiter->next;
	return box->changes || waiter;
}

int daemon_policy(struct daemon *daemon, struct daemon_sandbox *sandbox,
		  const struct bundle *bundle, const char *policy_text,
		  const char *policy_name, daemon_done_fn *done, void *arg,
		  char *reterr, size_t cap)
{
	struct box *box = box_of(sandbox);
	const bool serves = sandbox->state == SANDBOX_READY;
	struct policy_work *p;
	int err;

	(void)daemon;
	if (!serves || box_changes_policy(box)) {
		snprintf(reterr, cap, "%s",
			 serves ? "another change of its policy is on its way"
				: "it is not ready");
		return -EBUSY;
	}
	err = check_room(box, policy_name, bundle, reterr, cap);
	if (err)
		return err;
	snprintf(reterr, cap, "out of memory");
	p = begin(box, POLICY_CHANGE, on_changed);
	err = p ? give(p, bundle) : -ENOMEM;
	if (err) {
		if (p)
			release(p);
		return err;
	}
	p->done = done;
	p->arg = arg;
	snprintf(p->s.spec.policy_text, sizeof(p->s.spec.policy_text), "%s",
		 policy_text);
	snprintf(p->s.spec.policy_name, sizeof(p->s.spec.policy_name), "%s",
		 policy_name);
	box->changes = true;
	add(p);
	return 0;
}

static void on_reloaded(void *arg, struct daemon_sandbox *sandbox, int err,
			const char *why)
{
	(void)arg;
	if (err)
		log_err("%s: the old policy stays in force: %s",
			sandbox->spec.name, *why ? why : strerror(-err));
}

void box_reload(struct box *box)
{
	struct policy_work *p;

	box->late = box_changes_policy(box);
	if (box->late)
		return;
	p = begin(box, POLICY_RELOAD, on_changed);
	if (!p) {
		on_reloaded(NULL, &box->sandbox, -ENOMEM, "");
		return;
	}
	p->done = on_reloaded;
	box->changes = true;
	add(p);
}

/* What was on its way may have been put together before the operator's last
 * word. */
void box_reload_late(struct box *box)
{
	if (box->late && !box->removing && !box_changes_policy(box) &&
	    box->sandbox.state == SANDBOX_READY)
		box_reload(box);
}
