/* SPDX-License-Identifier: Apache-2.0
 *
 * rm.c - `sallyport rm NAME...`: sandboxes end, with all that runs in them.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/client_log.h"
#include "cmd/client_options.h"
#include "cmd/client_policy.h"
#include "cmd/command.h"
#include "cmd/print.h"

#define NAMES_MAX 1024

static const struct option table[] = {
	CLIENT_OPTIONS,
	CLIENT_OPTION_WITH_JSON,
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: sallyport rm [OPTION]... NAME...\n\n"
	"Ends sandboxes: what runs in them, their sessions (the receipt is "
	"written) and\ntheir namespaces. Logs stay.\n\n"
	"  --json            what the daemon answers, a line each\n";

static void option(void *arg, int code, const char *value)
{
	bool *json = arg;

	(void)value;
	*json |= code == CLIENT_OPTION_JSON;
}

static void show(const char *name, const json_t *answer)
{
	const char *receipt = client_text(answer, "receipt");
	const char *held = client_text(answer, "held");

	print_text(stdout, TONE_PLAIN, "%s is gone", name);
	if (*held)
		print_text(stdout, TONE_PLAIN, "; boundary: %s", held);
	if (*receipt)
		print_text(stdout, TONE_PLAIN, "; receipt: %s", receipt);
	putchar('\n');
}

static int remove_one(const char *socket, const char *name, bool json)
{
	int status;
	json_t *answer = client_ask_json(
		&(struct client_call){
			.socket = socket, .method = "DELETE", .name = name },
		&status);
	bool gone = status == 200;

	if (!gone) {
		client_complain(name, answer, status);
	} else {
		client_policy_forget(name);
		client_log_note(answer);
		if (json)
			client_print_json(answer);
		else
			show(name, answer);
	}
	json_decref(answer);
	return gone ? 0 : EXIT_SALLYPORT;
}

int rm_main(int argc, char **argv)
{
	static const char *names[NAMES_MAX];
	bool json = false;
	struct client_line line = { .command = "rm",
				    .table = table,
				    .option = option,
				    .arg = &json,
				    .help = help };
	int status = 0;
	size_t n;

	log_init("sallyport", LOG_LEVEL_WARN);
	n = client_read_line(&line, argc, argv, 1, NAMES_MAX, names);
	for (size_t i = 0; i < n; i++)
		client_check_name(names[i]);
	for (size_t i = 0; i < n; i++)
		status |=
			remove_one(client_socket(line.socket), names[i], json);
	return print_end(status);
}
