/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon.c - `sallyport daemon`: its life, from top to bottom in daemon_main().
 *
 * Whatever ends it, sandboxes only lose reach: their keepers die with it. What
 * the next one needs is on the disk before anybody hears that it was done.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/daemon_impl.h"
#include "cmd/daemon_notify.h"
#include "cmd/docker.h"
#include "cmd/event_memory.h"
#include "cmd/rights.h"
#include "cmd/session.h"

/* Each sandbox is asked for its counts that often, one after the other. */
#define STATS_S 5
#define BACKLOG 64
/* Three for each keeper, and what the plugin watches. */
#define FILES_A_BOX 8

const struct daemon_config *daemon_config(const struct daemon *daemon)
{
	return daemon->config;
}

struct event_base *daemon_base(const struct daemon *daemon)
{
	return daemon->base;
}

const char *daemon_state_dir(const struct daemon *daemon)
{
	return daemon->options.state;
}

/* --- before anything else ------------------------------------------------ */

static void read_config(struct daemon *daemon)
{
	const struct daemon_options *options = &daemon->options;
	struct policy_error why = { "out of memory" };

	if (daemon_config_read(options->config, !options->config_named,
			       &daemon->config, &why))
		die(EXIT_SALLYPORT, "%s", why.text);
	daemon_find_group(daemon);
}

/* $SALLYPORT_BUILDER: who has the rights that we then don't need. */
static void find_builder(void)
{
	const char *path = getenv("SALLYPORT_BUILDER");
	int err = path && *path ? rights_ask(path) : 0;

	if (err)
		die(EXIT_SALLYPORT, "the builder at %s: %s", path,
		    strerror(-err));
}

/* Two would fight for one name each. */
static void lock(struct daemon *daemon)
{
	char path[PATH_MAX];
	int err;

	err = state_open(daemon->options.state, &daemon->state_dir);
	if (err)
		die(EXIT_SALLYPORT, "%s: %s", daemon->options.state,
		    strerror(-err));
	snprintf(path, sizeof(path), "%s/lock", daemon->options.state);
	daemon->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (daemon->lock < 0)
		die(EXIT_SALLYPORT, "%s: %s", path, strerror(errno));
	if (flock(daemon->lock, LOCK_EX | LOCK_NB) < 0)
		die(EXIT_SALLYPORT,
		    errno == EWOULDBLOCK ? "%s: another daemon is running"
					 : "%s can't be locked",
		    path);
}

/* Others pass through, to namespaces of theirs. */
static void make_dirs(const struct daemon *daemon)
{
	static const char *const names[] = { "", "/netns", "/user" };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int err;

		snprintf(path, sizeof(path), "%s%s", daemon->options.run,
			 names[i]);
		err = session_mkdir(path);
		if (err || chmod(path, 0755) < 0)
			die(EXIT_SALLYPORT, "%s: %s", path,
			    strerror(err ? -err : errno));
	}
}

static void raise_limits(const struct daemon *daemon)
{
	const rlim_t want =
		1024 + (rlim_t)daemon->config->max_sandboxes * FILES_A_BOX;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= want)
		return;
	const struct rlimit more = { want, limit.rlim_max < want
						   ? want
						   : limit.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &more) == 0)
		return;
	/* Who confines us has the last word (LimitNOFILE=): all that it lets
	 * us have. */
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	log_warn("no more than %ju files can be open: that is too few for %u "
		 "sandboxes, which take %d each (LimitNOFILE=)",
		 (uintmax_t)limit.rlim_cur, daemon->config->max_sandboxes,
		 FILES_A_BOX);
}

/* --- sockets ------------------------------------------------------------- */

/* Who had it before us is dead: we have the lock. The mode comes before the
 * name can be used by anybody: nobody listens until then. */
static int make_socket(const struct daemon *daemon)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	const char *path = daemon->options.socket;
	int fd;

	if (strlen(path) >= sizeof(name.sun_path))
		die(EXIT_SALLYPORT, "--socket %s: it is longer than %zu bytes",
		    path, sizeof(name.sun_path) - 1);
	memcpy(name.sun_path, path, strlen(path) + 1);
	unlink(path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0 ||
	    chown(path, 0, daemon->group) < 0 ||
	    chmod(path, daemon->group ? 0660 : 0600) < 0 ||
	    listen(fd, BACKLOG) < 0)
		die(EXIT_SALLYPORT, "%s: %s", path, strerror(errno));
	return fd;
}

static void serve(struct daemon *daemon)
{
	int fd = notify_listen_fd("control"), err;

	daemon->passed = fd >= 0;
	if (!daemon->group)
		log_warn("there is no group '%s': only root may use the "
			 "control socket",
			 daemon->config->group);
	err = daemon_api_open(daemon, fd < 0 ? make_socket(daemon) : fd);
	if (err)
		die(EXIT_SALLYPORT, "the control socket: %s", strerror(-err));
}

