/* SPDX-License-Identifier: Apache-2.0
 *
 * client_options.h - the command lines of the commands that talk to the daemon.
 * They die with a message (EXIT_SALLYPORT) where one is wrong.
 */
#ifndef CMD_CLIENT_OPTIONS_H
#define CMD_CLIENT_OPTIONS_H

#include <getopt.h>
#include <stddef.h>

/* One of these options is found in @table by every such command. */
enum client_option {
	CLIENT_OPTION_SOCKET = 768,
	CLIENT_OPTION_JSON,
	CLIENT_OPTION_HELP,
	CLIENT_OPTION_OWN, /* what only one command has begins here */
};

#define CLIENT_OPTIONS                                               \
	{ "socket", required_argument, NULL, CLIENT_OPTION_SOCKET }, \
	{                                                            \
		"help", no_argument, NULL, CLIENT_OPTION_HELP        \
	}
#define CLIENT_OPTION_WITH_JSON                               \
	{                                                     \
		"json", no_argument, NULL, CLIENT_OPTION_JSON \
	}

extern const char client_options_help[]; /* of --socket and --help */

struct client_line {
	const char *command; /* "create" */
	const struct option *table;
	/* @value: optarg. Not for --socket and --help. */
	void (*option)(void *arg, int code, const char *value);
	void *arg;
	const char *help; /* --help: this, and client_options_help */
	const char *const *more_help; /* between the two; ends in NULL */

	const char *socket; /* --socket */
};

_Noreturn void client_bad_line(const struct client_line *line, const char *what,
			       const char *arg);

/* Reads options up to the next word, which is returned; NULL at the end. The
 * words that options leave are behind optind then. */
const char *client_next_word(struct client_line *line, int argc, char **argv);

/* Reads all of it: @min to @max words into @ret_words, which may stand before,
 * between and behind options. Returns how many. */
size_t client_read_line(struct client_line *line, int argc, char **argv,
			size_t min, size_t max, const char **ret_words);

#endif
