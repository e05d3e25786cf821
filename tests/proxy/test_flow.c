/* SPDX-License-Identifier: Apache-2.0
 *
 * test_flow.c - the order of steps, what is recorded, and above all what is
 * not dialled: listeners that must not be called are part of the tests.
 */
#include "proxy/flow.h"

#include <fcntl.h>

#include "policy/bundle.h"
#include "tests/proxy/net.h"

enum mode { AT_ONCE, LATER };

/* What the steps left behind, e.g. "admit open+ resolve dial+ close". */
struct world {
	struct event_base *base;
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

static void note(struct world *w, const char *fmt, ...)
{
	size_t len = strlen(w->trace);
	va_list ap;

	va_start(ap, fmt);
	if (len)
		w->trace[len++] = ' ';
	vsnprintf(w->trace + len, sizeof(w->trace) - len, fmt, ap);
	va_end(ap);
}

static void keep(char *to, size_t cap, const char *text)
{
	snprintf(to, cap, "%s", text ? text : "");
}

static void fake_record(void *ctx, const struct audit_event *e,
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

static void fake_record_cancel(void *ctx, struct wait *wait)
{
	struct world *w = ctx;

	assert_ptr_equal(wait, w->recording);
	w->recording = NULL;
	w->cancelled++;
}

static void give_answer(struct world *w, struct lookup *lookup)
{
	for (lookup->count = 0; w->answer[lookup->count]; lookup->count++)
		lookup->ip[lookup->count] = ip_of(w->answer[lookup->count]);
	lookup->wait.done(&lookup->wait, w->resolve_status);
}

static void fake_resolve(void *ctx, const char *host, struct lookup *lookup)
{
	struct world *w = ctx;

	assert_string_equal(host, "api.example.com");
	note(w, "resolve");
	if (w->resolve_mode == AT_ONCE)
		give_answer(w, lookup);
	else
		w->looking = lookup;
}

static void fake_resolve_cancel(void *ctx, struct lookup *lookup)
{
	struct world *w = ctx;

	assert_ptr_equal(lookup, w->looking);
	w->looking = NULL;
	w->cancelled++;
}

static enum reason fake_admit(void *ctx, struct sandbox *sandbox,
			      const char *host, const struct rule *rule)
{
	struct world *w = ctx;

	assert_ptr_equal(sandbox, &w->sandbox);
	assert_string_equal(host, "api.example.com");
	assert_non_null(rule);
	note(w, "admit");
	return w->admit;
}

static uint64_t fake_flow_id(void *ctx)
{
	static uint64_t id = 700;

	(void)ctx;
	return ++id;
}

static const struct cidr *fake_uplink(void *ctx, size_t *ret_count)
{
	struct world *w = ctx;

	*ret_count = w->uplink.ip.len ? 1 : 0;
	return &w->uplink;
}

static const struct endpoint *fake_self(void *ctx, size_t *ret_count)
{
	struct world *w = ctx;

	*ret_count = w->selves;
	return w->self;
}

static bool fake_rate(void *ctx, struct sandbox *sandbox, enum rate rate)
{
	const struct world *w = ctx;

	assert_ptr_equal(sandbox, &w->sandbox);
	assert_int_equal(rate, RATE_CONNECTIONS);
	return !w->too_fast;
}

static enum reason fake_meters(void *ctx, struct sandbox *sandbox,
			       const struct rule *rule,
			       struct meters *ret_meters)
{
	struct world *w = ctx;

	assert_ptr_equal(sandbox, &w->sandbox);
	(void)rule;
	ret_meters->at[UP][METER_SESSION] = w->meter;
	return w->meters;
}

static void on_done(void *arg, struct flow *flow,
		    const struct flow_result *result)
{
	struct world *w = arg;

	assert_false(w->called);
	assert_ptr_equal(flow, w->flow); /* so flow_start() has returned */
	w->called = true;
	w->verdict = result->verdict;
	w->fd = result->fd;
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

static struct policy *make_policy(void)
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

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->base = event_base_new();
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

static int teardown(void **state)
{
	struct world *w = *state;

	flow_close(w->flow, 0, 0, "end of test");
	close_fd(&w->fd);
	assert_null(w->recording);
	assert_null(w->looking);
	assert_int_equal(open_fds(), w->fds);
	policy_unref(w->sandbox.policy);
	event_base_free(w->base);
	free(w);
	return 0;
}

static void begin_as(struct world *w, struct flow_ask ask)
{
	w->trace[0] = '\0';
	w->called = false;
	w->records = 0;
	ask.sandbox = &w->sandbox;
	ask.src_ip = ip_of("10.9.8.7");
	ask.src_port = 4321;
	w->flow = flow_start(w->base, &w->services, &ask, on_done, w);
	assert_non_null(w->flow);
	assert_false(w->called);
}

static void begin(struct world *w, const char *host, uint16_t port)
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

static void begin_literal(struct world *w, const char *address, uint16_t port)
{
	begin_as(w, (struct flow_ask){ .door = DOOR_SOCKS,
				       .address = ip_of(address),
				       .port = port,
				       .protocol = "tcp" });
}

static void recorded(struct world *w, int status)
{
	struct wait *wait = STEAL(w->recording);

	assert_non_null(wait);
	wait->done(wait, status);
}

static void resolved(struct world *w, int status)
{
	assert_non_null(w->looking);
	w->resolve_status = status;
	give_answer(w, STEAL(w->looking));
}

static void until_done(struct world *w)
{
	loop_until(w->base, &w->called, 5000);
	assert_true(w->called);
}

static void end(struct world *w)
{
	flow_close(STEAL(w->flow), 12, 34, "eof");
	close_fd(&w->fd);
}

static void assert_ip(const struct ip *ip, const char *text)
{
	char buf[IP_TEXT_MAX];

	assert_string_equal(ip_format(ip, buf), text);
}

static void count_again(void *arg)
{
	++*(int *)arg;
}

/* One record of progress is under way, never two. */
static void test_progress_waits(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);
	int again = 0;

	begin(w, "api.example.com", port);
	recorded(w, 0);
	resolved(w, 0);
	until_done(w);
	assert_true(somebody_came(l, 1000));
	w->trace[0] = '\0';
	assert_true(flow_progress(w->flow, 1, 0, count_again, &again));
	recorded(w, 0);
	assert_int_equal(again, 0); /* nobody was told no */
	assert_true(flow_progress(w->flow, 2, 0, count_again, &again));
	assert_false(flow_progress(w->flow, 3, 0, count_again, &again));
	assert_false(flow_progress(w->flow, 3, 0, count_again, &again));
	assert_string_equal(w->trace, "progress+ progress+");
	recorded(w, 0);
	assert_int_equal(again, 1);
	assert_true(flow_progress(w->flow, 3, 0, count_again, &again));
	assert_false(flow_progress(w->flow, 4, 0, count_again, &again));
	recorded(w, -EIO); /* the end is for others to bring */
	assert_int_equal(again, 2);
	assert_true(flow_progress(w->flow, 4, 0, count_again, &again));
	end(w);
	assert_int_equal(w->cancelled, 1);
	assert_int_equal(again, 2);
}

static void test_the_way_out(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);
	const struct kept *r = w->record;
	int again = 0;

	begin(w, "api.example.com", port);
	/* Until the ledger has it nothing happens. */
	assert_string_equal(w->trace, "admit open+");
	assert_false(somebody_came(l, 30));
	recorded(w, 0);
	assert_string_equal(w->trace, "admit open+ resolve");
	assert_false(somebody_came(l, 30));
	resolved(w, 0);
	until_done(w);
	assert_string_equal(w->trace, "admit open+ resolve dial+ done+");
	assert_true(w->verdict.allow);
	assert_true(w->fd >= 0);
	assert_true(fcntl(w->fd, F_GETFL) & O_NONBLOCK);
	assert_true(somebody_came(l, 1000));
	assert_string_equal(flow_host(w->flow), "api.example.com");
	assert_ptr_equal(flow_rule(w->flow), w->verdict.rule);
	assert_int_equal(flow_id(w->flow), r[0].flow);
	flow_classified(w->flow, "http", "other.example.com");
	assert_true(flow_progress(w->flow, 5, 6, count_again, &again));
	flow_status(w->flow, 206);
	end(w);
	assert_string_equal(w->trace, "admit open+ resolve dial+ done+ "
				      "progress+ close+");
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(r[i].flow, r[0].flow);
		assert_int_equal(r[i].sandbox, 7);
		assert_int_equal(r[i].door, DOOR_CONNECT);
		assert_int_equal(r[i].reason, REASON_RULE);
		assert_string_equal(r[i].host, "api.example.com");
		assert_string_equal(r[i].rule, "p.yaml:4");
		assert_string_equal(r[i].rule_text, "api.example.com");
		assert_ip(&r[i].src_ip, "10.9.8.7");
		assert_int_equal(r[i].src_port, 4321);
		assert_int_equal(r[i].dst_port, port);
	}
	assert_int_equal(r[0].dst_ip.len, 0);
	assert_ip(&r[1].dst_ip, "127.0.0.2");
	assert_string_equal(r[0].protocol, "tls");
	assert_string_equal(r[0].sni, "api.example.com");
	assert_int_equal(r[2].up, 5);
	assert_int_equal(r[2].down, 6);
	assert_string_equal(r[3].protocol, "http");
	assert_string_equal(r[3].sni, "other.example.com");
	assert_string_equal(r[3].detail, "eof");
	assert_int_equal(r[3].status, 206);
	assert_int_equal(r[3].up, 12);
	assert_int_equal(r[3].down, 34);
}

