/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_services.h - services that write down what they were asked, in order,
 * and answer when the test says so.
 */
#ifndef TESTS_DNS_FAKE_SERVICES_H
#define TESTS_DNS_FAKE_SERVICES_H

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dns/lease.h"
#include "dns/quota.h"
#include "policy/services.h"
#include "policy_text.h"

struct fake {
	struct services services;
	struct sandbox sandbox;
	bool stranger; /* sandbox_of() finds nobody */
	bool manual;   /* waits are kept in @held until the test ends them */
	struct wait *held;
	int record_status, resolve_status, publish_status, bind_status;
	struct rdata rdata[LOOKUP_RECORDS_MAX]; /* for resolve_records() */
	size_t rdatas;
	const char *address[4]; /* what resolve() gives */
	struct cidr uplink;
	struct bucket bucket;  /* filled by the first question */
	uint64_t used, budget; /* of bytes that come in; 0: none */
	char log[16384];
	uint32_t count;	   /* of the last event */
	char detail[1024]; /* of the last event */
	char src[IP_TEXT_MAX], dst[IP_TEXT_MAX], protocol[8];
	unsigned records;
};

static inline void fake_log(struct fake *fake, const char *line)
{
	size_t len = strlen(fake->log);

	snprintf(fake->log + len, sizeof(fake->log) - len, "%s\n", line);
}

static inline void fake_end(struct fake *fake, struct wait *wait, int status)
{
	if (!wait)
		return;
	if (fake->manual) {
		assert_null(fake->held);
		fake->held = wait;
	} else {
		wait->done(wait, status);
	}
}

static inline void fake_record(void *ctx, const struct audit_event *event,
			       struct wait *wait)
{
	struct fake *fake = ctx;
	char line[1024], ip[IP_TEXT_MAX];
	int len;

	len = snprintf(line, sizeof(line), "%s %s %s %s type %u rcode %u",
		       event->kind == EVENT_DNS_QUERY ? "query" : "answer",
		       event->host ? event->host : "-",
		       event->verdict.allow ? "allow" : "deny",
		       reason_word(event->verdict.reason), event->qtype,
		       event->rcode);
	for (uint8_t i = 0; i < event->answers; i++)
		len += snprintf(line + len, sizeof(line) - (size_t)len, " %s",
				ip_format(&event->answer[i], ip));
	if (event->verdict.reason == REASON_OBSERVE)
		snprintf(line + len, sizeof(line) - (size_t)len, " observed %s",
			 reason_word(event->verdict.observed));
	fake_log(fake, line);
	fake->records++;
	fake->count = event->count;
	snprintf(fake->detail, sizeof(fake->detail), "%s",
		 event->detail ? event->detail : "");
	snprintf(fake->protocol, sizeof(fake->protocol), "%s",
		 event->protocol ? event->protocol : "");
	ip_format(&event->src_ip, fake->src);
	ip_format(&event->dst_ip, fake->dst);
	assert_int_equal(event->sandbox, fake->stranger ? 0 : fake->sandbox.id);
	fake_end(fake, wait, fake->record_status);
}

static inline void fake_cancel(void *ctx, struct wait *wait)
{
	struct fake *fake = ctx;

	if (fake->held == wait)
		fake->held = NULL;
	fake_log(fake, "cancel");
}

static inline void fake_resolve(void *ctx, const char *host,
				struct lookup *lookup)
{
	struct fake *fake = ctx;
	char line[300];

	snprintf(line, sizeof(line), "resolve %s", host);
	fake_log(fake, line);
	lookup->ttl = 300;
	lookup->count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(fake->address) && fake->address[i];
	     i++)
		assert_true(ip_parse(fake->address[i],
				     &lookup->ip[lookup->count++]));
	fake_end(fake, &lookup->wait, fake->resolve_status);
}

static inline void fake_resolve_cancel(void *ctx, struct lookup *lookup)
{
	fake_cancel(ctx, &lookup->wait);
}

static inline enum reason fake_admit(void *ctx, struct sandbox *sandbox,
				     const char *host, const struct rule *rule)
{
	(void)ctx;
	if (!sandbox->leases)
		return REASON_RULE;
	return lease_admit(sandbox->leases, sandbox->policy, host, rule);
}

static inline void fake_publish(void *ctx, struct sandbox *sandbox,
				const char *host, const struct ip *lease,
				struct wait *wait)
{
	struct fake *fake = ctx;
	char line[400], ip[IP_TEXT_MAX];

	assert_ptr_equal(sandbox, &fake->sandbox);
	snprintf(line, sizeof(line), "publish %s %s", host,
		 ip_format(lease, ip));
	fake_log(fake, line);
	fake_end(fake, wait, fake->publish_status);
}

