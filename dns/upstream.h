/* SPDX-License-Identifier: Apache-2.0
 *
 * upstream.h - one question to one name server.
 */
#ifndef DNS_UPSTREAM_H
#define DNS_UPSTREAM_H

#include "dns/answer.h"

struct event_base;
struct upstream;
struct inquiry;

struct upstream *upstream_new(struct event_base *base);
/* All inquiries must have ended or been cancelled. NULL is fine. */
void upstream_free(struct upstream *upstream);

/* Asks @server for @host and @type, with an id and a source port that nobody
 * can guess. @done is called once, from the loop: status 0 and an answer that
 * matches the question, or -ETIMEDOUT, -EBADMSG, or -EIO. 0 or -errno, and then
 * @done is not called. @records are those of @answer, or NULL if @type is one
 * of addresses; both are good during the call. */
int upstream_ask(struct upstream *upstream, const struct endpoint *server,
		 const char *host, uint16_t type,
		 void (*done)(void *arg, int status,
			      const struct dns_answer *answer,
			      const struct dns_records *records),
		 void *arg, struct inquiry **ret_inquiry);
void upstream_cancel(struct inquiry *inquiry);

#endif