/* Services that answer before they return; done() still comes by itself. */
static void test_at_once(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);

	w->record_mode = w->resolve_mode = AT_ONCE;
	w->close_in_done = true;
	begin(w, "api.example.com", port);
	until_done(w);
	assert_string_equal(w->trace, "admit open+ resolve dial+ done+ close+");
	assert_true(somebody_came(l, 1000));
	close_fd(&w->fd);

	w->close_in_done = false;
	w->answer[0] = NULL;
	begin(w, "api.example.com", port);
	until_done(w);
	end(w);
	assert_string_equal(w->trace, "admit open+ resolve dial- done-");
}

static void test_denied(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *host, *address;
		uint16_t port;
		enum reason reason;
	} row[] = {
		{ "nowhere.example.org", NULL, 443, REASON_NOT_IN_POLICY },
		{ "evil.example.com", NULL, 443, REASON_DENY_RULE },
		{ "api.example.com", NULL, 0, REASON_MALFORMED },
		{ NULL, "127.0.0.2", 443, REASON_LITERAL_ADDRESS },
		{ NULL, "127.0.5.1", 0, REASON_MALFORMED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		if (row[i].host)
			begin(w, row[i].host, row[i].port);
		else
			begin_literal(w, row[i].address, row[i].port);
		assert_string_equal(w->trace, "open-"); /* recorded first */
		assert_int_equal(w->record[0].reason, row[i].reason);
		until_done(w);
		assert_false(w->verdict.allow);
		assert_int_equal(w->verdict.reason, row[i].reason);
		assert_int_equal(w->fd, -1);
		assert_null(flow_rule(w->flow));
		end(w);
		/* Never looked up, never dialled, no close record. */
		assert_string_equal(w->trace, "open- done-");
	}
}

