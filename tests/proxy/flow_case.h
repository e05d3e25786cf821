/* SPDX-License-Identifier: Apache-2.0
 *
 * flow_case.h - a flow whose services and servers are the test's: what its
 * steps left behind is a line of text.
 */
#ifndef TESTS_PROXY_FLOW_CASE_H
#define TESTS_PROXY_FLOW_CASE_H

#include "proxy/flow.h"

#include <fcntl.h>

#include "base/wheel.h"
#include "policy/bundle.h"
#include "proxy/watch.h"
#include "tests/proxy/net.h"

enum mode { AT_ONCE, LATER };

/* What the steps left behind, e.g. "admit open+ resolve dial+ close". */
struct world {
	struct event_base *base;
	struct wheel *wheel;
	struct services services;
	struct sandbox sandbox;
	struct flow *flow;
	char trace[512];
	int fds;

	enum mode record_mode, resolve_mode;
	int record_status, resolve_status;
	enum reason admit, meters;
	bool too_fast;
	struct meter meter;
	const char *answer[LOOKUP_MAX + 1];
	struct wait *recording;
	struct lookup *looking;
	unsigned cancelled;

	struct endpoint self[2];
	size_t selves;
	struct cidr uplink;

	struct kept {
		enum event_kind kind;
		uint64_t flow, up, down;
		uint32_t sandbox;
		enum door door;
		bool allow;
		enum reason reason;
		struct ip src_ip, dst_ip;
		uint16_t src_port, dst_port, status;
		char host[64], rule[64], rule_text[64], protocol[16], sni[64],
			method[16], target[64], detail[64];
	} record[16];
	size_t records;

	bool called, close_in_done;
	struct verdict verdict;
	int fd;
	char detail[64];
};

static void note(struct world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static inline void note(struct world *w, const char *fmt, ...)
{
	size_t len = strlen(w->trace);
	va_list ap;

	va_start(ap, fmt);
	if (len)
		w->trace[len++] = ' ';
	vsnprintf(w->trace + len, sizeof(w->trace) - len, fmt, ap);
	va_end(ap);
}

static inline void keep(char *to, size_t cap, const char *text)
{
	snprintf(to, cap, "%s", text ? text : "");
}

static inline void fake_record(void *ctx, const struct audit_event *e,
			       struct wait *wait)
{
	static const char *const word[EVENT_KIND_COUNT] = {
		[EVENT_FLOW_OPEN] = "open",
		[EVENT_FLOW_DIAL] = "dial",
		[EVENT_FLOW_PROGRESS] = "progress",
		[EVENT_FLOW_CLOSE] = "close",
		[EVENT_HTTP_REQUEST] = "request",
	};
	struct world *w = ctx;
	struct kept *r = &w->record[w->records++];

	assert_true(w->records <= ARRAY_SIZE(w->record));
	assert_non_null(word[e->kind]);
	note(w, "%s%c", word[e->kind], e->verdict.allow ? '+' : '-');
	r->kind = e->kind;
	r->flow = e->flow;
	r->up = e->bytes_up;
	r->down = e->bytes_down;
	r->sandbox = e->sandbox;
	r->door = e->door;
	r->allow = e->verdict.allow;
	r->reason = e->verdict.reason;
	r->src_ip = e->src_ip;
	r->dst_ip = e->dst_ip;
	r->src_port = e->src_port;
	r->dst_port = e->dst_port;
	r->status = e->status;
	keep(r->host, sizeof(r->host), e->host);
	keep(r->rule, sizeof(r->rule), e->rule);
	keep(r->rule_text, sizeof(r->rule_text), e->rule_text);
	keep(r->protocol, sizeof(r->protocol), e->protocol);
	keep(r->sni, sizeof(r->sni), e->sni);
	keep(r->method, sizeof(r->method), e->method);
	keep(r->target, sizeof(r->target), e->target);
	keep(r->detail, sizeof(r->detail), e->detail);
	if (!wait)
		return;
	if (w->record_mode == AT_ONCE)
		wait->done(wait, w->record_status);
	else
		w->recording = wait;
}

static inline void fake_record_cancel(void *ctx, struct wait *wait)
{
	struct world *w = ctx;

	assert_ptr_equal(wait, w->recording);
	w->recording = NULL;
	w->cancelled++;
}

static inline void give_answer(struct world *w, struct lookup *lookup)
{
	for (lookup->count = 0; w->answer[lookup->count]; lookup->count++)
		lookup->ip[lookup->count] = ip_of(w->answer[lookup->count]);
	lookup->wait.done(&lookup->wait, w->resolve_status);
}

static inline void fake_resolve(void *ctx, const char *host,
				struct lookup *lookup)
{
	struct world *w = ctx;

	assert_string_equal(host, "api.example.com");
	note(w, "resolve");
	if (w->resolve_mode == AT_ONCE)
		give_answer(w, lookup);
	else
		w->looking = lookup;
}

static inline void fake_resolve_cancel(void *ctx, struct lookup *lookup)
{
	struct world *w = ctx;

	assert_ptr_equal(lookup, w->looking);
	w->looking = NULL;
	w->cancelled++;
}

static inline enum reason fake_admit(void *ctx, struct sandbox *sandbox,
				     const char *host, const struct rule *rule)
{
	struct world *w = ctx;

	assert_ptr_equal(sandbox, &w->sandbox);
	assert_string_equal(host, "api.example.com");
	assert_non_null(rule);
	note(w, "admit");
	return w->admit;
}

static inline uint64_t fake_flow_id(void *ctx)
{
	static uint64_t id = 700;

	(void)ctx;
	return ++id;
}

static inline const struct cidr *fake_uplink(void *ctx, size_t *ret_count)
{
	struct world *w = ctx;

	*ret_count = w->uplink.ip.len ? 1 : 0;
	return &w->uplink;
}

static inline const struct endpoint *fake_self(void *ctx, size_t *ret_count)
{
	struct world *w = ctx;

	*ret_count = w->selves;
	return w->self;
}

static inline bool fake_rate(void *ctx, struct sandbox *sandbox, enum rate rate)
{
	const struct world *w = ctx;

	assert_ptr_equal(sandbox, &w->sandbox);
	assert_int_equal(rate, RATE_CONNECTIONS);
	return !w->too_fast;
}

static inline enum reason fake_meters(void *ctx, struct sandbox *sandbox,
				      const struct rule *rule,
				      struct meters *ret_meters)
{
	struct world *w = ctx;

	assert_ptr_equal(sandbox, &w->sandbox);
	(void)rule;
	ret_meters->at[UP][METER_SESSION] = w->meter;
	return w->meters;
}

static inline void on_done(void *arg, struct flow *flow,
			   const struct flow_result *result)
{
	struct world *w = arg;

	assert_false(w->called);
	assert_ptr_equal(flow, w->flow); /* so flow_start() has returned */
	w->called = true;
	w->verdict = result->verdict;
	w->fd = result->server ? watch_end(result->server) : -1;
	keep(w->detail, sizeof(w->detail), result->detail);
	note(w, "done%c", result->verdict.allow ? '+' : '-');
	if (w->close_in_done)
		flow_close(STEAL(w->flow), 0, 0, "test");
}

static const char yaml[] = "version: 1\n"
			   "name: test\n"
			   "allow:\n"
			   "  - host: api.example.com\n"
			   "    ports: [\"1-65535\"]\n"
			   "    addresses: [127.0.0.0/8, \"::1/128\"]\n"
			   "  - host: strict.example.com\n"
			   "    ports: [\"1-65535\"]\n"
			   "  - address: 127.0.5.0/24\n"
			   "    ports: [\"1-65535\"]\n"
			   "deny:\n"
			   "  - evil.example.com\n";

static inline struct policy *make_policy(void)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	struct policy_error err = { 0 };

	assert_int_equal(
		bundle_add(&bundle, BUNDLE_FILE, "p.yaml", yaml, strlen(yaml)),
		0);
	if (policy_build(bundle.data, bundle.len, &policy, &err))
		fail_msg("%s", err.text);
	bundle_free(&bundle);
	return policy;
}

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->base = event_base_new();
	w->wheel = wheel_new(w->base);
	assert_non_null(w->wheel);
	w->services = (struct services){
		.ctx = w,
		.record = fake_record,
		.record_cancel = fake_record_cancel,
		.resolve = fake_resolve,
		.resolve_cancel = fake_resolve_cancel,
		.admit = fake_admit,
		.flow_id = fake_flow_id,
		.uplink = fake_uplink,
		.self = fake_self,
		.rate = fake_rate,
		.meters = fake_meters,
	};
	w->sandbox.id = 7;
	w->sandbox.policy = make_policy();
	w->admit = REASON_RULE;
	w->record_mode = w->resolve_mode = LATER;
	w->answer[0] = "127.0.0.2";
	w->fd = -1;
	w->fds = open_fds();
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	flow_close(w->flow, 0, 0, "end of test");
	close_fd(&w->fd);
	assert_null(w->recording);
	assert_null(w->looking);
	assert_int_equal(open_fds(), w->fds);
	policy_unref(w->sandbox.policy);
	wheel_free(w->wheel);
	event_base_free(w->base);
	free(w);
	return 0;
}

