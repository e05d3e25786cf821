/* SPDX-License-Identifier: Apache-2.0
 *
 * netns.h - network namespaces made by a short-lived child, so that we never
 * leave our own: without root we could not come back.
 */
#ifndef LAUNCH_NETNS_H
#define LAUNCH_NETNS_H

#include <stddef.h>

struct netns {
	int fd;	    /* the namespace */
	int route;  /* a NETLINK_ROUTE socket in it */
	int filter; /* a NETLINK_NETFILTER socket in it */
};

/* Runs in the child, inside the new namespace. May set sysctls and make
 * sockets: fills @ret_fds (at most 8) and @ret_n; they reach the caller of
 * netns_create(). 0 or -errno. */
typedef int netns_inside(void *arg, int *ret_fds, size_t *ret_n);

/* Makes a namespace (owned by the caller's user namespace), brings lo up.
 * @inside may be NULL. 0 or -errno. */
int netns_create(struct netns *ret_ns, netns_inside *inside, void *arg,
		 int *ret_fds, size_t *ret_n);

/* The same in a namespace that exists. */
int netns_enter(int ns_fd, netns_inside *inside, void *arg, int *ret_fds,
		size_t *ret_n);

void netns_close(struct netns *ns);

/* Writes /proc/sys/net/@key, e.g. "ipv4/ip_forward". 0 or -errno. For use
 * inside. */
int netns_sysctl(const char *key, const char *value);

/* What a gateway namespace has to be: no forwarding, no redirects, errors that
 * are not rate-limited (a refused program fails at once, each time), IPv6 on so
 * that the rules see, count and drop it. Before links are made. 0 or -errno.
 * For use inside. */
int netns_gateway_sysctls(void);

/* A sandbox's namespace: no IPv6. 0 or -errno. For use inside. */
int netns_sandbox_sysctls(void);

#endif
