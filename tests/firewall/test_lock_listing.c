/* SPDX-License-Identifier: Apache-2.0
 *
 * test_lock_listing.c - the lock is what nft shows, and a change of it by
 * somebody else is seen; what sends frames past it is not let near.
 */
#include "tests/firewall/lock_case.h"

#include <sys/utsname.h>

static int send_frame(int fd, int index)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(0x88b5),
		.sll_ifindex = index,
		.sll_halen = 6,
		.sll_addr = { 255, 255, 255, 255, 255, 255 },
	};

	return sendto(fd, "secret", 6, 0, (struct sockaddr *)&to, sizeof(to)) ==
			       6
		       ? 0
		       : errno;
}

/* Does a frame of ours come? There may be others, such as ARP. */
static bool frame_comes(int fd, int ms)
{
	char buf[256];

	while (comes(fd, ms)) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n >= 6 && memcmp(buf, "secret", 6) == 0)
			return true;
	}
	return false;
}

static int shut(struct world *w, const char *name)
{
	char names[1][16] = { "" };

	(void)stpcpy(names[0], name);
	return lock_shut(w->nft, &w->spec, (const char(*)[16])names, 1);
}

static void test_packet_sockets(void **state)
{
	struct world *w = *state;
	AUTO_FD int from = socket_in(&w->box, AF_PACKET, SOCK_DGRAM, NULL, 0);
	AUTO_FD int other =
		socket_in(&w->other, AF_PACKET, SOCK_DGRAM, NULL, 0);
	AUTO_FD int gateway =
		socket_in(&w->gateway, AF_PACKET, SOCK_DGRAM, NULL, 0);
	char name[4][16];
	uint32_t theirs, ours;
	size_t n;

	/* A name that no engine gives, as long as it likes. */
	sh(&w->box, "ip link set eth0 down; ip link set eth0 name net0 up");
	assert_int_equal(link_wait(w->box.route, "net0"), 0);
	lock(w);
	assert_int_equal(link_index(w->box.route, "net0", &theirs), 0);
	assert_int_equal(link_index(w->box.route, "eth1", &ours), 0);
	/* This is what lock_shut() is for. */
	assert_int_equal(send_frame(from, (int)theirs), 0);
	assert_true(frame_comes(other, WAIT_MS));
	assert_int_equal(link_others(w->box.route, LOCK_GROUP, 0, name, 4, &n),
			 0);
	assert_int_equal(n, 1);
	assert_string_equal(name[0], "net0");
	for (int i = 0; i < 2; i++)
		assert_int_equal(shut(w, "net0"), 0);
	(void)send_frame(from, (int)theirs);
	/* Also past the queueing discipline. */
	const int on = 1;
	assert_int_equal(setsockopt(from, SOL_PACKET, PACKET_QDISC_BYPASS, &on,
				    sizeof(on)),
			 0);
	(void)send_frame(from, (int)theirs);
	assert_false(frame_comes(other, QUIET_MS));
	assert_int_equal(send_frame(from, (int)ours), 0);
	assert_true(frame_comes(gateway, WAIT_MS));
	/* Another of the same name is another one. */
	assert_int_equal(link_delete(w->other.route, "br0"), 0);
	assert_int_equal(link_veth(w->other.route, "br0", "eth0", w->box.fd),
			 0);
	assert_int_equal(link_up(w->other.route, "br0"), 0);
	assert_int_equal(link_up(w->box.route, "eth0"), 0);
	assert_int_equal(link_wait(w->other.route, "br0"), 0);
	/* Since Linux 6.16 a chain may wait for its interface: then that one
	 * is shut already. */
	int r = shut(w, "none");
	assert_true(r == 0 || r == -ENOENT);
	assert_int_equal(r == 0 ? 0 : shut(w, "eth0"), 0);
	assert_int_equal(link_index(w->box.route, "eth0", &theirs), 0);
	(void)send_frame(from, (int)theirs);
	assert_false(frame_comes(other, QUIET_MS));
	assert_int_equal(send_frame(from, (int)ours), 0);
	assert_true(frame_comes(gateway, WAIT_MS));
	assert_int_equal(shut(w, "eth0"), 0);
	assert_int_equal(shut(w, ""), -EINVAL);
}

