/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway_impl.h - what the gateway's files share. For cmd/gateway*.c only.
 */
#ifndef CMD_GATEWAY_IMPL_H
#define CMD_GATEWAY_IMPL_H

#include "cmd/gateway.h"

/* Namespace @ns (the caller's) is the sandbox's: our sockets are in it from
 * here on. 0 or -errno. */
int gateway_take_sandbox(struct gateway *gateway, int ns);

/* It gets firewall/lock.h's tables. 0, or -errno and a sentence in @reterr. */
int gateway_lock(struct gateway *gateway, char *reterr, size_t cap);

/* Nothing leaves by interfaces there that are not ours, not even what packet
 * sockets send. 0 or -errno. */
int gateway_shut(struct gateway *gateway);

/* From now on changes of rules, of links by others are heard of; and what links
 * there are is remembered. 0, or -errno and a sentence in @reterr. */
int gateway_watch_rules(struct gateway *gateway, char *reterr, size_t cap);
int gateway_watch_links(struct gateway *gateway, char *reterr, size_t cap);
/* Has nobody touched them since, not even for a moment? 0; or -errno and what
 * somebody did. */
int gateway_links_stayed(struct gateway *gateway, char *reterr, size_t cap);

/* @view is the sandbox's side while an engine is at work there; it is taken
 * when that is over. As gateway_verify_links(). */
int gateway_settle(struct gateway *gateway, struct link_view **view,
		   char *reterr, size_t cap);

#endif