/* --- the loop ------------------------------------------------------------ */

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct signalfd_siginfo info;
	struct daemon *daemon = arg;
	struct policy_error why;

	(void)what;
	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP && !daemon->stopping) {
			daemon_reload(daemon, &why);
		} else if (info.ssi_signo != SIGHUP) {
			notify_systemd("STOPPING=1");
			daemon_stop(daemon);
		}
	}
}

static void block_signals(struct daemon *daemon)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	daemon->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	notify_systemd("WATCHDOG=1");
}

/* One sandbox a time, so that all have had their turn in STATS_S. */
static void on_stats(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	const size_t us =
		STATS_S * 1000000 / (daemon->count ? daemon->count : 1);
	const struct timeval next = { .tv_sec = (time_t)(us / 1000000),
				      .tv_usec = (suseconds_t)(us % 1000000) };
	/* As many as there are now. */
	const struct msg_keep_stats stats = { .look_s = daemon_look_s(daemon) };

	(void)fd;
	(void)what;
	if (!daemon->asked)
		daemon->asked = daemon->first;
	if (daemon->asked) {
		struct daemon_sandbox *s = daemon->asked;

		daemon->asked = s->next;
		if (s->state == SANDBOX_READY)
			keeper_tell(box_of(s)->keeper, MSG_KEEP_STATS, &stats,
				    -1);
	}
	event_add(daemon->stats, &next);
}

static void add(struct event **ret, struct daemon *daemon, int fd,
		event_callback_fn fn, uint64_t us)
{
	const struct timeval after = { .tv_sec = (time_t)(us / 1000000),
				       .tv_usec = (suseconds_t)(us % 1000000) };

	*ret = event_new(daemon->base, fd,
			 fd >= 0 || us ? EV_PERSIST | (fd < 0 ? 0 : EV_READ)
				       : 0,
			 fn, daemon);
	if (!*ret || ((fd >= 0 || us) && event_add(*ret, us ? &after : NULL)))
		die(EXIT_SALLYPORT, "event loop: out of memory");
}

static void loop(struct daemon *daemon)
{
	struct event *signals, *watchdog = NULL;
	const struct timeval first = { .tv_sec = 1 };
	uint64_t us = notify_watchdog_us();

	add(&signals, daemon, daemon->signals, on_signal, 0);
	add(&daemon->stats, daemon, -1, on_stats, 0);
	event_add(daemon->stats, &first);
	if (us)
		add(&watchdog, daemon, -1, on_watchdog, us);
	notify_systemd("READY=1");
	log_info("serving at %s", daemon->options.socket);
	event_base_dispatch(daemon->base);
	event_free(signals);
	event_free(daemon->stats);
	if (watchdog)
		event_free(watchdog);
}

static void release(struct daemon *daemon)
{
	work_close(daemon->workers);
	daemon_drop_spares(daemon);
	while (daemon->first)
		box_free(box_of(daemon->first));
	http_server_close(daemon->control);
	/* systemd's own goes on listening. */
	if (!daemon->passed)
		unlink(daemon->options.socket);
	docker_detach();
	event_free(daemon->kick);
	event_base_free(daemon->base);
	daemon_config_free(daemon->config);
	close(daemon->signals);
	close(daemon->state_dir);
	close(daemon->lock);
}

int daemon_main(int argc, char **argv)
{
	static struct daemon daemon;

	log_init("sallyport", LOG_LEVEL_WARN);
	event_memory_reserve();
	daemon_options_parse(argc, argv, &daemon.options);
	if (!session_root())
		die(EXIT_SALLYPORT,
		    "the daemon makes namespaces for many users, and is root\n"
		    "Without root there is `sallyport run`, for one command.");
	umask(0077);
	block_signals(&daemon);
	read_config(&daemon);
	lock(&daemon);
	make_dirs(&daemon);
	raise_limits(&daemon);
	find_builder();
	daemon.last = &daemon.first;
	daemon.base = event_base_new();
	if (!daemon.base)
		die(EXIT_SALLYPORT, "event loop: out of memory");
	add(&daemon.kick, &daemon, -1, daemon_on_kick, 0);
	if (work_open(daemon.base, &daemon.workers))
		die(EXIT_SALLYPORT, "event loop: out of memory");
	daemon_restore(&daemon);
	/* Without it, containers of an engine have no network; nobody else has
	 * less. */
	if (daemon.config->docker || notify_listen_fd("docker") >= 0)
		daemon.docker = docker_attach(&daemon) == 0;
	serve(&daemon);
	loop(&daemon);
	release(&daemon);
	return 0;
}
