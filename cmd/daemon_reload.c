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

/* One that has no keeper yet gets it with that. */
static void change_all(struct daemon *daemon)
{
	for (struct daemon_sandbox *s = daemon->first; s; s = s->next)
		if (s->state == SANDBOX_READY)
			box_reload(box_of(s));
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
		if (config->spare_per_user < daemon->config->spare_per_user)
			daemon_drop_spares(daemon);
		daemon_config_free(daemon->config);
		daemon->config = config;
		daemon->generation++;
		daemon_find_group(daemon);
		change_all(daemon);
	}
	notify_systemd("READY=1");
	return err;
}
