/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_engine.c - one request after the other.
 */
#include "cmd/prove_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client.h"
#include "cmd/client_call.h"
#include "cmd/command.h"
#include "cmd/prove.h"

#define SHEET_PATH "/prove/sheet"
#define TAR_BLOCK  512

bool engine_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";

	return *name && *name != '.' && !name[strspn(name, letters)] &&
	       strlen(name) < 256;
}

/* 0, and an answer of whatever status; or -errno and a sentence. */
static int talk(const struct engine *engine, const char *method,
		const char *path, const char *body, size_t len,
		struct client_reply *ret, char *why, size_t cap)
{
	const struct client_request request = { .socket = engine->socket,
						.method = method,
						.path = path,
						.body = body,
						.len = len,
						.timeout_ms = PROVE_ALL_MS };
	char text[256];
	int err = client_ask(&request, ret, text, sizeof(text));

	if (err)
		snprintf(why, cap, "%s: %s", engine->socket, text);
	return err;
}

/* NULL and a sentence if it is no success. */
static json_t *read_answer(const struct client_reply *reply, char *why,
			   size_t cap)
{
	json_t *json =
		json_loadb(reply->body ? reply->body : "", reply->len, 0, NULL);

	if (reply->status >= 200 && reply->status < 300)
		return json ? json : json_object();
	snprintf(why, cap, "%s",
		 *client_text(json, "message") ? client_text(json, "message")
					       : "it refuses");
	json_decref(json);
	return NULL;
}

json_t *engine_ask(const struct engine *engine, const struct engine_call *call,
		   char *why, size_t cap)
{
	AUTO_FREE char *text =
		call->body ? json_dumps(call->body, JSON_COMPACT) : NULL;
	struct client_reply reply = { 0 };
	char path[512];
	json_t *answer;

	snprintf(path, sizeof(path), "%s%s%s", call->path,
		 call->id ? call->id : "", call->more ? call->more : "");
	if (talk(engine, call->method, path, text, text ? strlen(text) : 0,
		 &reply, why, cap))
		return NULL;
	answer = read_answer(&reply, why, cap);
	client_reply_free(&reply);
	return answer;
}

json_t *engine_want(const struct engine *engine, const struct engine_call *call)
{
	char why[512];
	json_t *answer = engine_ask(engine, call, why, sizeof(why));

	if (!answer)
		die(EXIT_SALLYPORT, "the engine: %s", why);
	return answer;
}

void engine_remove(const struct engine *engine, const char *what,
		   const char *id)
{
	const struct engine_call call = {
		.method = "DELETE", .path = what, .id = id, .more = "?force=1"
	};
	char why[512];
	json_t *answer = engine_ask(engine, &call, why, sizeof(why));

	if (!answer)
		log_warn("the engine does not remove %s: %s", id, why);
	json_decref(answer);
}

/* The answer is some objects, of which the last has {"status":ID}. */
void engine_import(const struct engine *engine, const struct image *image,
		   char *ret_id, size_t cap)
{
	struct client_reply reply = { 0 };
	const char *at;
	char why[512];

	if (talk(engine, "POST", "/images/create?fromSrc=-", image->data,
		 image->len, &reply, why, sizeof(why)))
		die(EXIT_SALLYPORT, "the engine: %s", why);
	at = reply.body ? strstr(reply.body, "sha256:") : NULL;
	if (reply.status != 200 || !at)
		die(EXIT_SALLYPORT, "the engine imports no image: %s",
		    reply.body ? reply.body : "no answer");
	snprintf(ret_id, cap, "%.*s", 71, at);
	client_reply_free(&reply);
}

/* A tar of one file. */
void engine_copy_sheet(const struct engine *engine, const char *id,
		       struct prove_sheet *ret)
{
	struct client_reply reply = { 0 };
	char path[256], why[512];

	snprintf(path, sizeof(path), "/containers/%s/archive?path=" SHEET_PATH,
		 id);
	if (talk(engine, "GET", path, NULL, 0, &reply, why, sizeof(why)))
		die(EXIT_SALLYPORT, "the engine: %s", why);
	if (reply.status != 200 || reply.len < TAR_BLOCK + sizeof(*ret))
		die(EXIT_SALLYPORT, "the engine does not give the result");
	memcpy(ret, reply.body + TAR_BLOCK, sizeof(*ret));
	client_reply_free(&reply);
}
