/* SPDX-License-Identifier: Apache-2.0
 *
 * keeper_rig.h - a machine, an internet beside it, and a daemon's side of a
 * keeper. All three are this process: sockets stay in the namespace that they
 * were made in.
 *
 *	host	our own namespace, made anew	192.0.2.1
 *	world	name server and echo		192.0.2.2, 203.0.113.53, .80
 */
#ifndef TESTS_CMD_KEEPER_RIG_H
#define TESTS_CMD_KEEPER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "cmd/gateway.h"
#include "cmd/privsep.h"
#include "cmd/signing.h"
#include "launch/child.h"
#include "launch/link.h"
#include "launch/netns.h"
#include "policy/bundle.h"
#include "tests/cmd/keeper_world.h"

#define WAIT_MS 20000

static char rig_dir[] = "/tmp/sallyport-keeper-XXXXXX";
static char rig_key[64];

/* --- from inside --------------------------------------------------------- */

static inline int udp_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	ret_fds[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	*ret_n = 1;
	return ret_fds[0] < 0 ? -errno : 0;
}

static inline int tcp_inside(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	ret_fds[0] =
		socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	*ret_n = 1;
	return ret_fds[0] < 0 ? -errno : 0;
}

static inline struct sockaddr_in to(const struct ip *ip, uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port) };

	memcpy(&sa.sin_addr, ip->byte, 4);
	return sa;
}

static inline int socket_in(int ns, netns_inside *inside)
{
	size_t n = 0;
	int fd[8];

	assert_int_equal(netns_enter(ns, inside, NULL, fd, &n), 0);
	return fd[0];
}

/* The rcode, and an address if there is one; -1 without an answer. */
static inline int ask(int ns, const struct ip *gateway, const char *name,
		      struct ip *ret_ip)
{
	const struct sockaddr_in server = to(gateway, 53);
	AUTO_FD int fd = socket_in(ns, udp_inside);
	uint8_t q[512] = { 0x12, 0x34, 1, 0, 0, 1 };
	size_t len = 12;
	ssize_t n;

	*ret_ip = (struct ip){ 0 };
	for (const char *at = name; *at;) {
		size_t label = strcspn(at, ".");

		q[len++] = (uint8_t)label;
		memcpy(q + len, at, label);
		len += label;
		at += label + (at[label] == '.');
	}
	q[len + 2] = q[len + 4] = 1;
	len += 5;
	if (connect(fd, (const struct sockaddr *)&server, sizeof(server)) < 0 ||
	    send(fd, q, len, 0) != (ssize_t)len ||
	    !serve_world(fd, POLLIN, 5000))
		return -1;
	n = recv(fd, q, sizeof(q), MSG_DONTWAIT);
	if (n < (ssize_t)len)
		return -1;
	if (q[7] && n >= (ssize_t)len + 16) {
		uint32_t ip;

		memcpy(&ip, q + len + 12, 4);
		*ret_ip = ip_v4(ntohl(ip));
	}
	return q[3] & 15;
}

/* A connection, or -errno. */
static inline int dial(int ns, const struct ip *ip, uint16_t port)
{
	const struct sockaddr_in sa = to(ip, port);
	AUTO_FD int fd = socket_in(ns, tcp_inside);
	socklen_t len = sizeof(int);
	int err = 0;

	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 &&
	    errno != EINPROGRESS)
		return -errno;
	if (!serve_world(fd, POLLOUT, WAIT_MS))
		return -ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return err ? -err : steal_fd(&fd);
}

/* How many of @len bytes come back. */
static inline size_t echo(int fd, size_t len)
{
	char buf[4096];
	size_t back = 0;

	memset(buf, 1, sizeof(buf)); /* neither HTTP nor TLS */
	if (send(fd, buf, len, MSG_NOSIGNAL) != (ssize_t)len)
		return 0;
	while (back < len && serve_world(fd, POLLIN, WAIT_MS)) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

		if (n <= 0)
			break;
		back += (size_t)n;
	}
	return back;
}

/* --- the daemon ---------------------------------------------------------- */

static inline int bundle_of(const char *yaml)
{
	struct bundle bundle = { 0 };
	struct policy_error error = { 0 };
	int fd = memfd_create("bundle", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (bundle_add_policy_text(&bundle, "test", yaml, strlen(yaml), &error))
		fail_msg("%s", error.text);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bundle.data, bundle.len), bundle.len);
	bundle_free(&bundle);
	return fd;
}

struct rig {
	struct child keeper;
	struct msg_keep_start start;
	struct msg_keep_ready ready;
	char log[128];
};

static inline void rig_start(struct rig *rig, const char *name)
{
	*rig = (struct rig){ 0 };
	snprintf(rig->log, sizeof(rig->log), "%s/%s", rig_dir, name);
	rig->start =
		(struct msg_keep_start){ .boundary = "netns",
					 .command = "a test",
					 .ip = ip_v4(GATEWAY_LINK_BASE + 2),
					 .gateway =
						 ip_v4(GATEWAY_LINK_BASE + 1),
					 .bits = 30,
					 .look_s = 1,
					 .quiet = 1 };
	snprintf(rig->start.name, sizeof(rig->start.name), "%s", name);
	snprintf(rig->start.log_dir, sizeof(rig->start.log_dir), "%s",
		 rig->log);
	snprintf(rig->start.key, sizeof(rig->start.key), "%s", rig_key);
}

