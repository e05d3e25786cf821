/* SPDX-License-Identifier: Apache-2.0
 *
 * rtnl.h - requests on a NETLINK_ROUTE socket. For launch/ only.
 */
#ifndef LAUNCH_RTNL_H
#define LAUNCH_RTNL_H

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

#define RTNL_MESSAGE_MAX 1024 /* of what we send */

/* One message: netlink's header, then the @len bytes of @body as its own. */
struct rtnl {
	uint8_t buf[RTNL_MESSAGE_MAX] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;
};

void rtnl_start(struct rtnl *m, uint16_t type, uint16_t flags, const void *body,
		size_t len);

/* Fills @tb, of @max + 1 elements, with the attributes after the message's own
 * header of @offset bytes; NULL where one is absent. */
void rtnl_attrs(const struct nlmsghdr *nlh, size_t offset,
		const struct nlattr **tb, uint16_t max);

/* The value of an attribute of four bytes; 0 if it is absent or odd. */
uint32_t rtnl_u32(const struct nlattr *attr);

/* Sends, waits for the acknowledgement. 0 or -errno. */
int rtnl_ask(int fd, struct rtnl *m);

/* Sends, hands each answer (not errors) to @cb, which returns MNL_CB_OK or
 * MNL_CB_ERROR with errno set. For dumps and for one answer alike. */
int rtnl_read(int fd, struct rtnl *m, mnl_cb_t cb, void *arg);

#endif
