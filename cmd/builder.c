/* SPDX-License-Identifier: Apache-2.0
 *
 * builder.c - `sallyport builder`: the daemon's rights, apart from the daemon.
 *
 * systemd accepts the connection and starts one of us for it
 * (deploy/systemd/sallyport-builder@.service), outside of the daemon's mount
 * namespace: what is pinned here every program on the machine sees. Nothing
 * but these messages of fixed size is read. When the daemon is gone, so is our
 * connection, and so are we; the keepers are our children, and die with us.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sock.h"
#include "cmd/command.h"
#include "cmd/rights_ask.h"
#include "cmd/rights_here.h"
#include "cmd/session.h"
#include "launch/child.h"

static const size_t fds_of[RIGHTS_COUNT] = {
	[RIGHTS_KEEPER] = 2, [RIGHTS_LOCK] = 1, [RIGHTS_LINK] = 1,
	[RIGHTS_END] = 1,    [RIGHTS_PIN] = 1,
};

static bool is_sound(const struct rights_request *request, ssize_t len,
		     size_t fds)
{
	if (len != (ssize_t)sizeof(*request) || request->what >= RIGHTS_COUNT ||
	    fds != fds_of[request->what])
		return false;
	switch (request->what) {
	case RIGHTS_KEEPER:
	case RIGHTS_LINK:
	case RIGHTS_END:
	case RIGHTS_SPARE:
		return true;
	case RIGHTS_LOCK:
		return request->ip.len == 4 || request->ip.len == 16;
	default:
		return memchr(request->name, '\0', sizeof(request->name)) &&
		       daemon_name_ok(request->name);
	}
}

/* @ret_fd: what is sent along, or -1. */
static void act(const char *run, const struct rights_request *request,
		const int *fds, struct rights_reply *reply, int *ret_fd)
{
	const char *name = request->name;
	char link[16] = "";
	pid_t pid = 0;

	switch ((enum rights_what)request->what) {
	case RIGHTS_KEEPER:
		reply->status = here_keeper(fds[0], fds[1], &pid, ret_fd);
		reply->pid = pid;
		break;
	case RIGHTS_NAMESPACE:
		reply->status = here_namespace(run, name, request->uid,
					       request->gid, &pid, ret_fd);
		reply->pid = pid;
		break;
	case RIGHTS_SPARE:
		reply->status =
			here_spare(request->uid, request->gid, &pid, ret_fd);
		reply->pid = pid;
		break;
	case RIGHTS_PIN:
		reply->status = here_pin(run, name, fds[0]);
		break;
	case RIGHTS_KILL:
		reply->status = here_kill(run, name, &pid, ret_fd);
		reply->pid = pid;
		break;
	case RIGHTS_DROP:
		reply->status = here_drop(run, name);
		break;
	case RIGHTS_LOCK:
		reply->status = here_lock(fds[0], &request->ip, reply->text,
					  sizeof(reply->text));
		break;
	case RIGHTS_END:
		reply->status = here_end(fds[0]);
		break;
	case RIGHTS_LINK:
		reply->status = here_link(fds[0], &link);
		snprintf(reply->text, sizeof(reply->text), "%s", link);
		break;
	case RIGHTS_COUNT:
		reply->status = -EBADMSG;
	}
}

/* 1; 0: the daemon is gone. */
static int serve_one(const char *run)
{
	struct rights_request request;
	struct rights_reply reply = { 0 };
	int fds[FDPASS_MAX], pidfd = -1, err;
	size_t n = 0;
	ssize_t len = fdpass_recv(CHILD_SOCKET, &request, sizeof(request), fds,
				  &n, 0);

	if (len <= 0)
		return 0;
	if (!is_sound(&request, len, n))
		die(EXIT_SALLYPORT, "builder: a request makes no sense");
	act(run, &request, fds, &reply, &pidfd);
	while (n)
		close(fds[--n]);
	err = fdpass_send(CHILD_SOCKET, &reply, sizeof(reply), &pidfd,
			  pidfd >= 0);
	close_fd(&pidfd);
	return !err;
}

/* Only root's may ask; whoever else could connect is none of them. */
static void check_peer(void)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(CHILD_SOCKET, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		die(EXIT_SALLYPORT,
		    "builder: is started by systemd, for a daemon: %s",
		    strerror(errno));
	if (peer.uid != 0)
		die(EXIT_SALLYPORT, "builder: uid %u may not ask", peer.uid);
}

static int watch_children(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		die(EXIT_SALLYPORT, "builder: %s", strerror(errno));
	return fd;
}

static void bury(int signals)
{
	struct signalfd_siginfo info;

	while (read(signals, &info, sizeof(info)) > 0)
		;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int builder_main(int argc, char **argv)
{
	const char *run = argc > 1 ? argv[1] : DAEMON_RUN_DIR;
	struct pollfd p[2] = { { .fd = CHILD_SOCKET, .events = POLLIN } };
	int on = 1;

	log_init("sallyport", LOG_LEVEL_WARN);
	check_peer();
	if (!session_root())
		die(EXIT_SALLYPORT, "builder: is root");
	p[1] = (struct pollfd){ .fd = watch_children(), .events = POLLIN };
	while (on) {
		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			die(EXIT_SALLYPORT, "builder: %s", strerror(errno));
		if (p[1].revents)
			bury(p[1].fd);
		if (p[0].revents)
			on = serve_one(run);
	}
	return 0;
}