static inline void begin_as(struct world *w, struct flow_ask ask)
{
	w->trace[0] = '\0';
	w->called = false;
	w->records = 0;
	ask.sandbox = &w->sandbox;
	ask.src_ip = ip_of("10.9.8.7");
	ask.src_port = 4321;
	w->flow = flow_start(w->wheel, &w->services, &ask, on_done, w);
	assert_non_null(w->flow);
	assert_false(w->called);
}

static inline void begin(struct world *w, const char *host, uint16_t port)
{
	char copy[64];

	snprintf(copy, sizeof(copy), "%s", host);
	begin_as(w, (struct flow_ask){ .door = DOOR_CONNECT,
				       .host = copy,
				       .port = port,
				       .protocol = "tls",
				       .sni = copy });
	memset(copy, 0, sizeof(copy)); /* strings were copied */
}

static inline void begin_literal(struct world *w, const char *address,
				 uint16_t port)
{
	begin_as(w, (struct flow_ask){ .door = DOOR_SOCKS,
				       .address = ip_of(address),
				       .port = port,
				       .protocol = "tcp" });
}

static inline void recorded(struct world *w, int status)
{
	struct wait *wait = STEAL(w->recording);

	assert_non_null(wait);
	wait->done(wait, status);
}

static inline void resolved(struct world *w, int status)
{
	assert_non_null(w->looking);
	w->resolve_status = status;
	give_answer(w, STEAL(w->looking));
}

static inline void until_done(struct world *w)
{
	loop_until(w->base, &w->called, 20000);
	assert_true(w->called);
}

static inline void end(struct world *w)
{
	flow_close(STEAL(w->flow), 12, 34, "eof");
	close_fd(&w->fd);
}

static inline void count_again(void *arg)
{
	++*(int *)arg;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
