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

/* By who is root in the container; what it shows. */
static void nft(const struct netns *box, const char *command, char *ret,
		size_t cap)
{
	AUTO_FD int out = memfd_create("output", MFD_CLOEXEC);
	pid_t pid = fork();
	ssize_t len;
	int status;

	if (pid == 0) {
		if (setns(box->fd, CLONE_NEWNET) == 0 && dup2(out, 1) == 1)
			execlp("nft", "nft", "-a", command, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	len = pread(out, ret, cap - 1, 0);
	assert_true(len >= 0);
	ret[len] = '\0';
}

/* From Linux 6.9 on tables are the keeper's alone. One that was put back has
 * another handle. */
static bool flush_in_vain(const struct netns *box)
{
	static char before[65536], after[65536];
	const char *was, *is;

	nft(box, "list ruleset", before, sizeof(before));
	was = strstr(before, "table inet sallyport_lock");
	assert_non_null(was);
	nft(box, "flush ruleset", after, sizeof(after));
	nft(box, "list ruleset", after, sizeof(after));
	is = strstr(after, "table inet sallyport_lock");
	return is && strncmp(was, is, strcspn(was, "\n") + 1) == 0;
}

/* Until the keeper has recorded @what, at most 30 s. */
static void await_log(const struct rig *rig, const char *what)
{
	bool there = false;

	for (int i = 0; i < 3000 && !there; i++) {
		AUTO_FREE char *text = read_log(rig, "audit.jsonl");

		there = strstr(text, what);
		if (!there)
			serve_world(-1, 0, 10);
	}
	has(rig, what);
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
	await_log(rig, "interfaces that are not ours");
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
		await_log(&rig, "links were changed");
		counts = rig_counts(&rig);
		assert_true(counts.foreign_changes > 0);
		assert_int_equal(echo(flow, 100), 100);
		assert_int_equal(counts.held, BOUNDARY_HELD);
		owned = flush_in_vain(&box);
		serve_world(-1, 0, 1500);
		if (!owned)
			await_log(&rig, "the sandbox's tables were put back");
		assert_int_equal(rig_end(&rig).held,
				 owned ? BOUNDARY_HELD : BOUNDARY_RESTORED);
		has(&rig, "links were changed");
		has(&rig, "eth1");
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
	await_log(&rig, "our link is not there");
	assert_int_equal(rig_end(&rig).whole, 1);
	netns_close(&box);
}

int main(int argc, char **argv)
{
	static bool no = false, yes = true;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_join, &no),
		cmocka_unit_test_prestate(test_join, &yes),
		cmocka_unit_test(test_join_elsewhere),
	};

	if (is_role(argc, argv))
		return run_role(argc, argv);
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
