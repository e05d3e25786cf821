/* SPDX-License-Identifier: Apache-2.0
 *
 * test_resolver_guess.c - what an off-path attacker has to guess, and that in
 * the gate there are no files to read.
 */
#include <dirent.h>

#include "tests/dns/resolver_case.h"

/* --- what an off-path attacker has to guess --------------------------------
 */

#define SAMPLE 40

/* A process that asks as soon as it is told whom. It is made before there are
 * threads: a fork in the middle of what another one does may leave it a lock
 * that nobody opens. */
struct child {
	pid_t pid;
	int go;
};

static struct child child_new(int (*body)(const struct endpoint *server))
{
	struct child child;
	int go[2];

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	child = (struct child){ .pid = fork(), .go = go[1] };
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		struct endpoint server;

		close(go[1]);
		if (read(go[0], &server, sizeof(server)) !=
		    (ssize_t)sizeof(server))
			_exit(100);
		_exit(body(&server));
	}
	close(go[0]);
	return child;
}

/* Until it has ended as it should. */
static void child_run(struct child *child, const struct endpoint *server)
{
	int status;

	assert_int_equal(write(child->go, server, sizeof(*server)),
			 sizeof(*server));
	close(child->go);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, 0);
}

static int ask_sample(const struct endpoint *server)
{
	struct asker asker[SAMPLE / 2] = { 0 };
	struct resolver *resolver;
	char host[64];

	base = event_base_new();
	resolver = resolver_at(server, 1);
	for (size_t i = 0; i < SAMPLE / 2; i++) {
		asker[i].lookup.wait.done = on_done;
		snprintf(host, sizeof(host), "a4.n%zu.com", i);
		resolver_lookup(resolver, host, &asker[i].lookup);
	}
	run_until_done(asker, SAMPLE / 2, 10);
	resolver_free(resolver);
	event_base_free(base);
	return 0;
}

static unsigned distinct(const uint16_t *v, size_t n)
{
	unsigned count = 0;

	for (size_t i = 0; i < n; i++) {
		size_t j = 0;

		while (j < i && v[j] != v[i])
			j++;
		count += j == i;
	}
	return count;
}

static void test_ids_and_ports(void **state)
{
	/* As a gate is one, and the next. */
	struct child child[] = { child_new(ask_sample), child_new(ask_sample) };
	struct name_server *server = server_start();
	uint16_t id[2 * SAMPLE], port[2 * SAMPLE];
	unsigned same_id = 0, same_port = 0, steps = 0;

	(void)state;
	child_run(&child[0], &server->at);
	assert_int_equal(server_count(server), SAMPLE);
	child_run(&child[1], &server->at);
	assert_int_equal(server_count(server), 2 * SAMPLE);
	for (size_t i = 0; i < 2 * SAMPLE; i++) {
		id[i] = server->seen[i].id;
		port[i] = server->seen[i].port;
	}
	for (size_t i = 0; i < SAMPLE; i++) {
		same_id += id[i] == id[i + SAMPLE];
		same_port += port[i] == port[i + SAMPLE];
		steps += i && (uint16_t)(id[i] - id[i - 1]) <= 2;
	}
	/* By chance a pair of ids is equal once in 65536. */
	assert_true(same_id <= 2);
	assert_true(same_port <= 2);
	assert_true(steps <= 2);
	/* All under way at once: each has a port of its own. */
	assert_int_equal(distinct(port, SAMPLE), SAMPLE);
	assert_true(distinct(id, 2 * SAMPLE) > 2 * SAMPLE - 4);
	server_stop(server);
}

/* One after the other the socket is used again, its port is not. */
static void test_ports_one_by_one(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	uint16_t port[SAMPLE];
	char host[64];

	(void)state;
	for (size_t i = 0; i < SAMPLE / 2; i++) {
		snprintf(host, sizeof(host), "a4.m%zu.com", i);
		assert_int_equal(ask(resolver, host, 5).status, 0);
	}
	assert_int_equal(server_count(server), SAMPLE);
	for (size_t i = 0; i < SAMPLE; i++)
		port[i] = server->seen[i].port;
	assert_true(distinct(port, SAMPLE) > SAMPLE - 4);
	resolver_free(resolver);
	server_stop(server);
}

