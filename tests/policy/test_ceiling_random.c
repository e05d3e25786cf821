/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ceiling_random.c - random pairs of policies are asked random questions,
 * together and one by one: together they allow what both allow.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/policy/build_helper.h"

#define NOW 1800000000

static struct verdict ask(const struct policy *policy, const char *host,
			  uint16_t port)
{
	const struct question q = { .host = host,
				    .port = port,
				    .door = port ? DOOR_CONNECT : DOOR_DNS,
				    .now_s = NOW };

	return policy_decide(policy, &q);
}

/* --- random pairs -------------------------------------------------------- */

static uint64_t seed;

static unsigned any(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

#define PICK(list) (list)[any(ARRAY_SIZE(list))]

static const char *const patterns[] = {
	"a.test", "b.test",	"x.a.test", "y.a.test", "*.a.test",
	"*.test", "*.x.a.test", "c.other",  "*.other",	"deep.x.a.test",
};
static const char *const hosts[] = {
	"a.test", "b.test",  "x.a.test", "y.a.test",	  "z.a.test",
	"test",	  "c.other", "d.other",	 "deep.x.a.test", "public.example.com",
};
static const char *const ranges[] = {
	"10.0.0.0/8",	 "10.1.0.0/16", "10.1.2.3/32",	 "192.0.2.0/24",
	"93.184.0.0/16", "0.0.0.0/0",	"2001:db8::/32", "2600::/12",
};
static const char *const addresses[] = {
	"10.1.2.3", "10.1.9.9",	   "10.9.9.9", "192.0.2.77", "93.184.216.34",
	"8.8.8.8",  "2001:db8::1", "2600::1",  "127.0.0.1",
};
static const uint16_t ports[] = { 22, 80, 443, 5000, 8080, 9000 };
static const char *const port_sets[] = {
	"[443]", "[80]", "[80, 443]", "[22, 8000-9000]", "[1-65535]", "[8080]",
};

struct page {
	char text[16384];
	size_t len;
};

static void put(struct page *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct page *page, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	page->len +=
		(size_t)vsnprintf(page->text + page->len,
				  sizeof(page->text) - page->len, format, ap);
	va_end(ap);
	assert_true(page->len < sizeof(page->text));
}

static void put_extras(struct page *page)
{
	if (any(8) == 0)
		put(page, ", doors: %s", any(2) ? "proxy" : "transparent");
	if (any(8) == 0)
		put(page, ", expires: %s",
		    any(2) ? "2020-01-01" : "2099-01-01T00:00:00Z");
	if (any(8) == 0)
		put(page, ", upload: %u MB", 1 + any(9));
}

static void put_name(struct page *page)
{
	static const char *const words[] = {
		", methods: [GET, HEAD]",
		", methods: [POST], paths: ['/a/*']",
		", protocol: tls",
		", protocol: http",
		", protocol: any",
		", connect: '127.0.0.1:8080'",
		", dns: {types: [TXT]}",
		", dns: {types: [TXT, MX]}",
		", addresses: [10.0.0.0/8]"
	};

	put(page, "  - {host: '%s'", PICK(patterns));
	put(page, ", ports: %s", PICK(port_sets));
	if (any(3) == 0)
		put(page, "%s", PICK(words));
	put_extras(page);
	put(page, "}\n");
}

static void put_deny(struct page *page)
{
	put(page, "deny:\n");
	for (unsigned n = 1 + any(3); n; n--) {
		if (any(3) == 0)
			put(page, "  - {address: '%s'}\n", PICK(ranges));
		else if (any(2))
			put(page, "  - '%s'\n", PICK(patterns));
		else
			put(page, "  - {host: '%s', ports: [8080]}\n",
			    PICK(patterns));
	}
}

static void random_policy(struct page *page, bool may_observe)
{
	page->len = 0;
	put(page, "version: 1\n");
	if (any(4) == 0)
		put(page, "default: public\n");
	if (may_observe && any(4) == 0)
		put(page, "mode: observe\n");
	put(page, "allow:\n");
	for (unsigned n = 1 + any(8); n; n--) {
		if (any(3)) {
			put_name(page);
			continue;
		}
		put(page, "  - {address: '%s'", PICK(ranges));
		put(page, ", ports: %s", PICK(port_sets));
		put_extras(page);
		put(page, "}\n");
	}
	if (any(2))
		put_deny(page);
}

struct pair {
	struct page user_page, over_page;
	struct policy *user, *over, *both;
};

static struct policy *try_yaml(const struct page *page)
{
	struct piece piece[] = { { BUNDLE_FILE, page->text }, { 0, NULL } };
	struct policy_error err;
	struct policy *policy = NULL;

	return build_pieces(piece, &policy, &err) ? NULL : policy;
}

/* What the language does not allow is not asked about. */
static void random_pair(struct pair *pair)
{
	do
		random_policy(&pair->user_page, true);
	while (!(pair->user = try_yaml(&pair->user_page)));
	do
		random_policy(&pair->over_page, false);
	while (!(pair->over = try_yaml(&pair->over_page)));
	pair->both = below(pair->user_page.text, pair->over_page.text);
}

static void free_pair(struct pair *pair)
{
	policy_unref(pair->user);
	policy_unref(pair->over);
	policy_unref(pair->both);
}

static struct question random_question(void)
{
	static const char *const methods[] = { "GET", "POST", "PUT" };
	static const char *const paths[] = { "/", "/a/b", "/a/%2e", "/a?x" };
	struct question q = { .door = (enum door)any(DOOR_COUNT),
			      .now_s = NOW };

	if (any(3))
		q.host = PICK(hosts);
	else
		q.address = ip_of(PICK(addresses));
	if (q.door == DOOR_DNS && q.host)
		return q;
	q.port = PICK(ports);
	if (any(3) == 0) {
		q.method = PICK(methods);
		q.path = PICK(paths);
	}
	return q;
}

static void complain(const struct pair *pair, const struct question *q,
		     const struct verdict *u, const struct verdict *c,
		     const struct verdict *b)
{
	char ip[IP_TEXT_MAX];

	fail_msg("%s %s:%u %s %s %s: %s, %s, together %s\n--- user\n%s"
		 "--- ceiling\n%s",
		 q->host ? q->host : "", ip_format(&q->address, ip), q->port,
		 door_word(q->door), q->method ? q->method : "",
		 q->path ? q->path : "", reason_word(u->reason),
		 reason_word(c->reason), reason_word(b->reason),
		 pair->user_page.text, pair->over_page.text);
}

static enum wanted wanted_at(const struct verdict *v, uint16_t port)
{
	enum wanted w =
		verdict_has_rule(v) ? rule_wanted(v->rule) : WANTED_DEFAULT;

	if (w == WANTED_DEFAULT && port == 443)
		return WANTED_TLS;
	return w == WANTED_DEFAULT && port == 80 ? WANTED_HTTP : w;
}

static bool connects(const struct verdict *v)
{
	return verdict_has_rule(v) && rule_connect(v->rule);
}

/* Both allow it, and there is still nothing that suits both? */
static bool may_disagree(const struct verdict *u, const struct verdict *c,
			 const struct verdict *b, uint16_t port)
{
	enum wanted x = wanted_at(u, port), y = wanted_at(c, port);

	if (b->reason == REASON_PROTOCOL)
		return (x == WANTED_TLS && y == WANTED_HTTP) ||
		       (x == WANTED_HTTP && y == WANTED_TLS);
	return (b->reason == REASON_FORBIDDEN_ADDRESS && connects(u)) ||
	       (b->reason == REASON_DENY_RULE && connects(c));
}

/* Without a port, in DNS, nobody asks what is spoken. */
static bool stricter(enum wanted is, enum wanted than, uint16_t port)
{
	return !port || is == than || than == WANTED_ANY ||
	       (than == WANTED_DEFAULT && is != WANTED_ANY);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static bool terms_hold(const struct verdict *u, const struct verdict *c,
		       const struct verdict *b, uint16_t port)
{
	const struct rule *x = verdict_has_rule(u) ? u->rule : NULL;
	const struct rule *y = c->rule, *z = b->rule;

	if (!stricter(wanted_at(b, port), wanted_at(u, port), port) ||
	    !stricter(wanted_at(b, port), wanted_at(c, port), port) ||
	    verdict_judges_requests(b) !=
		    (verdict_judges_requests(u) || verdict_judges_requests(c)))
		return false;
	if (!verdict_has_rule(b))
		return !x && !y;
	return rule_dns_types(z) == ((x ? rule_dns_types(x) : 0) &
				     (y ? rule_dns_types(y) : 0)) &&
	       rule_budget(z, UP) == smaller(x ? rule_budget(x, UP) : 0,
					     y ? rule_budget(y, UP) : 0);
}

static unsigned check_question(const struct pair *pair)
{
	const struct question q = random_question();
	struct verdict u = policy_decide(pair->user, &q);
	struct verdict c = policy_decide(pair->over, &q);
	struct verdict b = policy_decide(pair->both, &q);

	if (b.allow && !(u.allow && c.allow && terms_hold(&u, &c, &b, q.port)))
		complain(pair, &q, &u, &c, &b);
	if (!b.allow && u.allow && c.allow && !may_disagree(&u, &c, &b, q.port))
		complain(pair, &q, &u, &c, &b);
	if (!u.allow && b.reason != u.reason)
		complain(pair, &q, &u, &c, &b);
	if (u.allow && !c.allow &&
	    (b.reason != c.reason || !rule_of_ceiling(b.rule)))
		complain(pair, &q, &u, &c, &b);
	if (!b.allow)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		const struct ip ip = ip_of(addresses[i]);
		bool own =
			policy_check_address(pair->user, u.rule, &ip, NULL, 0)
				.allow;
		bool over =
			policy_check_address(pair->over, c.rule, &ip, NULL, 0)
				.allow;
		bool both =
			policy_check_address(pair->both, b.rule, &ip, NULL, 0)
				.allow;
		/* What only observed has no say in what is permitted. */
		if (both && !(own && over))
			complain(pair, &q, &u, &c, &b);
		if (!both && own && over && u.reason != REASON_OBSERVE)
			complain(pair, &q, &u, &c, &b);
	}
	return 1;
}

static bool has_port(const struct policy *policy, const char *host,
		     uint16_t port)
{
	struct port_range range[256];
	size_t n = policy_ports(policy, host, NOW, range, ARRAY_SIZE(range));

	for (size_t i = 0; i < n; i++)
		if (port >= range[i].first && port <= range[i].last)
			return true;
	return false;
}

static bool has_literal(const struct policy *policy, const struct ip *ip,
			uint16_t port)
{
	const struct port_range *range;
	struct cidr cidr;
	size_t n;

	for (size_t i = 0; policy_literal(policy, i, &cidr, &range, &n); i++)
		for (size_t j = 0; cidr_contains(&cidr, ip) && j < n; j++)
			if (port >= range[j].first && port <= range[j].last)
				return true;
	return false;
}

/* What the firewall lets through is what the gate would allow. */
static bool may_leave(const struct policy *policy, const char *host,
		      uint16_t port)
{
	const struct question q = { .host = host,
				    .port = port,
				    .door = DOOR_TRANSPARENT,
				    .now_s = NOW };

	return policy_decide(policy, &q).allow;
}

static void check_sets(const struct pair *pair)
{
	for (size_t p = 0; p < ARRAY_SIZE(ports); p++) {
		for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
			bool both = has_port(pair->both, hosts[i], ports[p]);

			bool may = may_leave(pair->both, hosts[i], ports[p]);

			if (policy_observes(pair->user) ? may && !both
							: may != both)
				fail_msg(
					"%s:%u: %d\n--- user\n%s--- ceiling\n%s",
					hosts[i], ports[p], both,
					pair->user_page.text,
					pair->over_page.text);
			if (both)
				assert_true(has_port(pair->user, hosts[i],
						     ports[p]) &&
					    has_port(pair->over, hosts[i],
						     ports[p]));
		}
		for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
			struct ip ip = ip_of(addresses[i]);

			assert_int_equal(
				has_literal(pair->both, &ip, ports[p]),
				has_literal(pair->user, &ip, ports[p]) &&
					has_literal(pair->over, &ip, ports[p]));
		}
	}
}

