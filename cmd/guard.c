/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.c - `sallyport guard up|down|status`: the gate for a network namespace
 * that is there already, such as a container's.
 */
#include "cmd/guard.h"

#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/control.h"
#include "cmd/session_log.h"
#include "firewall/ruleset.h"

#define EXIT_NOT_UP 1

#define STATUS_MS 3000
#define END_MS	  20000

static const char help_text[] =
	"usage: sallyport guard up [OPTION]...\n"
	"       sallyport guard down\n"
	"       sallyport guard status [--json]\n\n"
	"For a network namespace that is there already, such as a container's: "
	"the gate,\nits policy and its log as under `run`, and rules that let "
	"only the gate out.\nWeaker than `run`: root in here can take them away, "
	"which is recorded.\n\n"
	"  up      loads the rules, reads them back, starts the gate and "
	"returns\n"
	"  down    ends the gate and takes the rules away\n"
	"  status  are the rules as loaded, does the gate serve, where is the "
	"log?\n\n"
	"All need root (CAP_NET_ADMIN). Without its process the rules remain: "
	"nothing\nleaves. `sallyport reload` reads the policy again.\n\n"
	"Exit status: 0; of status, 1 if it is not up, or not as it should be; "
	"125 if\nsallyport failed.\n";

static struct nft *open_rules(void)
{
	struct nft *nft;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	int err = fd < 0 ? -errno : nft_open(fd, &nft);

	if (err)
		die(EXIT_SALLYPORT, "netlink: %s", strerror(-err));
	return nft;
}

static bool is_root(void)
{
	return geteuid() == 0;
}

/* --- down ---------------------------------------------------------------- */

/* Whether it has ended. */
static bool await_end(int pidfd, int sig)
{
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	(void)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
	return poll(&ended, 1, END_MS) > 0;
}

/* Who has the lock is the process that the state names, and no other one that
 * has got its number since. Returns the lock. */
static int end_process(void)
{
	struct guard_state state;
	int lock = guard_lock();

	if (lock >= 0)
		return lock;
	if (lock != -EWOULDBLOCK)
		die(EXIT_SALLYPORT, "the guard's lock: %s", strerror(-lock));
	if (guard_state_read(&state))
		die(EXIT_SALLYPORT, "a guard is just being started");
	AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, state.pid, 0);
	if (pidfd >= 0 && !await_end(pidfd, SIGTERM)) {
		log_warn("the guard did not end in time; killed");
		await_end(pidfd, SIGKILL);
	}
	lock = guard_lock();
	if (lock < 0)
		die(EXIT_SALLYPORT,
		    "the guard (process %d) does not end: its rules stay",
		    (int)state.pid);
	return lock;
}

static int down(void)
{
	AUTO_FD int lock = -1;
	bool any = false;
	int err;

	if (!is_root())
		die(EXIT_SALLYPORT, "`sallyport guard down` needs root");
	lock = end_process();
	struct nft *nft = open_rules();
	err = guard_remove(nft, &any);
	nft_close(nft);
	if (err)
		die(EXIT_SALLYPORT, "taking the rules away: %s",
		    strerror(-err));
	guard_state_forget();
	fprintf(stderr, "sallyport: %s\n",
		any ? "the guard is down: everything may leave again"
		    : "no guard was up");
	return 0;
}

/* --- status -------------------------------------------------------------- */

struct status {
	struct guard_state state;
	bool known;	     /* there is a state */
	bool loaded;	     /* the rules are as loaded */
	bool serving;	     /* and somebody answers */
	char separation[16]; /* of its processes, if it serves */
	char differs[512];
};

static void look_at_rules(struct status *s)
{
	struct nft *nft;
	int err;

	if (!s->known) {
		snprintf(s->differs, sizeof(s->differs), "no guard is up");
		return;
	}
	nft = open_rules();
	guard_use(nft);
	err = guard_find_devices(&s->state.spec);
	if (!err)
		err = guard_verify(nft, &s->state.spec, NULL, s->differs,
				   sizeof(s->differs));
	else
		snprintf(s->differs, sizeof(s->differs), "interfaces: %s",
			 strerror(-err));
	nft_close(nft);
	s->loaded = err == 0;
}

