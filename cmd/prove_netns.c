/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_netns.c - attacks from a network namespace that is there: one of
 * anybody's, which needs root, or a sandbox of the daemon, which its owner
 * enters as `exec` does.
 *
 * Of the latter the daemon says where its log is, and takes the result: we stay
 * outside, and a child goes in.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/log_dir.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client.h"
#include "cmd/client_call.h"
#include "cmd/client_log.h"
#include "cmd/client_policy.h"
#include "cmd/command.h"
#include "cmd/command_process.h"
#include "cmd/daemon.h"
#include "cmd/log_find.h"
#include "cmd/options.h"
#include "cmd/placed.h"
#include "cmd/prove.h"
#include "cmd/run_view.h"
#include "cmd/session.h"
#include "cmd/warden.h"
#include "launch/netns.h"
#include "policy/policy.h"

/* --- anybody's ------------------------------------------------------------ */

static int open_netns(const char *name)
{
	static const char *const places[] = { "", "/run/netns/",
					      DAEMON_RUN_DIR "/netns/" };
	char path[PATH_MAX];
	struct stat st, own;

	for (size_t i = strchr(name, '/') ? 0 : 1;
	     i < (strchr(name, '/') ? 1 : ARRAY_SIZE(places)); i++) {
		snprintf(path, sizeof(path), "%s%s", places[i], name);
		AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
						    O_NOCTTY);
		if (fd < 0)
			continue;
		if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET ||
		    fstat(fd, &st) < 0 || stat("/proc/self/ns/net", &own) < 0)
			die(EXIT_SALLYPORT, "%s is no network namespace", path);
		if (st.st_ino == own.st_ino)
			die(EXIT_SALLYPORT,
			    "%s is this machine's own network\nUse --guard if "
			    "that is guarded.",
			    path);
		return steal_fd(&fd);
	}
	die(EXIT_SALLYPORT,
	    "there is no network namespace %s\nGive its path, or its name in "
	    "/run/netns or of a sandbox of the daemon.",
	    name);
}

/* What is opened there stays that namespace's. */
static int open_routes(void *arg, int *ret_fds, size_t *ret_n)
{
	(void)arg;
	ret_fds[0] = open("/proc/thread-self/net/route", O_RDONLY | O_CLOEXEC);
	*ret_n = 1;
	return ret_fds[0] < 0 ? -errno : 0;
}

static struct ip find_gateway(int ns)
{
	char line[512], name[32];
	unsigned to, via;
	int fd = -1;
	size_t n = 0;

	if (netns_enter(ns, open_routes, NULL, &fd, &n) || n != 1)
		return (struct ip){ 0 };
	AUTO_FILE FILE *f = fdopen(fd, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%31s %x %x", name, &to, &via) == 3 &&
		    to == 0 && via)
			return ip_v4(ntohl(via));
	return (struct ip){ 0 };
}

/* As `exec` does it. */
int prove_attack_in(struct prove *prove, int ns)
{
	static struct command_process command;
	static struct run_view view;
	static struct session session = { .signing = { .ephemeral = true } };
	const struct prove_task *task = &prove->sheet->task;
	struct event_base *base = event_base_new();
	int status;

	session_home(session.home, sizeof(session.home));
	run_view_user(&view, prove->options, &command.spec);
	run_view_hide(&view, DAEMON_RUN_DIR);
	run_view_hide(&view, DAEMON_STATE_DIR);
	run_view_choose(&view, prove->options, &session, &command.spec);
	command_catch(&command);
	command.spec.netns = ns;
	command.spec.argv = prove_argv;
	command_begin(&command, &task->gateway, task->proxy_port, view.home);
	command_ready(&command, true);
	if (!base)
		die(EXIT_SALLYPORT, "event loop: out of memory");
	command_attach(&command, base, PROVE_ALL_MS);
	if (process_start(&command.process))
		die(EXIT_SALLYPORT, "the sandbox did not start");
	event_base_dispatch(base);
	status = command_wait(&command);
	command_release(&command);
	event_base_free(base);
	run_view_free(&view);
	return status;
}

