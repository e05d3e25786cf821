/* SPDX-License-Identifier: Apache-2.0
 *
 * reload_daemon.c - `sallyport reload`, where the daemon is meant. It reads
 * only what its configuration names; what came as contents nobody could read
 * again.
 */
#include "cmd/reload_daemon.h"

#include <stdio.h>

#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/client_policy.h"
#include "cmd/command.h"
#include "cmd/print.h"

static json_t *policy_again(const char *socket, const char *sandbox)
{
	json_t *s, *body;
	const char *name;

	client_check_name(sandbox);
	s = client_want(&(struct client_call){
		.socket = socket, .method = "GET", .name = sandbox });
	name = client_text(json_object_get(s, "policy"), "name");
	if (!*name)
		die(EXIT_SALLYPORT,
		    "the policy of %s came as contents, which can't be read "
		    "again\nTry `sallyport policy %s FILE`.",
		    sandbox, sandbox);
	body = json_pack("{s:s}", "policy_name", name);
	json_decref(s);
	if (!body)
		die(EXIT_SALLYPORT, "out of memory");
	return body;
}

int reload_daemon(const char *socket, const char *sandbox, bool json)
{
	const struct client_call all = { .socket = socket,
					 .method = "POST",
					 .path = "/v1/reload" };
	json_t *body = NULL, *answer;
	int status;
	bool good;

	if (sandbox)
		body = policy_again(socket, sandbox);
	answer = sandbox ? client_policy_send(socket, sandbox, body, &status)
			 : client_ask_json(&all, &status);
	good = status == 200;
	if (json)
		client_print_json(answer);
	else if (!good)
		client_complain(sandbox, answer, status);
	else if (sandbox)
		print_text(
			stdout, TONE_PLAIN, "%s: %s (sha256:%.12s)\n", sandbox,
			client_text(json_object_get(answer, "policy"), "text"),
			client_text(json_object_get(answer, "policy"),
				    "digest"));
	else
		puts("the daemon's configuration and its policies are in "
		     "force");
	json_decref(answer);
	json_decref(body);
	if (good)
		return print_end(0);
	/* 400, 422: it is wrong; else nobody has looked. */
	return status == 400 || status == 422 ? EXIT_REFUSED : EXIT_SALLYPORT;
}
