/* SPDX-License-Identifier: Apache-2.0
 *
 * run_reload.c - see run_reload.h. Here nobody sees the command's view of the
 * files, but we know which of them were masked in it: they are the same files
 * still, or the command could have made them.
 */
#include "cmd/run_reload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/client_policy.h"
#include "cmd/placed.h"
#include "cmd/reload.h"

#define PREFIX "run-of-" /* of no session's directory */

struct masked {
	dev_t dev;
	ino_t ino;
};

static struct {
	struct placed *placed;
	struct session session;
	struct reload reload;
	struct masked *masked;
	size_t count;
} own;

static void note_masked(const struct bundle *bundle)
{
	char path[PATH_MAX];
	struct masked *more;
	struct stat st;

	for (size_t i = 0; bundle_file(bundle, i, path, sizeof(path)); i++) {
		if (stat(path, &st) < 0)
			continue;
		more = reallocarray(own.masked, own.count + 1, sizeof(*more));
		if (!more)
			return; /* then it could have been made, for all we know
				 */
		own.masked = more;
		more[own.count++] =
			(struct masked){ .dev = st.st_dev, .ino = st.st_ino };
	}
}

static bool exposed(void *arg, const char *path)
{
	struct stat st;

	(void)arg;
	if (!run_view_exposes(&own.placed->view, 0, path))
		return false;
	if (stat(path, &st) < 0 || st.st_nlink > 1)
		return true;
	for (size_t i = 0; i < own.count; i++)
		if (own.masked[i].dev == st.st_dev &&
		    own.masked[i].ino == st.st_ino)
			return false;
	return true;
}

/* The daemon puts it in force as a whole, or says what is wrong. */
static int apply(void *arg, const struct bundle *bundle, char *reterr,
		 size_t cap)
{
	const struct placed *placed = own.placed;
	const struct client_policy policy = { .choice = placed->options.policy,
					      .bundle = *bundle };
	json_t *body = json_object(), *answer;
	int status = 0;

	(void)arg;
	if (!body)
		return -ENOMEM;
	client_policy_put_read(&policy, body);
	answer =
		client_try_json(&(struct client_call){ .socket = placed->socket,
						       .method = "PUT",
						       .name = placed->name,
						       .path = "/policy",
						       .body = body },
				&status, reterr, cap);
	json_decref(body);
	if (answer && status != 200)
		snprintf(reterr, cap, "%s", client_text(answer, "error"));
	json_decref(answer);
	return status == 200 ? 0 : -EINVAL;
}

void run_reload_open(struct placed *placed, struct event_base *base)
{
	const char *id = strrchr(placed->session.dir, '/');

	own.placed = placed;
	own.session = placed->session;
	note_masked(&placed->options.bundle);
	snprintf(own.session.id, sizeof(own.session.id), "%s",
		 id ? id + 1 : placed->name);
	snprintf(own.session.name, sizeof(own.session.name), "%s",
		 placed->name);
	if (!*own.session.home ||
	    snprintf(own.session.dir, sizeof(own.session.dir),
		     "%s/" PREFIX "%s", own.session.home,
		     placed->name) >= (int)sizeof(own.session.dir) ||
	    session_mkdir(own.session.dir))
		return;
	own.reload = (struct reload){ .options = &placed->options,
				      .session = &own.session,
				      .what = "run",
				      .exposed = exposed,
				      .apply = apply };
	reload_listen(&own.reload);
	reload_attach(&own.reload, base);
}

void run_reload_close(void)
{
	reload_close(&own.reload);
	if (*own.session.dir)
		rmdir(own.session.dir);
	free(own.masked);
	own.masked = NULL;
}
