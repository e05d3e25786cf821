/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c - `sallyport run`: one command, one sandbox, one session.
 *
 *	open	the policy and the log
 *	become	root of an own user namespace, unless root already
 *	build	gate and ledger start; namespaces, rules, link; rules read back
 *	enter	the sandbox is prepared; its opening is recorded
 *	go	only now the command's first instruction
 *	watch	until it ends, or its time is over
 *	close	the last records, the summary, the command's exit status
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/command_process.h"
#include "cmd/gateway.h"
#include "cmd/options.h"
#include "cmd/reload.h"
#include "cmd/run.h"
#include "cmd/run_daemon.h"
#include "cmd/run_limits.h"
#include "cmd/run_view.h"
#include "cmd/session.h"
#include "cmd/summary.h"
#include "cmd/warden.h"
#include "launch/userns.h"

struct run {
	struct options options;
	struct session session;
	struct warden warden;
	struct gateway gateway;
	struct command_process command;
	struct run_view view;
	struct reload reload;
	struct limits_groups limits;
	struct event_base *base;
	int publish_fd[OPTION_PUBLISH_MAX];
	bool failed;
	int status;
	uint64_t started_ms;
};

/* Before we become anybody else: ports below 1024 may be ours. */
static void listen_published(struct run *run)
{
	for (size_t i = 0; i < run->options.published; i++) {
		const struct endpoint *at = &run->options.publish[i].at;
		char ip[IP_TEXT_MAX];
		int fd = sock_listen_tcp(&at->ip, at->port, false);

		if (fd < 0)
			die(EXIT_SALLYPORT, "--publish: %s port %u: %s",
			    ip_format(&at->ip, ip), at->port, strerror(-fd));
		run->publish_fd[i] = fd;
	}
}

static void publish(struct run *run)
{
	for (size_t i = 0; i < run->options.published; i++) {
		const struct publish_option *p = &run->options.publish[i];
		int err = warden_forward(&run->warden, run->publish_fd[i],
					 &p->at, p->port);

		if (err)
			die(EXIT_SALLYPORT, "--publish: %s", strerror(-err));
	}
}

/* --- building ------------------------------------------------------------ */

static void start_children(struct run *run)
{
	struct warden *w = &run->warden;
	int err;

	w->root = run->command.spec.as_root;
	w->bundle = &run->options.bundle;
	w->policy = run->session.policy;
	w->boundary = "netns";
	w->session = &run->session;
	w->command = run->options.argv[0];
	w->files = bounds_files_word(&run->options.bounds);
	w->nest = run->options.bounds.nest;
	err = warden_start(w);
	if (err)
		die(EXIT_SALLYPORT, "starting gate and ledger: %s",
		    strerror(-err));
}

