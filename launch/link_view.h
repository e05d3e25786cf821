/* SPDX-License-Identifier: Apache-2.0
 *
 * link_view.h - what leads out of a namespace: its interfaces, addresses,
 * routes, rules for routes, and forwarding. Read twice and compared; and a
 * socket that says when that is worth while. Sockets are NETLINK_ROUTE ones,
 * made in the namespace.
 */
#ifndef LAUNCH_LINK_VIEW_H
#define LAUNCH_LINK_VIEW_H

#include <stdbool.h>
#include <stddef.h>

struct link_view;

/* What the kernel changes by itself is left out: carriers, addresses of
 * neighbours, routes to multicast groups. 0 or -errno. */
int link_view_read(int route, struct link_view **ret_view);
void link_view_free(struct link_view *view);

/* How many interfaces there are, with the loopback. */
size_t link_view_interfaces(const struct link_view *view);

/* One of its lines, word for word. */
bool link_view_has(const struct link_view *view, const char *line);

/* 0 if nothing differs, else -EBADMSG and what does. */
int link_view_compare(const struct link_view *was, const struct link_view *is,
		      char *reterr, size_t cap);

/* Listens on @fd for changes of all that. 0 or -errno. */
int link_view_listen(int fd);
/* Takes what there is to be read. 0 if there was nothing; 1 if there is reason
 * to look again; -EBADMSG if something was not as in @was, which may be over by
 * now, and what; or -errno. @was NULL: nothing was. */
int link_view_changed(int fd, const struct link_view *was, char *reterr,
		      size_t cap);

#endif
