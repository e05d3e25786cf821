/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_api_change.c - the routes that make and change sandboxes.
 *
 * Their answers come when keepers are done. What is published is listened to
 * before a sandbox is made for it: a port that somebody else has is an error
 * that leaves nothing behind.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "base/text.h"
#include "cmd/daemon_api_call.h"

#define PRIVILEGED_PORTS 1024

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

static int listen_for(struct api_call *call,
		      const struct daemon_publish *publish)
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

static int listen_all(struct api_call *call, const struct request *request)
{
	int err = 0;

	for (size_t i = 0; !err && i < request->publishes; i++)
		err = listen_for(call, &request->publish[i]);
	return err;
}

static void on_forwarded(void *arg, struct daemon_sandbox *sandbox, int err,
			 const char *why)
{
	struct api_call *call = arg;

	if (err && !*call->why)
		snprintf(call->why, sizeof(call->why), "%s",
			 *why ? why : strerror(-err));
	if (--call->waits)
		return;
	if (!*call->why) {
		api_sandbox(call->http, call->status, sandbox);
		api_call_free(call);
		return;
	}
	if (call->made)
		daemon_remove(call->daemon, sandbox, ENDED_FAILED, NULL, NULL);
	api_refuse(call, -EIO, call->why);
}

/* One more wait, for the loop: answers come only when all are on their way. */
static void forward_all(struct api_call *call, struct daemon_sandbox *sandbox)
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
	struct api_call *call = arg;
	struct daemon_sandbox *sandbox = api_read_on(call, err, why);

	if (!sandbox)
		return;
	err = listen_all(call, request);
	if (err)
		api_refuse(call, err, call->why);
	else
		forward_all(call, sandbox);
}

void api_publish(struct daemon *daemon, struct http_request *http,
		 struct daemon_sandbox *sandbox)
{
	struct api_call *call = api_call_on(daemon, http, sandbox);

	if (call)
		api_read(daemon, http, REQUEST_PUBLISH, publish, call);
}

/* --- policies ------------------------------------------------------------ */

/* Which policy @request asks for: *@ret is the request's or the
 * configuration's. 0, or -EINVAL and call->why. */
static int choose(struct api_call *call, struct request *request,
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

static void change_policy(void *arg, struct request *request, int err,
			  const struct request_error *why)
{
	struct api_call *call = arg;
	struct daemon_sandbox *sandbox = api_read_on(call, err, why);
	const struct bundle *bundle;

	if (!sandbox)
		return;
	err = choose(call, request, "", &bundle);
	if (!err)
		err = daemon_policy(call->daemon, sandbox, bundle,
				    request->policy_text, request->policy_name,
				    api_on_changed, call, call->why,
				    sizeof(call->why));
	if (err)
		api_refuse(call, err, call->why);
}

void api_policy(struct daemon *daemon, struct http_request *http,
		struct daemon_sandbox *sandbox)
{
	struct api_call *call = api_call_on(daemon, http, sandbox);

	if (call)
		api_read(daemon, http, REQUEST_POLICY, change_policy, call);
}

/* --- making -------------------------------------------------------------- */

static void on_created(void *arg, struct daemon_sandbox *sandbox, int err,
		       const char *why)
{
	struct api_call *call = arg;

	if (err) {
		api_refuse(call, err, why);
		return;
	}
	call->made = true;
	forward_all(call, sandbox);
}

static void specify(const struct api_call *call, const struct request *request,
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
	struct api_call *call = arg;

	if (!api_is_read(call, err, why))
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
		api_refuse(call, err, call->why);
	else
		*call->why = '\0';
}

void api_create(struct daemon *daemon, struct http_request *http,
		struct daemon_sandbox *none)
{
	struct api_call *call = api_call_new(daemon, http, 201);

	(void)none;
	if (call)
		api_read(daemon, http, REQUEST_CREATE, create, call);
}
