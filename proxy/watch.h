/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.h - a socket and what is waited for on it, from accept(2) or
 * connect(2) to close(2), through all the hands that it passes. Whoever takes
 * one over changes who is called; the kernel is only told when something else
 * is waited for. One event a socket, so one epoll_ctl(2) where there were
 * three.
 */
#ifndef PROXY_WATCH_H
#define PROXY_WATCH_H

#include <stdbool.h>

struct event_base;
struct watch;

/* @what: EV_READ, EV_WRITE of libevent, or both. @fd: for convenience. */
typedef void watch_call(void *arg, int fd, short what);

/* Takes @fd, which must be non-blocking (closed also on failure). NULL without
 * memory. Nothing is waited for yet. */
struct watch *watch_new(struct event_base *base, int fd);

/* From now on @call hears of it; NULL: nobody. */
void watch_tell(struct watch *watch, watch_call *call, void *arg);

/* Waits for @what: EV_READ and EV_WRITE, with EV_ET for changes only; 0:
 * nothing. Until something else is asked for. 0 or -ENOMEM. */
int watch_for(struct watch *watch, short what);

/* -1 if @watch is NULL. */
int watch_fd(const struct watch *watch);

/* Ends the watch and returns the socket, which is the caller's. */
int watch_end(struct watch *watch);

/* Ends it and closes the socket, in that order, so that another one with its
 * number is never meant. May be called from its call. NULL is fine; *@watch is
 * NULL afterwards. */
void watch_close(struct watch **watch);

#define AUTO_WATCH __attribute__((cleanup(watch_close)))

#endif