/* The value of @key in a reply of lines; without one @to stays. */
static void take_line(const char *reply, const char *key, char *to, size_t cap)
{
	const size_t len = strlen(key);

	for (const char *at = strchr(reply, '\n'); at; at = strchr(at, '\n')) {
		at++;
		if (strncmp(at, key, len) == 0 && at[len] == ' ')
			snprintf(to, cap, "%.*s",
				 (int)strcspn(at + len + 1, "\n"),
				 at + len + 1);
	}
}

static void look_at_process(struct status *s)
{
	char reply[CONTROL_REPLY_MAX];
	AUTO_FD int lock = guard_lock();

	s->serving =
		s->known && lock == -EWOULDBLOCK &&
		control_ask(s->state.dir, "status", STATUS_MS, reply) == 0 &&
		strncmp(reply, "ok\n", 3) == 0;
	if (!s->serving)
		return;
	/* What is in force by now. */
	take_line(reply, "policy", s->state.policy, sizeof(s->state.policy));
	take_line(reply, "separation", s->separation, sizeof(s->separation));
}

static void print_json(const struct status *s)
{
	char buf[PATH_MAX * 8];
	struct json j = json_of(buf, sizeof(buf));
	char log[PATH_MAX + 32];

	snprintf(log, sizeof(log), "%s/" LOG_DIR_RECORDS, s->state.dir);
	json_open(&j, NULL, '{');
	json_bool(&j, "up", s->loaded && s->serving);
	json_bool(&j, "rules", s->loaded);
	if (!s->loaded)
		json_text(&j, "rules_differ", s->differs);
	json_bool(&j, "serving", s->serving);
	if (s->known) {
		json_int(&j, "pid", s->state.pid);
		json_text(&j, "session", s->state.session);
		json_text(&j, "log", log);
		json_text(&j, "policy", s->state.policy);
		json_text(&j, "proxy", s->state.proxy);
		json_text(&j, "ruleset", s->state.ruleset);
		json_bool(&j, "packet_sockets_met", s->state.spec.egress);
		json_text(&j, "boundary", "in-container");
		if (s->serving)
			json_text(&j, "separation", s->separation);
	}
	json_close(&j, '}');
	printf("%.*s\n", (int)j.len, buf);
}

static void print(const struct status *s)
{
	if (!s->known) {
		puts("no guard is up");
		return;
	}
	if (s->loaded)
		printf("rules    as loaded, sha256:%s\n", s->state.ruleset);
	else
		printf("rules    NOT as loaded: %s\n", s->differs);
	if (s->serving)
		printf("gate     serves; separation %s\n", s->separation);
	else
		puts("gate     is away: nothing leaves");
	printf("session  %s\n", s->state.session);
	printf("policy   %s\n", s->state.policy);
	printf("proxy    http://%s\n", s->state.proxy);
	printf("log      %s/" LOG_DIR_RECORDS "\n", s->state.dir);
}

static int status(bool json)
{
	static struct status s;
	int err;

	if (!is_root())
		die(EXIT_SALLYPORT, "`sallyport guard status` needs root");
	err = guard_state_read(&s.state);
	if (err && err != -ENOENT)
		die(EXIT_SALLYPORT, "the guard's state: %s", strerror(-err));
	s.known = !err;
	look_at_rules(&s);
	look_at_process(&s);
	if (json)
		print_json(&s);
	else
		print(&s);
	return s.loaded && s.serving ? 0 : EXIT_NOT_UP;
}

/* --- */

static _Noreturn void bad(const char *what, const char *arg)
{
	die(EXIT_SALLYPORT, "%s%s%s\nTry `sallyport guard --help`.", what,
	    arg ? " " : "", arg ? arg : "");
}

int guard_main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	const char *option = argc > 2 ? argv[2] : "";
	bool json = false;

	log_init("sallyport", LOG_LEVEL_WARN);
	if (strcmp(verb, "up") == 0)
		return guard_up(argc - 1, argv + 1);
	if (strcmp(verb, "--help") == 0 || strcmp(option, "--help") == 0) {
		fputs(help_text, stdout);
		return 0;
	}
	if (strcmp(verb, "status") == 0 && strcmp(option, "--json") == 0)
		json = true;
	else if (*option)
		bad("what is", option);
	if (argc > 3)
		bad("what is", argv[3]);
	if (strcmp(verb, "down") == 0)
		return down();
	if (strcmp(verb, "status") == 0)
		return status(json);
	bad("say up, down or status", NULL);
}
