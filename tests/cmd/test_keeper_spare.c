/* SPDX-License-Identifier: Apache-2.0
 *
 * test_keeper_spare.c - a keeper that prepares a sandbox which nobody has asked
 * for yet, with real namespaces, rules, gate and ledger.
 */
#include "tests/cmd/keeper_case.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/syscall.h>

#define FDS_MAX 64

static void prepare(struct rig *rig, const char *name, int ns)
{
	rig_start(rig, name);
	assert_int_equal(child_spawn("keeper", false, &rig->keeper), 0);
	assert_int_equal(msg_send(rig->keeper.sock, MSG_KEEP_PREPARE, NULL, ns),
			 0);
	hear(rig, MSG_KEEP_PREPARED);
}

/* It ends, and never served. */
static void gives_up(struct rig *rig)
{
	hear(rig, 0);
	assert_int_equal(exit_status(rig), EXIT_SALLYPORT);
}

/* Somebody who is gone, perhaps with messages that he has not read. */
static bool is_gone(int err)
{
	return err == -EPIPE || err == -ECONNRESET;
}

/* It gives up at one of the messages; the others it may never have read. */
static void refuses(struct rig *rig, int leases, int ns)
{
	int err = rig_offer(rig, ALLOWS("good.example"), leases, ns);
	struct msg msg;

	assert_true(err == 0 || is_gone(err));
	assert_true(serve_world(rig->keeper.sock, POLLIN, WAIT_MS));
	err = msg_recv(rig->keeper.sock, &msg, MSG_DONTWAIT);
	assert_true(err == 0 || is_gone(err));
	assert_int_equal(exit_status(rig), EXIT_SALLYPORT);
}

static ino_t inode(int ns)
{
	struct stat st;

	assert_int_equal(fstat(ns, &st), 0);
	return st.st_ino;
}

/* The namespace of the keeper's sockets that is neither ours nor @ns. */
static int gateway_of(const struct rig *rig, int ns)
{
	AUTO_FD int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	for (int i = 3; i < FDS_MAX; i++) {
		AUTO_FD int fd =
			(int)syscall(SYS_pidfd_getfd, rig->keeper.pidfd, i, 0);
		AUTO_FD int found = fd < 0 ? -1 : ioctl(fd, SIOCGSKNS);

		if (found >= 0 && inode(found) != inode(own) &&
		    inode(found) != inode(ns))
			return steal_fd(&found);
	}
	fail_msg("there is no gateway");
	return -1;
}

static void inside(int ns, const char *command)
{
	char text[200];
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (setns(ns, CLONE_NEWNET) < 0)
			_exit(2);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	snprintf(text, sizeof(text), "%s: %d", command, status);
	if (status)
		fail_msg("%s", text);
}

/* The same as one that was made when it was asked for; its processes are those
 * that waited. */
static void test_serves(void **state)
{
	AUTO_FD int leases = leases_new();
	pid_t before[2], after[2];
	struct msg_keep_ended ended;
	struct netns ns, plain;
	struct rig rig, other;
	struct ip ip;
	int user;

	(void)state;
	assert_int_equal(owned_create(61001, 61001, &user, &ns), 0);
	prepare(&rig, "spare", ns.fd);
	assert_int_equal(children(rig.keeper.pid, before), 2);
	/* Whoever were inside would reach nothing: its gate does not read. */
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), -1);
	assert_int_equal(dial(ns.fd, &usual, 22), -ECONNREFUSED);
	rig_tell(&rig, ALLOWS("good.example"), leases, -1);
	rig_ready(&rig);
	assert_int_equal(children(rig.keeper.pid, after), 2);
	assert_memory_equal(before, after, sizeof(before));
	assert_string_equal(rig.ready.log_dir, rig.log);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), 0);
	AUTO_FD int flow = dial(ns.fd, &ip, ECHO_PORT);
	assert_true(flow >= 0);
	assert_int_equal(echo(flow, 300), 300);
	assert_int_equal(ask(ns.fd, &usual, "bad.example", &ip), 3);
	close_fd(&flow);
	/* No rule is another one. */
	AUTO_FD int more = leases_new();
	assert_int_equal(netns_create(&plain, NULL, NULL, NULL, NULL), 0);
	rig_start(&other, "plain");
	rig_spawn(&other, ALLOWS("good.example"), more, plain.fd);
	rig_ready(&other);
	assert_string_equal(rig.ready.ruleset_digest,
			    other.ready.ruleset_digest);
	assert_int_equal(rig_end(&other).held, BOUNDARY_HELD);
	ended = rig_end(&rig);
	assert_int_equal(ended.held, BOUNDARY_HELD);
	assert_true(ended.receipt && ended.whole);
	has(&rig, "good.example");
	has(&rig, "separation uid");
	netns_close(&plain);
	netns_close(&ns);
	close(user);
}