static void test_listing(void **state)
{
	static const char *const wanted[] = {
		"type filter hook prerouting priority -400; policy drop;",
		"type filter hook output priority -400; policy drop;",
		"type filter hook postrouting priority 300; policy drop;",
		"type nat hook output priority -150; policy accept;",
		"type filter hook output priority -90; policy accept;",
		"type nat hook postrouting priority 90; policy accept;",
		"iif \"lo\" accept",
		"oif \"lo\" accept",
		"meta nfproto ipv4 iifgroup 21328 accept",
		"meta nfproto ipv4 oifgroup 21328 accept",
		"ip daddr 127.0.0.0/8 counter name \"entered\" drop",
		"ip daddr 127.0.0.11 meta l4proto udp counter name \"names\" "
		"dnat ip to " GATEWAY ":53",
		"ip daddr 127.0.0.11 counter name \"stray\" drop",
		"ip saddr 127.0.0.0/8 masquerade",
	};
	char *argv[] = {
		"nft", "-y", "list", "table", "inet", LOCK_TABLE, NULL
	};
	static char text[16384];
	struct world *w = *state;

	lock(w);
	lab_output(w->box.fd, argv, text, sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!strstr(text, wanted[i]))
			fail_msg("no \"%s\" in:\n%s", wanted[i], text);
}

static void test_tampering(void **state)
{
	static const char *const change[] = {
		"insert rule inet sallyport_lock in accept",
		"insert rule inet sallyport_lock out accept",
		"insert rule inet sallyport_lock last accept",
		"insert rule inet sallyport_lock stray accept",
		"insert rule inet sallyport_lock names accept",
		"insert rule inet sallyport_lock source accept",
		"flush chain inet sallyport_lock in",
		"flush chain inet sallyport_lock names",
		"flush chain inet sallyport_lock stray",
		"flush chain inet sallyport_lock source",
		"chain inet sallyport_lock in { policy accept; }",
		"chain inet sallyport_lock out { policy accept; }",
		"chain inet sallyport_lock last { policy accept; }",
		"add chain inet sallyport_lock more",
		"add set inet sallyport_lock other { type ipv4_addr; }",
		"add table inet sallyport_lock { flags dormant; }",
		"delete table inet sallyport_lock",
		"flush ruleset",
	};
	struct world *w = *state;
	char why[256] = "", script[256];

	for (size_t i = 0; i < ARRAY_SIZE(change); i++) {
		lock(w);
		(void)snprintf(script, sizeof(script), "nft '%s'", change[i]);
		sh(&w->box, script);
		if (lock_verify(w->nft, &w->spec, why, sizeof(why)) != -EBADMSG)
			fail_msg("unseen: %s", change[i]);
		assert_true(strlen(why) > 10);
		/* A new table heals it, whoever made what is there. */
		sh(&w->box, "nft 'table inet sallyport_lock; "
			    "delete table inet sallyport_lock'");
	}
	/* Tables of others are theirs. */
	lock(w);
	sh(&w->box, "nft 'add table ip theirs; add table inet theirs; "
		    "add table inet sallyport_locks'");
	assert_int_equal(lock_verify(w->nft, &w->spec, why, sizeof(why)), 0);
	/* Another gateway is another table. */
	struct lock_spec spec = w->spec;
	spec.gateway.byte[3]++;
	assert_int_equal(lock_verify(w->nft, &spec, why, sizeof(why)),
			 -EBADMSG);
	spec.gateway.len = 16;
	assert_int_equal(lock_install(w->nft, &spec), -EINVAL);
	assert_int_equal(lock_verify(w->nft, &w->spec, why, sizeof(why)), 0);
}

