/* SPDX-License-Identifier: Apache-2.0
 *
 * xdp_hold.h - AF_XDP is closed to others by being taken.
 *
 * What is sent by such a socket passes no hook of the kernel's, and so no rule.
 * But each queue of an interface has at most one: whoever holds all of them is
 * the only one who could send. Ours have no bytes to send, and change nothing
 * for other traffic. It lasts as long as they are open.
 */
#ifndef FIREWALL_XDP_HOLD_H
#define FIREWALL_XDP_HOLD_H

#include <stddef.h>

struct xdp_hold;

/* 0 or -ENOMEM. */
int xdp_hold_new(struct xdp_hold **ret_hold);
/* NULL is fine. */
void xdp_hold_free(struct xdp_hold *hold);

/* Holds all queues of the @n interfaces @device, and of no others any more. 0,
 * also where the kernel has no AF_XDP; or -errno of the first that could not be
 * held (-EPERM: CAP_NET_RAW is missing; -EBUSY: somebody has one), with those
 * held that could be. */
int xdp_hold_follow(struct xdp_hold *hold, const char (*device)[16], size_t n);

#endif
