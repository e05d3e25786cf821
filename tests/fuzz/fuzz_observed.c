/* SPDX-License-Identifier: Apache-2.0
 *
 * A line of a log that anybody wrote: no record, or an observation of which
 * each field is in its range and each name is canonical.
 */
#include "audit/observed.h"

#include <stdlib.h>
#include <string.h>

#include "audit/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(const struct observation *o)
{
	char again[HOST_MAX + 1];

	if (!*o->host)
		return;
	if (!host_canonical(o->host, strlen(o->host), again) ||
	    strcmp(again, o->host) != 0)
		abort();
}

static void check_verdict(const struct verdict *verdict)
{
	if (verdict->rule || verdict->reason >= REASON_COUNT ||
	    verdict->allow != reason_info(verdict->reason)->allow)
		abort();
	if (verdict->reason == REASON_OBSERVE
		    ? !record_relaxable(verdict->observed)
		    : verdict->observed != REASON_RULE)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct observation o;

	if (observed_parse((const char *)data, size, &o) != OBSERVED_OK)
		return 0;
	if (size > OBSERVED_LINE_MAX)
		abort();
	check_host(&o);
	check_verdict(&o.verdict);
	if (o.door >= DOOR_COUNT || o.kind >= EVENT_KIND_COUNT)
		abort();
	/* Whoever was let through is somebody, somewhere. */
	if (o.verdict.allow && o.kind != EVENT_DNS_QUERY &&
	    o.kind != EVENT_DNS_ANSWER &&
	    (!o.port || !o.flow || (!*o.host && !o.address.len)))
		abort();
	return 0;
}
