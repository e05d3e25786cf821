/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.c - `sallyport exec NAME -- COMMAND`: one process more in a sandbox of
 * the daemon.
 *
 *	ask	the daemon where it is; it must be ready
 *	look	is that a network namespace, and whose?
 *	become	root of the user namespace that owns it, unless root already
 *	enter	as `run` does it: the same view of files, the same environment
 *	wait	until it ends
 *
 * The daemon has no part in this: it never runs what a user says, and what is
 * in the sandbox is nobody's child but ours. The gate is the sandbox's own.
 */
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/client_options.h"
#include "cmd/client_policy.h"
#include "cmd/command.h"
#include "cmd/command_process.h"
#include "cmd/daemon.h"
#include "cmd/exec_namespace.h"
#include "cmd/options.h"
#include "cmd/run_view.h"
#include "cmd/session.h"

enum {
	OPT_ENV = CLIENT_OPTION_OWN,
	OPT_USER,
	OPT_TIMEOUT,
	OPT_QUIET,
};

#define ENV_MAX 256

struct exec {
	struct client_line line;
	const char *name, *socket;
	const char *env[ENV_MAX]; /* NAME or NAME=VALUE */
	size_t envs;
	/* As far as the view asks for them. */
	struct options options;
	struct session session;
	struct run_view view;

	/* What the daemon says. */
	char netns[PATH_MAX];
	uid_t owner;
	struct ip gateway;
	uint16_t proxy_port;

	struct exec_namespace ns;
	struct command_process command;
};