static void test_limit_on_names(void **state)
{
	struct world *w = *state;

	w->admit = REASON_LIMIT_NAMES;
	begin(w, "api.example.com", 443);
	until_done(w);
	end(w);
	assert_string_equal(w->trace, "admit open- done-");
	assert_int_equal(w->verdict.reason, REASON_LIMIT_NAMES);
	assert_int_equal(w->record[0].reason, REASON_LIMIT_NAMES);
	assert_string_equal(w->record[0].rule, "p.yaml:4");
}

/* What was not accepted does not happen: neither a query nor a SYN. */
static void test_ledger_refuses(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int named = listen_at("127.0.0.2", &port, 4);
	AUTO_FD int literal = listen_at("127.0.5.1", &port, 4);

	for (int at_once = 0; at_once < 2; at_once++) {
		w->record_mode = at_once ? AT_ONCE : LATER;
		w->record_status = -EIO;
		begin(w, "api.example.com", port);
		if (!at_once)
			recorded(w, -EIO);
		until_done(w);
		assert_int_equal(w->verdict.reason, REASON_LEDGER_UNAVAILABLE);
		assert_false(w->verdict.allow);
		end(w);
		assert_string_equal(w->trace, "admit open+ done-");

		begin_literal(w, "127.0.5.1", port);
		if (!at_once)
			recorded(w, -EIO);
		until_done(w);
		assert_int_equal(w->verdict.reason, REASON_LEDGER_UNAVAILABLE);
		end(w);
		assert_string_equal(w->trace, "open+ done-");
	}
	assert_false(somebody_came(named, 100));
	assert_false(somebody_came(literal, 0));
}

