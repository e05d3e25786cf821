/* SPDX-License-Identifier: Apache-2.0
 *
 * control.c - requests that are one packet, and answers that are one.
 *
 * A path in a sockaddr_un ends after 107 bytes, so the directory is opened and
 * the socket named by /proc/self/fd. The mode is set before there is a name:
 * nobody ever finds it open.
 */
#include "cmd/control.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"

#define CONNECTIONS_MAX 8
#define REQUEST_S	5
/* Who is unmapped in our user namespace (kernel.overflowuid). */
#define UID_UNMAPPED 65534

struct connection {
	struct control *control;
	struct event *readable; /* NULL: free */
	int fd;
	uid_t uid; /* who asks */
};

struct control {
	int dir, fd;
	dev_t dev;
	ino_t ino; /* of the name, which may be another's by now */
	uid_t owner;
	struct event_base *base;
	struct event *readable;
	control_fn *fn;
	void *arg;
	struct connection connection[CONNECTIONS_MAX];
};

static socklen_t name_of(int dir, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path, sizeof(ret->sun_path),
		 "/proc/self/fd/%d/" CONTROL_NAME, dir);
	return sizeof(*ret);
}

static int open_dir(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* --- listening ----------------------------------------------------------- */

static int bind_new(struct control *control)
{
	struct sockaddr_un name;
	socklen_t len = name_of(control->dir, &name);

	control->fd = socket(AF_UNIX,
			     SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (control->fd < 0 || fchmod(control->fd, 0600) < 0 ||
	    bind(control->fd, (struct sockaddr *)&name, len) < 0)
		return -errno;
	return 0;
}

/* One that was killed leaves its socket behind. */
static int bind_or_replace(struct control *control, const char *dir)
{
	char reply[CONTROL_REPLY_MAX];
	int err = bind_new(control);

	if (err != -EADDRINUSE)
		return err;
	if (control_ask(dir, "status", 1000, reply) != -ECONNREFUSED)
		return -EADDRINUSE;
	if (unlinkat(control->dir, CONTROL_NAME, 0) < 0)
		return -errno;
	close_fd(&control->fd);
	return bind_new(control);
}

int control_listen(const char *dir, struct control **ret_control)
{
	struct control *control = calloc(1, sizeof(*control));
	struct stat st;
	int err;

	if (!control)
		return -ENOMEM;
	control->owner = geteuid();
	control->fd = -1;
	control->dir = open_dir(dir);
	err = control->dir < 0 ? control->dir : bind_or_replace(control, dir);
	if (!err && (fstatat(control->dir, CONTROL_NAME, &st,
			     AT_SYMLINK_NOFOLLOW) < 0 ||
		     listen(control->fd, CONNECTIONS_MAX) < 0))
		err = -errno;
	if (err) {
		close_fd(&control->fd);
		control_close(control);
		return err;
	}
	control->dev = st.st_dev;
	control->ino = st.st_ino;
	*ret_control = control;
	return 0;
}

static void hang_up(struct connection *connection)
{
	event_free(connection->readable);
	connection->readable = NULL;
	close_fd(&connection->fd);
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;
	struct control *control = connection->control;
	char request[CONTROL_REQUEST_MAX + 1], reply[CONTROL_REPLY_MAX] = "";
	ssize_t n = -1;

	if (what & EV_READ)
		n = recv(fd, request, sizeof(request), MSG_DONTWAIT);
	if (n > 0 && n <= CONTROL_REQUEST_MAX) {
		request[n] = '\0';
		control->fn(control->arg, connection->uid, request, reply);
		send(fd, reply, strlen(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	hang_up(connection);
}

/* The mode of the socket lets nobody in but its owner and root. This asks once
 * more, as far as it can: in a user namespace where we alone are mapped, root
 * has no number, and we have another one than outside (@ret_uid is that). */
static bool is_ours(const struct control *control, int fd, uid_t *ret_uid)
{
	const bool moved = control->owner != geteuid();
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	*ret_uid = peer.uid == geteuid()	       ? control->owner
		   : moved && peer.uid == UID_UNMAPPED ? 0
						       : peer.uid;
	return peer.uid == 0 || *ret_uid == 0 || *ret_uid == control->owner;
}

static void take(struct control *control, int fd)
{
	const struct timeval limit = { .tv_sec = REQUEST_S };
	uid_t uid = UID_UNMAPPED;
	size_t i = 0;

	while (i < CONNECTIONS_MAX && control->connection[i].readable)
		i++;
	if (i == CONNECTIONS_MAX || !is_ours(control, fd, &uid)) {
		close(fd);
		return;
	}
	struct connection *connection = &control->connection[i];
	*connection =
		(struct connection){ .control = control, .fd = fd, .uid = uid };
	connection->readable =
		event_new(control->base, fd, EV_READ, on_request, connection);
	if (!connection->readable) {
		close(fd);
		return;
	}
	if (event_add(connection->readable, &limit))
		hang_up(connection);
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
	int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)what;
	if (peer >= 0)
		take(arg, peer);
}

int control_attach(struct control *control, struct event_base *base,
		   control_fn *fn, void *arg)
{
	control->base = base;
	control->fn = fn;
	control->arg = arg;
	control->readable = event_new(base, control->fd, EV_READ | EV_PERSIST,
				      on_connection, control);
	return control->readable && !event_add(control->readable, NULL)
		       ? 0
		       : -ENOMEM;
}

void control_close(struct control *control)
{
	struct stat st;

	if (!control)
		return;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (control->connection[i].readable)
			hang_up(&control->connection[i]);
	if (control->readable)
		event_free(control->readable);
	if (control->fd >= 0 &&
	    fstatat(control->dir, CONTROL_NAME, &st, AT_SYMLINK_NOFOLLOW) ==
		    0 &&
	    st.st_dev == control->dev && st.st_ino == control->ino)
		unlinkat(control->dir, CONTROL_NAME, 0);
	close_fd(&control->fd);
	close_fd(&control->dir);
	free(control);
}

/* --- asking -------------------------------------------------------------- */

static int await_reply(int fd, int timeout_ms, char *reply)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	int got = poll(&ready, 1, timeout_ms);
	ssize_t n;

	if (got <= 0)
		return got < 0 ? -errno : -ETIMEDOUT;
	n = recv(fd, reply, CONTROL_REPLY_MAX - 1, MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 ? -errno : -ECONNRESET;
	reply[n] = '\0';
	return 0;
}

int control_ask(const char *dir, const char *request, int timeout_ms,
		char *reply)
{
	AUTO_FD int at = open_dir(dir);
	struct sockaddr_un name;
	AUTO_FD int fd = -1;
	socklen_t len;

	if (at < 0)
		return at;
	/* A full queue is no reason to wait either. */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	len = name_of(at, &name);
	if (connect(fd, (struct sockaddr *)&name, len) < 0 ||
	    send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		return -errno;
	return await_reply(fd, timeout_ms, reply);
}
