/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_read.c - what was asked for, read. A policy in base64 in JSON, tens of
 * megabytes of it, takes a second: that is done beside the loop, and what one
 * user can have read at a time is bounded.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/daemon_api.h"

#define SHORT_BYTES ((size_t)64 << 10)
/* Of all that is read of one user's, who is not root, at a time. */
#define READING_MAX ((size_t)256 << 20)

struct reading {
	struct work work;
	enum request_kind kind;
	struct evbuffer *body;
	struct request request;
	struct request_error why;
	int err;
	api_read_fn *fn;
	void *arg;
};

/* "a.yaml, b.yaml": what a bundle is made of, by its own account. */
static void describe(const struct bundle *bundle, char *buf, size_t cap)
{
	char path[PATH_MAX];
	size_t len = 0;

	*buf = '\0';
	for (size_t i = 0; bundle_file(bundle, i, path, sizeof(path)); i++) {
		if (len + strlen(path) + 8 > cap) {
			snprintf(buf + len, cap - len, "%s...", i ? ", " : "");
			break;
		}
		len += (size_t)snprintf(buf + len, cap - len, "%s%s",
					i ? ", " : "", path);
	}
	if (!*buf)
		snprintf(buf, cap, bundle->len ? "options" : "none");
	text_clean(buf);
}

static void look_at_bundle(struct request *request)
{
	if (!request->has_bundle)
		return;
	if (!*request->policy_text)
		describe(&request->bundle, request->policy_text,
			 sizeof(request->policy_text));
	request->bundle_err =
		bundle_check_sent(&request->bundle, &request->bundle_why);
	if (!request->bundle_err)
		*request->bundle_why.text = '\0';
}

/* Beside the loop. */
static void run(struct work *work)
{
	struct reading *r = (struct reading *)(void *)work;
	const size_t len = evbuffer_get_length(r->body);
	const char *text =
		len ? (const char *)evbuffer_pullup(r->body, -1) : NULL;

	r->err = len && !text ? -ENOMEM
			      : request_parse(r->kind, text, len, &r->request,
					      &r->why);
	evbuffer_free(r->body);
	r->body = NULL;
	if (!r->err)
		look_at_bundle(&r->request);
}

static void done(struct work *work)
{
	struct reading *r = (struct reading *)(void *)work;

	r->fn(r->arg, &r->request, r->err, &r->why);
	if (!r->err)
		request_free(&r->request);
	free(r);
}

static void refuse(api_read_fn *fn, void *arg, int err, const char *why,
		   const char *hint)
{
	struct request_error error = { "", "" };

	snprintf(error.error, sizeof(error.error), "%s", why);
	snprintf(error.hint, sizeof(error.hint), "%s", hint);
	fn(arg, NULL, err, &error);
}

void api_read(struct daemon *daemon, struct http_request *http,
	      enum request_kind kind, api_read_fn *fn, void *arg)
{
	const uid_t uid = http_request_peer(http)->uid;
	struct reading *r = calloc(1, sizeof(*r));
	size_t len;

	if (!r || !(r->body = http_request_take_body(http))) {
		free(r);
		refuse(fn, arg, -ENOMEM, "out of memory", "");
		return;
	}
	len = evbuffer_get_length(r->body);
	r->work = (struct work){ .run = run, .done = done, .uid = uid };
	r->work.bytes = len;
	r->kind = kind;
	r->fn = fn;
	r->arg = arg;
	if (len <= SHORT_BYTES) {
		run(&r->work);
		done(&r->work);
	} else if (uid &&
		   work_bytes(daemon->workers, uid) + len > READING_MAX) {
		evbuffer_free(r->body);
		free(r);
		refuse(fn, arg, -ENOSPC,
		       "too many long policies of yours are being read",
		       "send them one after the other");
	} else {
		work_add(daemon->workers, &r->work);
	}
}
