/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_keeper.c - three descriptors a keeper: its socket, the pipe of its
 * stderr, and its pidfd. Its socket does not block: what it can't take at once
 * is more than a keeper that reads ever gets.
 *
 * Nothing of it is believed beyond its own sandbox. Lines are cut, and what
 * would forge one of ours is taken out by log_warn().
 */
#include "cmd/daemon_keeper.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/rights.h"

/* A turn of the loop: others want one, too. */
#define MESSAGES_A_TURN 32

struct keeper {
	const char *name;
	const struct keeper_calls *calls;
	void *arg;
	pid_t pid;
	int pidfd, sock, errors;
	struct event *said, *wrote, *died;
	char line[KEEPER_LINE_MAX], last[KEEPER_LINE_MAX];
	size_t len;
};

/* --- the process --------------------------------------------------------- */

static int spawn(struct keeper *keeper)
{
	AUTO_FD int errors = -1, sock = -1;
	int pair[2], out[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	keeper->sock = pair[0];
	sock = pair[1];
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	keeper->errors = out[0];
	errors = out[1];
	if (fcntl(keeper->sock, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(keeper->errors, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return rights_keeper(sock, errors, &keeper->pid, &keeper->pidfd);
}

static void drop_event(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

/* What is left when it is dead. */
static void drop(struct keeper *keeper)
{
	drop_event(&keeper->said);
	drop_event(&keeper->wrote);
	drop_event(&keeper->died);
	close_fd(&keeper->sock);
	close_fd(&keeper->errors);
	close_fd(&keeper->pidfd);
	free(keeper);
}

void keeper_kill(struct keeper *keeper)
{
	/* Not by its pid: it may be a child of our builder, and long dead. */
	if (keeper && keeper->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, keeper->pidfd, SIGKILL, NULL, 0);
}

void keeper_free(struct keeper *keeper)
{
	if (!keeper)
		return;
	keeper_kill(keeper);
	if (keeper->pid > 0)
		waitpid(keeper->pid, NULL, 0);
	drop(keeper);
}

/* --- what it says -------------------------------------------------------- */

static void end_line(struct keeper *keeper)
{
	keeper->line[keeper->len] = '\0';
	if (keeper->len) {
		log_warn("%s: %s", keeper->name, keeper->line);
		memcpy(keeper->last, keeper->line, keeper->len + 1);
	}
	keeper->len = 0;
}

static void take_text(struct keeper *keeper, const char *text, size_t len)
{
	static const char own[] = "sallyport: ";

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n') {
			end_line(keeper);
			continue;
		}
		/* The rest of a long line is lost. */
		if (keeper->len < KEEPER_LINE_MAX - 1)
			keeper->line[keeper->len++] = text[i];
		/* We put that before it ourselves. */
		if (keeper->len == sizeof(own) - 1 &&
		    memcmp(keeper->line, own, keeper->len) == 0)
			keeper->len = 0;
	}
}

/* At most so much a turn. */
static ssize_t take_errors(struct keeper *keeper)
{
	char text[4096];
	ssize_t n = read(keeper->errors, text, sizeof(text));

	if (n > 0)
		take_text(keeper, text, (size_t)n);
	return n < 0 ? -errno : n;
}

static void on_wrote(evutil_socket_t fd, short what, void *arg)
{
	struct keeper *keeper = arg;
	ssize_t n = take_errors(keeper);

	(void)fd;
	(void)what;
	if (n == 0 || (n < 0 && n != -EAGAIN))
		drop_event(&keeper->wrote);
}

/* 1: there may be more. 0: not now. Negative: never again. */
static int take_message(struct keeper *keeper)
{
	struct msg msg;
	int got = msg_recv(keeper->sock, &msg, MSG_DONTWAIT);

	if (got == -EAGAIN)
		return 0;
	if (got <= 0)
		return got < 0 ? got : -EPIPE;
	const bool known =
		msg.type >= MSG_KEEP_READY && msg.type <= MSG_KEEP_ENDED;
	if (known)
		keeper->calls->message(keeper->arg, &msg);
	close_fd(&msg.fd);
	return known ? 1 : -EBADMSG;
}

static void on_said(evutil_socket_t fd, short what, void *arg)
{
	struct keeper *keeper = arg;
	int got = 1;

	(void)fd;
	(void)what;
	for (int i = 0; i < MESSAGES_A_TURN && got > 0; i++)
		got = take_message(keeper);
	if (got >= 0)
		return;
	/* The end, or nonsense: it dies, and its pidfd tells. */
	drop_event(&keeper->said);
	if (got != -EPIPE && got != -ECONNRESET)
		log_err("%s: its keeper says what makes no sense",
			keeper->name);
	keeper_kill(keeper);
}

/* A word for how it ended, where it had none itself. */
static void describe(struct keeper *keeper, bool ours, int status)
{
	if (*keeper->last)
		return;
	if (!ours) {
		snprintf(keeper->last, sizeof(keeper->last), "its keeper died");
		return;
	}
	if (WIFSIGNALED(status))
		snprintf(keeper->last, sizeof(keeper->last),
			 "its keeper was killed by signal %d",
			 WTERMSIG(status));
	else
		snprintf(keeper->last, sizeof(keeper->last),
			 "its keeper ended with status %d",
			 WEXITSTATUS(status));
}

static void on_died(evutil_socket_t fd, short what, void *arg)
{
	struct keeper *keeper = arg;
	int status = 0;
	bool ours;

	(void)fd;
	(void)what;
	/* What it still said is to be heard first. */
	while (keeper->said && take_message(keeper) > 0)
		;
	for (int i = 0; i < 16 && take_errors(keeper) > 0; i++)
		;
	end_line(keeper);
	/* That of a builder is not ours to bury. */
	ours = waitpid(keeper->pid, &status, 0) == keeper->pid;
	keeper->pid = -1;
	describe(keeper, ours, status);
	keeper->calls->died(keeper->arg, keeper->last);
	drop(keeper);
}

int keeper_tell(struct keeper *keeper, enum msg_type type, const void *payload,
		int fd)
{
	int err = msg_send(keeper->sock, type, payload, fd);

	if (err == -EAGAIN) {
		log_err("%s: its keeper does not read; killed", keeper->name);
		keeper_kill(keeper);
	}
	return err;
}

static struct event *watch(struct event_base *base, int fd,
			   event_callback_fn fn, struct keeper *keeper)
{
	struct event *event =
		event_new(base, fd, EV_READ | EV_PERSIST, fn, keeper);

	if (event && event_add(event, NULL)) {
		event_free(event);
		return NULL;
	}
	return event;
}

void keeper_hand_over(struct keeper *keeper, const char *name,
		      const struct keeper_calls *calls, void *arg)
{
	keeper->name = name;
	keeper->calls = calls;
	keeper->arg = arg;
}

int keeper_start(struct event_base *base, const char *name,
		 const struct keeper_calls *calls, void *arg,
		 struct keeper **ret_keeper)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));
	int err;

	if (!keeper)
		return -ENOMEM;
	*keeper = (struct keeper){ .name = name,
				   .calls = calls,
				   .arg = arg,
				   .pid = -1,
				   .pidfd = -1,
				   .sock = -1,
				   .errors = -1 };
	err = spawn(keeper);
	if (!err) {
		keeper->said = watch(base, keeper->sock, on_said, keeper);
		keeper->wrote = watch(base, keeper->errors, on_wrote, keeper);
		keeper->died = watch(base, keeper->pidfd, on_died, keeper);
		if (!keeper->said || !keeper->wrote || !keeper->died)
			err = -ENOMEM;
	}
	if (err) {
		keeper_free(keeper);
		return err;
	}
	*ret_keeper = keeper;
	return 0;
}
