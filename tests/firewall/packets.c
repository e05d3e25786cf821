/* SPDX-License-Identifier: Apache-2.0
 *
 * packets.c - real packets: what is let through arrives where it should, what
 * is refused is answered at once, counted and logged.
 */
#include "tests/firewall/packets_case.h"

static void test_flow(void **state)
{
	struct lab *lab = *state;

	lab_flow(lab, "spA", "198.18.0.7", 443);
	lab_flow(lab, "spB", "198.18.0.7", 22);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.18.0.7", 443), 0);
	assert_accepted(lab, lab->transparent, "198.18.0.7", 443, "spA");
	assert_int_equal(attempt(lab, 1, SOCK_STREAM, "198.18.0.7", 22), 0);
	assert_accepted(lab, lab->transparent, "198.18.0.7", 22, "spB");
	assert_int_equal(counters(lab).refused, 0);
	/* What is the other's is not ours. */
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.18.0.7", 22),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 1, SOCK_STREAM, "198.18.0.7", 443),
			 ECONNREFUSED);
	/* UDP to a leased address and port is no flow. */
	assert_int_equal(attempt(lab, 0, SOCK_DGRAM, "198.18.0.7", 443),
			 ECONNREFUSED);
	assert_false(readable(lab->transparent, 50));
}

static void test_ranges(void **state)
{
	const struct port_range ports = { 8000, 8010 };
	struct lab *lab = *state;
	struct cidr net;

	assert_true(cidr_parse("198.51.100.64/26", &net));
	assert_int_equal(lab_add_flow(lab->nft, "spA", &net, &ports, 1), 0);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.64", 8000),
			 0);
	assert_accepted(lab, lab->transparent, "198.51.100.64", 8000, "spA");
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.127", 8010),
			 0);
	assert_accepted(lab, lab->transparent, "198.51.100.127", 8010, "spA");
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.63", 8000),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.128", 8000),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.64", 7999),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.51.100.64", 8011),
			 ECONNREFUSED);
}

static void test_explicit(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.19.0.1", LAB_PROXY),
			 0);
	assert_accepted(lab, lab->proxy, "198.19.0.1", LAB_PROXY, "spA");
	assert_int_equal(attempt(lab, 1, SOCK_STREAM, "198.19.0.5", LAB_PROXY),
			 0);
	assert_accepted(lab, lab->proxy, "198.19.0.5", LAB_PROXY, "spB");
}

/* Every other door of the gateway, and every other way, is shut at once. */
static void test_refused(void **state)
{
	static const struct {
		int type;
		const char *address;
		uint16_t port;
		const char *intent;
	} row[] = {
		{ SOCK_STREAM, "198.19.0.1", LAB_TRANSPARENT, "direct IP" },
		{ SOCK_STREAM, "198.19.0.1", 22, "SSH" },
		{ SOCK_STREAM, "198.19.0.5", LAB_PROXY, "direct IP" },
		{ SOCK_STREAM, "198.19.0.6", 80, "direct IP" },
		{ SOCK_STREAM, "198.18.0.9", LAB_TRANSPARENT, "direct IP" },
		{ SOCK_STREAM, "1.1.1.1", 443, "direct IP" },
		{ SOCK_STREAM, "1.1.1.1", 853, "DNS over TLS" },
		{ SOCK_STREAM, "169.254.169.254", 80, "cloud metadata" },
		{ SOCK_STREAM, "10.0.0.1", 25, "SMTP" },
		{ SOCK_STREAM, "1.1.1.1", LAB_PROXY, "direct IP" },
		{ SOCK_DGRAM, "198.19.0.1", LAB_PROXY, "UDP" },
		{ SOCK_DGRAM, "198.19.0.1", 54, "UDP" },
		{ SOCK_DGRAM, "8.8.8.8", 443, "QUIC" },
		{ SOCK_DGRAM, "8.8.8.8", 123, "NTP" },
	};
	struct lab *lab = *state;
	char text[IP_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		uint64_t before = counters(lab).refused;
		int r = attempt(lab, 0, row[i].type, row[i].address,
				row[i].port);

		if (r != ECONNREFUSED)
			fail_msg("%s:%u: %d", row[i].address, row[i].port, r);
		assert_int_equal(counters(lab).refused, before + 1);
		const struct seen seen = read_log(lab);
		assert_int_equal(seen.n, 1);
		assert_string_equal(seen.last.prefix, "refused");
		assert_string_equal(ip_format(&seen.last.dst, text),
				    row[i].address);
		assert_string_equal(ip_format(&seen.last.src, text),
				    "198.19.0.2");
		assert_int_equal(seen.last.dst_port, row[i].port);
		assert_int_equal(seen.last.l4, row[i].type == SOCK_STREAM
						       ? IPPROTO_TCP
						       : IPPROTO_UDP);
		assert_string_equal(nflog_intent(&seen.last, 1), row[i].intent);
	}
	assert_false(readable(lab->transparent, 20));
	assert_false(readable(lab->proxy, 0));
	assert_int_equal(counters(lab).forwarded, 0);
}