/* A name exists if one below it is allowed (RFC 8020). */
static void check_parents(const struct pair *pair)
{
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		const char *up = strchr(hosts[i], '.');

		if (policy_observes(pair->user) || !up ||
		    ask(pair->both, hosts[i], 0).reason != REASON_RULE)
			continue;
		for (; up; up = strchr(up + 1, '.'))
			if (policy_has_below(pair->user, up + 1) ||
			    policy_has_below(pair->over, up + 1))
				assert_true(
					policy_has_below(pair->both, up + 1));
	}
}

static void test_random_pairs(void **state)
{
	unsigned allowed = 0;

	(void)state;
	for (unsigned n = 0; n < 3000; n++) {
		struct pair pair;

		seed = n + 1;
		random_pair(&pair);
		for (unsigned i = 0; i < 60; i++)
			allowed += check_question(&pair);
		if (n % 5 == 0)
			check_sets(&pair);
		check_parents(&pair);
		assert_int_equal(
			policy_next_expiry(pair.both, NOW),
			smaller((uint64_t)policy_next_expiry(pair.user, NOW),
				(uint64_t)policy_next_expiry(pair.over, NOW)));
		free_pair(&pair);
	}
	/* Enough of them that "allowed" was asked about as well. */
	assert_true(allowed > 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
