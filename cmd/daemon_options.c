/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_options.c - the command line of `sallyport daemon`.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/daemon_impl.h"

static const char help_text[] =
	"usage: sallyport daemon [OPTION]...\n\n"
	"Serves many sandboxes, each with a gate, a log and a policy of its "
	"own.\n`sallyport create` and others ask it over its control socket; "
	"systemctl starts\nit.\n\n"
	"  --config FILE     what the operator says; otherwise\n"
	"                    /etc/sallyport/daemon.yaml, if it is there\n"
	"  --socket PATH     where it is asked; otherwise control.sock below "
	"--run\n"
	"  --state DIR       what outlives it; otherwise /var/lib/sallyport\n"
	"  --run DIR         namespaces, sockets; otherwise /run/sallyport\n"
	"  --verbose         tell more on stderr\n"
	"  --help            this text\n\n"
	"SIGHUP: the configuration and its policies are read again. SIGTERM: "
	"all sessions\nend, each with its receipt; the sandboxes stay, and "
	"have their addresses again\nwhen it is back. Until then they reach "
	"nothing.\n";

static const char *value(int argc, char **argv, int *at)
{
	if (*at + 1 >= argc)
		die(EXIT_SALLYPORT, "%s needs a value", argv[*at]);
	return argv[++*at];
}

static void set_path(const char **ret, const char *option, const char *path)
{
	/* Names of sandboxes come after it. */
	if (*path != '/' || strlen(path) > PATH_MAX / 2)
		die(EXIT_SALLYPORT, "%s %s: it must be an absolute path",
		    option, path);
	*ret = path;
}

void daemon_options_parse(int argc, char **argv, struct daemon_options *ret)
{
	static char socket[PATH_MAX];
	const struct {
		const char *name;
		const char **value;
	} paths[] = { { "--config", &ret->config },
		      { "--socket", &ret->socket },
		      { "--state", &ret->state },
		      { "--run", &ret->run } };

	*ret = (struct daemon_options){ .config = DAEMON_CONFIG,
					.state = DAEMON_STATE_DIR,
					.run = DAEMON_RUN_DIR };
	for (int i = 1; i < argc; i++) {
		const char *option = argv[i];
		size_t k = 0;

		while (k < ARRAY_SIZE(paths) &&
		       strcmp(option, paths[k].name) != 0)
			k++;
		if (k < ARRAY_SIZE(paths)) {
			set_path(paths[k].value, option, value(argc, argv, &i));
			ret->config_named |= k == 0;
		} else if (strcmp(option, "--help") == 0) {
			fputs(help_text, stdout);
			exit(0);
		} else if (strcmp(option, "--verbose") == 0) {
			log_init("sallyport", LOG_LEVEL_INFO);
		} else {
			die(EXIT_SALLYPORT,
			    "what is %s\nTry `sallyport daemon --help`.",
			    option);
		}
	}
	if (!ret->socket) {
		snprintf(socket, sizeof(socket), "%s/control.sock", ret->run);
		ret->socket = socket;
	}
}
