/* SPDX-License-Identifier: Apache-2.0
 *
 * sock.h - sockets: passing file descriptors, and small settings.
 */
#ifndef BASE_SOCK_H
#define BASE_SOCK_H

#include <stddef.h>
#include <sys/types.h>

#include "base/addr.h"

#define FDPASS_MAX 16

/* Sends one message of @len bytes with @nfds descriptors (SCM_RIGHTS) on a
 * SOCK_SEQPACKET or SOCK_DGRAM unix socket. Returns 0 or -errno. */
int fdpass_send(int sock, const void *data, size_t len, const int *fds,
		size_t nfds);

/* Receives one message. @fds has room for FDPASS_MAX; they are close-on-exec
 * and owned by the caller. Returns its length, 0 at the end, or -errno
 * (-EMSGSIZE if it was longer than @cap or had too many descriptors: those
 * received are closed; -EMFILE if we had no room for one that came: then @data
 * is filled all the same). @flags as recvmsg(2), e.g. MSG_DONTWAIT. */
ssize_t fdpass_recv(int sock, void *data, size_t cap, int *fds,
		    size_t *ret_nfds, int flags);

/* A non-blocking, close-on-exec listening TCP socket with SO_REUSEADDR (and
 * IPV6_V6ONLY), IP_TRANSPARENT if @transparent. Returns it or -errno. */
int sock_listen_tcp(const struct ip *ip, uint16_t port, bool transparent);

/* The same for UDP, with IP_PKTINFO and IP_RECVORIGDSTADDR. */
int sock_bind_udp(const struct ip *ip, uint16_t port, bool transparent);

/* Sockets that this thread makes from now on are @uid's, as rules about who
 * sends (skuid) see it. Back with the own uid. 0, or -EPERM and nothing is
 * changed. */
int sock_make_as(uid_t uid);

int sock_nonblock(int fd);

/* The interface by which the SYN of an accepted connection came in, as an index
 * of the listener's namespace: who it is from. 0 or -errno. */
int sock_ingress(int fd, uint32_t *ret_ifindex);

/* Where an accepted IPv4 connection meant to go before this host's rules sent
 * it to us. 0; -ENOENT if the kernel does not know any more, or -errno. */
int sock_original_dst(int fd, union sockaddr_any *ret_dst);

/* Ends the connection with RST instead of FIN when closed (SO_LINGER 0). */
void sock_reset_on_close(int fd);

#endif
