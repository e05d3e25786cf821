/* SPDX-License-Identifier: Apache-2.0
 *
 * test_keeper_join.c - a keeper joins a namespace that an engine makes.
 */
#include "tests/cmd/keeper_case.h"

/* --- a namespace that an engine makes ------------------------------------ */

/* What an engine does with the end that it finds as @name. */
static void engine_moves(const char *name, const struct netns *box, int rename)
{
	const struct cidr ip = { .ip = ip_v4(0xac120002), .bits = 16 };
	const struct ip gateway = ip_v4(0xac120001);
	struct ifreq request = { 0 };
	char command[128];
	pid_t holder = fork();

	if (holder == 0) {
		if (setns(box->fd, CLONE_NEWNET) == 0)
			pause();
		_exit(1);
	}
	/* A process is how `ip` names a namespace. */
	snprintf(command, sizeof(command),
		 "for i in $(seq 200); do ip link set %s netns %d && "
		 "[ ! -e /sys/class/net/%s ] && exit 0; sleep .1; done; exit 1",
		 name, (int)holder, name);
	usleep(50000);
	assert_int_equal(system(command), 0);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	snprintf(request.ifr_newname, sizeof(request.ifr_newname), "eth0");
	assert_int_equal(ioctl(rename, SIOCSIFNAME, &request), 0);
	assert_int_equal(link_address(box->route, "eth0", &ip), 0);
	assert_int_equal(link_up(box->route, "eth0"), 0);
	assert_int_equal(link_default_route(box->route, &gateway), 0);
}

/* No IPv6, as an engine does it. */
static int box_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	return netns_sandbox_sysctls();
}

static void engines_start(struct rig *rig, const char *name, bool tables)
{
	rig_start(rig, name);
	rig->start.link = KEEP_LINK_JOIN;
	rig->start.tables = tables;
	rig->start.ip = ip_v4(0xac120002);
	rig->start.gateway = ip_v4(0xac120001);
	rig->start.bits = 16;
	snprintf(rig->start.ifname, sizeof(rig->start.ifname), "spt0");
	snprintf(rig->start.boundary, sizeof(rig->start.boundary), "docker");
}