static void test_tampering_early(void **state)
{
	static const char *const change[] = {
		"insert rule netdev sallyport_lock early accept",
		"flush chain netdev sallyport_lock early",
		"insert rule netdev sallyport_lock eth0 accept",
		"chain netdev sallyport_lock eth0 { policy accept; }",
		"delete chain netdev sallyport_lock eth0",
		"add chain netdev sallyport_lock more",
		"delete table netdev sallyport_lock",
	};
	static const char name[1][16] = { "eth0" };
	struct world *w = *state;
	char why[256] = "", script[256];

	lock(w);
	for (size_t i = 0; i < ARRAY_SIZE(change); i++) {
		if (!w->spec.early && strstr(change[i], " early"))
			continue;
		assert_int_equal(lock_shut(w->nft, &w->spec, name, 1), 0);
		assert_int_equal(lock_verify_shut(w->nft, &w->spec, name, 1,
						  why, sizeof(why)),
				 0);
		(void)snprintf(script, sizeof(script), "nft '%s'", change[i]);
		sh(&w->box, script);
		if (lock_verify_shut(w->nft, &w->spec, name, 1, why,
				     sizeof(why)) != -EBADMSG)
			fail_msg("unseen: %s", change[i]);
		assert_true(strlen(why) > 10);
		assert_int_equal(
			lock_verify(w->nft, &w->spec, why, sizeof(why)), 0);
	}
	assert_int_equal(lock_shut(w->nft, &w->spec, NULL, 0), 0);
	assert_int_equal(
		lock_verify_shut(w->nft, &w->spec, name, 1, why, sizeof(why)),
		-EBADMSG);
}

static int filter_socket(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	ret_fds[0] =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	*ret_n = 1;
	return ret_fds[0] < 0 ? -errno : 0;
}

/* Only a kernel that has no such tables may say so; the lock it got instead is
 * anybody's, and watched. */
static void refused_owner(struct world *w)
{
	char why[256] = "";
	struct utsname uts;
	int major, minor;

	assert_int_equal(uname(&uts), 0);
	assert_int_equal(sscanf(uts.release, "%d.%d", &major, &minor), 2);
	if (major > 6 || (major == 6 && minor >= 9))
		fail_msg("Linux %s owns no table", uts.release);
	print_message("Linux %s owns no table: tried without\n", uts.release);
	assert_int_equal(lock_verify(w->nft, &w->spec, why, sizeof(why)), 0);
	assert_int_equal(
		lock_verify_shut(w->nft, &w->spec, NULL, 0, why, sizeof(why)),
		0);
	sh(&w->box, "nft delete table inet sallyport_lock");
	assert_int_equal(lock_verify(w->nft, &w->spec, why, sizeof(why)),
			 -EBADMSG);
}

/* As long as the socket is there; then it is anybody's, and stays. */
static void test_owned(void **state)
{
	static const char *const change[] = {
		"insert rule inet sallyport_lock out accept",
		"flush chain inet sallyport_lock in",
		"delete table inet sallyport_lock",
		"add table inet sallyport_lock { flags dormant; }",
		"delete table netdev sallyport_lock",
	};
	struct world *w = *state;
	char why[256] = "", script[256];
	int fds[8];
	size_t n = 0;

	w->spec.owned = true;
	lock(w);
	if (!w->spec.owned) {
		refused_owner(w);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(change); i++) {
		(void)snprintf(script, sizeof(script), "! nft '%s' 2>&1",
			       change[i]);
		sh(&w->box, script);
	}
	sh(&w->box, "nft flush ruleset");
	assert_int_equal(lock_verify(w->nft, &w->spec, why, sizeof(why)), 0);
	assert_int_equal(
		lock_verify_shut(w->nft, &w->spec, NULL, 0, why, sizeof(why)),
		0);
	/* By its owner. */
	lock(w);
	assert_int_equal(netns_enter(w->box.fd, filter_socket, NULL, fds, &n),
			 0);
	nft_close(w->nft);
	assert_int_equal(nft_open(fds[0], &w->nft), 0);
	assert_int_equal(lock_verify(w->nft, &w->spec, why, sizeof(why)),
			 -EBADMSG);
	sh(&w->box, "nft list table inet sallyport_lock | grep -q entered");
	lock(w);
	sh(&w->box, "! nft delete table inet sallyport_lock 2>&1");
}

int main(void)
{
#define LOCK_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		LOCK_TEST(test_listing),   LOCK_TEST(test_packet_sockets),
		LOCK_TEST(test_tampering), LOCK_TEST(test_tampering_early),
		LOCK_TEST(test_owned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
