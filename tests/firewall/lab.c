/* SPDX-License-Identifier: Apache-2.0
 *
 * lab.c - made with the modules under test, so that they are tested together.
 */
#include "lab.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
/* before cmocka.h */
#include <cmocka.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "firewall/nflog.h"
#include "launch/link.h"

static const struct {
	const char *ifname, *ip, *gateway, *gateway_cidr, *ip_cidr;
} box[2] = {
	{ "spA", "198.19.0.2", "198.19.0.1", "198.19.0.1/30", "198.19.0.2/30" },
	{ "spB", "198.19.0.6", "198.19.0.5", "198.19.0.5/30", "198.19.0.6/30" },
};

/* cidr_parse() wants no host bits. */
static struct cidr address(const char *text)
{
	struct cidr c = { .bits = 30 };
	char buf[32];

	memcpy(buf, text, strlen(text) + 1);
	*strchr(buf, '/') = '\0';
	assert_true(ip_parse(buf, &c.ip));
	return c;
}

static int gateway_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	const struct ip any = ip_v4(0);

	(void)arg;
	int r = netns_gateway_sysctls();
	if (r < 0)
		return r;
	ret_fds[0] = sock_bind_udp(&any, 53, true);
	ret_fds[1] = sock_listen_tcp(&any, 53, true);
	ret_fds[2] = sock_listen_tcp(&any, LAB_TRANSPARENT, true);
	ret_fds[3] = sock_listen_tcp(&any, LAB_PROXY, false);
	ret_fds[4] =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	*ret_n = 5;
	for (size_t i = 0; i < *ret_n; i++)
		if (ret_fds[i] < 0)
			return -EIO;
	return 0;
}

static int box_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	(void)ret_fds;
	*ret_n = 0;
	return netns_sandbox_sysctls();
}

static void make_box(struct lab *lab, size_t i)
{
	const struct cidr gateway = address(box[i].gateway_cidr);
	const struct cidr ip = address(box[i].ip_cidr);
	const int route = lab->gateway.route;
	struct ruleset_link *link = &lab->link[i];

	assert_int_equal(
		netns_create(&lab->box[i], box_inside, NULL, NULL, NULL), 0);
	assert_int_equal(
		link_veth(route, box[i].ifname, "eth0", lab->box[i].fd), 0);
	assert_int_equal(link_address(route, box[i].ifname, &gateway), 0);
	assert_int_equal(link_up(route, box[i].ifname), 0);
	assert_int_equal(link_address(lab->box[i].route, "eth0", &ip), 0);
	assert_int_equal(link_up(lab->box[i].route, "eth0"), 0);
	assert_int_equal(link_wait(route, box[i].ifname), 0);
	assert_int_equal(link_wait(lab->box[i].route, "eth0"), 0);
	assert_int_equal(link_default_route(lab->box[i].route, &gateway.ip), 0);
	(void)stpcpy(link->ifname, box[i].ifname);
	link->ip = ip.ip;
	link->gateway = gateway.ip;
}

void lab_make(struct lab *lab)
{
	int fds[FDPASS_MAX];
	size_t n = 0;

	*lab = (struct lab){ .spec = { .dns_port = 53,
				       .proxy_port = LAB_PROXY,
				       .transparent_port = LAB_TRANSPARENT,
				       .nflog_group = LAB_GROUP } };
	assert_int_equal(
		netns_create(&lab->gateway, gateway_inside, NULL, fds, &n), 0);
	assert_int_equal(n, 5);
	lab->dns_udp = fds[0];
	lab->dns_tcp = fds[1];
	lab->transparent = fds[2];
	lab->proxy = fds[3];
	lab->nflog = fds[4];
	assert_int_equal(nft_open(lab->gateway.filter, &lab->nft), 0);
	lab->gateway.filter = -1;
	assert_int_equal(ruleset_install(lab->nft, &lab->spec), 0);
	assert_int_equal(nflog_bind(lab->nflog, LAB_GROUP), 0);
	assert_int_equal(link_local_delivery(lab->gateway.route, RULESET_MARK,
					     RULESET_ROUTES),
			 0);
	for (size_t i = 0; i < 2; i++) {
		make_box(lab, i);
		assert_int_equal(
			ruleset_link_add(lab->nft, &lab->link[i], LAB_PROXY),
			0);
	}
}

void lab_free(struct lab *lab)
{
	int fds[] = { lab->dns_udp, lab->dns_tcp, lab->transparent, lab->proxy,
		      lab->nflog };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	nft_close(lab->nft);
	netns_close(&lab->gateway);
	netns_close(&lab->box[0]);
	netns_close(&lab->box[1]);
}

int lab_in(int ns_fd, int (*fn)(void *arg), void *arg)
{
	int status;

	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setns(ns_fd, CLONE_NEWNET) < 0)
			_exit(254);
		alarm(20);
		_exit(fn(arg));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int exec_nft(void *arg)
{
	char *argv[] = { "nft", arg, NULL };
	int null = open("/dev/null", O_WRONLY);

	dup2(null, STDOUT_FILENO);
	execv("/usr/sbin/nft", argv);
	return 253;
}

int lab_nft(struct lab *lab, const char *command)
{
	return lab_in(lab->gateway.fd, exec_nft, (void *)command);
}

struct output_job {
	char *const *argv;
	int pipe;
};

static int exec_output(void *arg)
{
	const struct output_job *job = arg;

	dup2(job->pipe, STDOUT_FILENO);
	execvp(job->argv[0], job->argv);
	return 253;
}

void lab_output(int ns_fd, char *const argv[], char *ret, size_t cap)
{
	/* A file, not a pipe: it can hold all before anybody reads. */
	AUTO_FD int fd = memfd_create("output", MFD_CLOEXEC);
	struct output_job job = { .argv = argv, .pipe = fd };

	assert_true(fd >= 0);
	assert_int_equal(lab_in(ns_fd, exec_output, &job), 0);
	ssize_t n = pread(fd, ret, cap - 1, 0);
	assert_true(n >= 0);
	ret[n] = '\0';
}

int lab_add_flow(struct nft *nft, const char *ifname, const struct cidr *dst,
		 const struct port_range *ports, size_t n)
{
	struct ruleset_flow flow[8];

	assert_true(n <= ARRAY_SIZE(flow));
	for (size_t i = 0; i < n; i++)
		flow[i] = (struct ruleset_flow){ *dst, ports[i] };
	return ruleset_flow_add(nft, ifname, flow, n);
}

void lab_flow(struct lab *lab, const char *ifname, const char *text,
	      uint16_t port)
{
	const struct port_range ports = { port, port };
	struct cidr c = { .bits = 32 };

	assert_true(ip_parse(text, &c.ip));
	assert_int_equal(lab_add_flow(lab->nft, ifname, &c, &ports, 1), 0);
}
