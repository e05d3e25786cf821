/* SPDX-License-Identifier: Apache-2.0
 *
 * test_diff_random.c - whatever two policies decide differently is reported.
 */
#include "tests/policy/diff_case.h"

/* --- whatever is decided differently is reported ------------------------- */

static uint64_t seed = 88172645463325252;

static unsigned dice(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)((seed >> 11) % n);
}

static const char *const hosts[] = { "a.test",	     "b.a.test", "c.b.a.test",
				     "d.test",	     "test",	 "b.d.test",
				     "x.c.b.a.test", "0.a.test" };

static const char *const ranges[] = { "9.0.0.0/8",  "9.9.0.0/16",  "9.9.9.0/24",
				      "9.9.9.9/32", "9.128.0.0/9", "2600::/16",
				      "2600:1::/32" };

/* Those with methods or paths need ports without 443. */
static const char *const plain_ports[] = { "80", "22, 80", "1-100", "8080" };

static const char *const extras[] = {
	"",
	"",
	"",
	", doors: [proxy]",
	", doors: [transparent]",
	", protocol: any",
	", protocol: tls",
	", expires: 2027-01-01",
	", expires: 2028-01-01",
	", upload: 1 MB",
	", connect: 127.0.0.1:9",
};

static const char *const judged[] = {
	", methods: [GET]",
	", methods: [GET, PUT]",
	", paths: [/a/**]",
	", paths: [/a/*, /b]",
	", methods: [PUT], paths: [/a/b]",
	", paths: [/**]",
	", paths: [/*/b]",
};

struct sample {
	char text[4096];
	size_t len;
};

#define PICK(list) ((list)[dice(ARRAY_SIZE(list))])

static void put(struct sample *s, const char *a, const char *b, const char *c,
		const char *d, const char *e)
{
	s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len,
				   "%s%s%s%s%s", a, b, c, d, e);
	assert_true(s->len < sizeof(s->text));
}

static void put_allowed(struct sample *s)
{
	bool judges = dice(3) == 0, wildcard = dice(2);
	const char *more = judges ? PICK(judged) : PICK(extras);

	/* `connect` is for one name. */
	if (strstr(more, "connect"))
		wildcard = false;
	if (dice(4) == 0 && !strstr(more, "connect"))
		put(s, " - {address: '", PICK(ranges), "'", "", "");
	else
		put(s, " - {host: '", wildcard ? "*." : "", PICK(hosts), "'",
		    "");
	put(s, ", ports: [", judges ? PICK(plain_ports) : PICK(ports), "]",
	    more, "}\n");
}

static void put_denied(struct sample *s)
{
	switch (dice(3)) {
	case 0:
		put(s, " - {address: '", PICK(ranges), "'}\n", "", "");
		break;
	case 1:
		put(s, " - '", dice(2) ? "*." : "", PICK(hosts), "'\n", "");
		break;
	default:
		put(s, " - {host: '", dice(2) ? "*." : "", PICK(hosts),
		    "', ports: [", PICK(ports));
		put(s, "]}\n", "", "", "", "");
	}
}

static struct policy *random_policy(void)
{
	struct sample s = { .len = 0 };
	unsigned allowed = 1 + dice(5), denied = dice(3);

	put(&s, dice(6) ? "" : "default: public\n",
	    dice(6) ? "" : "mode: observe\n", "allow:\n", "", "");
	while (allowed--)
		put_allowed(&s);
	if (denied)
		put(&s, "deny:\n", "", "", "", "");
	while (denied--)
		put_denied(&s);
	return build(s.text);
}

static struct question random_question(void)
{
	static const char *const names[] = {
		"a.test",     "b.a.test",  "c.b.a.test",   "d.test",
		"test",	      "b.d.test",  "x.c.b.a.test", "z.x.c.b.a.test",
		"q.b.a.test", "q.a.test",  "q.w.a.test",   "q.test",
		"0.a.test",   "e.example", "q.b.d.test",   "z.z.z.d.test",
	};
	static const char *const addresses[] = {
		"9.0.0.1",   "9.9.0.0", "9.9.9.9", "9.9.9.0",	"9.9.9.200",
		"9.200.0.1", "8.8.8.8", "2600::1", "2600:1::1", "10.0.0.1"
	};
	static const uint16_t numbers[] = { 1,	 22,  79,  80,	 81,
					    100, 443, 444, 1000, 8080,
					    400, 500, 501, 65535 };
	static const char *const methods[] = { "GET", "PUT", "POST" };
	static const char *const paths[] = { "/",    "/a",   "/a/",
					     "/a/b", "/b",   "/a/b/c",
					     "/b/b", "/c?x", "/a//b" };
	struct question q = { .door = (enum door)dice(DOOR_COUNT),
			      .port = PICK(numbers),
			      .now_s = NOW };

	if (dice(4) == 0 && q.door != DOOR_DNS)
		q.address = ip_of(PICK(addresses));
	else
		q.host = PICK(names);
	if (q.door == DOOR_DNS) {
		q.port = 0;
	} else if (dice(2)) {
		q.method = PICK(methods);
		q.path = PICK(paths);
	}
	return q;
}