/* Who has found the port has one guess: then it is asked by TCP. */
static void test_one_guess(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	size_t tcp = 0;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct asker got =
			ask(resolver, i ? "forged.ok.com" : "lucky.ok.com", 20);
		char text[IP_TEXT_MAX];

		assert_int_equal(got.status, 0);
		assert_int_equal(got.lookup.count, 1);
		assert_string_equal(ip_format(&got.lookup.ip[0], text),
				    "93.184.216.34");
	}
	assert_int_equal(server_count(server), 8);
	for (size_t i = 0; i < 8; i++)
		tcp += server->seen[i].tcp;
	assert_int_equal(tcp, 4);
	resolver_free(resolver);
	server_stop(server);
}

/* Without EDNS it is another question: with another id, from another port. */
static void test_without_edns(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	uint16_t id[SAMPLE], port[SAMPLE];
	unsigned plain = 0, tcp = 0;
	char host[64];

	(void)state;
	for (size_t i = 0; i < SAMPLE / 4; i++) {
		snprintf(host, sizeof(host), "noedns.m%zu.com", i);
		assert_int_equal(ask(resolver, host, 20).lookup.count, 1);
	}
	assert_int_equal(server_count(server), SAMPLE);
	for (size_t i = 0; i < SAMPLE; i++) {
		plain += !server->seen[i].edns;
		tcp += server->seen[i].tcp;
		id[i] = server->seen[i].id;
		port[i] = server->seen[i].port;
	}
	assert_int_equal(plain, SAMPLE / 2);
	assert_int_equal(tcp, 0);
	assert_true(distinct(id, SAMPLE) > SAMPLE - 4);
	assert_true(distinct(port, SAMPLE) > SAMPLE - 4);
	resolver_free(resolver);
	server_stop(server);
}

static size_t open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* They wait for more questions, but not for long. */
static void test_sockets_go(void **state)
{
	struct name_server *server = server_start();
	struct resolver *resolver = resolver_at(&server->at, 1);
	const size_t before = open_files();
	struct asker asker[SAMPLE] = { 0 };
	const double end = exact_s() + 30;
	char host[64];

	(void)state;
	for (size_t i = 0; i < SAMPLE; i++) {
		asker[i].lookup.wait.done = on_done;
		snprintf(host, sizeof(host), "a4.s%zu.com", i);
		resolver_lookup(resolver, host, &asker[i].lookup);
	}
	assert_int_equal(open_files(), before + 2 * SAMPLE);
	run_until_done(asker, SAMPLE, 10);
	while (open_files() > before + SAMPLE && exact_s() < end) {
		const struct timeval tick = { .tv_usec = 20000 };

		event_base_loopexit(base, &tick);
		event_base_dispatch(base);
	}
	assert_true(open_files() <= before + SAMPLE);
	resolver_free(resolver);
	assert_int_equal(open_files(), before);
	server_stop(server);
}

/* --- in the gate there are no files ----------------------------------------
 */

/* Whoever asks 127.0.0.1 for want of a resolv.conf asks nobody here. */
static int ask_in_empty_root(const struct endpoint *server)
{
	char root[] = "/tmp/sp-dns-XXXXXX";
	struct resolver *none, *one;
	int r = 0;

	if (!mkdtemp(root) || chdir(root) || rmdir(root) || chroot("."))
		return 2;
	base = event_base_new();
	none = resolver_at(NULL, 0);
	one = resolver_at(server, 1);
	if (ask(none, "a4.ok.com", 5).status != -EIO)
		r = 3;
	if (ask(one, "both.ok.com", 5).lookup.count != 2)
		r = 4;
	resolver_free(none);
	resolver_free(one);
	event_base_free(base);
	return r;
}

static void test_empty_root(void **state)
{
	struct child child = child_new(ask_in_empty_root);
	struct name_server *server = server_start();

	(void)state;
	child_run(&child, &server->at);
	server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_and_ports),
		cmocka_unit_test(test_ports_one_by_one),
		cmocka_unit_test(test_one_guess),
		cmocka_unit_test(test_without_edns),
		cmocka_unit_test(test_sockets_go),
		cmocka_unit_test(test_empty_root),
	};

	base = event_base_new();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	event_base_free(base);
	return failed;
}
