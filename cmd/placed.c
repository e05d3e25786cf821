/* SPDX-License-Identifier: Apache-2.0
 *
 * placed.c - a command goes into a sandbox that is there.
 *
 *	at	the sandbox, as the daemon says; it must be ready
 *	view	the same files and environment as `run` without a daemon
 *	record	the daemon has it in the log
 *	look	is that a network namespace, and whose?
 *	become	root of the user namespace that owns it, unless root already
 *	enter	and wait until it ends
 */
#include "cmd/placed.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/command.h"
#include "cmd/daemon.h"
#include "cmd/run_limits.h"

static void copy(const struct placed *placed, const json_t *s, const char *key,
		 char *buf, size_t cap)
{
	int len = snprintf(buf, cap, "%s", client_text(s, key));

	if (len < 0 || (size_t)len >= cap)
		die(EXIT_SALLYPORT,
		    "%s: what the daemon says of it is too long", placed->name);
}

static void check_ready(const struct placed *placed, const json_t *s)
{
	const char *state = client_text(s, "state");
	const char *why = client_text(s, "why");

	if (strcmp(state, "ready") == 0)
		return;
	die(EXIT_SALLYPORT,
	    "%s is not ready: %s%s%s\nTry `sallyport status %s`.", placed->name,
	    *state ? state : "its state is unknown", *why ? ": " : "", why,
	    placed->name);
}

void placed_at(struct placed *placed, const json_t *s)
{
	const json_t *uid = json_object_get(s, "uid");
	uint64_t port = client_number(s, "proxy_port");
	char *slash;

	check_ready(placed, s);
	if (!json_is_integer(uid) || json_integer_value(uid) < 0 ||
	    json_integer_value(uid) >= UINT32_MAX ||
	    !ip_parse(client_text(s, "gateway"), &placed->gateway) || !port ||
	    port > 65535)
		die(EXIT_SALLYPORT, "%s: the daemon does not say where it is",
		    placed->name);
	placed->owner = (uid_t)json_integer_value(uid);
	placed->proxy_port = (uint16_t)port;
	copy(placed, s, "netns", placed->netns, sizeof(placed->netns));
	copy(placed, s, "log", placed->session.dir,
	     sizeof(placed->session.dir));
	/* Its directory, whichever of the two it is. */
	slash = strrchr(placed->session.dir, '/');
	if (slash && strcmp(slash + 1, LOG_DIR_RECORDS) == 0)
		*slash = '\0';
}

void placed_limit(struct placed *placed, const json_t *s)
{
	struct options *o = &placed->options;

	bounds_limit(&o->bounds, client_text(s, "ceiling_sandbox"),
		     &o->timeout_ms);
	placed->view.bounds = &o->bounds;
}

/* --- what it sees -------------------------------------------------------- */

void placed_choose_view(struct placed *placed)
{
	struct session *session = &placed->session;

	/* The key that signs this sandbox's log is the daemon's. */
	session->signing.ephemeral = true;
	session_home(session->home, sizeof(session->home));
	snprintf(session->id, sizeof(session->id), "exec-%lld-%d",
		 (long long)time(NULL), (int)getpid());
	run_view_descriptors(&placed->options);
	run_view_hide(&placed->view, DAEMON_RUN_DIR);
	run_view_hide(&placed->view, DAEMON_STATE_DIR);
	run_view_hide(&placed->view, placed->socket);
	run_view_choose(&placed->view, &placed->options, session,
			&placed->command.spec);
}

/* --- the record ---------------------------------------------------------- */

static bool is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._-+,:@%=";

	return *word && !word[strspn(word, plain)];
}

/* False when it is full. */
static bool add(char *buf, size_t *len, char c)
{
	if (*len + 4 >= PLACED_LINE_MAX)
		return false;
	buf[(*len)++] = c >= 0x20 && c < 0x7f ? c : '?';
	return true;
}

/* As a shell has it, nearly: a quote in a word is left as it is. */
static bool add_word(char *buf, size_t *len, const char *word)
{
	const bool plain = is_plain(word);
	bool room = plain || add(buf, len, '\'');

	for (; room && *word; word++)
		room = add(buf, len, *word);
	return room && (plain || add(buf, len, '\''));
}

void placed_line(char *const *argv, char buf[PLACED_LINE_MAX])
{
	bool room = true;
	size_t len = 0;

	for (size_t i = 0; room && argv[i]; i++)
		room = (!i || add(buf, &len, ' ')) &&
		       add_word(buf, &len, argv[i]);
	memcpy(buf + len, "...", 4);
	if (room)
		buf[len] = '\0';
}

void placed_record(struct placed *placed)
{
	char line[PLACED_LINE_MAX];
	json_t *body;

	placed_line(placed->command.spec.argv, line);
	body = json_pack("{s:s}", "command", *line ? line : "''");
	if (!body)
		die(EXIT_SALLYPORT, "out of memory");
	json_decref(client_want(&(struct client_call){ .socket = placed->socket,
						       .method = "POST",
						       .name = placed->name,
						       .path = "/exec",
						       .body = body,
						       .patient = true }));
	json_decref(body);
}

/* --- entering ------------------------------------------------------------ */

void placed_enter(struct placed *placed)
{
	struct process_spec *spec = &placed->command.spec;
	char why[512 + PATH_MAX];

	if (exec_namespace_open(placed->netns, placed->owner, spec->as_root,
				&placed->ns, why, sizeof(why)) ||
	    exec_namespace_enter(&placed->ns, &spec->gid, why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s: %s", placed->name, why);
	spec->netns = placed->ns.net;
	if (bounds_has_limits(&placed->options.bounds))
		run_limits_make(&placed->limits, &placed->options.bounds.limits,
				spec);
	command_begin(&placed->command, &placed->gateway, placed->proxy_port,
		      placed->view.home);
	command_ready(&placed->command, placed->options.quiet);
}

int placed_run(struct placed *placed)
{
	struct event_base *base = event_base_new();
	const char *replaced;
	int status;

	if (!base)
		die(EXIT_SALLYPORT, "event loop: out of memory");
	command_attach(&placed->command, base, placed->options.timeout_ms);
	run_view_mark(&placed->view, &placed->options, &placed->session);
	if (process_start(&placed->command.process))
		die(EXIT_SALLYPORT, "the sandbox did not start");
	event_base_dispatch(base);
	status = command_wait(&placed->command);
	if (bounds_has_limits(&placed->options.bounds))
		run_limits_settle(&placed->limits,
				  &placed->options.bounds.limits, NULL);
	if (placed->command.timed_out)
		log_err("the command was ended after its time limit");
	replaced = run_view_settle(&placed->view);
	if (replaced)
		log_err("%s was replaced by another file while the command "
			"ran, which could write to it: look at it before you "
			"use it again",
			replaced);
	command_release(&placed->command);
	event_base_free(base);
	return status;
}

void placed_free(struct placed *placed)
{
	exec_namespace_close(&placed->ns);
	run_view_free(&placed->view);
	options_free(&placed->options);
}