/* How specific an entry is about what @q asks; 0: not at all. */
static unsigned about(const struct difference *at, const struct question *q)
{
	size_t len = strlen(at->what);
	struct cidr cidr;

	if (at->kind == DIFF_ADDRESS)
		return q->address.len && cidr_parse(at->what, &cidr) &&
				       cidr_contains(&cidr, &q->address)
			       ? 1u + cidr.bits
			       : 0;
	if (at->kind != DIFF_NAME || !q->host)
		return 0;
	if (strcmp(at->what, DIFF_OTHERS) == 0)
		return 1;
	if (strcmp(at->what, q->host) == 0)
		return 1000;
	return strncmp(at->what, "*.", 2) == 0 &&
			       host_below(q->host, at->what + 2)
		       ? (unsigned)len
		       : 0;
}

/* @opens: it says that something became reachable. */
static bool says(const struct difference *at, const struct question *q,
		 bool opens)
{
	unsigned bit = q->door == DOOR_DNS	     ? DIFF_IN_DNS
		       : q->door == DOOR_TRANSPARENT ? DIFF_DIRECTLY
						     : DIFF_BY_PROXY;

	if (!about(at, q) || !(at->doors & bit))
		return false;
	if (q->port && (q->port < at->ports.first || q->port > at->ports.last))
		return false;
	if (at->sign == DIFF_CHANGED)
		return (q->method || strstr(at->detail, "let pass")) &&
		       at->way != (opens ? DIFF_NARROWER : DIFF_WIDER);
	return at->sign == (opens ? DIFF_ADDED : DIFF_REMOVED);
}

static bool mode_differs(const struct differences *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->at[i].kind == DIFF_SETTING &&
		    strcmp(all->at[i].what, "mode") == 0)
			return true;
	return false;
}

static void check_question(const struct policy *was, const struct policy *is,
			   const struct differences *all,
			   const struct question *q)
{
	struct verdict a = policy_decide(was, q), b = policy_decide(is, q);
	bool found = false;

	if (a.allow == b.allow)
		return;
	if (a.reason == REASON_OBSERVE || b.reason == REASON_OBSERVE)
		found = mode_differs(all) || a.reason == REASON_MALFORMED ||
			b.reason == REASON_MALFORMED;
	for (size_t i = 0; i < all->count; i++)
		found |= says(&all->at[i], q, b.allow);
	if (!found) {
		char text[4000], ip[IP_TEXT_MAX];

		show(all, text, sizeof(text));
		print_error("%s%s:%u %s %s %s: %s, then %s\n%s\n",
			    q->host ? q->host : "", ip_format(&q->address, ip),
			    q->port, door_word(q->door),
			    q->method ? q->method : "", q->path ? q->path : "",
			    reason_word(a.reason), reason_word(b.reason), text);
	}
	assert_true(found);
}

/* Nothing is reported that is not so. */
static void check_entry(const struct policy *was, const struct policy *is,
			const struct difference *at)
{
	char name[300];
	struct question q = { .host = at->what,
			      .port = at->ports.last,
			      .now_s = NOW };

	if (at->kind != DIFF_NAME || at->sign == DIFF_CHANGED ||
	    policy_observes(was) || policy_observes(is))
		return;
	q.door = at->doors & DIFF_BY_PROXY   ? DOOR_SOCKS
		 : at->doors & DIFF_DIRECTLY ? DOOR_TRANSPARENT
					     : DOOR_DNS;
	if (strncmp(at->what, "*.", 2) == 0)
		snprintf(name, sizeof(name), "unheard-of%s", at->what + 1);
	else
		snprintf(name, sizeof(name), "%s",
			 strcmp(at->what, DIFF_OTHERS) ? at->what
						       : "e.example");
	q.host = name;
	assert_int_equal(policy_decide(was, &q).allow,
			 at->sign == DIFF_REMOVED);
	assert_int_equal(policy_decide(is, &q).allow, at->sign == DIFF_ADDED);
}

static void count_signs(const struct differences *all, size_t n[3])
{
	memset(n, 0, 3 * sizeof(*n));
	for (size_t i = 0; i < all->count; i++)
		n[all->at[i].sign]++;
}

static void test_every_difference_is_reported(void **state)
{
	size_t there[3], back[3];

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		struct policy *was = random_policy(), *is = random_policy();
		struct differences all, reverse, none;

		assert_int_equal(policy_diff(was, is, NOW, &all), 0);
		assert_int_equal(policy_diff(is, was, NOW, &reverse), 0);
		assert_int_equal(policy_diff(is, is, NOW, &none), 0);
		assert_int_equal(none.count, 0);
		count_signs(&all, there);
		count_signs(&reverse, back);
		assert_int_equal(there[DIFF_ADDED], back[DIFF_REMOVED]);
		assert_int_equal(there[DIFF_REMOVED], back[DIFF_ADDED]);
		assert_int_equal(there[DIFF_CHANGED], back[DIFF_CHANGED]);
		for (unsigned j = 0; j < 100; j++) {
			const struct question q = random_question();

			check_question(was, is, &all, &q);
		}
		for (size_t j = 0; j < all.count; j++)
			check_entry(was, is, &all.at[j]);
		differences_free(&all);
		differences_free(&reverse);
		policy_unref(was);
		policy_unref(is);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_difference_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
