/* SPDX-License-Identifier: Apache-2.0
 *
 * test_keeper.c - a keeper from the first message to the last, with real
 * namespaces, rules, gate and ledger.
 */
#include "tests/cmd/keeper_case.h"

/* Is the log whole, and of that key? */
static int verify(const struct rig *rig)
{
	char key[128];
	char *argv[] = { (char[]){ "verify" },	      (char[]){ "-q" },
			 (char[]){ "--key" },	      key,
			 (char *)(uintptr_t)rig->log, NULL };
	pid_t pid;
	int status;

	snprintf(key, sizeof(key), "%s/" SIGNING_VKEY, rig_dir);
	pid = fork();
	if (pid == 0)
		_exit(verify_main(5, argv));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_serves(void **state)
{
	AUTO_FD int leases = leases_new();
	struct msg_keep_counts counts;
	struct msg_keep_ended ended;
	struct netns ns;
	struct rig rig;
	struct ip ip, none;
	int user;

	(void)state;
	assert_int_equal(owned_create(61001, 61001, &user, &ns), 0);
	rig_start(&rig, "serves");
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	rig_ready(&rig);
	assert_string_equal(rig.ready.log_dir, rig.log);
	assert_int_equal(strlen(rig.ready.policy_digest), 64);
	assert_int_equal(strlen(rig.ready.ruleset_digest), 64);
	/* A name, and what is there; another name, and a port. */
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), 0);
	assert_int_equal(ip.byte[0], 198);
	AUTO_FD int flow = dial(ns.fd, &ip, ECHO_PORT);
	assert_true(flow >= 0);
	assert_int_equal(echo(flow, 300), 300);
	assert_int_equal(ask(ns.fd, &usual, "bad.example", &none), 3);
	assert_int_equal(none.len, 0);
	assert_int_equal(dial(ns.fd, &ip, 22), -ECONNREFUSED);
	close_fd(&flow);
	/* Answered in order, each. */
	assert_int_equal(msg_send(rig.keeper.sock, MSG_KEEP_STATS,
				  &(struct msg_keep_stats){ .look_s = 1 }, -1),
			 0);
	counts = rig_counts(&rig);
	hear(&rig, MSG_KEEP_COUNTS);
	assert_true(counts.records >= 4);
	assert_true(counts.allowed >= 2);
	assert_true(counts.refused >= 1);
	assert_true(counts.by_reason[REASON_NOT_IN_POLICY] >= 1);
	assert_int_equal(counts.packets[1], 1);
	assert_int_equal(counts.held, BOUNDARY_HELD);
	assert_int_equal(counts.gate_restarts, 0);
	assert_int_equal(counts.foreign_changes, 0);
	ended = rig_end(&rig);
	assert_int_equal(ended.held, BOUNDARY_HELD);
	assert_true(ended.receipt && ended.whole);
	has(&rig, "good.example");
	has(&rig, "not_in_policy");
	has(&rig, "exit status 0 (it was removed)");
	AUTO_FREE char *receipt = read_log(&rig, "receipt.dsse.json");
	assert_true(strlen(receipt) > 100);
	assert_int_equal(verify(&rig), 0);
	/* The link has gone, the namespace has not. */
	uint32_t index;
	assert_int_equal(link_index(ns.route, "eth0", &index), -ENODEV);
	netns_close(&ns);
	close(user);
}

static void test_policy(void **state)
{
	static const char wrong[] = { 9, 9, 9 };
	struct msg_gate_policy msg = { 0 };
	AUTO_FD int leases = leases_new();
	struct netns ns;
	struct rig rig;
	struct ip ip;
	struct stat st;
	struct msg said;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	rig_start(&rig, "policy");
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	rig_ready(&rig);
	assert_int_equal(ask(ns.fd, &usual, "other.example", &ip), 3);
	AUTO_FD int bundle = bundle_of(ALLOWS("other.example"));
	assert_int_equal(fstat(bundle, &st), 0);
	msg.len = (uint64_t)st.st_size;
	assert_int_equal(
		msg_send(rig.keeper.sock, MSG_KEEP_POLICY, &msg, bundle), 0);
	said = hear(&rig, MSG_KEEP_DONE);
	assert_int_equal(said.keep_done.status, 0);
	assert_int_equal(ask(ns.fd, &usual, "other.example", &ip), 0);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), 3);
	/* What is no policy changes nothing. */
	AUTO_FD int bad = memfd_create("bad", MFD_CLOEXEC);
	assert_int_equal(write(bad, wrong, sizeof(wrong)), sizeof(wrong));
	msg.len = sizeof(wrong);
	assert_int_equal(msg_send(rig.keeper.sock, MSG_KEEP_POLICY, &msg, bad),
			 0);
	said = hear(&rig, MSG_KEEP_DONE);
	assert_true(said.keep_done.status < 0 && *said.keep_done.text);
	assert_int_equal(ask(ns.fd, &usual, "other.example", &ip), 0);
	/* Nor is there a second namespace. */
	assert_int_equal(msg_send(rig.keeper.sock, MSG_KEEP_NETNS, NULL, ns.fd),
			 0);
	said = hear(&rig, MSG_KEEP_DONE);
	assert_int_equal(said.keep_done.status, -EALREADY);
	assert_int_equal(rig_end(&rig).whole, 1);
	has(&rig, "the policy was not reloaded");
	netns_close(&ns);
}

