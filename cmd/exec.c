/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.c - `sallyport exec NAME -- COMMAND`: one process more in a sandbox of
 * the daemon (cmd/placed.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/client_log.h"
#include "cmd/client_options.h"
#include "cmd/client_policy.h"
#include "cmd/command.h"
#include "cmd/placed.h"

enum {
	OPT_ENV = CLIENT_OPTION_OWN,
	OPT_USER,
	OPT_TIMEOUT,
	OPT_QUIET,
};

struct exec {
	struct client_line line;
	struct placed placed;
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
	struct bounds *bounds = &exec->placed.options.bounds;

	if (*text == '=' || !*text)
		client_bad_line(&exec->line, "not NAME or NAME=VALUE:", text);
	if (bounds->envs == BOUNDS_ENV_MAX)
		client_bad_line(&exec->line, "too many --env options", NULL);
	bounds->env[bounds->envs++] = text;
}

static void option(void *arg, int code, const char *value)
{
	struct exec *exec = arg;

	switch (code) {
	case OPT_ENV:
		add_env(exec, value);
		break;
	case OPT_USER:
		exec->placed.options.user = value;
		break;
	case OPT_TIMEOUT:
		if (!options_duration(value, &exec->placed.options.timeout_ms))
			client_bad_line(
				&exec->line,
				"not a time like 90, 90s, 5m or 2h:", value);
		break;
	case OPT_QUIET:
		exec->placed.options.quiet = true;
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
	exec->placed.name = client_next_word(&exec->line, argc, argv);
	if (!exec->placed.name)
		client_bad_line(&exec->line, "the name of a sandbox is missing",
				NULL);
	client_check_name(exec->placed.name);
	if (!client_next_word(&exec->line, argc, argv))
		client_bad_line(&exec->line,
				"a command is missing: sallyport exec NAME -- "
				"COMMAND",
				NULL);
	exec->placed.command.spec.argv = argv + optind - 1;
	exec->placed.socket = client_socket(exec->line.socket);
}

/* --- running it ---------------------------------------------------------- */

static void ask(struct exec *exec)
{
	struct placed *placed = &exec->placed;
	json_t *s = client_want(&(struct client_call){ .socket = placed->socket,
						       .method = "GET",
						       .name = placed->name });
	int err = client_policy_recall(placed->name, &placed->options.bundle);

	if (err && err != -ENOENT)
		die(EXIT_SALLYPORT,
		    "which files %s has its policy from can't be read: %s",
		    placed->name, strerror(-err));
	placed_at(placed, s);
	placed_limit(placed, s);
	client_log_note(s);
	json_decref(s);
}

int exec_main(int argc, char **argv)
{
	static struct exec exec = { .placed.ns = { -1, -1 } };
	struct placed *placed = &exec.placed;
	int status;

	log_init("sallyport", LOG_LEVEL_WARN);
	parse(&exec, argc, argv);
	run_view_user(&placed->view, &placed->options, &placed->command.spec);
	ask(&exec);
	placed_choose_view(placed);
	command_catch(&placed->command);
	placed->command.env = placed->options.bounds.env;
	placed->command.envs = placed->options.bounds.envs;
	placed_record(placed);
	placed_enter(placed);
	status = placed_run(placed);
	placed_free(placed);
	return status;
}
