/* SPDX-License-Identifier: Apache-2.0
 *
 * rights.c - done here, or asked for: one request, one answer. Who asks waits
 * for it, as it would for the kernel. A builder that is gone is no reason to
 * try it here: what kept us alive is lost, and nothing is made any more.
 */
#include "cmd/rights.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "cmd/rights_ask.h"
#include "cmd/rights_here.h"

#define ANSWER_S 30

/* One a process, as a daemon is. -1: we do it ourselves. */
static int builder = -1;

int rights_ask(const char *path)
{
	const struct timeval limit = { .tv_sec = ANSWER_S };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(name.sun_path))
		return -ENAMETOOLONG;
	memcpy(name.sun_path, path, strlen(path) + 1);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) <
		    0 ||
	    connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
		return -errno;
	builder = steal_fd(&fd);
	return 0;
}

/* @ret_fd: what may come with it, or NULL. */
static int take_reply(struct rights_reply *reply, int *ret_fd)
{
	int fds[FDPASS_MAX];
	size_t n = 0;
	ssize_t len = fdpass_recv(builder, reply, sizeof(*reply), fds, &n, 0);

	for (size_t i = 0; i < n; i++) {
		if (ret_fd && i == 0 && *ret_fd < 0)
			*ret_fd = fds[i];
		else
			close(fds[i]);
	}
	if (len < 0)
		return (int)len;
	return len == (ssize_t)sizeof(*reply) ? 0 : -EPIPE;
}

static int ask(const struct rights_request *request, const int *fds, size_t n,
	       struct rights_reply *reply, int *ret_fd)
{
	int err = fdpass_send(builder, request, sizeof(*request), fds, n);

	if (!err)
		err = take_reply(reply, ret_fd);
	/* An answer that comes after all would be taken for the next one's. */
	if (err) {
		shutdown(builder, SHUT_RDWR);
		return err;
	}
	return reply->status;
}

static int named(struct rights_request *request, const char *name)
{
	if (strlen(name) >= sizeof(request->name))
		return -ENAMETOOLONG;
	memcpy(request->name, name, strlen(name));
	return 0;
}

/* For a process, and its pidfd; or for another descriptor. */
static int ask_fd(const struct rights_request *request, const int *fds,
		  size_t n, pid_t *ret_pid, int *ret_pidfd)
{
	struct rights_reply reply;
	AUTO_FD int pidfd = -1;
	int err = ask(request, fds, n, &reply, &pidfd);

	if (err)
		return err;
	if (pidfd < 0)
		return -EPROTO;
	*ret_pid = reply.pid;
	*ret_pidfd = steal_fd(&pidfd);
	return 0;
}

int rights_keeper(int sock, int errors, pid_t *ret_pid, int *ret_pidfd)
{
	const struct rights_request request = { .what = RIGHTS_KEEPER };
	const int fds[] = { sock, errors };

	if (builder < 0)
		return here_keeper(sock, errors, ret_pid, ret_pidfd);
	return ask_fd(&request, fds, ARRAY_SIZE(fds), ret_pid, ret_pidfd);
}

int rights_namespace(const char *run, const char *name, uid_t uid, gid_t gid,
		     pid_t *ret_pid, int *ret_sock)
{
	struct rights_request request = { .what = RIGHTS_NAMESPACE,
					  .uid = uid,
					  .gid = gid };
	int err;

	if (builder < 0)
		return here_namespace(run, name, uid, gid, ret_pid, ret_sock);
	err = named(&request, name);
	return err ? err : ask_fd(&request, NULL, 0, ret_pid, ret_sock);
}

int rights_spare(uid_t uid, gid_t gid, pid_t *ret_pid, int *ret_sock)
{
	const struct rights_request request = { .what = RIGHTS_SPARE,
						.uid = uid,
						.gid = gid };

	if (builder < 0)
		return here_spare(uid, gid, ret_pid, ret_sock);
	return ask_fd(&request, NULL, 0, ret_pid, ret_sock);
}

int rights_pin(const char *run, const char *name, int ns)
{
	struct rights_request request = { .what = RIGHTS_PIN };
	struct rights_reply reply;
	int err;

	if (builder < 0)
		return here_pin(run, name, ns);
	err = named(&request, name);
	return err ? err : ask(&request, &ns, 1, &reply, NULL);
}

int rights_made(int sock, int *ret_ns, int *ret_user)
{
	int fds[FDPASS_MAX], said = 0;
	size_t n = 0;
	ssize_t len =
		fdpass_recv(sock, &said, sizeof(said), fds, &n, MSG_DONTWAIT);

	if (len == sizeof(said) && !said && n > 0 && n <= (ret_user ? 2 : 1)) {
		*ret_ns = fds[0];
		if (ret_user)
			*ret_user = n > 1 ? fds[1] : -1;
		return 0;
	}
	while (n)
		close(fds[--n]);
	if (len < 0)
		return (int)len;
	return len == sizeof(said) && said < 0 ? said : -ECHILD;
}

int rights_kill(const char *run, const char *name, pid_t *ret_pid,
		int *ret_pidfd)
{
	struct rights_request request = { .what = RIGHTS_KILL };
	int err;

	if (builder < 0)
		return here_kill(run, name, ret_pid, ret_pidfd);
	err = named(&request, name);
	return err ? err : ask_fd(&request, NULL, 0, ret_pid, ret_pidfd);
}

void rights_kill_now(const char *run, const char *name)
{
	AUTO_FD int pidfd = -1;
	struct pollfd p;
	pid_t pid;

	if (rights_kill(run, name, &pid, &pidfd))
		return;
	p = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	waitpid(pid, NULL, 0);
}

int rights_drop(const char *run, const char *name)
{
	struct rights_request request = { .what = RIGHTS_DROP };
	struct rights_reply reply;
	int err;

	if (builder < 0)
		return here_drop(run, name);
	err = named(&request, name);
	return err ? err : ask(&request, NULL, 0, &reply, NULL);
}

int rights_lock(int ns, const struct ip *gateway, char *reterr, size_t cap)
{
	const struct rights_request request = { .what = RIGHTS_LOCK,
						.ip = *gateway };
	struct rights_reply reply = { 0 };
	int err;

	if (builder < 0)
		return here_lock(ns, gateway, reterr, cap);
	err = ask(&request, &ns, 1, &reply, NULL);
	if (err)
		snprintf(reterr, cap, "%.*s", (int)sizeof(reply.text) - 1,
			 *reply.text ? reply.text : strerror(-err));
	return err;
}

int rights_end(int ns)
{
	const struct rights_request request = { .what = RIGHTS_END };
	struct rights_reply reply;

	if (builder < 0)
		return here_end(ns);
	return ask(&request, &ns, 1, &reply, NULL);
}

int rights_link(int ns, char (*ret_name)[16])
{
	const struct rights_request request = { .what = RIGHTS_LINK };
	struct rights_reply reply;
	int err;

	if (builder < 0)
		return here_link(ns, ret_name);
	err = ask(&request, &ns, 1, &reply, NULL);
	if (!err)
		snprintf(*ret_name, sizeof(*ret_name), "%.*s",
			 (int)sizeof(*ret_name) - 1, reply.text);
	return err;
}