static void test_literal(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.5.1", &port, 4);

	begin_literal(w, "127.0.5.1", port);
	assert_string_equal(w->trace, "open+");
	assert_ip(&w->record[0].dst_ip, "127.0.5.1");
	assert_false(somebody_came(l, 30));
	recorded(w, 0);
	until_done(w);
	assert_true(w->verdict.allow);
	assert_true(somebody_came(l, 1000));
	assert_null(flow_host(w->flow));
	end(w);
	assert_string_equal(w->trace, "open+ dial+ done+ close+");
}

static void test_resolve_fails(void **state)
{
	struct world *w = *state;
	static const struct {
		int status;
		const char *detail;
	} row[] = {
		{ -ENOENT, "no such name" },
		{ -ETIMEDOUT, "no answer from the name servers" },
		{ -EIO, "no answer from the name servers" },
		{ 0, "no addresses" },
	};

	w->answer[0] = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		begin(w, "api.example.com", 443);
		recorded(w, 0);
		resolved(w, row[i].status);
		until_done(w);
		assert_int_equal(w->verdict.reason, REASON_RESOLVE_FAILED);
		assert_string_equal(w->detail, row[i].detail);
		assert_int_equal(w->record[1].reason, REASON_RESOLVE_FAILED);
		assert_string_equal(w->record[1].detail, row[i].detail);
		end(w);
		assert_string_equal(w->trace,
				    "admit open+ resolve dial- done-");
	}
}

/* Addresses that come with an error are not used. */
static void test_failed_with_answers(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);

	begin(w, "api.example.com", port);
	recorded(w, 0);
	resolved(w, -EIO);
	until_done(w);
	assert_int_equal(w->verdict.reason, REASON_RESOLVE_FAILED);
	assert_false(somebody_came(l, 100));
	end(w);
}

static void test_forbidden_addresses(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int good = listen_at("127.0.0.2", &port, 4);
	AUTO_FD int v6 = listen_at("::1", &port, 4);
	static const char *const bad[] = { "169.254.169.254", "10.1.2.3",
					   "::ffff:10.1.2.3",
					   "64:ff9b::a9fe:a9fe", "0.0.0.0" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		w->answer[0] = bad[i];
		w->answer[1] = "192.168.3.4";
		w->answer[2] = NULL;
		begin(w, "api.example.com", port);
		recorded(w, 0);
		resolved(w, 0);
		until_done(w);
		assert_int_equal(w->verdict.reason, REASON_FORBIDDEN_ADDRESS);
		assert_string_equal(w->detail, bad[i]);
		assert_ip(&w->record[1].dst_ip, bad[i]);
		end(w);
		assert_string_equal(w->trace,
				    "admit open+ resolve dial- done-");

		/* Among others it is left out, and the others are used. */
		w->answer[1] = "127.0.0.2";
		begin(w, "api.example.com", port);
		recorded(w, 0);
		resolved(w, 0);
		until_done(w);
		assert_true(w->verdict.allow);
		assert_ip(&w->record[1].dst_ip, "127.0.0.2");
		end(w);
	}
	assert_false(somebody_came(v6, 50));
	assert_true(somebody_came(good, 0));
}

/* A name whose rule permits nothing special, answered with our loopback. */
static void test_never_dials_unpermitted(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l4 = listen_at("127.0.0.2", &port, 4);
	AUTO_FD int l6 = listen_at("::1", &port, 4);
	static const char strict[] = "version: 1\nallow:\n"
				     "  - host: api.example.com\n"
				     "    ports: [\"1-65535\"]\n";
	struct bundle bundle = { 0 };
	struct policy_error err;

	policy_unref(w->sandbox.policy);
	bundle_add(&bundle, BUNDLE_FILE, "s.yaml", strict, strlen(strict));
	assert_int_equal(
		policy_build(bundle.data, bundle.len, &w->sandbox.policy, &err),
		0);
	bundle_free(&bundle);
	w->answer[0] = "127.0.0.2";
	w->answer[1] = "::1";
	w->answer[2] = "::ffff:127.0.0.2";
	begin(w, "api.example.com", port);
	recorded(w, 0);
	resolved(w, 0);
	until_done(w);
	assert_int_equal(w->verdict.reason, REASON_FORBIDDEN_ADDRESS);
	assert_string_equal(w->detail, "127.0.0.2");
	assert_false(somebody_came(l4, 100));
	assert_false(somebody_came(l6, 0));
	end(w);
}

