/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_serve.c - the plugin socket. Engines look for it in a directory of
 * their own when a network's driver is first asked for; it is root's alone, as
 * who may write there says what a container may reach, and may name files.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_notify.h"
#include "cmd/docker_impl.h"
#include "cmd/http_server.h"

#define TYPE "application/vnd.docker.plugins.v1.2+json"
/* How often we look for containers that are gone: an open() for each. */
#define LOOK_S 2

static struct {
	struct docker *docker;
	struct http_server *server;
	struct event *timer;
} plugin;

static void reply(void *arg, int status, const char *json, size_t len)
{
	http_reply(arg, status, TYPE, json, len);
}

static void handle(void *arg, struct http_request *request)
{
	static const char not_post[] =
		"{\"Err\":\"the calls of a driver are POSTs\"}";
	const char *body;
	size_t len;

	(void)arg;
	if (strcmp(http_request_method(request), "POST") != 0) {
		http_reply(request, 405, TYPE, not_post, strlen(not_post));
		return;
	}
	body = http_request_body(request, &len);
	docker_call(plugin.docker, http_request_path(request), body ? body : "",
		    len, reply, request);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	docker_collect(plugin.docker);
}

/* The directory that the socket is to be in: the engine's plugins'. */
static int make_parent(const char *path)
{
	char dir[PATH_MAX];

	for (size_t i = 1; path[i] && i < sizeof(dir); i++) {
		if (path[i] != '/')
			continue;
		memcpy(dir, path, i);
		dir[i] = '\0';
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* A listening socket that only we may connect to from its first moment on. */
static int listen_at(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	AUTO_FD int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	mode_t before;
	int r;

	if (strlen(path) >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	memcpy(un.sun_path, path, strlen(path) + 1);
	if (fd < 0)
		return -errno;
	r = make_parent(path);
	if (r < 0)
		return r;
	/* Ours of before: there is one daemon, and that is us. */
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	before = umask(0177);
	r = bind(fd, (struct sockaddr *)&un, sizeof(un)) < 0 ? -errno : 0;
	umask(before);
	if (r < 0 || listen(fd, SOMAXCONN) < 0)
		return r < 0 ? r : -errno;
	return steal_fd(&fd);
}

static int serve(struct daemon *daemon)
{
	const struct http_limits limits = {
		.header_bytes = 8 << 10,
		.body_bytes = DOCKER_BODY_MAX,
		.held_bytes = HTTP_CONNECTIONS_MAX * DOCKER_BODY_MAX,
		.seconds = 120, /* a container's start, and its end */
		.connections = HTTP_CONNECTIONS_MAX,
		.user_connections = 1,
	};
	const struct timeval every = { .tv_sec = LOOK_S };
	const char *path = daemon_config(daemon)->docker_socket;
	int fd, r;

	fd = notify_listen_fd("docker");
	if (fd < 0)
		fd = listen_at(*path ? path : DOCKER_SOCKET);
	if (fd < 0)
		return fd;
	r = http_server_open(daemon_base(daemon), fd, &limits, handle, NULL,
			     &plugin.server);
	if (r < 0)
		return r;
	plugin.timer =
		event_new(daemon_base(daemon), -1, EV_PERSIST, on_timer, NULL);
	if (!plugin.timer || event_add(plugin.timer, &every) < 0)
		return -ENOMEM;
	return 0;
}

int docker_attach(struct daemon *daemon)
{
	char dir[PATH_MAX];
	int r = -ENAMETOOLONG;

	if (snprintf(dir, sizeof(dir), "%s/docker", daemon_state_dir(daemon)) <
	    (int)sizeof(dir))
		r = docker_new(daemon, dir, &plugin.docker);
	if (r == 0) {
		docker_restore(plugin.docker);
		r = serve(daemon);
	}
	if (r < 0) {
		log_err("docker: the plugin's socket is not served: %s",
			strerror(-r));
		docker_detach();
	}
	return r;
}

/* The socket's name stays: an engine that asks now waits for who comes next. */
void docker_detach(void)
{
	http_server_close(plugin.server);
	if (plugin.timer)
		event_free(plugin.timer);
	docker_free(plugin.docker);
	memset(&plugin, 0, sizeof(plugin));
}
