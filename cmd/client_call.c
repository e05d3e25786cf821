/* SPDX-License-Identifier: Apache-2.0
 *
 * client_call.c - see client_call.h. What the daemon says is shown as text:
 * log.h and print.h take out what a terminal would obey.
 */
#include "cmd/client_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client.h"
#include "cmd/command.h"
#include "cmd/daemon.h"

#define THERE_MS 2000
#define PAUSE_MS 100
#define PAUSES	 100
/* Asked for, whether there is one or not. */
#define NOBODYS_NAME "run"

const char *client_socket(const char *named)
{
	const char *env = getenv(CLIENT_SOCKET_ENV);

	if (named)
		return named;
	return env && *env ? env : DAEMON_SOCKET;
}

static _Noreturn void no_daemon(const char *socket, int err, const char *why)
{
	switch (err) {
	case -ENOENT:
	case -ECONNREFUSED:
		die(EXIT_SALLYPORT,
		    "no daemon answers at %s\nTry `sudo systemctl start "
		    "sallyport`; `sallyport run` needs none.",
		    socket);
	case -EACCES:
	case -EPERM:
		die(EXIT_SALLYPORT,
		    "%s: %s\nRoot and members of group sallyport may use the "
		    "daemon; `sallyport run` needs none.",
		    socket, why);
	default:
		die(EXIT_SALLYPORT, "the daemon at %s: %s", socket, why);
	}
}

/* --- asking -------------------------------------------------------------- */

static void path_of(const struct client_call *call, char *buf, size_t cap)
{
	int len;

	if (call->name)
		len = snprintf(buf, cap, "/v1/sandboxes/%s%s", call->name,
			       call->path ? call->path : "");
	else
		len = snprintf(buf, cap, "%s", call->path);
	if (len < 0 || (size_t)len >= cap)
		die(EXIT_SALLYPORT, "the path of the request is too long");
}

static json_t *read_json(const struct client_reply *reply)
{
	json_t *json = json_loadb(reply->body, reply->len,
				  JSON_REJECT_DUPLICATES, NULL);

	if (json_is_object(json))
		return json;
	json_decref(json);
	return NULL;
}

/* What was sent and what came last: who dies with them has not lost them. */
static const json_t *volatile last_body;
static const json_t *volatile last_answer;

/* Who has too many connections is hung up on, before anything is read. */
static int ask_patiently(const struct client_request *request,
			 struct client_reply *ret_reply, char *why, size_t cap)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000 };
	int err = client_ask(request, ret_reply, why, cap);

	for (int i = 0; (err == -EPIPE || err == -ECONNRESET) && i < PAUSES;
	     i++) {
		nanosleep(&pause, NULL);
		err = client_ask(request, ret_reply, why, cap);
	}
	return err;
}

static int ask(const struct client_call *call, struct client_reply *ret_reply,
	       char *why, size_t cap)
{
	AUTO_FREE char *body =
		call->body ? json_dumps(call->body, JSON_COMPACT) : NULL;
	char path[512];
	struct client_request request = { .socket = call->socket,
					  .method = call->method,
					  .path = path,
					  .body = body,
					  .len = body ? strlen(body) : 0,
					  .timeout_ms = CLIENT_TIMEOUT_MS };

	if (call->body && !body) {
		snprintf(why, cap, "out of memory");
		return -ENOMEM;
	}
	path_of(call, path, sizeof(path));
	return call->patient ? ask_patiently(&request, ret_reply, why, cap)
			     : client_ask(&request, ret_reply, why, cap);
}

static int try_json(const struct client_call *call, int *ret_status,
		    json_t **ret, char *why, size_t cap)
{
	struct client_reply reply = { 0 };
	int err = ask(call, &reply, why, cap);

	if (err)
		return err;
	*ret = read_json(&reply);
	*ret_status = reply.status;
	client_reply_free(&reply);
	if (!*ret)
		snprintf(why, cap,
			 "it answers %d, and nothing that can be read",
			 *ret_status);
	return 0;
}

json_t *client_ask_json(const struct client_call *call, int *ret_status)
{
	json_t *json = NULL;
	char why[256];
	int err;

	last_body = call->body;
	err = try_json(call, ret_status, &json, why, sizeof(why));
	if (err)
		no_daemon(call->socket, err, why);
	if (!json)
		die(EXIT_SALLYPORT, "the daemon at %s: %s", call->socket, why);
	last_answer = json;
	return json;
}

json_t *client_try_json(const struct client_call *call, int *ret_status,
			char *why, size_t cap)
{
	json_t *json = NULL;

	(void)try_json(call, ret_status, &json, why, cap);
	return json;
}

void client_complain(const char *name, const json_t *answer, int status)
{
	const char *error = client_text(answer, "error");
	const char *hint = client_text(answer, "hint");
	char text[64];

	snprintf(text, sizeof(text), "the daemon answers %d", status);
	log_err("%s%s%s%s%s", name ? name : "", name ? ": " : "",
		*error ? error : text, *hint ? "\n" : "", hint);
}

json_t *client_want(const struct client_call *call)
{
	int status;
	json_t *json = client_ask_json(call, &status);

	if (status != 200 && status != 201) {
		client_complain(call->name, json, status);
		exit(EXIT_SALLYPORT);
	}
	return json;
}

/* 0: no answer. */
static int status_of(const char *socket, const char *path)
{
	const struct client_request request = { .socket = socket,
						.method = "GET",
						.path = path,
						.timeout_ms = THERE_MS };
	struct client_reply reply = { 0 };
	char why[256];
	int status;

	if (ask_patiently(&request, &reply, why, sizeof(why)))
		return 0;
	status = reply.status;
	client_reply_free(&reply);
	return status;
}

bool client_there(const char *socket)
{
	return status_of(socket, "/v1/version") == 200;
}

/* Who may not ask is told that first. */
bool client_lets_in(const char *socket)
{
	int status = status_of(socket, "/v1/sandboxes/" NOBODYS_NAME);

	return status == 200 || status == 404;
}

/* --- answers ------------------------------------------------------------- */

const char *client_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

uint64_t client_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

void client_print_json(const json_t *json)
{
	AUTO_FREE char *text =
		json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII);

	if (!text)
		die(EXIT_SALLYPORT, "out of memory");
	puts(text);
}

void client_check_name(const char *name)
{
	if (!client_name(name))
		die(EXIT_SALLYPORT,
		    "'%s' is no name for a sandbox: 1 to 63 small letters, "
		    "digits, '.', '_' and '-', a letter or digit first",
		    name);
}