static inline bool fake_rate(void *ctx, struct sandbox *sandbox, enum rate rate)
{
	struct fake *fake = ctx;
	unsigned limit = policy_limits(sandbox->policy)->dns_per_second;

	assert_int_equal(rate, RATE_DNS);
	if (!fake->bucket.filled_ms)
		bucket_init(&fake->bucket, limit, clock_ms(CLOCK_MONOTONIC));
	return bucket_take(&fake->bucket, limit, clock_ms(CLOCK_MONOTONIC));
}

static inline enum reason fake_meters(void *ctx, struct sandbox *sandbox,
				      const struct rule *rule,
				      struct meters *ret_meters)
{
	struct fake *fake = ctx;

	assert_ptr_equal(sandbox, &fake->sandbox);
	assert_non_null(rule);
	ret_meters->at[DOWN][METER_RULE] =
		(struct meter){ &fake->used, fake->budget };
	return meters_room(ret_meters, DOWN) ? REASON_RULE : REASON_LIMIT_BYTES;
}

static inline int fake_bind(void *ctx, struct sandbox *sandbox,
			    const char *host, const struct ip *ip)
{
	struct fake *fake = ctx;
	char line[400], text[IP_TEXT_MAX];

	snprintf(line, sizeof(line), "bind %s %s", host, ip_format(ip, text));
	fake_log(fake, line);
	if (fake->bind_status)
		return fake->bind_status;
	return lease_bind(sandbox->leases, host, ip);
}

static inline size_t fake_names_at(void *ctx, struct sandbox *sandbox,
				   const struct ip *ip, const char *ret_name[],
				   size_t max)
{
	(void)ctx;
	return lease_names_at(sandbox->leases, ip, ret_name, max);
}

static inline void fake_resolve_records(void *ctx, const char *host,
					uint16_t type,
					struct record_lookup *lookup)
{
	struct fake *fake = ctx;
	char line[300];

	snprintf(line, sizeof(line), "resolve %s type %u", host, type);
	fake_log(fake, line);
	lookup->type = type;
	lookup->ttl = 300;
	lookup->count = fake->rdatas;
	memcpy(lookup->record, fake->rdata,
	       fake->rdatas * sizeof(fake->rdata[0]));
	fake_end(fake, &lookup->wait, fake->resolve_status);
}

static inline void fake_resolve_records_cancel(void *ctx,
					       struct record_lookup *lookup)
{
	fake_cancel(ctx, &lookup->wait);
}

static inline const char *fake_lease_of(void *ctx, struct sandbox *sandbox,
					const struct ip *ip)
{
	(void)ctx;
	return sandbox->leases ? lease_name(sandbox->leases, ip) : NULL;
}

static inline struct sandbox *fake_sandbox_of(void *ctx, uint32_t ifindex,
					      const struct ip *ip)
{
	struct fake *fake = ctx;

	(void)ip;
	if (fake->stranger ||
	    (fake->sandbox.ifindex && fake->sandbox.ifindex != ifindex))
		return NULL;
	return &fake->sandbox;
}

static inline const struct cidr *fake_uplink(void *ctx, size_t *ret_count)
{
	struct fake *fake = ctx;

	*ret_count = fake->uplink.ip.len ? 1 : 0;
	return &fake->uplink;
}

/* @yaml is the sandbox's policy. */
static inline void fake_init(struct fake *fake, const char *yaml)
{
	int fd = memfd_create("leases", MFD_CLOEXEC);

	*fake = (struct fake){
		.services = { .ctx = fake,
			      .record = fake_record,
			      .record_cancel = fake_cancel,
			      .resolve = fake_resolve,
			      .resolve_cancel = fake_resolve_cancel,
			      .resolve_records = fake_resolve_records,
			      .resolve_records_cancel =
				      fake_resolve_records_cancel,
			      .rate = fake_rate,
			      .meters = fake_meters,
			      .bind = fake_bind,
			      .names_at = fake_names_at,
			      .admit = fake_admit,
			      .publish = fake_publish,
			      .publish_cancel = fake_cancel,
			      .lease_of = fake_lease_of,
			      .sandbox_of = fake_sandbox_of,
			      .uplink = fake_uplink },
		.sandbox = { .id = 7, .policy = policy_text(yaml) },
		.address = { "93.184.216.34" },
	};
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)lease_table_size()), 0);
	assert_int_equal(lease_table_attach(fd, &fake->sandbox.leases), 0);
	close(fd);
}

static inline void fake_free(struct fake *fake)
{
	lease_table_free(fake->sandbox.leases);
	policy_unref(fake->sandbox.policy);
}

#endif
