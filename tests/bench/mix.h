/* SPDX-License-Identifier: Apache-2.0
 *
 * mix.h - what a busy session records: TLS connections through CONNECT, each
 * with its three records, names asked for, and some plain HTTP.
 */
#ifndef TESTS_BENCH_MIX_H
#define TESTS_BENCH_MIX_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "audit/record_frame.h"
#include "base/cleanup.h"
#include "policy/event.h"

struct mix {
	uint64_t made;
	char host[64];
};

static const enum event_kind mix_kinds[] = {
	EVENT_DNS_QUERY, EVENT_DNS_ANSWER, EVENT_FLOW_OPEN,    EVENT_FLOW_DIAL,
	EVENT_FLOW_OPEN, EVENT_FLOW_DIAL,  EVENT_FLOW_CLOSE,   EVENT_FLOW_OPEN,
	EVENT_FLOW_DIAL, EVENT_FLOW_CLOSE, EVENT_HTTP_REQUEST, EVENT_FLOW_CLOSE,
};

/* The next one. Its strings are constant, or those of @mix until the next. */
static inline struct audit_event mix_next(struct mix *mix)
{
	uint64_t i = mix->made++;
	enum event_kind kind = mix_kinds[i % ARRAY_SIZE(mix_kinds)];
	struct audit_event event = {
		.kind = kind,
		.sandbox = 1,
		.time_ms = 1775014138811 + i / 100,
		.verdict = { .allow = true, .reason = REASON_RULE },
		.door = DOOR_CONNECT,
		.rule = "policy.yaml:12",
		.rule_text = "*.github.example",
		.host = mix->host,
		.src_ip = ip_v4(0x0a000002),
		.src_port = (uint16_t)(32768 + i % 28000),
	};

	snprintf(mix->host, sizeof(mix->host), "api-%u.github.example",
		 (unsigned)(i / 12 % 5000));
	if (kind == EVENT_DNS_QUERY || kind == EVENT_DNS_ANSWER) {
		event.door = DOOR_DNS;
		event.qtype = i / 12 % 2 ? 28 : 1;
		event.answers = kind == EVENT_DNS_ANSWER;
		event.answer[0] = ip_v4(0xc6120000 + (uint32_t)(i % 65536));
		return event;
	}
	event.flow = 1 + i / 4;
	event.dst_port = 443;
	event.protocol = "tls";
	if (kind != EVENT_FLOW_OPEN)
		event.dst_ip = ip_v4(0xcb007100 + (uint32_t)(i % 256));
	if (kind == EVENT_FLOW_OPEN || kind == EVENT_FLOW_CLOSE)
		event.sni = mix->host;
	if (kind == EVENT_FLOW_CLOSE) {
		event.bytes_up = 1024 + i % 4096;
		event.bytes_down = 14000 + i % 100000;
		event.duration_ms = i % 3000;
		event.detail = "the client closed";
	}
	if (kind == EVENT_HTTP_REQUEST) {
		event.dst_port = 80;
		event.protocol = "http";
		event.method = "GET";
		event.target = "/simple/requests/index.html?format=json";
	}
	return event;
}

/* What all of its lines have; @frame is made of that, and stays in use. */
static inline struct record_context mix_context(struct record_frame *frame)
{
	struct record_context context = {
		.session = "0123456789abcdef",
		.sandbox_name = "run",
		.policy_digest = "0123456789abcdef0123456789abcdef"
				 "0123456789abcdef0123456789abcdef",
		.policy_name = "coding-agent",
		.boundary = "netns",
	};

	record_frame_make(&context, frame);
	context.frame = frame;
	return context;
}

#endif