static int many_refusals(void *arg)
{
	struct attempt a = { .type = SOCK_DGRAM,
			     .address = "8.8.8.8",
			     .port = 9000 };

	(void)arg;
	for (int i = 0; i < 300; i++)
		if (try(&a) != ECONNREFUSED)
			return i < 255 ? i + 1 : 255;
	return 0;
}

/* No limit of ICMP errors makes the second try of a program hang. */
static void test_no_rate_limit(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(lab_in(lab->box[0].fd, many_refusals, NULL), 0);
	assert_int_equal(counters(lab).refused, 300);
	assert_int_equal(read_log(lab).n, 300);
}

static int ask_dns(void *arg)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(53),
				  .sin_addr.s_addr = htonl(0x08080808) };
	const struct timeval limit = { .tv_sec = 15 };
	char answer[16];

	(void)arg;
	AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	/* Connected: an answer from any other address would not be taken. */
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    send(fd, "query", 5, 0) != 5)
		return 1;
	ssize_t n = recv(fd, answer, sizeof(answer), 0);
	return n == 5 && memcmp(answer, "reply", 5) == 0 ? 0 : 2;
}

/* Answers one question on @fd from the address it was sent to. */
static void answer_dns(int fd, const char *wanted, const char *ifname,
		       struct lab *lab)
{
	union {
		char buf[256];
		struct cmsghdr align;
	} control;
	union sockaddr_any peer;
	char data[64], text[IP_TEXT_MAX];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = { .msg_name = &peer,
			      .msg_namelen = sizeof(peer),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	struct in_pktinfo info = { 0 };
	uint32_t index;

	assert_true(readable(fd, 10000));
	ssize_t n = recvmsg(fd, &msg, 0);
	assert_int_equal(n, 5);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
	     c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
			memcpy(&info, CMSG_DATA(c), sizeof(info));
	const struct ip dst = ip_v4(ntohl(info.ipi_addr.s_addr));
	assert_string_equal(ip_format(&dst, text), wanted);
	assert_int_equal(link_index(lab->gateway.route, ifname, &index), 0);
	assert_int_equal(info.ipi_ifindex, index);

	info.ipi_spec_dst = info.ipi_addr;
	iov.iov_len = 5;
	memcpy(data, "reply", 5);
	memset(&control, 0, sizeof(control));
	msg.msg_controllen = CMSG_SPACE(sizeof(info));
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	assert_int_equal(sendmsg(fd, &msg, 0), 5);
}

static void test_dns(void **state)
{
	struct lab *lab = *state;
	int status;

	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(lab_in(lab->box[0].fd, ask_dns, NULL));
	answer_dns(lab->dns_udp, "8.8.8.8", "spA", lab);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(attempt(lab, 1, SOCK_STREAM, "9.9.9.9", 53), 0);
	assert_accepted(lab, lab->dns_tcp, "9.9.9.9", 53, "spB");
	/* Also at the gateway's own address. */
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.19.0.1", 53), 0);
	assert_accepted(lab, lab->dns_tcp, "198.19.0.1", 53, "spA");
	assert_int_equal(counters(lab).refused, 0);
}

/* TPROXY without a listener must not let the packet go on. */
static void test_no_listener(void **state)
{
	struct lab *lab = *state;

	lab_flow(lab, "spA", "198.18.0.7", 443);
	close(lab->transparent);
	close(lab->dns_tcp);
	close(lab->dns_udp);
	lab->transparent = lab->dns_tcp = lab->dns_udp = -1;
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "198.18.0.7", 443),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 0, SOCK_STREAM, "8.8.8.8", 53),
			 ECONNREFUSED);
	assert_int_equal(attempt(lab, 0, SOCK_DGRAM, "8.8.8.8", 53),
			 ECONNREFUSED);
	assert_int_equal(counters(lab).refused, 3);
}

