/* SPDX-License-Identifier: Apache-2.0
 *
 * serve.c - `sallyport serve`: the same gate and ledger on given addresses,
 * without namespaces of sandboxes. The boundary is somebody else's
 * ("external"): an internal network, a firewall.
 */
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
#include "cmd/options.h"
#include "cmd/reload.h"
#include "cmd/session.h"
#include "cmd/summary.h"
#include "cmd/warden.h"
#include "launch/isolate.h"
#include "launch/userns.h"

struct serve {
	struct options options;
	struct session session;
	struct warden warden;
	struct reload reload;
	struct event_base *base;
	int signal_fd;
	bool root, failed;
};

static void bind_one(struct warden *w, enum gate_socket which,
		     const struct endpoint *at)
{
	char ip[IP_TEXT_MAX];
	int fd;

	if (!at->ip.len)
		return;
	fd = which == GATE_DNS_UDP ? sock_bind_udp(&at->ip, at->port, false)
				   : sock_listen_tcp(&at->ip, at->port, false);
	if (fd < 0)
		die(EXIT_SALLYPORT, "%s port %u: %s", ip_format(&at->ip, ip),
		    at->port, strerror(-fd));
	w->socket[which] = fd;
	w->bound[which] = *at;
}

static void bind_all(struct serve *serve)
{
	const struct options *o = &serve->options;
	struct warden *w = &serve->warden;

	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		w->socket[i] = -1;
	bind_one(w, GATE_EXPLICIT, &o->proxy);
	bind_one(w, GATE_DNS_UDP, &o->dns);
	bind_one(w, GATE_DNS_TCP, &o->dns);
	bind_one(w, GATE_TLS, &o->tls);
	bind_one(w, GATE_HTTP, &o->http);
	w->answer = o->tls.ip.len ? o->tls.ip : o->proxy.ip;
}

/* Loopback may always; the others as --client says. */
static void set_clients(struct serve *serve)
{
	struct msg_gate_uplink *clients = &serve->warden.clients;
	static const char *const local[] = { "127.0.0.0/8", "::1" };

	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		cidr_parse(local[i], &clients->prefix[clients->count++]);
	for (size_t i = 0; i < serve->options.clients; i++)
		clients->prefix[clients->count++] = serve->options.client[i];
}

static void on_failed(void *arg, const char *why)
{
	struct serve *serve = arg;

	(void)why;
	serve->failed = true;
	event_base_loopbreak(serve->base);
}

static void reload(struct serve *serve)
{
	struct policy_error error;

	if (reload_now(&serve->reload, &error))
		log_err("%s\nThe old policy stays in force.", error.text);
	else if (!serve->options.quiet)
		fprintf(stderr, "sallyport: policy sha256:%s\n",
			policy_digest(serve->session.policy));
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct signalfd_siginfo info;
	struct serve *serve = arg;

	(void)what;
	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(serve);
		else
			event_base_loopbreak(serve->base);
	}
}

static void block_signals(struct serve *serve)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	serve->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
}

static void start(struct serve *serve)
{
	struct warden *w = &serve->warden;
	char detail[600];
	struct audit_event opened = { .kind = EVENT_SESSION_OPEN,
				      .sandbox = 1,
				      .verdict = { .allow = true },
				      .detail = detail };
	int err;

	snprintf(detail, sizeof(detail), "serve; policy %s",
		 serve->session.policy_text);
	w->root = serve->root;
	w->bare = serve->root && !isolate_has_own_root();
	w->bundle = &serve->options.bundle;
	w->policy = serve->session.policy;
	w->boundary = "external";
	w->session = &serve->session;
	w->failed = on_failed;
	w->arg = serve;
	err = warden_start(w);
	if (!err)
		err = warden_ready(w);
	if (err)
		die(EXIT_SALLYPORT, "starting gate and ledger: %s",
		    strerror(-err));
	if (warden_record(w, &opened))
		die(EXIT_SALLYPORT, "the ledger does not take records");
}

static void loop(struct serve *serve)
{
	struct event *signals;

	serve->base = event_base_new();
	if (!serve->base || warden_attach(&serve->warden, serve->base))
		die(EXIT_SALLYPORT, "event loop: out of memory");
	signals = event_new(serve->base, serve->signal_fd, EV_READ | EV_PERSIST,
			    on_signal, serve);
	if (!signals || event_add(signals, NULL))
		die(EXIT_SALLYPORT, "event loop: out of memory");
	reload_attach(&serve->reload, serve->base);
	if (!serve->options.quiet)
		fprintf(stderr, "sallyport: serving; log: %s\n",
			serve->session.log);
	event_base_dispatch(serve->base);
	reload_close(&serve->reload);
	event_free(signals);
}

static int finish(struct serve *serve)
{
	static struct tally tally;
	struct audit_event closed = { .kind = EVENT_SESSION_CLOSE,
				      .sandbox = 1,
				      .verdict = { .allow = true },
				      .detail = "serve" };
	struct warden_end end = {
		.status = serve->failed ? EXIT_SALLYPORT : 0,
		.ended = serve->failed ? ENDED_FAILED : ENDED_SIGNAL,
	};
	int err = warden_finish(&serve->warden, &closed, &end, &tally);

	if (err)
		log_err("the log may be incomplete: %s: %s", serve->session.log,
			strerror(-err));
	if (!serve->options.quiet)
		summary_print(
			stderr, end.tallied ? &tally : NULL,
			&(struct summary){ .policy = serve->session.policy_text,
					   .log = serve->session.log,
					   .dir = serve->session.dir,
					   .receipt = end.receipt },
			serve->options.json);
	return err || serve->failed ? EXIT_SALLYPORT : 0;
}

int serve_main(int argc, char **argv)
{
	static struct serve serve;
	char why[512];
	int status;

	log_init("sallyport", LOG_LEVEL_WARN);
	options_parse(OPTIONS_SERVE, argc, argv, &serve.options);
	session_open(&serve.options, &serve.session);
	bind_all(&serve);
	set_clients(&serve);
	block_signals(&serve);
	serve.reload = (struct reload){ .options = &serve.options,
					.session = &serve.session,
					.warden = &serve.warden,
					.what = "serve" };
	reload_listen(&serve.reload);
	serve.root = session_root();
	if (!serve.root && userns_enter(why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s", why);
	start(&serve);
	loop(&serve);
	status = finish(&serve);
	warden_close(&serve.warden);
	event_base_free(serve.base);
	session_close(&serve.session);
	options_free(&serve.options);
	close(serve.signal_fd);
	return status;
}