static void test_ourselves(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("0.0.0.0", &port, 4);
	static const char *const bound[] = { "127.0.0.2", "0.0.0.0", "::" };

	for (size_t i = 0; i < ARRAY_SIZE(bound); i++) {
		w->self[0] = (struct endpoint){ ip_of(bound[i]), 1 };
		w->self[1] = (struct endpoint){ ip_of(bound[i]), port };
		w->selves = 2;
		begin(w, "api.example.com", port);
		recorded(w, 0);
		resolved(w, 0);
		until_done(w);
		assert_int_equal(w->verdict.reason, REASON_SELF);
		assert_int_equal(w->record[1].reason, REASON_SELF);
		end(w);
	}
	w->self[1].ip = ip_of("127.0.5.1");
	begin_literal(w, "127.0.5.1", port);
	recorded(w, 0);
	until_done(w);
	assert_int_equal(w->verdict.reason, REASON_SELF);
	end(w);
	assert_string_equal(w->trace, "open+ dial- done-");
	assert_false(somebody_came(l, 100));

	/* Another port of the same address is somebody else. */
	w->self[1].port = (uint16_t)(port ^ 1);
	begin_literal(w, "127.0.5.1", port);
	recorded(w, 0);
	until_done(w);
	assert_true(w->verdict.allow);
	assert_true(somebody_came(l, 1000));
	end(w);
}

static void test_dial_fails(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	int l = listen_at("127.0.0.9", &port, 4);

	close(l);
	begin(w, "api.example.com", port);
	recorded(w, 0);
	resolved(w, 0);
	until_done(w);
	assert_int_equal(w->verdict.reason, REASON_CONNECT_FAILED);
	assert_string_equal(w->detail, "connection refused");
	assert_string_equal(w->record[1].detail, "connection refused");
	assert_ip(&w->record[1].dst_ip, "127.0.0.2");
	end(w);
	assert_string_equal(w->trace, "admit open+ resolve dial- done-");
}

/* Whoever asked goes away: at each step nothing is left behind. */
static void test_cancel(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	struct blackhole hole = blackhole_at("127.0.0.2", &port);
	uint16_t open_port = 0;
	int l = listen_at("127.0.0.2", &open_port, 4);
	const bool never = false;

	w->fds = open_fds();
	begin(w, "api.example.com", port); /* waiting for the ledger */
	end(w);
	assert_string_equal(w->trace, "admit open+ close+");
	assert_int_equal(w->cancelled, 1);

	begin(w, "api.example.com", port); /* waiting for an answer */
	recorded(w, 0);
	end(w);
	assert_string_equal(w->trace, "admit open+ resolve close+");
	assert_int_equal(w->cancelled, 2);

	begin(w, "api.example.com", port); /* dialling */
	recorded(w, 0);
	resolved(w, 0);
	loop_until(w->base, &never, 60);
	end(w);

	begin(w, "nowhere.example.org", port); /* refused, not yet told */
	end(w);
	assert_string_equal(w->trace, "open-");

	w->answer[0] = NULL; /* failed, not yet told */
	begin(w, "api.example.com", port);
	recorded(w, 0);
	resolved(w, 0);
	end(w);
	assert_string_equal(w->trace, "admit open+ resolve dial-");
	loop_until(w->base, &never, 60);
	assert_false(w->called);
	assert_int_equal(w->cancelled, 2);
	assert_int_equal(open_fds(), w->fds);
	flow_close(NULL, 0, 0, "nothing");
	blackhole_close(&hole);
	close(l);
	w->fds = open_fds();
}

static void test_judge(void **state)
{
	struct world *w = *state;
	const struct flow_ask ask = { .door = DOOR_CONNECT,
				      .host = "api.example.com",
				      .port = 80 };

	begin_as(w, ask);
	assert_string_equal(w->trace, "admit open+");
	recorded(w, 0);
	until_done(w);
	assert_true(w->verdict.allow);
	assert_int_equal(w->fd, -1);
	end(w);
	assert_string_equal(w->trace, "admit open+ done+ close+");

	begin_as(w, ask);
	recorded(w, -EIO);
	until_done(w);
	assert_int_equal(w->verdict.reason, REASON_LEDGER_UNAVAILABLE);
	end(w);
}