static int prove_foreign(struct prove *prove)
{
	AUTO_FD int ns = -1;
	struct prove_task *task;
	int status, result;

	if (!session_root())
		die(EXIT_SALLYPORT,
		    "--netns needs root, but for your own sandboxes of the "
		    "daemon");
	ns = open_netns(prove->netns);
	if (prove->watch)
		log_find(prove->watch, prove->log);
	task = prove_prepare(prove, true, true);
	task->gateway = task->proxy = find_gateway(ns);
	if (!task->gateway.len)
		task->gateway = prove_ip(PROVE_RESOLVER);
	task->proxy_port = GATEWAY_PROXY_PORT;
	status = prove_attack_in(prove, ns);
	result = prove_settle(prove);
	if (!status && prove->watch)
		prove_tell_log(prove);
	return status ? status : result;
}

/* --- the daemon's --------------------------------------------------------- */

/* @name, or its path: of what the daemon has. */
static const char *name_of(const char *netns)
{
	static const char dir[] = DAEMON_NETNS_DIR "/";

	if (strncmp(netns, dir, sizeof(dir) - 1) == 0)
		netns += sizeof(dir) - 1;
	return client_name(netns) ? netns : NULL;
}

/* What the daemon says of it; NULL: it is not the daemon's. */
static json_t *ask_daemon(const char *socket, const char *name)
{
	struct client_call call = { .socket = socket,
				    .method = "GET",
				    .name = name };
	char why[256];
	int status = 0;
	json_t *s = client_try_json(&call, &status, why, sizeof(why));

	if (status == 200)
		return s;
	json_decref(s);
	return NULL;
}

/* Attacks on what the sandbox's policy allows are none: is ours that one? */
static void compare_policy(const struct prove *prove, const json_t *s)
{
	const char *digest =
		client_text(json_object_get(s, "policy"), "digest");

	if (*digest && strcmp(digest, policy_digest(prove->policy)) != 0)
		log_warn("the policy of %s is another one than is given here: "
			 "what it allows may look as if it got out",
			 prove->netns);
}

static _Noreturn void attack_placed(struct placed *placed)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	command_catch(&placed->command);
	placed_enter(placed);
	_exit(placed_run(placed));
}

/* The record says what was run, as its user would. */
static void record(struct placed *placed)
{
	static char word[] = "sallyport", prove[] = "prove";
	static char *const said[] = { word, prove, NULL };

	placed->command.spec.argv = said;
	placed_record(placed);
	placed->command.spec.argv = prove_argv;
}

static int attack_as_owner(struct placed *placed)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		attack_placed(placed);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		die(EXIT_SALLYPORT, "starting: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SALLYPORT;
}

/* Where it is, and what it must not see. */
static void find_place(struct prove *prove, struct placed *placed,
		       const json_t *s)
{
	placed->options.user = prove->options->user;
	placed->options.quiet = true;
	placed->options.timeout_ms = PROVE_ALL_MS;
	run_view_user(&placed->view, &placed->options, &placed->command.spec);
	(void)client_policy_recall(placed->name, &placed->options.bundle);
	placed_at(placed, s);
	client_log_note(s);
	compare_policy(prove, s);
	snprintf(prove->log, sizeof(prove->log), "%.*s/" LOG_DIR_RECORDS,
		 PATH_MAX - 1, placed->session.dir);
}

static int prove_daemons(struct prove *prove, const char *socket,
			 const char *name, json_t *s)
{
	static struct placed placed = { .ns = { -1, -1 } };
	struct prove_task *task;
	int status, result;

	placed.name = name;
	placed.socket = socket;
	find_place(prove, &placed, s);
	json_decref(s);
	task = prove_prepare(prove, true, true);
	task->gateway = task->proxy = placed.gateway;
	task->proxy_port = placed.proxy_port;
	placed_choose_view(&placed);
	record(&placed);
	status = attack_as_owner(&placed);
	result = prove_settle(prove);
	if (!status)
		prove_tell_daemon(prove, socket, name);
	placed_free(&placed);
	return status ? status : result;
}

int prove_netns(struct prove *prove)
{
	const char *name = prove->watch ? NULL : name_of(prove->netns);
	const char *socket = client_socket(prove->socket);
	json_t *s = name ? ask_daemon(socket, name) : NULL;

	return s ? prove_daemons(prove, socket, name, s) : prove_foreign(prove);
}