static const struct option table[] = {
	CLIENT_OPTIONS,
	{ "env", required_argument, NULL, OPT_ENV },
	{ "user", required_argument, NULL, OPT_USER },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: sallyport exec [OPTION]... NAME [--] COMMAND [ARGUMENT]...\n\n"
	"Runs COMMAND in the sandbox NAME of the daemon. It sees files as "
	"`sallyport run`\nshows them. Signals go to COMMAND.\n\n"
	"Exit status: COMMAND's own; 124 on timeout; 125 if sallyport failed; "
	"126 or 127\nif COMMAND can't be run or found.\n\n"
	"  --env NAME        or NAME=VALUE: one variable more, also one that "
	"may be a\n"
	"                    secret; those that lead around a sandbox are "
	"dropped\n"
	"  --user NAME       as root: run it as this user (default: a uid "
	"nobody uses)\n"
	"  --timeout TIME    end it after 90, 90s, 5m, 2h; exit status 124\n"
	"  --quiet           no notes about what it can't see\n";

/* --- the command line ---------------------------------------------------- */

static void add_env(struct exec *exec, const char *text)
{
	if (*text == '=' || !*text)
		client_bad_line(&exec->line, "not NAME or NAME=VALUE:", text);
	if (exec->envs == ENV_MAX)
		client_bad_line(&exec->line, "too many --env options", NULL);
	exec->env[exec->envs++] = text;
}

static void option(void *arg, int code, const char *value)
{
	struct exec *exec = arg;

	switch (code) {
	case OPT_ENV:
		add_env(exec, value);
		break;
	case OPT_USER:
		exec->options.user = value;
		break;
	case OPT_TIMEOUT:
		if (!options_duration(value, &exec->options.timeout_ms))
			client_bad_line(
				&exec->line,
				"not a time like 90, 90s, 5m or 2h:", value);
		break;
	case OPT_QUIET:
		exec->options.quiet = true;
		break;
	default:
		break;
	}
}

static void parse(struct exec *exec, int argc, char **argv)
{
	exec->line = (struct client_line){ .command = "exec",
					   .table = table,
					   .option = option,
					   .arg = exec,
					   .help = help };
	exec->name = client_next_word(&exec->line, argc, argv);
	if (!exec->name)
		client_bad_line(&exec->line, "the name of a sandbox is missing",
				NULL);
	client_check_name(exec->name);
	if (!client_next_word(&exec->line, argc, argv))
		client_bad_line(&exec->line,
				"a command is missing: sallyport exec NAME -- "
				"COMMAND",
				NULL);
	exec->command.spec.argv = argv + optind - 1;
	exec->socket = client_socket(exec->line.socket);
}

/* --- asking -------------------------------------------------------------- */

static void copy(const struct exec *exec, const json_t *s, const char *key,
		 char *buf, size_t cap)
{
	int len = snprintf(buf, cap, "%s", client_text(s, key));

	if (len < 0 || (size_t)len >= cap)
		die(EXIT_SALLYPORT,
		    "%s: what the daemon says of it is too long", exec->name);
}

static void check_ready(const struct exec *exec, const json_t *s)
{
	const char *state = client_text(s, "state");
	const char *why = client_text(s, "why");

	if (strcmp(state, "ready") == 0)
		return;
	die(EXIT_SALLYPORT,
	    "%s is not ready: %s%s%s\nTry `sallyport status %s`.", exec->name,
	    *state ? state : "its state is unknown", *why ? ": " : "", why,
	    exec->name);
}

static void ask(struct exec *exec)
{
	json_t *s = client_want(&(struct client_call){
		.socket = exec->socket, .method = "GET", .name = exec->name });
	const json_t *uid = json_object_get(s, "uid");
	uint64_t port = client_number(s, "proxy_port");
	char *slash;

	check_ready(exec, s);
	if (!json_is_integer(uid) || json_integer_value(uid) < 0 ||
	    json_integer_value(uid) >= UINT32_MAX ||
	    !ip_parse(client_text(s, "gateway"), &exec->gateway) || !port ||
	    port > 65535)
		die(EXIT_SALLYPORT, "%s: the daemon does not say where it is",
		    exec->name);
	exec->owner = (uid_t)json_integer_value(uid);
	exec->proxy_port = (uint16_t)port;
	copy(exec, s, "netns", exec->netns, sizeof(exec->netns));
	copy(exec, s, "log", exec->session.dir, sizeof(exec->session.dir));
	/* Its directory, whichever of the two it is. */
	slash = strrchr(exec->session.dir, '/');
	if (slash && strcmp(slash + 1, LOG_DIR_RECORDS) == 0)
		*slash = '\0';
	json_decref(s);
}

/* --- what it sees -------------------------------------------------------- */

static void choose_view(struct exec *exec)
{
	struct session *session = &exec->session;
	int err = client_policy_recall(exec->name, &exec->options.bundle);

	if (err && err != -ENOENT)
		die(EXIT_SALLYPORT,
		    "which files %s has its policy from can't be read: %s",
		    exec->name, strerror(-err));
	/* The key that signs this sandbox's log is the daemon's. */
	session->signing.ephemeral = true;
	session_home(session->home, sizeof(session->home));
	snprintf(session->id, sizeof(session->id), "exec-%lld-%d",
		 (long long)time(NULL), (int)getpid());
	run_view_descriptors(&exec->options);
	run_view_hide(&exec->view, DAEMON_RUN_DIR);
	run_view_hide(&exec->view, DAEMON_STATE_DIR);
	run_view_hide(&exec->view, exec->socket);
	run_view_choose(&exec->view, &exec->options, session,
			&exec->command.spec);
}

/* --- entering ------------------------------------------------------------ */

static void enter(struct exec *exec)
{
	struct process_spec *spec = &exec->command.spec;
	char why[512 + PATH_MAX];

	if (exec_namespace_open(exec->netns, exec->owner, spec->as_root,
				&exec->ns, why, sizeof(why)) ||
	    exec_namespace_enter(&exec->ns, &spec->gid, why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s: %s", exec->name, why);
	spec->netns = exec->ns.net;
	command_begin(&exec->command, &exec->gateway, exec->proxy_port,
		      exec->view.home);
	command_ready(&exec->command, exec->options.quiet);
}

static int wait_for(struct exec *exec)
{
	struct event_base *base = event_base_new();
	const char *replaced;
	int status;

	if (!base)
		die(EXIT_SALLYPORT, "event loop: out of memory");
	command_attach(&exec->command, base, exec->options.timeout_ms);
	run_view_mark(&exec->view, &exec->options, &exec->session);
	if (process_start(&exec->command.process))
		die(EXIT_SALLYPORT, "the sandbox did not start");
	event_base_dispatch(base);
	status = command_wait(&exec->command);
	if (exec->command.timed_out)
		log_err("the command was ended after its time limit");
	replaced = run_view_settle(&exec->view);
	if (replaced)
		log_err("%s was replaced by another file while the command "
			"ran, which could write to it: look at it before you "
			"use it again",
			replaced);
	command_release(&exec->command);
	event_base_free(base);
	return status;
}

int exec_main(int argc, char **argv)
{
	static struct exec exec = { .ns = { -1, -1 } };
	int status;

	log_init("sallyport", LOG_LEVEL_WARN);
	parse(&exec, argc, argv);
	run_view_user(&exec.view, &exec.options, &exec.command.spec);
	ask(&exec);
	choose_view(&exec);
	command_catch(&exec.command);
	exec.command.env = exec.env;
	exec.command.envs = exec.envs;
	enter(&exec);
	status = wait_for(&exec);
	exec_namespace_close(&exec.ns);
	run_view_free(&exec.view);
	bundle_free(&exec.options.bundle);
	return status;
}