static void begin_boundary(struct run *run)
{
	char why[512];

	if (gateway_begin(&run->gateway, NULL, why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s", why);
}

static void build_boundary(struct run *run)
{
	char why[512];

	if (gateway_open(run->session.policy, &run->gateway, why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s", why);
	run->warden.gateway = &run->gateway;
	memcpy(run->warden.socket, run->gateway.socket,
	       sizeof(run->warden.socket));
}

static void begin_process(struct run *run)
{
	run->command.spec.netns = run->gateway.sandbox.fd;
	run->command.spec.argv = run->options.argv;
	/* As root the command is not who owns the groups. */
	run->options.bounds.limits.apart =
		run->options.bounds.nest && !session_root();
	run_limits_make(&run->limits, &run->options.bounds.limits,
			&run->command.spec);
	run->command.env = run->options.bounds.env;
	run->command.envs = run->options.bounds.envs;
	command_begin(&run->command, &run->gateway.link.gateway,
		      GATEWAY_PROXY_PORT, run->view.home);
}

static void record_open(struct run *run)
{
	char detail[1000], limits[120];
	struct audit_event event = { .kind = EVENT_SESSION_OPEN,
				     .sandbox = 1,
				     .verdict = { .allow = true },
				     .src_ip = run->gateway.link.ip,
				     .detail = detail };

	limits_describe(&run->options.bounds.limits, &run->limits, limits,
			sizeof(limits));
	snprintf(detail, sizeof(detail),
		 "command %.100s; ruleset sha256:%s; separation %s; files %s; "
		 "%s%s%s%spolicy %s",
		 run->options.argv[0], run->gateway.digest,
		 run->command.spec.as_root ? "uid" : "namespace",
		 bounds_files_word(&run->options.bounds),
		 run->options.bounds.nest ? "nest; " : "",
		 *limits ? "limits " : "", limits, *limits ? "; " : "",
		 run->session.policy_text);
	if (warden_record(&run->warden, &event))
		die(EXIT_SALLYPORT, "the ledger does not take records");
}

/* --- watching ------------------------------------------------------------ */

static void on_failed(void *arg, const char *why)
{
	struct run *run = arg;

	(void)why; /* said already */
	run->failed = true;
	process_kill(&run->command.process);
}

static bool exposed(void *arg, const char *path)
{
	const struct run *run = arg;

	return run_view_exposes(&run->view, run->command.process.init, path);
}

static void listen_for_reloads(struct run *run)
{
	run->reload = (struct reload){ .options = &run->options,
				       .session = &run->session,
				       .warden = &run->warden,
				       .what = "run",
				       .exposed = exposed,
				       .arg = run };
	reload_listen(&run->reload);
}

static void watch(struct run *run)
{
	run->warden.failed = on_failed;
	run->warden.arg = run;
	run->base = event_base_new();
	if (!run->base || warden_attach(&run->warden, run->base))
		die(EXIT_SALLYPORT, "event loop: out of memory");
	command_attach(&run->command, run->base, run->options.timeout_ms);
	reload_attach(&run->reload, run->base);
	run->started_ms = clock_ms(CLOCK_MONOTONIC);
	run_view_mark(&run->view, &run->options, &run->session);
	if (process_start(&run->command.process))
		die(EXIT_SALLYPORT, "the sandbox did not start");
	event_base_dispatch(run->base);
	reload_close(&run->reload);
	run->status = command_wait(&run->command);
}

/* --- closing ------------------------------------------------------------- */

static void settle_policy(struct run *run)
{
	const char *path = run_view_settle(&run->view);
	char text[PATH_MAX + 128];

	if (!path)
		return;
	snprintf(text, sizeof(text),
		 "%s was replaced by another file while the command ran, which "
		 "could write to it: look at it before you use it again",
		 path);
	log_err("%s", text);
	warden_finding(&run->warden, text);
}

static enum ended_by ended_by(const struct run *run)
{
	if (run->command.timed_out)
		return ENDED_TIMEOUT;
	if (run->failed)
		return ENDED_FAILED;
	return run->command.signal ? ENDED_SIGNAL : ENDED_EXIT;
}

/* The kernel takes its time over a table that goes with its owner. */
static void unbuild(void *arg)
{
	struct run *run = arg;

	gateway_close(&run->gateway);
}

static int finish(struct run *run)
{
	static struct tally tally;
	struct warden_end end = { .ended = ended_by(run),
				  .meanwhile = unbuild,
				  .arg = run };
	char detail[64];
	struct audit_event event = { .kind = EVENT_SESSION_CLOSE,
				     .sandbox = 1,
				     .verdict = { .allow = true },
				     .duration_ms = clock_ms(CLOCK_MONOTONIC) -
						    run->started_ms,
				     .detail = detail };
	int err;

	if (run->failed && !run->command.timed_out)
		run->status = EXIT_SALLYPORT;
	snprintf(detail, sizeof(detail), "exit status %d%s", run->status,
		 run->command.timed_out ? " (timeout)" : "");
	end.status = run->status;
	err = warden_finish(&run->warden, &event, &end, &tally);
	if (err)
		log_err("the log may be incomplete: %s: %s", run->session.log,
			strerror(-err));
	if (run->command.timed_out)
		log_err("the command was ended after its time limit");
	if (!run->options.quiet)
		summary_print(
			stderr, end.tallied ? &tally : NULL,
			&(struct summary){ .policy = run->session.policy_text,
					   .log = run->session.log,
					   .dir = run->session.dir,
					   .nest = run->options.bounds.nest,
					   .boundary = true,
					   .held = end.held,
					   .receipt = end.receipt },
			run->options.json);
	return err && run->status == 0 ? EXIT_SALLYPORT : run->status;
}

static void release(struct run *run)
{
	command_release(&run->command);
	warden_close(&run->warden);
	gateway_close(&run->gateway);
	event_base_free(run->base);
	session_close(&run->session);
	run_view_free(&run->view);
	options_free(&run->options);
}

int run_session(const struct options *options, const struct run_hook *hook)
{
	static struct run run;
	char why[512];
	int status;

	run.options = *options;
	if (run.options.verbose)
		log_init("sallyport", LOG_LEVEL_INFO);
	run.view.bounds = &run.options.bounds;
	run_view_user(&run.view, &run.options, &run.command.spec);
	run_view_descriptors(&run.options);
	session_open(&run.options, &run.session);
	run_view_choose(&run.view, &run.options, &run.session,
			&run.command.spec);
	command_catch(&run.command);
	listen_published(&run);
	listen_for_reloads(&run);
	if (!run.command.spec.as_root && userns_enter(why, sizeof(why)))
		die(EXIT_SALLYPORT, "%s", why);
	/* They come to life, and the view's files are looked through, while
	 * the rest is built. */
	start_children(&run);
	begin_boundary(&run);
	begin_process(&run);
	build_boundary(&run);
	publish(&run);
	command_ready(&run.command, run.options.quiet);
	status = warden_ready(&run.warden);
	if (status)
		die(EXIT_SALLYPORT, "gate and ledger: %s", strerror(-status));
	record_open(&run);
	watch(&run);
	if (hook)
		run.status = hook->ended(hook->arg, &run.warden, run.status);
	settle_policy(&run);
	run_limits_settle(&run.limits, &run.options.bounds.limits, &run.warden);
	boundary_end(&run.warden);
	status = finish(&run);
	release(&run);
	return status;
}

int run_main(int argc, char **argv)
{
	static struct options options;

	log_init("sallyport", LOG_LEVEL_WARN);
	options_parse(OPTIONS_RUN, argc, argv, &options);
	options.built = session_build(&options.bundle);
	bounds_take(&options.bounds, options.built, &options.timeout_ms);
	if (run_daemon_serves(&options))
		return run_daemon(&options);
	return run_session(&options, NULL);
}
