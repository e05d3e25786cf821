/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_api_end.c - the routes that end sandboxes, and that note which command
 * is run in one, and what attacks on one came to.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cmd/daemon_api_call.h"
#include "cmd/daemon_reply.h"
#include "cmd/prove_report.h"

static void on_removed(void *arg, struct daemon_sandbox *sandbox, int err,
		       const char *why)
{
	const size_t cap = reply_removed_max(sandbox);
	AUTO_FREE char *buf = malloc(cap);
	struct json j = json_of(buf, buf ? cap : 0);
	struct api_call *call = arg;

	if (err) {
		api_refuse(call, err, why);
		return;
	}
	reply_removed(&j, sandbox);
	if (j.full)
		api_error(call->http, 503, "out of memory", "");
	else
		http_reply(call->http, 200, "application/json", buf, j.len);
	api_call_free(call);
}

static void end(struct api_call *call, struct daemon_sandbox *sandbox,
		enum ended_by ended)
{
	int err = daemon_remove(call->daemon, sandbox, ended, on_removed, call);

	if (err)
		api_refuse(call, err, "it is being removed already");
}

void api_remove(struct daemon *daemon, struct http_request *http,
		struct daemon_sandbox *sandbox)
{
	struct api_call *call = api_call_new(daemon, http, 200);

	if (call)
		end(call, sandbox, ENDED_EXIT);
}

static void end_as(void *arg, struct request *request, int err,
		   const struct request_error *why)
{
	struct api_call *call = arg;
	struct daemon_sandbox *sandbox = api_read_on(call, err, why);

	if (!sandbox)
		return;
	sandbox->status = request->status;
	end(call, sandbox, request->ended);
}

void api_end(struct daemon *daemon, struct http_request *http,
	     struct daemon_sandbox *sandbox)
{
	struct api_call *call = api_call_on(daemon, http, sandbox);

	if (call)
		api_read(daemon, http, REQUEST_END, end_as, call);
}

/* --- commands ------------------------------------------------------------ */

static void exec_in(void *arg, struct request *request, int err,
		    const struct request_error *why)
{
	struct api_call *call = arg;
	struct daemon_sandbox *sandbox = api_read_on(call, err, why);

	if (!sandbox)
		return;
	err = daemon_exec(sandbox, http_request_peer(call->http)->uid,
			  request->command, api_on_changed, call);
	if (err)
		api_refuse(call, err, err == -EBUSY ? "it is not ready" : "");
}

void api_exec(struct daemon *daemon, struct http_request *http,
	      struct daemon_sandbox *sandbox)
{
	struct api_call *call = api_call_on(daemon, http, sandbox);

	if (call)
		api_read(daemon, http, REQUEST_EXEC, exec_in, call);
}

/* --- attacks ------------------------------------------------------------- */

/* Who reports is who the kernel says, and all that is known of it. */
static void report(void *arg, struct request *request, int err,
		   const struct request_error *why)
{
	struct api_call *call = arg;
	struct daemon_sandbox *sandbox = api_read_on(call, err, why);

	if (!sandbox)
		return;
	if (!prove_report_known(&request->attacks)) {
		api_refuse(call, -EINVAL,
			   "there are attacks that are not known here: is "
			   "this another version of sallyport?");
		return;
	}
	request->attacks.reports = request->attacks.users = 1;
	request->attacks.user[0] = http_request_peer(call->http)->uid;
	err = daemon_attacks(sandbox, &request->attacks, api_on_changed, call);
	if (err)
		api_refuse(call, err, err == -EBUSY ? "it is not ready" : "");
}

void api_attacks(struct daemon *daemon, struct http_request *http,
		 struct daemon_sandbox *sandbox)
{
	struct api_call *call = api_call_on(daemon, http, sandbox);

	if (!call)
		return;
	call->any = true;
	api_read(daemon, http, REQUEST_ATTACKS, report, call);
}
