/* SPDX-License-Identifier: Apache-2.0
 *
 * client_options.c - the command lines of the commands that talk to the daemon.
 */
#include "cmd/client_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/command.h"

const char client_options_help[] =
	"  --socket PATH     where the daemon listens (default: "
	"$SALLYPORT_SOCKET, or\n"
	"                    /run/sallyport/control.sock)\n"
	"  --help            this text\n";

_Noreturn void client_bad_line(const struct client_line *line, const char *what,
			       const char *arg)
{
	die(EXIT_SALLYPORT, "%s%s%s\nTry `sallyport %s --help`.", what,
	    arg ? " " : "", arg ? arg : "", line->command);
}

static _Noreturn void help(const struct client_line *line)
{
	fputs(line->help, stdout);
	for (const char *const *more = line->more_help; more && *more; more++)
		fputs(*more, stdout);
	fputs(client_options_help, stdout);
	exit(0);
}

const char *client_next_word(struct client_line *line, int argc, char **argv)
{
	int code;

	opterr = 0;
	/* '+': no further than the next word. */
	while ((code = getopt_long(argc, argv, "+:", line->table, NULL)) !=
	       -1) {
		if (code == '?')
			client_bad_line(line,
					"no such option:", argv[optind - 1]);
		if (code == ':')
			client_bad_line(line, "a value is missing after",
					argv[optind - 1]);
		if (code == CLIENT_OPTION_HELP)
			help(line);
		if (code == CLIENT_OPTION_SOCKET)
			line->socket = optarg;
		else
			line->option(line->arg, code, optarg);
	}
	return optind < argc ? argv[optind++] : NULL;
}

size_t client_read_line(struct client_line *line, int argc, char **argv,
			size_t min, size_t max, const char **ret_words)
{
	const char *word;
	size_t n = 0;

	while ((word = client_next_word(line, argc, argv))) {
		if (n == max)
			client_bad_line(line, "what is", word);
		ret_words[n++] = word;
	}
	if (n < min)
		client_bad_line(line, "the name of a sandbox is missing", NULL);
	return n;
}
