/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_box.c - puts the attacker where it has to be, and listens to it.
 *
 * Its program is descriptor 0, a sealed copy in memory, so that it needs no
 * place in the sandbox's files; the sheet is descriptor 1. Nothing else is
 * given to it.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "audit/log_dir.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/command_process.h"
#include "cmd/daemon.h"
#include "cmd/guard.h"
#include "cmd/log_find.h"
#include "cmd/options.h"
#include "cmd/prove.h"
#include "cmd/run.h"
#include "cmd/run_view.h"
#include "cmd/session.h"
#include "cmd/warden.h"
#include "launch/isolate.h"
#include "launch/netns.h"
#include "policy/explain.h"

/* The attacks need a few seconds. */
#define ALL_MS	       120000
#define FINDINGS_MAX   8
#define GUARD_RESOLVER "9.9.9.11" /* the guard takes questions to anybody */

static char program_path[] = "/proc/self/fd/0";
static char inside_word[] = "prove-inside";
static char *const inside_argv[] = { program_path, inside_word, NULL };

/* --- what it is given ------------------------------------------------------
 */

/* A copy of this program that nobody can write to. */
static int copy_program(void)
{
	AUTO_FD int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	AUTO_FD int to =
		memfd_create("sallyport", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char path[64];
	ssize_t n;

	if (from < 0 || to < 0)
		return -errno;
	while ((n = sendfile(to, from, NULL, 1 << 20)) > 0)
		;
	if (n < 0 ||
	    fcntl(to, F_ADD_SEALS,
		  F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	/* What is open for writing can't be executed. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
	n = open(path, O_RDONLY | O_CLOEXEC);
	return n < 0 ? -errno : (int)n;
}

static void make_sheet(struct prove *prove)
{
	AUTO_FD int fd = memfd_create("sheet", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, sizeof(*prove->sheet)) < 0)
		die(EXIT_SALLYPORT, "memory: %s", strerror(errno));
	prove->sheet = mmap(NULL, sizeof(*prove->sheet), PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);
	if (prove->sheet == MAP_FAILED)
		die(EXIT_SALLYPORT, "memory: %s", strerror(errno));
	prove->sheet_fd = steal_fd(&fd);
}

/* Our own standard output moves away. */
static void give_descriptors(struct prove *prove)
{
	AUTO_FD int program = copy_program();
	int own = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	if (program < 0)
		die(EXIT_SALLYPORT, "a copy of this program: %s",
		    strerror(-program));
	prove->out = own < 0 ? NULL : fdopen(own, "w");
	if (!prove->out || dup2(program, STDIN_FILENO) < 0 ||
	    dup2(prove->sheet_fd, STDOUT_FILENO) < 0)
		die(EXIT_SALLYPORT, "standard output: %s", strerror(errno));
}

/* The first plain name that is allowed on 443, with nothing about it that the
 * attacks could trip over. */
static void find_allowed(const struct policy *policy, struct prove_task *task)
{
	const struct rule *rule;
	char host[HOST_MAX + 1];

	for (size_t i = 0; (rule = policy_rule(policy, i)); i++) {
		const char *text = rule_text(rule);
		struct question question = { .host = host,
					     .port = 443,
					     .door = DOOR_CONNECT,
					     .now_s = time(NULL) };
		struct verdict verdict;

		if (!host_canonical(text, strcspn(text, ":"), host))
			continue;
		verdict = policy_decide(policy, &question);
		if (!verdict.allow || verdict.reason != REASON_RULE ||
		    verdict_judges_requests(&verdict) ||
		    rule_wanted(verdict.rule) == WANTED_ANY ||
		    rule_wanted(verdict.rule) == WANTED_HTTP)
			continue;
		snprintf(task->allowed, sizeof(task->allowed), "%s", host);
		return;
	}
}

static void name_things(struct prove *prove, struct prove_task *task)
{
	uint8_t random[8];
	char path[64];
	struct stat st;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		die(EXIT_SALLYPORT, "no random numbers");
	hex_format(random, sizeof(random), task->token);
	for (size_t i = 0; i < PROVE_NAMESPACES; i++) {
		snprintf(path, sizeof(path), "/proc/self/ns/%s",
			 prove_namespaces[i]);
		if (stat(path, &st) == 0)
			task->ns[i] = st.st_ino;
	}
	if (prove->options->log_dir)
		snprintf(task->secret, sizeof(task->secret), "%s",
			 prove->options->log_dir);
	else
		session_home(task->secret, sizeof(task->secret));
	task->outsider = getpid();
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static struct prove_task *prepare(struct prove *prove, bool box, bool network)
{
	struct prove_task *task;

	make_sheet(prove);
	task = &prove->sheet->task;
	task->suite = PROVE_SUITE;
	task->box = box;
	name_things(prove, task);
	find_allowed(prove->policy, task);
	prove_witness_open(&prove->witness, task, network);
	give_descriptors(prove);
	prove->since_ms = now_ms();
	return task;
}

/* 0, 1 if something got out, or EXIT_SALLYPORT. */
static int judge(struct prove *prove)
{
	char heard[120];
	const struct prove_evidence evidence = {
		.log = *prove->log ? prove->log : NULL,
		.since_ms = prove->since_ms,
		.policy = prove->policy,
		.heard = prove_witness_heard(&prove->witness,
					     &prove->sheet->task, heard,
					     sizeof(heard))
				 ? heard
				 : NULL,
	};

	prove_judge(prove->sheet, &evidence, &prove->verdict);
	prove_witness_close(&prove->witness);
	if (prove->verdict.count[ATTACK_GOT_OUT])
		return 1;
	if (prove->sheet->done)
		return 0;
	log_err("the attacks did not come to their end");
	return EXIT_SALLYPORT;
}

/* --- a session of our own ---------------------------------------------------
 */

/* Who reads the log shall not have to look for it in the receipt. */
static void tell_findings(struct prove *prove, struct warden *warden)
{
	unsigned told = 0;
	char text[400];

	for (size_t i = 0; i < prove->verdict.n && told < FINDINGS_MAX; i++) {
		const struct prove_judged *j = &prove->verdict.at[i];

		if (j->result != ATTACK_GOT_OUT)
			continue;
		told++;
		snprintf(text, sizeof(text), "the attack %s got out: %s",
			 prove_judged_attack(i)->id, j->detail);
		warden_finding(warden, text);
	}
}

static int on_ended(void *arg, struct warden *warden, int status)
{
	struct prove *prove = arg;
	struct attacks attacks;
	int result;

	snprintf(prove->log, sizeof(prove->log), "%s", warden->session->log);
	snprintf(prove->receipt, sizeof(prove->receipt), "%s/" LOG_DIR_RECEIPT,
		 warden->session->dir);
	result = judge(prove);
	tell_findings(prove, warden);
	prove_attacks(&prove->verdict, &attacks);
	if (warden_attacks(warden, &attacks))
		log_err("the receipt will not tell of the attacks");
	return status == 0 ? result : status;
}

int prove_own(struct prove *prove)
{
	const struct run_hook hook = { .ended = on_ended, .arg = prove };
	struct prove_task *task = prepare(prove, true, true);

	/* Where gateway.c always puts them. */
	task->gateway = task->proxy = ip_v4(GATEWAY_LINK_BASE + 1);
	task->proxy_port = GATEWAY_PROXY_PORT;
	prove->options->argv = (char **)(uintptr_t)inside_argv;
	prove->options->quiet = true;
	prove->options->timeout_ms = ALL_MS;
	prove->options->built = policy_ref(prove->policy);
	bounds_take(&prove->options->bounds, prove->policy,
		    &prove->options->timeout_ms);
	return run_session(prove->options, &hook);
}

/* --- a namespace that is there ----------------------------------------------
 */

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
static int attack_in(struct prove *prove, int ns)
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
	command.spec.argv = inside_argv;
	command_begin(&command, &task->gateway, task->proxy_port, view.home);
	command_ready(&command, true);
	if (!base)
		die(EXIT_SALLYPORT, "event loop: out of memory");
	command_attach(&command, base, ALL_MS);
	if (process_start(&command.process))
		die(EXIT_SALLYPORT, "the sandbox did not start");
	event_base_dispatch(base);
	status = command_wait(&command);
	command_release(&command);
	event_base_free(base);
	run_view_free(&view);
	return status;
}

int prove_netns(struct prove *prove)
{
	AUTO_FD int ns = -1;
	struct prove_task *task;
	int status, result;

	if (!session_root())
		die(EXIT_SALLYPORT, "--netns needs root");
	ns = open_netns(prove->netns);
	if (prove->watch)
		log_find(prove->watch, prove->log);
	task = prepare(prove, true, true);
	task->gateway = task->proxy = find_gateway(ns);
	if (!task->gateway.len)
		task->gateway = prove_ip(GUARD_RESOLVER);
	task->proxy_port = GATEWAY_PROXY_PORT;
	status = attack_in(prove, ns);
	result = judge(prove);
	return status ? status : result;
}

/* --- a machine with a guard --------------------------------------------------
 */

/* Somebody ordinary. */
static _Noreturn void attack_here(void)
{
	uid_t uid = ISOLATE_UID_SANDBOX;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
	    (setresuid(uid, uid, uid) < 0 &&
	     setresuid(65534, 65534, 65534) < 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || chdir("/") < 0)
		_exit(EXIT_SALLYPORT);
	fexecve(STDIN_FILENO, inside_argv, environ);
	_exit(EXIT_SALLYPORT);
}

int prove_guarded(struct prove *prove)
{
	static struct guard_state state;
	struct prove_task *task;
	int status = 0, result;
	pid_t pid;

	if (geteuid() != 0)
		die(EXIT_SALLYPORT, "--guard needs root");
	if (guard_state_read(&state))
		die(EXIT_SALLYPORT, "no guard is up: see `sallyport guard up`");
	snprintf(prove->log, sizeof(prove->log), "%.*s/" LOG_DIR_RECORDS,
		 PATH_MAX - 1, state.dir);
	task = prepare(prove, false, false);
	task->gateway = prove_ip(GUARD_RESOLVER);
	endpoint_parse(state.proxy, &task->proxy, &task->proxy_port);
	pid = fork();
	if (pid == 0)
		attack_here();
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		die(EXIT_SALLYPORT, "starting: %s", strerror(errno));
	result = judge(prove);
	return status ? EXIT_SALLYPORT : result;
}