/* Another gate takes up where it was. */
static void test_gate_dies(void **state)
{
	AUTO_FD int leases = leases_new();
	struct msg_keep_counts counts;
	struct netns ns;
	pid_t pid[2];
	struct rig rig;
	struct ip ip;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	rig_start(&rig, "gate");
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	rig_ready(&rig);
	/* The ledger was started first. */
	assert_int_equal(children(rig.keeper.pid, pid), 2);
	assert_int_equal(kill(pid[1], SIGKILL), 0);
	do {
		serve_world(-1, 0, 20);
		counts = rig_counts(&rig);
	} while (!counts.gate_restarts);
	assert_int_equal(counts.gate_restarts, 1);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), 0);
	/* Nothing can be recorded any more: it is told, and it ends. */
	assert_int_equal(kill(pid[0], SIGKILL), 0);
	hear(&rig, MSG_KEEP_FAILED);
	assert_int_equal(hear(&rig, MSG_KEEP_ENDED).keep_ended.receipt, 0);
	assert_int_equal(exit_status(&rig), EXIT_SALLYPORT);
	netns_close(&ns);
}

/* --- one keeper after the other ------------------------------------------ */

/* Same names, same addresses, and nothing is had twice. */
static void test_again(void **state)
{
	AUTO_FD int leases = leases_new();
	struct ip other, first, again;
	struct stat st;
	struct netns ns;
	struct rig rig;
	int flow;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	rig_start(&rig, "again");
	rig_spawn(&rig, ALLOWS("'*.example'"), leases, ns.fd);
	rig_ready(&rig);
	assert_int_equal(ask(ns.fd, &usual, "a.example", &other), 0);
	assert_int_equal(ask(ns.fd, &usual, "b.example", &first), 0);
	flow = dial(ns.fd, &first, ECHO_PORT);
	assert_true(flow >= 0);
	assert_int_equal(echo(flow, 600), 600);
	close(flow);
	assert_int_equal(rig_end(&rig).receipt, 1);
	assert_int_equal(fstat(leases, &st), 0);
	assert_int_equal(st.st_size, sandbox_file_size());
	/* With the same log directory. */
	rig_spawn(&rig, ALLOWS("'*.example'"), leases, ns.fd);
	rig_ready(&rig);
	/* Whoever kept the address needs not ask again; the gate opens what was
	 * open as soon as it serves. */
	flow = dial(ns.fd, &first, ECHO_PORT);
	for (int i = 0; i < 3000 && flow == -ECONNREFUSED; i++) {
		serve_world(-1, 0, 10);
		flow = dial(ns.fd, &first, ECHO_PORT);
	}
	assert_true(flow >= 0);
	assert_int_equal(echo(flow, 300), 300);
	/* 1,000 bytes are for both together. */
	assert_true(echo(flow, 600) < 600);
	close(flow);
	assert_int_equal(ask(ns.fd, &usual, "c.example", &again), 0);
	assert_int_equal(ask(ns.fd, &usual, "b.example", &again), 0);
	assert_true(ip_equal(&first, &again));
	assert_int_equal(rig_end(&rig).receipt, 1);
	has(&rig, "limit_bytes");
	netns_close(&ns);
}

/* --- what is amiss ------------------------------------------------------- */

static void test_second_link(void **state)
{
	AUTO_FD int leases = leases_new();
	struct netns ns;
	struct rig rig;
	struct msg said;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	rig_start(&rig, "second");
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	rig_ready(&rig);
	assert_int_equal(link_veth(ns.route, "way", "out", world.fd), 0);
	said = hear(&rig, MSG_KEEP_FAILED);
	assert_non_null(strstr(said.keep_failed.text, "boundary"));
	said = hear(&rig, MSG_KEEP_ENDED);
	assert_int_equal(said.keep_ended.held, BOUNDARY_BROKEN);
	assert_true(said.keep_ended.receipt);
	hear(&rig, 0);
	assert_int_equal(exit_status(&rig), EXIT_SALLYPORT);
	has(&rig, "(it failed)");
	/* It is still there: no other keeper begins. */
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	hear(&rig, 0);
	assert_int_equal(exit_status(&rig), EXIT_SALLYPORT);
	netns_close(&ns);
}

static void test_out_of_order(void **state)
{
	AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct rig rig;

	(void)state;
	rig_start(&rig, "order");
	assert_int_equal(child_spawn("keeper", false, &rig.keeper), 0);
	assert_int_equal(msg_send(rig.keeper.sock, MSG_KEEP_LEASES, NULL, null),
			 0);
	hear(&rig, 0);
	assert_int_equal(exit_status(&rig), EXIT_SALLYPORT);
	assert_int_equal(child_spawn("keeper", false, &rig.keeper), 0);
	close_fd(&rig.keeper.sock);
	assert_int_equal(exit_status(&rig), EXIT_SALLYPORT);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serves),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_gate_dies),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_second_link),
		cmocka_unit_test(test_out_of_order),
	};

	if (is_role(argc, argv))
		return run_role(argc, argv);
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
