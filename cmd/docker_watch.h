/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_watch.h - until a container's namespace appears. Engines before v28
 * name it at Join and make it only then, without telling; what starts inside
 * is held back by nothing. So it is locked here, before anybody else is told.
 */
#ifndef CMD_DOCKER_WATCH_H
#define CMD_DOCKER_WATCH_H

#include "base/addr.h"

struct docker_watch;
struct event_base;
struct nft;

/* A test may be in a hurry. */
#ifndef DOCKER_WATCH_S
#define DOCKER_WATCH_S 30
#endif

/* @err 0: @ns is the namespace (the callback's to close), locked and verified.
 * Else -errno, @ns is -1 and @why is for people: -ETIMEDOUT, nothing came;
 * anything else: there is a container that is NOT contained. Once, from the
 * loop; the watch is freed after that. */
typedef void docker_watch_fn(void *arg, int err, int ns, const char *why);

/* Waits for @path (SandboxKey, absolute) to be a network namespace. Nothing of
 * it has to be there yet, not even its directory. 0 or -errno. */
int docker_watch(struct event_base *base, const char *path,
		 const struct ip *gateway, docker_watch_fn *fn, void *arg,
		 struct docker_watch **ret_watch);

/* Gives up, without a call. NULL is fine. */
void docker_watch_free(struct docker_watch *watch);

/* Is there a network namespace at @path? Its descriptor (at Join: engines from
 * v28 on, and `docker network connect`), -ENOENT if not yet, or -errno. */
int docker_netns_open(const char *path);

#endif
