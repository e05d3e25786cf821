/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_api_call.c - a request whose answer comes later: who asked, and what
 * he is answered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/daemon_api_call.h"

struct api_call *api_call_new(struct daemon *daemon, struct http_request *http,
			      int status)
{
	struct api_call *call = calloc(1, sizeof(*call));

	if (!call) {
		api_error(http, 503, "out of memory", "");
		return NULL;
	}
	*call = (struct api_call){ .daemon = daemon,
				   .http = http,
				   .status = status };
	for (size_t i = 0; i < DAEMON_PUBLISH_MAX; i++)
		call->fd[i] = -1;
	return call;
}

void api_call_free(struct api_call *call)
{
	for (size_t i = 0; i < DAEMON_PUBLISH_MAX; i++)
		close_fd(&call->fd[i]);
	free(call);
}

void api_refuse(struct api_call *call, int err, const char *why)
{
	const char *hint = strstr(why, "was not read")
				   ? "the daemon opens no path for a user: "
				     "send a bundle, as `sallyport create` does"
				   : "";

	api_error(call->http, api_status(err), *why ? why : strerror(-err),
		  hint);
	api_call_free(call);
}

/* Is what was read, or why not, in order? */
bool api_is_read(struct api_call *call, int err,
		 const struct request_error *why)
{
	if (!err && !call->daemon->stopping)
		return true;
	if (err)
		api_error(call->http, err == -EINVAL ? 400 : api_status(err),
			  why->error, why->hint);
	else
		api_error(call->http, 503, "the daemon is ending", "");
	api_call_free(call);
	return false;
}

struct daemon_sandbox *api_read_on(struct api_call *call, int err,
				   const struct request_error *why)
{
	struct daemon_sandbox *sandbox;

	if (!api_is_read(call, err, why))
		return NULL;
	sandbox = api_find(call->daemon, call->http, call->name, call->any);
	if (!sandbox) {
		api_error(call->http, 404, "there is no such sandbox", "");
		api_call_free(call);
	}
	return sandbox;
}

struct api_call *api_call_on(struct daemon *daemon, struct http_request *http,
			     const struct daemon_sandbox *sandbox)
{
	struct api_call *call = api_call_new(daemon, http, 200);

	if (call)
		memcpy(call->name, sandbox->spec.name, sizeof(call->name));
	return call;
}

void api_on_changed(void *arg, struct daemon_sandbox *sandbox, int err,
		    const char *why)
{
	struct api_call *call = arg;

	if (err) {
		api_refuse(call, err, why);
		return;
	}
	/* Its digest, until its keeper says more. */
	api_sandbox(call->http, call->status, sandbox);
	api_call_free(call);
}