/* Sends all that it takes; @ns -1: none yet. 0, or why it takes no more. */
static inline int rig_offer(struct rig *rig, const char *yaml, int leases,
			    int ns)
{
	AUTO_FD int bundle = bundle_of(yaml);
	int sock = rig->keeper.sock;
	int err = msg_send(sock, MSG_KEEP_START, &rig->start, bundle);

	if (!err)
		err = msg_send(sock, MSG_KEEP_LEASES, NULL, leases);
	if (!err && ns >= 0)
		err = msg_send(sock, MSG_KEEP_NETNS, NULL, ns);
	return err ? err : msg_send(sock, MSG_KEEP_GO, NULL, -1);
}

static inline void rig_tell(struct rig *rig, const char *yaml, int leases,
			    int ns)
{
	assert_int_equal(rig_offer(rig, yaml, leases, ns), 0);
}

static inline void rig_spawn(struct rig *rig, const char *yaml, int leases,
			     int ns)
{
	assert_int_equal(child_spawn("keeper", false, &rig->keeper), 0);
	rig_tell(rig, yaml, leases, ns);
}

/* The next message, which is of @type; or the end (0). */
static inline struct msg hear(const struct rig *rig, int type)
{
	struct msg msg = { 0 };
	int got;

	if (!serve_world(rig->keeper.sock, POLLIN, WAIT_MS))
		fail_msg("the keeper says nothing");
	got = msg_recv(rig->keeper.sock, &msg, MSG_DONTWAIT);
	assert_int_equal(got, type ? 1 : 0);
	if (type && msg.type != (enum msg_type)type)
		fail_msg("message %d in place of %d: %s", msg.type, type,
			 msg.type == MSG_KEEP_FAILED ? msg.keep_failed.text
						     : "");
	return msg;
}

static inline void rig_ready(struct rig *rig)
{
	rig->ready = hear(rig, MSG_KEEP_READY).keep_ready;
}

static inline int leases_new(void)
{
	int fd = open(rig_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static inline int exit_status(struct rig *rig)
{
	int status = 0;

	assert_true(serve_world(rig->keeper.pidfd, POLLIN, WAIT_MS));
	assert_int_equal(waitpid(rig->keeper.pid, &status, 0), rig->keeper.pid);
	child_close(&rig->keeper);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline struct msg_keep_ended rig_end(struct rig *rig)
{
	const struct msg_keep_end end = { .ended = ENDED_EXIT };
	struct msg_keep_ended ended;

	assert_int_equal(msg_send(rig->keeper.sock, MSG_KEEP_END, &end, -1), 0);
	ended = hear(rig, MSG_KEEP_ENDED).keep_ended;
	assert_int_equal(exit_status(rig), 0);
	return ended;
}

static inline struct msg_keep_counts rig_counts(struct rig *rig)
{
	assert_int_equal(msg_send(rig->keeper.sock, MSG_KEEP_STATS,
				  &(struct msg_keep_stats){ .look_s = 1 }, -1),
			 0);
	return hear(rig, MSG_KEEP_COUNTS).keep_counts;
}

/* Its log, or another file beside it; to be freed. "" if there is none. */
static inline char *read_log(const struct rig *rig, const char *name)
{
	char path[256];
	char *text = NULL;
	size_t len = 0;

	snprintf(path, sizeof(path), "%s/%s", rig->log, name);
	AUTO_FILE FILE *in = fopen(path, "re");
	FILE *out = open_memstream(&text, &len);
	assert_non_null(out);
	for (int c; in && (c = getc(in)) != EOF;)
		putc(c, out);
	fclose(out);
	return text;
}

static inline void has(const struct rig *rig, const char *what)
{
	AUTO_FREE char *text = read_log(rig, "audit.jsonl");

	if (!strstr(text, what))
		fail_msg("no \"%s\" in: %s", what, text);
}

static inline int rig_setup(void **state)
{
	static struct signing_error error;
	struct vkey vkey;

	(void)state;
	/* Root's logs and keys are not this machine's. */
	assert_int_equal(unshare(CLONE_NEWNS | CLONE_NEWNET), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", "/var/log", "tmpfs", 0, NULL), 0);
	assert_non_null(mkdtemp(rig_dir));
	assert_int_equal(mount("none", rig_dir, "tmpfs", 0, NULL), 0);
	snprintf(rig_key, sizeof(rig_key), "%s/signing.key", rig_dir);
	if (signing_make(rig_key, "host.example", &vkey, &error))
		fail_msg("%s", error.text);
	signal(SIGPIPE, SIG_IGN);
	make_world();
	return 0;
}

static inline int rig_teardown(void **state)
{
	(void)state;
	umount2(rig_dir, MNT_DETACH);
	return rmdir(rig_dir);
}

#endif
