/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_reload.c - the operator's word, read again: all of it, or nothing.
 *
 * Sandboxes whose policy is another now, by its name or by the ceiling, get it
 * while they serve. Limits are for those that come.
 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"
#include "cmd/daemon_notify.h"

void daemon_find_group(struct daemon *daemon)
{
	const struct group *group = getgrnam(daemon->config->group);

	daemon->group = group ? group->gr_gid : 0;
}

static void on_changed(void *arg, struct daemon_sandbox *sandbox, int err,
		       const char *why)
{
	(void)arg;
	if (err)
		log_err("%s: the old policy stays in force: %s",
			sandbox->spec.name, *why ? why : strerror(-err));
}

/* One that has no keeper gets it with the next. */
static int change(struct box *box)
{
	const struct daemon_spec *spec = &box->sandbox.spec;
	const struct daemon_policy *named =
		daemon_config_policy(box->daemon->config, spec->policy_name);
	struct bundle bundle;
	char digest[DIGEST_HEX];
	struct waiter *waiter;
	int err = box_policy(box, &bundle);

	if (err)
		return err;
	bundle_digest(&bundle, digest);
	if (strcmp(digest, box->sandbox.facts.policy_digest) == 0) {
		bundle_free(&bundle);
		return 0;
	}
	if (named)
		err = state_stage_bundle(box->daemon, spec->name,
					 &named->bundle);
	waiter = err ? NULL : box_send_policy(box, &bundle, on_changed, NULL);
	bundle_free(&bundle);
	if (!waiter)
		return err ? err : -ENOMEM;
	waiter->staged = named;
	return 0;
}

static void change_all(struct daemon *daemon)
{
	for (struct daemon_sandbox *s = daemon->first; s; s = s->next) {
		int err = 0;

		if (s->state == SANDBOX_READY)
			err = box_changes_policy(box_of(s)) ? -EBUSY
							    : change(box_of(s));
		if (err)
			log_err("%s: the old policy stays in force: %s",
				s->spec.name, strerror(-err));
	}
}

int daemon_reload(struct daemon *daemon, struct policy_error *reterr)
{
	const struct daemon_options *options = &daemon->options;
	struct daemon_config *config;
	int err;

	snprintf(reterr->text, sizeof(reterr->text), "out of memory");
	notify_reloading();
	err = daemon_config_read(options->config, !options->config_named,
				 &config, reterr);
	if (err) {
		log_err("%s\nThe old configuration stays in force.",
			reterr->text);
	} else {
		daemon_config_free(daemon->config);
		daemon->config = config;
		daemon_find_group(daemon);
		change_all(daemon);
	}
	notify_systemd("READY=1");
	return err;
}
