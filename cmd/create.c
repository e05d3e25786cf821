/* SPDX-License-Identifier: Apache-2.0
 *
 * create.c - `sallyport create NAME`: a sandbox that stays, of the daemon.
 *
 * The policy is read here, by who named it, and goes to the daemon as contents.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/cell_notice.h"
#include "cmd/client_call.h"
#include "cmd/client_log.h"
#include "cmd/client_options.h"
#include "cmd/client_policy.h"
#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/policy_options.h"
#include "cmd/print.h"
#include "cmd/session.h"

enum {
	OPT_TIMEOUT = CLIENT_OPTION_OWN,
	OPT_PUBLISH,
	OPT_POLICY_NAME,
};

struct create {
	struct client_line line;
	struct client_policy policy;
	json_t *publish;
	unsigned timeout_ms;
	bool json;
};

static const struct option table[] = {
	POLICY_OPTIONS,
	CLIENT_OPTIONS,
	CLIENT_OPTION_WITH_JSON,
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "publish", required_argument, NULL, OPT_PUBLISH },
	{ "policy-name", required_argument, NULL, OPT_POLICY_NAME },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: sallyport create [OPTION]... NAME\n\n"
	"Makes a sandbox that stays until `sallyport rm NAME`, or its time is "
	"over: a\nnetwork namespace whose only way out is a gate with this "
	"policy. `sallyport exec\nNAME -- COMMAND` runs commands in it.\n\n";

static const char own_help[] =
	"  --timeout TIME    it ends after 90, 90s, 5m, 2h\n"
	"  --publish [ADDR:]PORT:PORT\n"
	"                    connections to ADDR (127.0.0.1) and the first PORT "
	"go to the\n"
	"                    second inside, through the gate; may be given "
	"again\n"
	"  --json            what the daemon answers\n";

static const char *const more_help[] = { policy_options_help,
					 CLIENT_POLICY_NAME_HELP, own_help,
					 NULL };

static void add_publish(struct create *c, const char *text)
{
	struct publish_option publish;
	char ip[IP_TEXT_MAX];

	if (!options_publish(text, &publish))
		client_bad_line(&c->line,
				"not [ADDR:]PORT:PORT, like 8080:3000 (IPv6 in "
				"brackets):",
				text);
	if (json_array_append_new(c->publish,
				  json_pack("{s:s, s:i, s:i}", "address",
					    ip_format(&publish.at.ip, ip),
					    "port", publish.at.port, "inside",
					    publish.port)))
		die(EXIT_SALLYPORT, "out of memory");
}

static void option(void *arg, int code, const char *value)
{
	struct create *c = arg;

	if (policy_option(&c->policy.choice, code, value))
		return;
	switch (code) {
	case CLIENT_OPTION_JSON:
		c->json = true;
		break;
	case OPT_TIMEOUT:
		if (!options_duration(value, &c->timeout_ms))
			client_bad_line(
				&c->line,
				"not a time like 90, 90s, 5m or 2h:", value);
		break;
	case OPT_PUBLISH:
		add_publish(c, value);
		break;
	case OPT_POLICY_NAME:
		c->policy.name = value;
		break;
	default:
		break;
	}
}

static json_t *request(struct create *c, const char *name, bool *ret_policy)
{
	json_t *body = json_pack("{s:s}", "name", name);

	if (!body)
		die(EXIT_SALLYPORT, "out of memory");
	/* Without one the daemon has its own for those who ask for none. */
	*ret_policy = client_policy_put(&c->policy, body);
	if (c->timeout_ms &&
	    json_object_set_new(body, "timeout_s",
				json_integer((c->timeout_ms + 999) / 1000)))
		die(EXIT_SALLYPORT, "out of memory");
	if (json_array_size(c->publish) &&
	    json_object_set(body, "publish", c->publish))
		die(EXIT_SALLYPORT, "out of memory");
	return body;
}

static void show(const char *name, const json_t *s)
{
	const char *policy = client_text(json_object_get(s, "policy"), "text");
	const char *user = client_text(s, "userns");

	print_text(stdout, TONE_PLAIN, "%s is %s: %s\n", name,
		   client_text(s, "state"), *policy ? policy : "no policy");
	print_text(stdout, TONE_PLAIN, "  log        %s\n",
		   client_text(s, "log"));
	print_text(stdout, TONE_PLAIN, "  namespace  %s\n",
		   client_text(s, "netns"));
	print_text(stdout, TONE_PLAIN,
		   "  command    sallyport exec %s -- COMMAND\n", name);
	print_text(stdout, TONE_PLAIN,
		   "  others     nsenter %s%s%s--net=%s COMMAND, or\n"
		   "             podman run --network ns:%s IMAGE\n",
		   *user ? "--preserve-credentials --user=" : "", user,
		   *user ? " " : "", client_text(s, "netns"),
		   client_text(s, "netns"));
	print_text(stdout, TONE_PLAIN, "  its end    sallyport rm %s\n", name);
}

static json_t *ask(struct create *c, const char *name)
{
	bool policy;
	json_t *body = request(c, name, &policy), *answer;
	int status;

	answer = client_ask_json(
		&(struct client_call){ .socket = client_socket(c->line.socket),
				       .method = "POST",
				       .path = "/v1/sandboxes",
				       .body = body },
		&status);
	if (status == 422 && !policy)
		die(EXIT_SALLYPORT,
		    "%s: there is no policy, and the daemon has none for those "
		    "who name none\nTry --policy FILE, or --allow HOST.",
		    name);
	if (status != 201) {
		client_complain(name, answer, status);
		exit(EXIT_SALLYPORT);
	}
	json_decref(body);
	return answer;
}

int create_main(int argc, char **argv)
{
	static struct create c;
	const char *name;
	json_t *answer;

	log_init("sallyport", LOG_LEVEL_WARN);
	c.publish = json_array();
	c.line = (struct client_line){ .command = "create",
				       .table = table,
				       .option = option,
				       .arg = &c,
				       .help = help,
				       .more_help = more_help };
	client_read_line(&c.line, argc, argv, 1, 1, &name);
	client_check_name(name);
	answer = ask(&c, name);
	client_policy_remember(&c.policy, name);
	cell_notice(&c.policy.bundle, "that `exec` starts");
	client_log_note(answer);
	if (c.json)
		client_print_json(answer);
	else
		show(name, answer);
	json_decref(answer);
	json_decref(c.publish);
	client_policy_free(&c.policy);
	return print_end(0);
}
