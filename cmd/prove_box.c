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

#define FINDINGS_MAX 8

static char program_path[] = "/proc/self/fd/0";
static char inside_word[] = "prove-inside";
char *const prove_argv[] = { program_path, inside_word, NULL };

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

struct prove_task *prove_prepare(struct prove *prove, bool box, bool network)
{
	struct prove_task *task;

	make_sheet(prove);
	task = &prove->sheet->task;
	task->suite = PROVE_SUITE;
	task->box = task->alone = box;
	name_things(prove, task);
	find_allowed(prove->policy, task);
	prove_witness_open(&prove->witness, task, network);
	give_descriptors(prove);
	prove->since_ms = now_ms();
	return task;
}

int prove_settle(struct prove *prove)
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
	result = prove_settle(prove);
	tell_findings(prove, warden);
	prove_attacks(&prove->verdict, &attacks);
	if (warden_attacks(warden, &attacks))
		log_err("the receipt will not tell of the attacks");
	return status == 0 ? result : status;
}

int prove_own(struct prove *prove)
{
	const struct run_hook hook = { .ended = on_ended, .arg = prove };
	struct prove_task *task = prove_prepare(prove, true, true);

	/* Where gateway.c always puts them. */
	task->gateway = task->proxy = ip_v4(GATEWAY_LINK_BASE + 1);
	task->proxy_port = GATEWAY_PROXY_PORT;
	prove->options->argv = (char **)(uintptr_t)prove_argv;
	prove->options->quiet = true;
	prove->options->timeout_ms = PROVE_ALL_MS;
	prove->options->built = policy_ref(prove->policy);
	bounds_take(&prove->options->bounds, prove->policy,
		    &prove->options->timeout_ms);
	return run_session(prove->options, &hook);
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
	fexecve(STDIN_FILENO, prove_argv, environ);
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
	task = prove_prepare(prove, false, false);
	task->gateway = prove_ip(PROVE_RESOLVER);
	endpoint_parse(state.proxy, &task->proxy, &task->proxy_port);
	pid = fork();
	if (pid == 0)
		attack_here();
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		die(EXIT_SALLYPORT, "starting: %s", strerror(errno));
	result = prove_settle(prove);
	if (!status)
		prove_tell_session(prove, state.dir);
	return status ? EXIT_SALLYPORT : result;
}
