/* SPDX-License-Identifier: Apache-2.0
 *
 * docker.h - networks of a container engine: libnetwork's remote driver.
 *
 *	docker network create -d sallyport -o policy=agent agents
 *	docker run --network agents IMAGE
 *
 * The engine posts JSON to a unix socket. Each container on such a network is
 * a sandbox of the daemon, whose link the engine moves into the container. What
 * a real engine does with our answers is what these files are written after;
 * see sallyport-docker(7).
 *
 *	docker.c	  the calls by name, their answers
 *	docker_options.c  what people say with -o, and what of it we refuse
 *	docker_network.c  CreateNetwork, DeleteNetwork
 *	docker_endpoint.c CreateEndpoint, Leave, the ways an endpoint ends
 *	docker_join.c	  Join, and the container's namespace
 *	docker_ports.c	  published ports
 *	docker_state.c	  what outlives the daemon, on the disk
 *	docker_restore.c  containers that ran on without us
 *	docker_serve.c	  the socket
 */
#ifndef CMD_DOCKER_H
#define CMD_DOCKER_H

#include <stddef.h>

struct daemon;
struct docker;

#define DOCKER_SOCKET	"/run/docker/plugins/sallyport.sock"
#define DOCKER_BODY_MAX (256u << 10) /* of a call; real ones have some 1 KB */

/* Serves the plugin socket of the daemon's configuration from now on, after
 * what the disk says of earlier networks and containers was taken up. 0 or
 * -errno, logged. */
int docker_attach(struct daemon *daemon);
/* The end: when the loop has ended. */
void docker_detach(void);

/* What docker_attach() uses; for tests too. */

/* One answer: an HTTP status, and @len bytes of JSON for the duration of the
 * call. Called once for each docker_call(), perhaps before it returns. */
typedef void docker_reply_fn(void *arg, int status, const char *json,
			     size_t len);

/* @dir, made if missing, keeps the state. Calls nothing of the daemon. 0 or
 * -errno. */
int docker_new(struct daemon *daemon, const char *dir,
	       struct docker **ret_docker);
/* Which resolv.conf the engine has (kept): default /etc/resolv.conf. */
void docker_resolver(struct docker *docker, const char *path);
/* NULL is fine. Calls that wait for an answer get none. */
void docker_free(struct docker *docker);

/* Takes up what is on the disk: keepers for containers that still run. */
void docker_restore(struct docker *docker);
/* Ends what belongs to containers that are gone: an engine that was killed
 * tells nobody. @now as CLOCK_MONOTONIC, in seconds. */
void docker_collect(struct docker *docker);

/* One call of the engine: @path "/NetworkDriver.Join", @len bytes of @body. */
void docker_call(struct docker *docker, const char *path, const char *body,
		 size_t len, docker_reply_fn *reply, void *arg);

#endif
