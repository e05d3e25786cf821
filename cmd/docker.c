/* SPDX-License-Identifier: Apache-2.0
 *
 * docker.c - the calls of the protocol by name, and how they are answered.
 *
 * What is wrong goes back as {"Err": "..."} with HTTP's 200: the engine puts
 * that sentence on the terminal of whoever typed the command, so it says what
 * to do. Only a call that we do not know is a 404, which engines take for "an
 * older driver". Keys that we have no use for are left alone, as each engine
 * sends others; of those that we use, the type has to be right.
 */
#include "cmd/docker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/docker_impl.h"

int64_t docker_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* --- answers ------------------------------------------------------------- */

static void reply_text(struct docker_reply *reply, int status, const char *json)
{
	const struct docker_reply to = *reply;

	/* First: the callback may bring the next call. */
	*reply = (struct docker_reply){ 0 };
	if (to.fn)
		to.fn(to.arg, status, json, strlen(json));
}

void docker_ok(struct docker_reply *reply)
{
	reply_text(reply, 200, "{}");
}

static void reply_json(struct docker_reply *reply, int status, json_t *object)
{
	AUTO_FREE char *text =
		object ? json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII)
		       : NULL;

	json_decref(object);
	if (text)
		reply_text(reply, status, text);
	else
		reply_text(reply, 200, "{\"Err\":\"out of memory\"}");
}

void docker_answer(struct docker_reply *reply, json_t *object)
{
	reply_json(reply, 200, object);
}

static void refuse(struct docker_reply *reply, int status, char *text)
{
	/* It quotes what others wrote, and a terminal shows it. */
	text_clean(text);
	reply_json(reply, status, json_pack("{s:s}", "Err", text));
}

void docker_refuse(struct docker_reply *reply, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	refuse(reply, 200, text);
}

/* --- questions ----------------------------------------------------------- */

const char *docker_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* Ids become names of files and interfaces. */
const char *docker_id(const json_t *call, const char *key,
		      struct docker_reply *reply)
{
	const char *id = docker_text(call, key);
	const size_t len = id ? strlen(id) : 0;

	if (len >= 12 && len <= DOCKER_ID_MAX &&
	    strspn(id, "0123456789abcdefghijklmnopqrstuvwxyz") == len)
		return id;
	docker_refuse(
		reply,
		"the engine's call has no usable %s (12 to 64 small letters and digits)",
		key);
	return NULL;
}

static void activate(struct docker *docker, const json_t *call,
		     struct docker_reply *reply)
{
	(void)call;
	/* The engine has just started: perhaps after it was killed. */
	docker_collect(docker);
	docker_answer(reply,
		      json_pack("{s:[s]}", "Implements", "NetworkDriver"));
}

static void capabilities(struct docker *docker, const json_t *call,
			 struct docker_reply *reply)
{
	(void)docker;
	(void)call;
	docker_answer(reply, json_pack("{s:s,s:s}", "Scope", "local",
				       "ConnectivityScope", "local"));
}

/* Other nodes of a cluster, of which we have none; and what a Leave ends. */
static void nothing(struct docker *docker, const json_t *call,
		    struct docker_reply *reply)
{
	(void)docker;
	(void)call;
	docker_ok(reply);
}

static const struct {
	const char *path;
	docker_call_fn *fn;
	bool bare; /* without a body */
} calls[] = {
	{ "/Plugin.Activate", activate, true },
	{ "/NetworkDriver.GetCapabilities", capabilities, true },
	{ "/NetworkDriver.CreateNetwork", docker_create_network, false },
	{ "/NetworkDriver.DeleteNetwork", docker_delete_network, false },
	{ "/NetworkDriver.CreateEndpoint", docker_create_endpoint, false },
	{ "/NetworkDriver.EndpointOperInfo", docker_oper_info, false },
	{ "/NetworkDriver.DeleteEndpoint", docker_delete_endpoint, false },
	{ "/NetworkDriver.Join", docker_join, false },
	{ "/NetworkDriver.Leave", docker_leave, false },
	{ "/NetworkDriver.ProgramExternalConnectivity", docker_program, false },
	/* Before a Leave, and when another network of the container becomes
	 * the one with its default route; then Program... may come again, for
	 * the same ports. They go with the sandbox. */
	{ "/NetworkDriver.RevokeExternalConnectivity", nothing, false },
	{ "/NetworkDriver.DiscoverNew", nothing, false },
	{ "/NetworkDriver.DiscoverDelete", nothing, false },
};

void docker_call(struct docker *docker, const char *path, const char *body,
		 size_t len, docker_reply_fn *fn, void *arg)
{
	struct docker_reply reply = { .fn = fn, .arg = arg };
	char unknown[] = "the sallyport driver has no such call";
	json_error_t error;
	json_t *call = NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (strcmp(calls[i].path, path) == 0)
			break;
	if (i == ARRAY_SIZE(calls)) {
		refuse(&reply, 404, unknown);
		return;
	}
	if (!calls[i].bare) {
		if (len > DOCKER_BODY_MAX) {
			docker_refuse(&reply, "the engine's call is too long");
			return;
		}
		call = json_loadb(body, len, JSON_REJECT_DUPLICATES, &error);
		if (!json_is_object(call)) {
			docker_refuse(
				&reply,
				"the engine's call is not a JSON object: %s",
				call ? "it is another value" : error.text);
			json_decref(call);
			return;
		}
	}
	calls[i].fn(docker, call, &reply);
	json_decref(call);
}