/* A link that is gone is nobody's: silence, also for the proxy's port. */
static void test_link_gone(void **state)
{
	const struct frame frame = { .src = "198.19.0.2",
				     .dst = "8.8.8.8",
				     .l4 = IPPROTO_UDP,
				     .port = 53 };
	struct lab *lab = *state;

	assert_int_equal(ruleset_link_del(lab->nft, &lab->link[0], LAB_PROXY),
			 0);
	frame_send(lab, 0, &frame);
	assert_int_equal(COUNTED(lab, spoofed, 1), 1);
	assert_false(readable(lab->dns_udp, 20));
	/* The other one is not concerned. */
	assert_int_equal(attempt(lab, 1, SOCK_STREAM, "198.19.0.5", LAB_PROXY),
			 0);
	/* Nor may it use the address that is free now. */
	frame_send(lab, 1, &frame);
	assert_int_equal(COUNTED(lab, spoofed, 2), 2);
}

static int forwarding_on(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	return netns_sysctl("ipv4/ip_forward", "1");
}

/* With a hole in the first chain and forwarding on, there is the second. */
static void test_forward(void **state)
{
	struct lab *lab = *state;
	AUTO_FD int victim = frame_capture(lab, 1);

	assert_int_equal(lab_nft(lab, "insert rule inet sallyport pre "
				      "ip daddr 198.19.0.6 accept"),
			 0);
	assert_int_equal(
		netns_enter(lab->gateway.fd, forwarding_on, NULL, NULL, NULL),
		0);
	assert_int_not_equal(attempt(lab, 0, SOCK_DGRAM, "198.19.0.6", 9), 0);
	assert_int_equal(counters(lab).forwarded, 1);
	const struct seen seen = read_log(lab);
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.last.prefix, "forwarded");
	assert_int_equal(frame_count(victim), 0);
}

/* Without the table the namespace still leads nowhere. */
static void test_no_rules(void **state)
{
	struct lab *lab = *state;
	AUTO_FD int victim = frame_capture(lab, 1);

	assert_int_equal(lab_nft(lab, "flush ruleset"), 0);
	assert_int_not_equal(attempt(lab, 0, SOCK_STREAM, "1.1.1.1", 443), 0);
	assert_int_not_equal(attempt(lab, 0, SOCK_DGRAM, "198.19.0.6", 9), 0);
	assert_int_equal(frame_count(victim), 0);
	struct ruleset_counters c;
	assert_int_not_equal(ruleset_counters(lab->nft, &c), 0);
}

int packets_run(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(test_flow),	      LAB_TEST(test_ranges),
		LAB_TEST(test_explicit),      LAB_TEST(test_refused),
		LAB_TEST(test_no_rate_limit), LAB_TEST(test_dns),
		LAB_TEST(test_no_listener),   LAB_TEST(test_link_gone),
		LAB_TEST(test_forward),	      LAB_TEST(test_no_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
