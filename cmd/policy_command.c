/* SPDX-License-Identifier: Apache-2.0
 *
 * policy_command.c - `sallyport policy NAME`: another policy for a sandbox of
 * the daemon, in force at once, also for what goes on.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/client_options.h"
#include "cmd/client_policy.h"
#include "cmd/command.h"
#include "cmd/policy_options.h"
#include "cmd/print.h"

enum { OPT_POLICY_NAME = CLIENT_OPTION_OWN };

struct change {
	struct client_line line;
	struct client_policy policy;
	bool json;
};

static const struct option table[] = {
	POLICY_OPTIONS,
	CLIENT_OPTIONS,
	CLIENT_OPTION_WITH_JSON,
	{ "policy-name", required_argument, NULL, OPT_POLICY_NAME },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: sallyport policy [OPTION]... NAME [FILE]...\n\n"
	"Gives the sandbox NAME another policy: all of it, in place of the one "
	"it has.\nWhat goes on and is no longer allowed is cut; or, where the "
	"new one is wrong,\nthe old one stays in force. FILE is short for "
	"--policy FILE.\n\n";

static const char *const more_help[] = {
	policy_options_help, CLIENT_POLICY_NAME_HELP,
	"  --json            what the daemon answers\n", NULL
};

static void option(void *arg, int code, const char *value)
{
	struct change *c = arg;

	if (policy_option(&c->policy.choice, code, value))
		return;
	if (code == CLIENT_OPTION_JSON)
		c->json = true;
	else if (code == OPT_POLICY_NAME)
		c->policy.name = value;
}

static void show(const char *name, const json_t *answer)
{
	const json_t *policy = json_object_get(answer, "policy");

	print_text(stdout, TONE_PLAIN, "%s: %s (sha256:%.12s)\n", name,
		   client_text(policy, "text"), client_text(policy, "digest"));
}

int policy_main(int argc, char **argv)
{
	static struct change c;
	json_t *body = json_object(), *answer;
	const char *words[1 + POLICY_PATHS_MAX], *name;
	int status;
	size_t n;

	log_init("sallyport", LOG_LEVEL_WARN);
	c.line = (struct client_line){ .command = "policy",
				       .table = table,
				       .option = option,
				       .arg = &c,
				       .help = help,
				       .more_help = more_help };
	n = client_read_line(&c.line, argc, argv, 1, ARRAY_SIZE(words), words);
	name = words[0];
	client_check_name(name);
	for (size_t i = 1; i < n; i++)
		policy_option(&c.policy.choice, POLICY_OPTION_POLICY, words[i]);
	/* To take everything away is nothing to do by leaving a word out. */
	if (!body || !client_policy_put(&c.policy, body))
		client_bad_line(&c.line, "which policy? --policy FILE says it",
				NULL);
	answer = client_policy_send(client_socket(c.line.socket), name, body,
				    &status);
	if (status != 200) {
		client_complain(name, answer, status);
		exit(EXIT_SALLYPORT);
	}
	client_policy_remember(&c.policy, name);
	if (c.json)
		client_print_json(answer);
	else
		show(name, answer);
	json_decref(answer);
	json_decref(body);
	client_policy_free(&c.policy);
	return print_end(0);
}
