/* SPDX-License-Identifier: Apache-2.0
 *
 * A keeper from the first message to the last, with real namespaces, rules,
 * gate and ledger; and what is left of a sandbox between two of them.
 */
#include "tests/cmd/keeper_rig.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "cmd/command.h"
#include "cmd/sandbox_file.h"
#include "launch/owned.h"

#define ALLOWS(host)                                                      \
	"version: 1\ndns: {upstream: [203.0.113.53]}\nallow:\n"           \
	"  - {host: " host ", ports: [7000], addresses: [203.0.113.0/24]" \
	", upload: 1 kB}\n"

static const struct ip usual = { .len = 4, .byte = { 198, 19, 0, 1 } };

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
	assert_int_equal(msg_send(rig.keeper.sock, MSG_KEEP_STATS, NULL, -1),
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

/* The children of @pid: at most two. */
static size_t children(pid_t pid, pid_t *ret)
{
	char path[64];
	size_t n = 0;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid,
		 (int)pid);
	AUTO_FILE FILE *file = fopen(path, "re");
	while (file && n < 2 && fscanf(file, "%d", &child) == 1)
		ret[n++] = child;
	return n;
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
	for (int i = 0; i < 200 && flow == -ECONNREFUSED; i++) {
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

static void test_file(void **state)
{
	AUTO_FD int leases = leases_new();
	struct netns ns;
	struct rig rig;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	rig_start(&rig, "file");
	/* Not of the size that it has to be: the gate would die of it. */
	assert_int_equal(ftruncate(leases, 4096), 0);
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	hear(&rig, 0);
	assert_int_equal(exit_status(&rig), EXIT_SALLYPORT);
	/* Nothing was opened for it. */
	assert_int_equal(access(rig.log, F_OK), -1);
	netns_close(&ns);
}

static bool gone(pid_t pid)
{
	char path[64], state = 'Z';

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	AUTO_FILE FILE *file = fopen(path, "re");
	return !file || fscanf(file, "%*d %*s %c", &state) != 1 || state == 'Z';
}

/* Within two seconds nobody and nothing is left. */
static void assert_nothing_left(const struct netns *ns, const pid_t *pid,
				size_t n)
{
	struct timespec from, now, step = { .tv_nsec = 5000000 };
	uint32_t index;
	size_t left;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		left = link_index(ns->route, "eth0", &index) != -ENODEV;
		for (size_t i = 0; i < n; i++)
			left += !gone(pid[i]);
		nanosleep(&step, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (left &&
		 (now.tv_sec - from.tv_sec) * 1000 +
				 (now.tv_nsec - from.tv_nsec) / 1000000 <
			 2000);
	assert_int_equal(left, 0);
}

/* The daemon's end: an orderly one, and then another keeper. */
static void test_end_of_daemon(void **state)
{
	AUTO_FD int leases = leases_new();
	pid_t pid[3];
	struct netns ns;
	struct rig rig;
	struct ip first, again;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	rig_start(&rig, "orphan");
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	rig_ready(&rig);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &first), 0);
	pid[0] = rig.keeper.pid;
	assert_int_equal(children(pid[0], pid + 1), 2);
	close_fd(&rig.keeper.sock);
	/* It is waited for. */
	struct rig next = rig;
	rig_spawn(&next, ALLOWS("good.example"), leases, ns.fd);
	assert_int_equal(exit_status(&rig), EXIT_SALLYPORT);
	rig_ready(&next);
	AUTO_FREE char *earlier = read_log(&rig, "earlier-000001/audit.jsonl");
	assert_non_null(strstr(earlier, "the daemon is gone"));
	AUTO_FREE char *receipt =
		read_log(&rig, "earlier-000001/receipt.dsse.json");
	assert_true(strlen(receipt) > 100);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &again), 0);
	assert_true(ip_equal(&first, &again));
	assert_int_equal(rig_end(&next).whole, 1);
	netns_close(&ns);
}

/* kill -9 of the daemon, which is a process of its own here. */
static void test_killed_daemon(void **state)
{
	AUTO_FD int leases = leases_new();
	int pipes[2], status;
	struct netns ns;
	pid_t daemon, pid[3];
	struct rig rig;
	struct ip ip;

	(void)state;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	rig_start(&rig, "killed");
	daemon = fork();
	if (daemon == 0) {
		rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
		rig_ready(&rig);
		pid[0] = rig.keeper.pid;
		if (children(pid[0], pid + 1) == 2 &&
		    write(pipes[1], pid, sizeof(pid)) == sizeof(pid))
			pause();
		_exit(1);
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], pid, sizeof(pid)), sizeof(pid));
	close(pipes[0]);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), 0);
	assert_int_equal(kill(daemon, SIGKILL), 0);
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	assert_nothing_left(&ns, pid, 3);
	waitpid(pid[0], &status, 0);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), -1);
	has(&rig, "the daemon is gone");
	/* Adopted by the next one. */
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	rig_ready(&rig);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), 0);
	assert_int_equal(rig_end(&rig).whole, 1);
	netns_close(&ns);
}

/* The keeper itself: nobody writes the end of its log, but it is no way out. */
static void test_killed_keeper(void **state)
{
	AUTO_FD int leases = leases_new();
	struct netns ns;
	pid_t pid[3];
	struct rig rig;
	struct ip ip;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	rig_start(&rig, "keeper");
	rig_spawn(&rig, ALLOWS("good.example"), leases, ns.fd);
	rig_ready(&rig);
	pid[0] = rig.keeper.pid;
	assert_int_equal(children(pid[0], pid + 1), 2);
	kill(rig.keeper.pid, SIGKILL);
	/* At once: an old link may still be there. */
	struct rig next = rig;
	rig_spawn(&next, ALLOWS("good.example"), leases, ns.fd);
	assert_int_equal(exit_status(&rig), -SIGKILL);
	rig_ready(&next);
	assert_int_equal(ask(ns.fd, &usual, "good.example", &ip), 0);
	assert_true(gone(pid[1]) && gone(pid[2]));
	assert_int_equal(rig_end(&next).whole, 1);
	assert_nothing_left(&ns, pid, 3);
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
		 "for i in 1 2 3 4 5 6 7 8 9; do ip link set %s netns %d && "
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
	AUTO_FD int rename = socket_in(box.fd, udp_inside);
	engines_start(&rig, tables ? "join-tables" : "join", tables);
	rig_spawn(&rig, ALLOWS("good.example"), leases, -1);
	rig_ready(&rig);
	assert_true(if_nametoindex("spt0") > 0);
	/* It is told before the engine has done its work. */
	assert_int_equal(
		msg_send(rig.keeper.sock, MSG_KEEP_NETNS, NULL, box.fd), 0);
	said = hear(&rig, MSG_KEEP_DONE);
	if (said.keep_done.status)
		fail_msg("%s", said.keep_done.text);
	engine_moves("spt0", &box, rename);
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
		cmocka_unit_test(test_serves),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_gate_dies),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_end_of_daemon),
		cmocka_unit_test(test_killed_daemon),
		cmocka_unit_test(test_killed_keeper),
		cmocka_unit_test(test_second_link),
		cmocka_unit_test(test_out_of_order),
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
