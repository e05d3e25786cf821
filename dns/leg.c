/* SPDX-License-Identifier: Apache-2.0
 *
 * leg.c - tries, each with an id and a source port of its own.
 */
#include "dns/leg.h"

#include <errno.h>

#include "base/cleanup.h"

#define TRIES	  2 /* of each server */
#define ASKED_MAX 6 /* in all */

static void end(struct leg *leg, int status, const struct dns_records *records)
{
	leg->done = true;
	leg->status = status;
	leg->ended(leg, records);
}

static void on_inquiry(void *arg, int status, const struct dns_answer *got,
		       const struct dns_records *records)
{
	struct leg *leg = arg;

	leg->inquiry = NULL;
	if (!status &&
	    (got->rcode == DNS_NOERROR || got->rcode == DNS_NXDOMAIN)) {
		leg->answer = *got;
		end(leg, 0, records);
		return;
	}
	leg->timed_out = status == -ETIMEDOUT;
	leg_ask(leg);
}

void leg_ask(struct leg *leg)
{
	const struct servers *servers = leg->servers;

	while (leg->asked < ASKED_MAX && leg->asked < TRIES * servers->count) {
		const struct endpoint *server =
			&servers->at[leg->asked++ % servers->count];

		if (upstream_ask(servers->upstream, server, leg->host,
				 leg->type, on_inquiry, leg,
				 &leg->inquiry) == 0)
			return;
	}
	end(leg, leg->timed_out ? -ETIMEDOUT : -EIO, NULL);
}

void leg_cancel(struct leg *leg)
{
	upstream_cancel(STEAL(leg->inquiry));
}
