/* SPDX-License-Identifier: Apache-2.0
 *
 * stay.c - one session, from its first record to its receipt.
 */
#include "cmd/stay.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "audit/tally.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/summary.h"
#include "launch/isolate.h"

void stay_listen(struct stay *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	s->reload = (struct reload){ .options = &s->options,
				     .session = &s->session,
				     .warden = &s->warden,
				     .what = s->what };
	reload_listen(&s->reload);
}

static void on_failed(void *arg, const char *why)
{
	struct stay *s = arg;

	(void)why;
	s->failed = true;
	if (s->base)
		event_base_loopbreak(s->base);
}

static int explain(int err, const char *what, char *reterr, size_t cap)
{
	snprintf(reterr, cap, "%s: %s", what, strerror(-err));
	return err;
}

int stay_start(struct stay *s, const char *note, char *reterr, size_t cap)
{
	struct warden *w = &s->warden;
	char detail[600];
	struct audit_event opened = { .kind = EVENT_SESSION_OPEN,
				      .sandbox = WARDEN_SANDBOX_ID,
				      .verdict = { .allow = true },
				      .detail = detail };
	int err;

	w->bare = w->root && !isolate_has_own_root();
	snprintf(detail, sizeof(detail), "%s; %sseparation %s; policy %s",
		 s->what, note, warden_separation(w), s->session.policy_text);
	w->bundle = &s->options.bundle;
	w->policy = s->session.policy;
	w->session = &s->session;
	w->failed = on_failed;
	w->arg = s;
	err = warden_start(w);
	if (!err)
		err = warden_ready(w);
	if (err)
		return explain(err, "starting gate and ledger", reterr, cap);
	err = warden_record(w, &opened);
	return err ? explain(err, "the ledger does not take records", reterr,
			     cap)
		   : 0;
}

/* --- loop ---------------------------------------------------------------- */

static void reload(struct stay *s)
{
	struct policy_error error;

	if (reload_now(&s->reload, &error))
		log_err("%s\nThe old policy stays in force.", error.text);
	else if (!s->options.quiet)
		fprintf(stderr, "sallyport: policy sha256:%s\n",
			policy_digest(s->session.policy));
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct signalfd_siginfo info;
	struct stay *s = arg;

	(void)what;
	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(s);
		else
			event_base_loopbreak(s->base);
	}
}

int stay_loop(struct stay *s, void (*ready)(void *arg), void *arg)
{
	struct event *signals = NULL;

	s->base = event_base_new();
	if (s->base && warden_attach(&s->warden, s->base) == 0)
		signals = event_new(s->base, s->signal_fd, EV_READ | EV_PERSIST,
				    on_signal, s);
	if (!signals || event_add(signals, NULL)) {
		if (signals)
			event_free(signals);
		return -ENOMEM;
	}
	reload_attach(&s->reload, s->base);
	ready(arg);
	event_base_dispatch(s->base);
	reload_close(&s->reload);
	event_free(signals);
	return 0;
}

/* --- the end ------------------------------------------------------------- */

int stay_finish(struct stay *s)
{
	static struct tally tally;
	struct audit_event closed = { .kind = EVENT_SESSION_CLOSE,
				      .sandbox = WARDEN_SANDBOX_ID,
				      .verdict = { .allow = true },
				      .detail = s->what };
	struct warden_end end = {
		.status = s->failed ? EXIT_SALLYPORT : 0,
		.ended = s->failed ? ENDED_FAILED : ENDED_SIGNAL,
	};
	const int err = warden_finish(&s->warden, &closed, &end, &tally);

	if (err)
		log_err("the log may be incomplete: %s: %s", s->session.log,
			strerror(-err));
	if (!s->options.quiet)
		summary_print(
			stderr, end.tallied ? &tally : NULL,
			&(struct summary){ .policy = s->session.policy_text,
					   .log = s->session.log,
					   .dir = s->session.dir,
					   .boundary = s->warden.gateway,
					   .held = end.held,
					   .receipt = end.receipt },
			s->options.json);
	return err || s->failed ? EXIT_SALLYPORT : 0;
}

void stay_close(struct stay *s)
{
	warden_close(&s->warden);
	event_base_free(s->base);
	session_close(&s->session);
	options_free(&s->options);
	close_fd(&s->signal_fd);
}
