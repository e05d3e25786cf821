/* SPDX-License-Identifier: Apache-2.0
 *
 * command_process.c - the command of `run` and of `exec`.
 */
#include "cmd/command_process.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "launch/env_secrets.h"

/* From a polite SIGTERM at the time limit to the end. */
#define TERM_GRACE_S 2

extern char **environ;

static const int forwarded[] = { SIGINT,  SIGTERM, SIGHUP,
				 SIGQUIT, SIGUSR1, SIGUSR2 };

void command_catch(struct command_process *command)
{
	sigset_t *set = &command->caught;

	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++) {
		struct sigaction was;

		/* As nohup(1) left it: ignored, by us and by the command. */
		if (sigaction(forwarded[i], NULL, &was) == 0 &&
		    was.sa_handler == SIG_IGN)
			continue;
		sigaddset(set, forwarded[i]);
	}
	sigprocmask(SIG_BLOCK, set, NULL);
	command->signal_fd = signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	/* We share the terminal with the command and restore it after it. */
	signal(SIGTTOU, SIG_IGN);
	command->spec.interactive =
		isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void command_begin(struct command_process *command, const struct ip *gateway,
		   uint16_t proxy_port, const char *home)
{
	char proxy[64], resolv[64], ip[IP_TEXT_MAX], why[512];
	struct process_spec *spec = &command->spec;
	AUTO_FREE char **inherited = NULL;
	int err;

	ip_format(gateway, ip);
	snprintf(proxy, sizeof(proxy), "http://%s:%u", ip, proxy_port);
	snprintf(resolv, sizeof(resolv), "nameserver %s\n", ip);
	spec->resolv_conf = resolv;
	inherited = env_without_secrets(environ, command->env, command->envs,
					command->left, sizeof(command->left));
	if (inherited)
		spec->env = process_env(inherited, proxy, *home ? home : NULL);
	if (!spec->env)
		die(EXIT_SALLYPORT, "out of memory");
	err = process_begin(spec, &command->process, why, sizeof(why));
	process_env_free((char **)(uintptr_t)spec->env);
	spec->env = NULL;
	spec->resolv_conf = NULL; /* it was only for the child */
	if (err)
		die(EXIT_SALLYPORT, "%s", why);
}

void command_ready(struct command_process *command, bool quiet)
{
	char why[512];

	if (process_ready(&command->process, why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s", why);
	if (*command->process.note && !quiet)
		log_warn("%s", command->process.note);
	if (*command->left && !quiet)
		log_warn("left out of the environment, as they may be secrets: "
			 "%s (--env NAME passes one)",
			 command->left);
}

/* --- watching ------------------------------------------------------------ */

static void on_died(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(arg);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval grace = { .tv_sec = TERM_GRACE_S };
	struct command_process *command = arg;

	(void)fd;
	(void)what;
	if (command->timed_out) {
		process_kill(&command->process);
		return;
	}
	command->timed_out = true;
	process_signal(&command->process, SIGTERM);
	event_add(command->timer, &grace);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct command_process *command = arg;
	struct signalfd_siginfo info;

	(void)what;
	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		process_signal(&command->process, (int)info.ssi_signo);
		if (command->process.init_fd >= 0)
			continue;
		/* There is nobody yet who could take it: it never began. */
		command->signal = (int)info.ssi_signo;
		process_kill(&command->process);
	}
}

static void add(struct command_process *command, struct event **ret, int fd,
		event_callback_fn fn, void *arg, const struct timeval *after)
{
	short what = fd < 0 ? 0 : EV_READ | EV_PERSIST;

	*ret = event_new(command->base, fd, what, fn, arg);
	if (!*ret || event_add(*ret, after))
		die(EXIT_SALLYPORT, "out of memory");
}

void command_attach(struct command_process *command, struct event_base *base,
		    unsigned timeout_ms)
{
	const struct timeval limit = { .tv_sec = timeout_ms / 1000,
				       .tv_usec = timeout_ms % 1000 * 1000 };

	command->base = base;
	add(command, &command->died, command->process.pidfd, on_died, base,
	    NULL);
	add(command, &command->signals, command->signal_fd, on_signal, command,
	    NULL);
	if (timeout_ms)
		add(command, &command->timer, -1, on_time, command, &limit);
}

int command_wait(struct command_process *command)
{
	int status = process_wait(&command->process);

	if (command->timed_out)
		return EXIT_TIMEOUT;
	return command->signal ? 128 + command->signal : status;
}

void command_release(struct command_process *command)
{
	struct event *const all[] = { command->timer, command->died,
				      command->signals };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i])
			event_free(all[i]);
	}
	close_fd(&command->signal_fd);
}

void command_uncatch(const struct command_process *command)
{
	const struct timespec at_once = { 0 };

	while (sigtimedwait(&command->caught, NULL, &at_once) > 0)
		;
	sigprocmask(SIG_UNBLOCK, &command->caught, NULL);
}
