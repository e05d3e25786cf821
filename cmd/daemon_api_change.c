/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_api_change.c - the routes that make, change and end sandboxes.
 *
 * Their answers come when keepers are done. What is published is listened to
 * before a sandbox is made for it: a port that somebody else has is an error
 * that leaves nothing behind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "base/text.h"
#include "cmd/daemon_api.h"
#include "cmd/daemon_reply.h"

#define PRIVILEGED_PORTS 1024

struct call {
	struct daemon *daemon;
	struct http_request *http;
	int status; /* of a good end */
	/* Published when the sandbox is there. */
	struct daemon_publish publish[DAEMON_PUBLISH_MAX];
	int fd[DAEMON_PUBLISH_MAX];
	size_t publishes, waits;
	char name[DAEMON_NAME_MAX]; /* whom it is about */
	bool made; /* the sandbox is new, and goes if this goes wrong */
	char why[512];
};

static struct call *call_new(struct daemon *daemon, struct http_request *http,
			     int status)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call) {
		api_error(http, 503, "out of memory", "");
		return NULL;
	}
	*call = (struct call){ .daemon = daemon,
			       .http = http,
			       .status = status };
	for (size_t i = 0; i < DAEMON_PUBLISH_MAX; i++)
		call->fd[i] = -1;
	return call;
}

static void call_free(struct call *call)
{
	for (size_t i = 0; i < DAEMON_PUBLISH_MAX; i++)
		close_fd(&call->fd[i]);
	free(call);
}

static void refuse(struct call *call, int err, const char *why)
{
	const char *hint = strstr(why, "was not read")
				   ? "the daemon opens no path for a user: "
				     "send a bundle, as `sallyport create` does"
				   : "";

	api_error(call->http, api_status(err), *why ? why : strerror(-err),
		  hint);
	call_free(call);
}

/* Is what was read, or why not, in order? */
static bool is_read(struct call *call, int err, const struct request_error *why)
{
	if (!err && !call->daemon->stopping)
		return true;
	if (err)
		api_error(call->http, err == -EINVAL ? 400 : api_status(err),
			  why->error, why->hint);
	else
		api_error(call->http, 503, "the daemon is ending", "");
	call_free(call);
	return false;
}

/* It may have gone meanwhile, and another one have come. */
static struct daemon_sandbox *find_again(struct call *call)
{
	struct daemon_sandbox *sandbox =
		api_find(call->daemon, call->http, call->name);

	if (!sandbox) {
		api_error(call->http, 404, "there is no such sandbox", "");
		call_free(call);
	}
	return sandbox;
}

static struct call *call_on(struct daemon *daemon, struct http_request *http,
			    const struct daemon_sandbox *sandbox)
{
	struct call *call = call_new(daemon, http, 200);

	if (call)
		memcpy(call->name, sandbox->spec.name, sizeof(call->name));
	return call;
}

/* --- publishing ---------------------------------------------------------- */

/* What the kernel would say to the user, and never less than is usual. */
static unsigned first_port(void)
{
	AUTO_FILE FILE *file =
		fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
	unsigned port;

	return file && fscanf(file, "%u", &port) == 1 && port > PRIVILEGED_PORTS
		       ? port
		       : PRIVILEGED_PORTS;
}

static int listen_for(struct call *call, const struct daemon_publish *publish)
{
	const struct ucred *peer = http_request_peer(call->http);
	char ip[IP_TEXT_MAX];
	int fd;

	if (peer->uid != 0 && publish->at.port < first_port()) {
		snprintf(call->why, sizeof(call->why),
			 "only root publishes ports below %u", first_port());
		return -EACCES;
	}
	fd = sock_listen_tcp(&publish->at.ip, publish->at.port, false);
	if (fd < 0) {
		snprintf(call->why, sizeof(call->why), "%s port %u: %s",
			 ip_format(&publish->at.ip, ip), publish->at.port,
			 strerror(-fd));
		return fd == -EADDRNOTAVAIL ? -EINVAL : fd;
	}
	call->fd[call->publishes] = fd;
	call->publish[call->publishes++] = *publish;
	return 0;
}

static int listen_all(struct call *call, const struct request *request)
{
	int err = 0;

	for (size_t i = 0; !err && i < request->publishes; i++)
		err = listen_for(call, &request->publish[i]);
	return err;
}

