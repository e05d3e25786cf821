/* SPDX-License-Identifier: Apache-2.0
 *
 * run_daemon.c - `sallyport run` where there is a daemon.
 *
 *	serves	a daemon that is root's, lets us in, and can do what is asked
 *	create	a sandbox that ends with this process, however that ends
 *	record	the command, in the sandbox's log
 *	place	it, as `exec` does: with our rights, in our view of the files
 *	end	the sandbox; its receipt has the command's exit status
 *		(cmd/run_end.c), and what it came to is printed
 *
 * Its log, its key and its rules are the daemon's, and so is its limit of what
 * a policy may allow.
 */
#include "cmd/run_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "cmd/client.h"
#include "cmd/client_call.h"
#include "cmd/client_log.h"
#include "cmd/client_policy.h"
#include "cmd/command.h"
#include "cmd/daemon.h"
#include "cmd/placed.h"
#include "cmd/run_end.h"

/* Where no policy is found nothing is allowed; the operator's default is for
 * those who `create`. */
#define NO_POLICY "version: 1\n"

/* --- may it be the daemon's? --------------------------------------------- */

static bool is_switched_off(const struct options *o)
{
	const char *env = getenv(RUN_DAEMON_ENV);

	return o->no_daemon || (env && *env && strcmp(env, "0") != 0);
}

static bool is_docker_name(const char *name)
{
	return strncmp(name, DAEMON_DOCKER_PREFIX,
		       strlen(DAEMON_DOCKER_PREFIX)) == 0;
}

/* A log and a key of our own, and bounds that its opening record tells; a name
 * that is none for a sandbox. */
static bool needs_own(const struct options *o)
{
	return o->log_dir || o->key || o->published > DAEMON_PUBLISH_MAX ||
	       o->bounds.host_files || o->bounds.nest ||
	       bounds_has_limits(&o->bounds) ||
	       (o->name && (!client_name(o->name) || is_docker_name(o->name)));
}

bool run_daemon_serves(const struct options *options)
{
	return !is_switched_off(options) && !needs_own(options) &&
	       client_lets_in(client_socket(NULL));
}

/* --- the sandbox --------------------------------------------------------- */

static const char *make_name(const struct options *o, char buf[32])
{
	uint64_t random;

	if (o->name)
		return o->name;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		die(EXIT_SALLYPORT, "no random numbers");
	snprintf(buf, 32, "run-%016llx", (unsigned long long)random);
	return buf;
}

static json_t *published(const struct options *o)
{
	json_t *list = json_array();
	char ip[IP_TEXT_MAX];

	for (size_t i = 0; i < o->published; i++)
		if (json_array_append_new(
			    list, json_pack("{s:s, s:i, s:i}", "address",
					    ip_format(&o->publish[i].at.ip, ip),
					    "port", o->publish[i].at.port,
					    "inside", o->publish[i].port)))
			die(EXIT_SALLYPORT, "out of memory");
	return list;
}

static json_t *request(struct placed *placed)
{
	struct options *o = &placed->options;
	struct client_policy policy = { .choice = o->policy,
					.bundle = o->bundle };
	json_t *body = json_pack("{s:s, s:b, s:o}", "name", placed->name,
				 "temporary", 1, "publish", published(o));

	if (!body)
		die(EXIT_SALLYPORT, "out of memory");
	if (!o->bundle.len) {
		if (json_object_set_new(body, "policy",
					json_string(NO_POLICY)) ||
		    json_object_set_new(body, "policy_text",
					json_string("none")))
			die(EXIT_SALLYPORT, "out of memory");
		return body;
	}
	client_policy_put_read(&policy, body);
	return body;
}

static void create(struct placed *placed)
{
	json_t *body = request(placed), *s;
	int status;

	s = client_ask_json(&(struct client_call){ .socket = placed->socket,
						   .method = "POST",
						   .path = "/v1/sandboxes",
						   .body = body,
						   .patient = true },
			    &status);
	json_decref(body);
	if (status != 201) {
		client_complain(NULL, s, status);
		die(EXIT_SALLYPORT,
		    "the daemon makes no sandbox for this command; "
		    "`sallyport run --no-daemon` needs none");
	}
	placed_at(placed, s);
	placed_limit(placed, s);
	/* Who comes into it by `exec` must not see them either. */
	client_policy_remember(
		&(struct client_policy){ .bundle = placed->options.bundle },
		placed->name);
	client_log_note(s);
	json_decref(s);
}

/* --- */

int run_daemon(const struct options *options)
{
	static struct placed placed = { .ns = { -1, -1 } };
	char name[32];
	struct run_end end;
	int status;

	placed.options = *options;
	placed.name = make_name(options, name);
	placed.socket = client_socket(NULL);
	placed.command.spec.argv = options->argv;
	placed.command.env = placed.options.bounds.env;
	placed.command.envs = placed.options.bounds.envs;
	run_view_user(&placed.view, &placed.options, &placed.command.spec);
	session_policy(&placed.options, &placed.session);
	/* Until there is one, a signal ends us, and with us what the daemon
	 * makes: one that does not answer holds nobody. */
	create(&placed);
	command_catch(&placed.command);
	placed_choose_view(&placed);
	placed_record(&placed);
	run_end_prepare(&end, &placed);
	placed_enter(&placed);
	status = placed_run(&placed);
	if (!run_end_now(&end, &placed, status) && status == 0)
		status = EXIT_SALLYPORT;
	policy_unref(placed.session.policy);
	placed_free(&placed);
	return status;
}
