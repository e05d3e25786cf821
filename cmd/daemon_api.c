/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_api.c - the control socket: a table of routes, one function that says
 * who may use them on what (authorise), and a function each.
 *
 * Who asks is who the kernel says it is. A sandbox of somebody else is not
 * there: the same answer as for a name that nobody has.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/daemon_api.h"
#include "cmd/daemon_config.h"
#include "cmd/daemon_metrics.h"
#include "cmd/daemon_reply.h"

#define JSON_TYPE "application/json"
#define TEXT_TYPE "text/plain; charset=utf-8"

/* --- answers ------------------------------------------------------------- */

void api_error(struct http_request *http, int status, const char *error,
	       const char *hint)
{
	char buf[8192];
	struct json j = json_of(buf, sizeof(buf));

	reply_error(&j, error, hint);
	http_reply(http, status, JSON_TYPE, buf, j.len);
}

void api_sandbox(struct http_request *http, int status,
		 const struct daemon_sandbox *sandbox)
{
	/* A quote is two bytes then. */
	const size_t cap = REPLY_SANDBOX_MAX + 6 * DAEMON_CEILING_TEXT_MAX;
	AUTO_FREE char *buf = malloc(cap);
	struct json j = json_of(buf, buf ? cap : 0);

	reply_sandbox(&j, sandbox, daemon_ceiling_sandbox(sandbox));
	if (j.full)
		api_error(http, 503, "out of memory", "");
	else
		http_reply(http, status, JSON_TYPE, buf, j.len);
}

int api_status(int err)
{
	switch (err) {
	case -EINVAL:
		return 422;
	case -EEXIST:
	case -EBUSY:
	case -EALREADY:
	case -EADDRINUSE:
		return 409;
	case -EFBIG:
		return 413;
	case -EACCES:
		return 403;
	case -ENOSPC:
	case -ENOMEM:
		return 503;
	default:
		return 500;
	}
}

/* --- what does not change anything --------------------------------------- */

static void get_version(struct daemon *daemon, struct http_request *http,
			struct daemon_sandbox *sandbox)
{
	static const char text[] =
		"{\"version\":\"" SALLYPORT_VERSION "\",\"api\":1}";

	(void)daemon;
	(void)sandbox;
	http_reply(http, 200, JSON_TYPE, text, sizeof(text) - 1);
}

static bool sees(const struct ucred *peer, const struct daemon_sandbox *s)
{
	return peer->uid == 0 || (peer->uid == s->spec.uid && !s->spec.docker);
}

static void get_all(struct daemon *daemon, struct http_request *http,
		    struct daemon_sandbox *none)
{
	/* Memory that is not written to is not taken. */
	const size_t cap = (daemon->count + 1) * REPLY_SANDBOX_MAX;
	AUTO_FREE char *buf = malloc(cap);
	struct json j = json_of(buf, buf ? cap : 0);

	(void)none;
	json_open(&j, NULL, '{');
	json_open(&j, "sandboxes", '[');
	for (struct daemon_sandbox *s = daemon->first; s; s = s->next)
		if (sees(http_request_peer(http), s))
			reply_sandbox(&j, s, NULL);
	json_close(&j, ']');
	json_close(&j, '}');
	if (j.full)
		api_error(http, 503, "out of memory", "");
	else
		http_reply(http, 200, JSON_TYPE, buf, j.len);
}

static void get_one(struct daemon *daemon, struct http_request *http,
		    struct daemon_sandbox *sandbox)
{
	(void)daemon;
	api_sandbox(http, 200, sandbox);
}

static void get_metrics(struct daemon *daemon, struct http_request *http,
			struct daemon_sandbox *none)
{
	const bool open =
		daemon_metrics_accepts(http_request_header(http, "Accept"));
	AUTO_FREE char *text = daemon_metrics(daemon, open);

	(void)none;
	if (text)
		http_reply(http, 200, daemon_metrics_type(open), text,
			   strlen(text));
	else
		api_error(http, 503, "out of memory", "");
}

static void get_health(struct daemon *daemon, struct http_request *http,
		       struct daemon_sandbox *none)
{
	(void)daemon;
	(void)none;
	http_reply(http, 200, TEXT_TYPE, "ok\n", 3);
}

/* Has everything that an earlier daemon had a keeper again? */
static void get_ready(struct daemon *daemon, struct http_request *http,
		      struct daemon_sandbox *none)
{
	size_t waiting = 0;
	char text[80];
	int len;

	(void)none;
	for (const struct daemon_sandbox *s = daemon->first; s; s = s->next)
		waiting += s->state == SANDBOX_STARTING;
	if (!waiting && !daemon->stopping) {
		http_reply(http, 200, TEXT_TYPE, "ready\n", 6);
		return;
	}
	len = snprintf(text, sizeof(text), "%zu sandboxes are starting%s\n",
		       waiting, daemon->stopping ? ", and we are ending" : "");
	http_reply(http, 503, TEXT_TYPE, text, (size_t)len);
}

static void post_reload(struct daemon *daemon, struct http_request *http,
			struct daemon_sandbox *none)
{
	struct policy_error why;
	int err = daemon_reload(daemon, &why);