static void on_forwarded(void *arg, struct daemon_sandbox *sandbox, int err,
			 const char *why)
{
	struct call *call = arg;

	if (err && !*call->why)
		snprintf(call->why, sizeof(call->why), "%s",
			 *why ? why : strerror(-err));
	if (--call->waits)
		return;
	if (!*call->why) {
		api_sandbox(call->http, call->status, sandbox);
		call_free(call);
		return;
	}
	if (call->made)
		daemon_remove(call->daemon, sandbox, ENDED_FAILED, NULL, NULL);
	refuse(call, -EIO, call->why);
}

/* One more wait, for the loop: answers come only when all are on their way. */
static void forward_all(struct call *call, struct daemon_sandbox *sandbox)
{
	call->waits = 1;
	for (size_t i = 0; i < call->publishes; i++) {
		int fd = steal_fd(&call->fd[i]), err;

		call->waits++;
		err = daemon_forward(
			call->daemon, sandbox, fd, &call->publish[i].at,
			call->publish[i].inside, on_forwarded, call);
		if (err)
			on_forwarded(call, sandbox, err, "");
	}
	on_forwarded(call, sandbox, 0, "");
}

static void publish(void *arg, struct request *request, int err,
		    const struct request_error *why)
{
	struct daemon_sandbox *sandbox;
	struct call *call = arg;

	if (!is_read(call, err, why) || !(sandbox = find_again(call)))
		return;
	err = listen_all(call, request);
	if (err)
		refuse(call, err, call->why);
	else
		forward_all(call, sandbox);
}

void api_publish(struct daemon *daemon, struct http_request *http,
		 struct daemon_sandbox *sandbox)
{
	struct call *call = call_on(daemon, http, sandbox);

	if (call)
		api_read(daemon, http, REQUEST_PUBLISH, publish, call);
}

/* --- policies ------------------------------------------------------------ */

/* Which policy @request asks for: *@ret is the request's or the
 * configuration's. 0, or -EINVAL and call->why. */
static int choose(struct call *call, struct request *request,
		  const char *otherwise, const struct bundle **ret)
{
	const struct daemon_policy *named;

	*ret = &request->bundle;
	if (request->has_bundle) {
		snprintf(call->why, sizeof(call->why), "%s",
			 request->bundle_why.text);
		return request->bundle_err;
	}
	if (!*request->policy_name)
		snprintf(request->policy_name, sizeof(request->policy_name),
			 "%s", otherwise);
	if (!*request->policy_name) {
		snprintf(call->why, sizeof(call->why),
			 "there is no policy: 'policy', 'bundle' or "
			 "'policy_name' is missing");
		return -EINVAL;
	}
	named = daemon_config_policy(call->daemon->config,
				     request->policy_name);
	if (!named) {
		snprintf(call->why, sizeof(call->why),
			 "the operator's configuration has no policy '%s'",
			 request->policy_name);
		text_clean(call->why);
		return -EINVAL;
	}
	snprintf(request->policy_text, sizeof(request->policy_text), "%.500s",
		 named->path);
	*ret = &named->bundle;
	return 0;
}

static void on_changed(void *arg, struct daemon_sandbox *sandbox, int err,
		       const char *why)
{
	struct call *call = arg;

	if (err) {
		refuse(call, err, why);
		return;
	}
	/* Its digest, until its keeper says more. */
	api_sandbox(call->http, call->status, sandbox);
	call_free(call);
}

static void change_policy(void *arg, struct request *request, int err,
			  const struct request_error *why)
{
	struct daemon_sandbox *sandbox;
	const struct bundle *bundle;
	struct call *call = arg;

	if (!is_read(call, err, why) || !(sandbox = find_again(call)))
		return;
	err = choose(call, request, "", &bundle);
	if (!err)
		err = daemon_policy(call->daemon, sandbox, bundle,
				    request->policy_text, request->policy_name,
				    on_changed, call, call->why,
				    sizeof(call->why));
	if (err)
		refuse(call, err, call->why);
}

void api_policy(struct daemon *daemon, struct http_request *http,
		struct daemon_sandbox *sandbox)
{
	struct call *call = call_on(daemon, http, sandbox);

	if (call)
		api_read(daemon, http, REQUEST_POLICY, change_policy, call);
}

/* --- making, ending ------------------------------------------------------ */

static void on_created(void *arg, struct daemon_sandbox *sandbox, int err,
		       const char *why)
{
	struct call *call = arg;

	if (err) {
		refuse(call, err, why);
		return;
	}
	call->made = true;
	forward_all(call, sandbox);
}