/* Between the two anything may have been done to it. */
static void test_touched(void **state)
{
	AUTO_FD int leases = leases_new();
	struct netns ns;
	struct rig rig;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	prepare(&rig, "touched", ns.fd);
	assert_int_equal(link_veth(ns.route, "way", "out", world.fd), 0);
	rig_tell(&rig, ALLOWS("good.example"), leases, -1);
	gives_up(&rig);
	netns_close(&ns);
}

static void test_rules_touched(void **state)
{
	static const char *const commands[] = {
		"nft flush ruleset",
		"nft add table inet more",
		"nft insert rule inet sallyport forward accept",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		AUTO_FD int leases = leases_new();
		struct netns ns;
		struct rig rig;

		assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
		prepare(&rig, "rules", ns.fd);
		AUTO_FD int gateway = gateway_of(&rig, ns.fd);
		inside(gateway, commands[i]);
		close_fd(&gateway);
		rig_tell(&rig, ALLOWS("good.example"), leases, -1);
		gives_up(&rig);
		netns_close(&ns);
	}
}

/* What is as it was again may have let something out meanwhile. */
static void test_links_touched(void **state)
{
	static const struct {
		bool gateway;
		const char *command;
	} rows[] = {
		{ true, "ip route add 10.0.0.0/8 via 198.19.0.2" },
		{ true, "echo 1 > /proc/sys/net/ipv4/ip_forward" },
		{ true, "ip addr add 10.9.0.1/24 dev sp0" },
		{ false, "ip link del eth0 && ip link add eth0 type veth peer "
			 "name far netns $PPID" },
		{ false, "ip route add 10.0.0.0/8 via 198.19.0.1; "
			 "ip route del 10.0.0.0/8" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_FD int leases = leases_new();
		struct netns ns;
		struct rig rig;

		assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
		prepare(&rig, "links", ns.fd);
		AUTO_FD int gateway = gateway_of(&rig, ns.fd);
		inside(rows[i].gateway ? gateway : ns.fd, rows[i].command);
		close_fd(&gateway);
		rig_tell(&rig, ALLOWS("good.example"), leases, -1);
		gives_up(&rig);
		netns_close(&ns);
	}
}

static void test_child_dies(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct netns ns;
		struct rig rig;
		pid_t pid[2];

		assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
		prepare(&rig, "dies", ns.fd);
		assert_int_equal(children(rig.keeper.pid, pid), 2);
		assert_int_equal(kill(pid[i], SIGKILL), 0);
		gives_up(&rig);
		netns_close(&ns);
	}
}

/* Nobody came: that is no error, and nobody stays. */
static void test_not_needed(void **state)
{
	struct netns ns;
	struct rig rig;
	pid_t pid[2];
	uint32_t index;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	prepare(&rig, "alone", ns.fd);
	assert_int_equal(children(rig.keeper.pid, pid), 2);
	close_fd(&rig.keeper.sock);
	assert_int_equal(exit_status(&rig), 0);
	for (int i = 0; i < 3000 && kill(pid[0], 0) + kill(pid[1], 0) != -2;
	     i++)
		poll(NULL, 0, 10);
	assert_int_equal(kill(pid[0], 0), -1);
	assert_int_equal(kill(pid[1], 0), -1);
	for (int i = 0; i < 3000 && link_index(ns.route, "eth0", &index) == 0;
	     i++)
		poll(NULL, 0, 10);
	assert_int_equal(link_index(ns.route, "eth0", &index), -ENODEV);
	netns_close(&ns);
}

/* It is for one kind of sandbox, and for one sandbox. */
static void test_others(void **state)
{
	AUTO_FD int leases = leases_new();
	struct netns ns;
	struct rig rig;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	prepare(&rig, "address", ns.fd);
	rig.start.ip = ip_v4(GATEWAY_LINK_BASE + 6);
	refuses(&rig, leases, -1);
	prepare(&rig, "joins", ns.fd);
	rig.start.link = KEEP_LINK_JOIN;
	refuses(&rig, leases, -1);
	prepare(&rig, "other", ns.fd);
	refuses(&rig, leases, ns.fd);
	prepare(&rig, "twice", ns.fd);
	assert_int_equal(
		msg_send(rig.keeper.sock, MSG_KEEP_PREPARE, NULL, ns.fd), 0);
	gives_up(&rig);
	netns_close(&ns);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serves),
		cmocka_unit_test(test_touched),
		cmocka_unit_test(test_rules_touched),
		cmocka_unit_test(test_links_touched),
		cmocka_unit_test(test_child_dies),
		cmocka_unit_test(test_not_needed),
		cmocka_unit_test(test_others),
	};

	if (is_role(argc, argv))
		return run_role(argc, argv);
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