/* By who is root in the container. */
static int nft(const struct netns *box, const char *verb, const char *what,
	       const char *name)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (setns(box->fd, CLONE_NEWNET) < 0)
			_exit(1);
		execlp("nft", "nft", verb, what, name, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* The container runs, and the daemon is a new one: so the keeper puts the link
 * there, beside what there is. */
static void adopt_box(struct rig *rig, const struct netns *box, int leases)
{
	struct ip ip;

	rig->start.link = KEEP_LINK_OWN;
	snprintf(rig->start.ifname, sizeof(rig->start.ifname), "eth0");
	rig_spawn(rig, ALLOWS("good.example"), leases, box->fd);
	rig_ready(rig);
	assert_int_equal(ask(box->fd, &rig->start.gateway, "good.example", &ip),
			 0);
	serve_world(-1, 0, 1200);
	assert_int_equal(rig_counts(rig).held, BOUNDARY_HELD);
	assert_int_equal(rig_end(rig).receipt, 1);
	has(rig, "interfaces that are not ours");
}

/* The engine makes its namespace, which the keeper is told of, and moves the
 * link there. */
static void join_box(struct rig *rig, const struct netns *box)
{
	AUTO_FD int rename = socket_in(box->fd, udp_inside);
	struct msg said;

	assert_true(if_nametoindex("spt0") > 0);
	/* It is told before the engine has done its work. */
	assert_int_equal(
		msg_send(rig->keeper.sock, MSG_KEEP_NETNS, NULL, box->fd), 0);
	said = hear(rig, MSG_KEEP_DONE);
	if (said.keep_done.status)
		fail_msg("%s", said.keep_done.text);
	engine_moves("spt0", box, rename);
}

static void test_join(void **state)
{
	const bool tables = *(const bool *)*state;
	bool owned;
	const struct ip gateway = ip_v4(0xac120001);
	AUTO_FD int leases = leases_new();
	struct msg_keep_counts counts;
	struct netns box;
	struct rig rig;
	struct msg said;
	struct ip ip;

	assert_int_equal(netns_create(&box, box_inside, NULL, NULL, NULL), 0);
	engines_start(&rig, tables ? "join-tables" : "join", tables);
	rig_spawn(&rig, ALLOWS("good.example"), leases, -1);
	rig_ready(&rig);
	join_box(&rig, &box);
	assert_int_equal(ask(box.fd, &gateway, "good.example", &ip), 0);
	AUTO_FD int flow = dial(box.fd, &ip, ECHO_PORT);
	assert_true(flow >= 0);
	assert_int_equal(echo(flow, 100), 100);
	/* By now it was looked at. */
	serve_world(-1, 0, 1500);
	counts = rig_counts(&rig);
	assert_int_equal(counts.foreign_changes, 0);
	assert_int_equal(counts.held, BOUNDARY_HELD);
	assert_true(time(NULL) * 1000 - (int64_t)counts.checkpoint_ms < 60000);
	/* The engine connects it to another network. */
	assert_int_equal(link_veth(box.route, "eth1",
				   tables ? "far-tables" : "far", world.fd),
			 0);
	if (!tables) {
		said = hear(&rig, MSG_KEEP_FAILED);
		said = hear(&rig, MSG_KEEP_ENDED);
		assert_int_equal(said.keep_ended.held, BOUNDARY_BROKEN);
		assert_int_equal(exit_status(&rig), EXIT_SALLYPORT);
	} else {
		serve_world(-1, 0, 500);
		counts = rig_counts(&rig);
		assert_true(counts.foreign_changes > 0);
		assert_int_equal(echo(flow, 100), 100);
		assert_int_equal(counts.held, BOUNDARY_HELD);
		assert_int_equal(nft(&box, "flush", "ruleset", NULL), 0);
		/* From Linux 6.9 on they are the keeper's alone. */
		owned = nft(&box, "list", "tables", "inet") == 0 &&
			nft(&box, "list", "table", "inet sallyport_lock") == 0;
		serve_world(-1, 0, 1500);
		assert_int_equal(rig_end(&rig).held,
				 owned ? BOUNDARY_HELD : BOUNDARY_RESTORED);
		has(&rig, "links were changed");
		has(&rig, "eth1");
		if (!owned)
			has(&rig, "the sandbox's tables were put back");
	}
	assert_int_equal(if_nametoindex("spt0"), 0);
	if (tables)
		adopt_box(&rig, &box, leases);
	netns_close(&box);
}

/* The wrong namespace: our link never comes there. */
static void test_join_elsewhere(void **state)
{
	AUTO_FD int leases = leases_new();
	struct netns box;
	struct rig rig;
	struct msg said;

	(void)state;
	assert_int_equal(netns_create(&box, box_inside, NULL, NULL, NULL), 0);
	engines_start(&rig, "elsewhere", false);
	rig_spawn(&rig, ALLOWS("good.example"), leases, -1);
	rig_ready(&rig);
	assert_int_equal(
		msg_send(rig.keeper.sock, MSG_KEEP_NETNS, NULL, box.fd), 0);
	said = hear(&rig, MSG_KEEP_DONE);
	assert_int_equal(said.keep_done.status, 0);
	serve_world(-1, 0, 12500);
	assert_int_equal(rig_end(&rig).whole, 1);
	has(&rig, "our link is not there");
	netns_close(&box);
}

/* A keeper is this program, executed again, and so are its children. */
int main(int argc, char **argv)
{
	static bool no = false, yes = true;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_join, &no),
		cmocka_unit_test_prestate(test_join, &yes),
		cmocka_unit_test(test_join_elsewhere),
	};

	if (argc > 1 && strcmp(argv[1], "keeper") == 0)
		return keeper_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "gate") == 0)
		return gate_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "ledger") == 0)
		return ledger_main();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