static void specify(const struct call *call, const struct request *request,
		    struct daemon_spec *ret)
{
	const struct ucred *peer = http_request_peer(call->http);
	uint32_t wall = call->daemon->config->wall_clock_s;

	*ret = (struct daemon_spec){ .uid = peer->uid,
				     .gid = peer->gid,
				     .link = KEEP_LINK_OWN };
	if (request->temporary)
		ret->holder = peer->pid;
	if (request->timeout_s && (!wall || request->timeout_s < wall))
		wall = request->timeout_s;
	if (wall)
		ret->ends_s = (int64_t)time(NULL) + wall;
	memcpy(ret->name, request->name, sizeof(ret->name));
	memcpy(ret->policy_name, request->policy_name,
	       sizeof(ret->policy_name));
	memcpy(ret->policy_text, request->policy_text,
	       sizeof(ret->policy_text));
}

static void create(void *arg, struct request *request, int err,
		   const struct request_error *why)
{
	const struct bundle *bundle;
	struct daemon_spec spec;
	struct call *call = arg;

	if (!is_read(call, err, why))
		return;
	err = choose(call, request, call->daemon->config->default_policy,
		     &bundle);
	/* In a pid namespace that is not below ours nobody has a number. */
	if (!err && request->temporary &&
	    http_request_peer(call->http)->pid <= 0) {
		snprintf(call->why, sizeof(call->why),
			 "which process asks can't be seen from here");
		err = -EINVAL;
	}
	if (!err)
		err = listen_all(call, request);
	if (!err) {
		specify(call, request, &spec);
		err = daemon_create(call->daemon, &spec, bundle, on_created,
				    call, call->why, sizeof(call->why));
	}
	if (err)
		refuse(call, err, call->why);
	else
		*call->why = '\0';
}

void api_create(struct daemon *daemon, struct http_request *http,
		struct daemon_sandbox *none)
{
	struct call *call = call_new(daemon, http, 201);

	(void)none;
	if (call)
		api_read(daemon, http, REQUEST_CREATE, create, call);
}

static void on_removed(void *arg, struct daemon_sandbox *sandbox, int err,
		       const char *why)
{
	const size_t cap = reply_removed_max(sandbox);
	AUTO_FREE char *buf = malloc(cap);
	struct json j = json_of(buf, buf ? cap : 0);
	struct call *call = arg;

	if (err) {
		refuse(call, err, why);
		return;
	}
	reply_removed(&j, sandbox);
	if (j.full)
		api_error(call->http, 503, "out of memory", "");
	else
		http_reply(call->http, 200, "application/json", buf, j.len);
	call_free(call);
}

static void end(struct call *call, struct daemon_sandbox *sandbox,
		enum ended_by ended)
{
	int err = daemon_remove(call->daemon, sandbox, ended, on_removed, call);

	if (err)
		refuse(call, err, "it is being removed already");
}

void api_remove(struct daemon *daemon, struct http_request *http,
		struct daemon_sandbox *sandbox)
{
	struct call *call = call_new(daemon, http, 200);

	if (call)
		end(call, sandbox, ENDED_EXIT);
}

static void end_as(void *arg, struct request *request, int err,
		   const struct request_error *why)
{
	struct daemon_sandbox *sandbox;
	struct call *call = arg;

	if (!is_read(call, err, why))
		return;
	sandbox = find_again(call);
	if (!sandbox)
		return;
	sandbox->status = request->status;
	end(call, sandbox, request->ended);
}

void api_end(struct daemon *daemon, struct http_request *http,
	     struct daemon_sandbox *sandbox)
{
	struct call *call = call_on(daemon, http, sandbox);

	if (call)
		api_read(daemon, http, REQUEST_END, end_as, call);
}

/* --- commands ------------------------------------------------------------ */

static void exec_in(void *arg, struct request *request, int err,
		    const struct request_error *why)
{
	struct daemon_sandbox *sandbox;
	struct call *call = arg;

	if (!is_read(call, err, why))
		return;
	sandbox = find_again(call);
	if (!sandbox)
		return;
	err = daemon_exec(sandbox, http_request_peer(call->http)->uid,
			  request->command, on_changed, call);
	if (err)
		refuse(call, err, err == -EBUSY ? "it is not ready" : "");
}

void api_exec(struct daemon *daemon, struct http_request *http,
	      struct daemon_sandbox *sandbox)
{
	struct call *call = call_on(daemon, http, sandbox);

	if (call)
		api_read(daemon, http, REQUEST_EXEC, exec_in, call);
}