	(void)none;
	if (err)
		api_error(http, err == -EINVAL ? 422 : 503, why.text,
			  "the old configuration stays in force");
	else
		http_reply(http, 200, JSON_TYPE, "{\"ok\":true}", 11);
}

/* --- routes -------------------------------------------------------------- */

enum access {
	ANYBODY, /* who can connect at all */
	MEMBER,
	ROOT,
	SEE,	/* a sandbox: whose it is, or root */
	CHANGE, /* the same; but a container's is its engine's */
};

struct route {
	const char *method, *path; /* "*": a name */
	enum access access;
	void (*run)(struct daemon *daemon, struct http_request *http,
		    struct daemon_sandbox *sandbox);
};

static const struct route routes[] = {
	{ "GET", "/healthz", ANYBODY, get_health },
	{ "GET", "/readyz", ANYBODY, get_ready },
	{ "GET", "/metrics", MEMBER, get_metrics },
	{ "GET", "/v1/version", ANYBODY, get_version },
	{ "POST", "/v1/reload", ROOT, post_reload },
	{ "GET", "/v1/sandboxes", MEMBER, get_all },
	{ "POST", "/v1/sandboxes", MEMBER, api_create },
	{ "GET", "/v1/sandboxes/*", SEE, get_one },
	{ "DELETE", "/v1/sandboxes/*", CHANGE, api_remove },
	{ "PUT", "/v1/sandboxes/*/policy", CHANGE, api_policy },
	{ "POST", "/v1/sandboxes/*/exec", SEE, api_exec },
	{ "POST", "/v1/sandboxes/*/attacks", SEE, api_attacks },
	{ "POST", "/v1/sandboxes/*/end", CHANGE, api_end },
	{ "POST", "/v1/sandboxes/*/publish", CHANGE, api_publish },
};

/* Does @path fit @pattern? What stands for its "*" is copied to @name. */
static bool fits(const char *pattern, const char *path, char *name)
{
	const size_t before = strcspn(pattern, "*");
	size_t len;

	*name = '\0';
	if (!pattern[before])
		return strcmp(pattern, path) == 0;
	if (strncmp(pattern, path, before) != 0)
		return false;
	len = strcspn(path + before, "/");
	if (len >= DAEMON_NAME_MAX ||
	    strcmp(pattern + before + 1, path + before + len) != 0)
		return false;
	memcpy(name, path + before, len);
	name[len] = '\0';
	return daemon_name_ok(name);
}

struct daemon_sandbox *api_find(struct daemon *daemon,
				const struct http_request *http,
				const char *name, bool docker)
{
	struct daemon_sandbox *s = daemon_find(daemon, name);

	return s && sees(http_request_peer(http), s) &&
			       (docker || !s->spec.docker)
		       ? s
		       : NULL;
}

/* The one place that says who may do what. 0 and the sandbox that it is about,
 * or the status of the refusal and why. */
static int authorise(struct daemon *daemon, const struct http_request *http,
		     const struct route *route, const char *name,
		     struct daemon_sandbox **ret, const char **reterr)
{
	const struct ucred *peer = http_request_peer(http);
	struct daemon_sandbox *sandbox = NULL;

	*ret = NULL;
	if (route->access == ANYBODY || (route->access == ROOT && !peer->uid))
		return 0;
	*reterr = "that is for root and the members of the group in the "
		  "daemon's configuration";
	if (peer->uid != 0 &&
	    (!daemon->group || !http_request_member(http, daemon->group)))
		return 403;
	*reterr = "that is for root";
	if (route->access == ROOT)
		return 403;
	if (route->access == MEMBER)
		return 0;
	sandbox = daemon_find(daemon, name);
	*reterr = "there is no such sandbox";
	if (!sandbox || !sees(peer, sandbox))
		return 404;
	*reterr = "it belongs to a container, whose engine ends it";
	if (route->access == CHANGE && sandbox->spec.docker)
		return 403;
	*ret = sandbox;
	return 0;
}

static void on_request(void *arg, struct http_request *http)
{
	const char *method = http_request_method(http);
	const char *path = http_request_path(http), *why = "no such path";
	struct daemon *daemon = arg;
	struct daemon_sandbox *sandbox;
	char name[DAEMON_NAME_MAX];
	int status = 404;

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		const struct route *route = &routes[i];

		if (!fits(route->path, path, name))
			continue;
		if (strcmp(route->method, method) != 0) {
			status = status == 404 ? 405 : status;
			why = "that path has other methods";
			continue;
		}
		status = authorise(daemon, http, route, name, &sandbox, &why);
		if (status == 0 && daemon->stopping && *method != 'G') {
			status = 503;
			why = "the daemon is ending";
		}
		if (status == 0) {
			route->run(daemon, http, sandbox);
			return;
		}
		break;
	}
	api_error(http, status, why, "");
}

int daemon_api_open(struct daemon *daemon, int fd)
{
	const struct http_limits limits = {
		.header_bytes = 8192,
		.body_bytes = REQUEST_BODY_MAX,
		.held_bytes = REQUEST_BODY_MAX + (16 << 20),
		.seconds = 30,
		.connections = 64,
		.user_connections = 16,
		.root_connections = 8,
	};

	return http_server_open(daemon->base, fd, &limits, on_request, daemon,
				&daemon->control);
}