static void test_http_request(void **state)
{
	struct world *w = *state;

	begin_as(w, (struct flow_ask){ .door = DOOR_HTTP,
				       .host = "api.example.com",
				       .port = 80,
				       .protocol = "http",
				       .method = "GET",
				       .target = "/a?b" });
	assert_string_equal(w->trace, "admit request+");
	assert_string_equal(w->record[0].method, "GET");
	assert_string_equal(w->record[0].target, "/a?b");
	end(w);
}

/* A name that disagrees is found out after the dial. */
static void test_refuse_later(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);
	struct kept *r = w->record;

	w->record_mode = w->resolve_mode = AT_ONCE;
	begin(w, "api.example.com", port);
	until_done(w);
	assert_true(somebody_came(l, 1000));
	flow_refuse(w->flow, REASON_NAME_MISMATCH, "evil.example.com", "SNI");
	assert_null(flow_rule(w->flow));
	flow_close(STEAL(w->flow), 0, 9, "refused");
	assert_string_equal(w->trace,
			    "admit open+ resolve dial+ done+ open- close-");
	assert_int_equal(r[2].flow, r[0].flow);
	assert_int_equal(r[2].reason, REASON_NAME_MISMATCH);
	assert_string_equal(r[2].sni, "evil.example.com");
	assert_string_equal(r[2].detail, "SNI");
	assert_int_equal(r[3].up, 0);
	assert_int_equal(r[3].down, 9);
}

/* Refused before the dial: done() does not come any more. */
static void test_refuse_early(void **state)
{
	struct world *w = *state;
	const bool never = false;

	begin(w, "api.example.com", 443);
	flow_refuse(w->flow, REASON_PROTOCOL, NULL, NULL);
	assert_int_equal(w->cancelled, 1);
	loop_until(w->base, &never, 40);
	assert_false(w->called);
	end(w);
	assert_string_equal(w->trace, "admit open+ open- close-");
}

static void test_refusal_without_flow(void **state)
{
	struct world *w = *state;
	const struct flow_ask ask = { .sandbox = &w->sandbox,
				      .door = DOOR_SOCKS,
				      .src_ip = ip_of("10.9.8.7"),
				      .port = 99 };
	const struct flow_ask nobody = { .method = "GET" };

	flow_record_refusal(&w->services, &ask, REASON_MALFORMED, "a\nb", "x");
	flow_record_refusal(&w->services, &nobody, REASON_MALFORMED, NULL,
			    NULL);
	assert_string_equal(w->trace, "open- request-");
	assert_int_equal(w->record[0].sandbox, 7);
	assert_int_equal(w->record[0].dst_port, 99);
	assert_int_equal(w->record[0].reason, REASON_MALFORMED);
	assert_string_equal(w->record[0].host, "a\nb");
	assert_true(w->record[0].flow != w->record[1].flow);
}

/* A reload during a flow does not take its rules away from under it. */
static void test_reload(void **state)
{
	struct world *w = *state;
	uint16_t port = 0;
	AUTO_FD int l = listen_at("127.0.0.2", &port, 4);

	begin(w, "api.example.com", port);
	policy_unref(w->sandbox.policy);
	w->sandbox.policy = make_policy();
	recorded(w, 0);
	resolved(w, 0);
	until_done(w);
	assert_true(w->verdict.allow);
	assert_true(somebody_came(l, 1000));
	assert_string_equal(rule_text(flow_rule(w->flow)), "api.example.com");
	end(w);
	assert_string_equal(w->record[2].rule, "p.yaml:4");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_way_out),
		TEST(test_progress_waits),
		TEST(test_at_once),
		TEST(test_denied),
		TEST(test_limit_on_names),
		TEST(test_ledger_refuses),
		TEST(test_literal),
		TEST(test_resolve_fails),
		TEST(test_failed_with_answers),
		TEST(test_forbidden_addresses),
		TEST(test_never_dials_unpermitted),
		TEST(test_ourselves),
		TEST(test_dial_fails),
		TEST(test_cancel),
		TEST(test_judge),
		TEST(test_http_request),
		TEST(test_refuse_later),
		TEST(test_refuse_early),
		TEST(test_refusal_without_flow),
		TEST(test_reload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
