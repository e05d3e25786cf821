/* SPDX-License-Identifier: Apache-2.0
 *
 * test_process.c - real commands in real sandboxes, as root and as an ordinary
 * user: what they see, what they can't, and how they end. This program is also
 * the attacker: a copy of it in the working directory is run as `probe WHAT`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

#include "base/cleanup.h"
#include "launch/isolate.h"
#include "launch/netns.h"
#include "launch/process.h"
#include "tests/launch/actor.h"

#define SANDBOX_UID (ISOLATE_UID_SANDBOX + 7)

/* A directory for each of the two, with this in it: probe, hidden/secret, a
 * listening socket, a file of another owner. */
static char root_dir[] = "/root/sallyport-test-XXXXXX";
static char user_dir[] = "/var/tmp/sallyport-test-XXXXXX";
static char host_dir[] = "/opt/sallyport-test-XXXXXX"; /* visible, read-only */

enum how { WAIT, NO_START, TERMINATE, TERMINATE_EARLY, KILL };

struct order {
	const char *script; /* for sh -c, or NULL: argv */
	char *argv[4];
	enum how how;
	bool plain_root; /* as root with --user 12345 */
	const char *cwd, *home;
	const char *also_hide;
	bool print_note;
	char dir[64];
};

static const char *home_of(enum actor who)
{
	return who == ROOT ? "/root" : host_dir;
}

/* Kept by the probe while the sandbox runs. */
static int print_result(const char *name, long r)
{
	printf("%s=%d\n", name, r < 0 ? errno : 0);
	return 0;
}

static int try_connect(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	return connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static void probe_calls(void)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	print_result("ptrace", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
	print_result("traceme", ptrace(PTRACE_TRACEME, 0, 0, 0));
	print_result("vmread", process_vm_readv(1, &iov, 1, &iov, 1, 0));
	print_result("getfd", syscall(SYS_pidfd_getfd, 0, 0, 0));
	print_result("tiocsti", ioctl(0, TIOCSTI, "x"));
	print_result("tiocsti-high",
		     syscall(SYS_ioctl, 0, 0x100000000ul | TIOCSTI, "x"));
	print_result("tioclinux", ioctl(0, TIOCLINUX, "\3"));
	print_result("keyctl", syscall(SYS_keyctl, 0, -3, 0, 0, 0));
	print_result("bpf", syscall(SYS_bpf, 0, &iov, 8));
	print_result("unshare-user", unshare(CLONE_NEWUSER));
	print_result("unshare-net", unshare(CLONE_NEWUSER | CLONE_NEWNET));
	print_result("clone-user",
		     syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
	print_result("clone3", syscall(SYS_clone3, &iov, 64));
	print_result("setns", setns(0, 0));
	print_result("packet", socket(AF_PACKET, SOCK_RAW, 0));
	print_result("raw", socket(AF_INET, SOCK_RAW, 1));
	print_result("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
	print_result("iouring", syscall(SYS_io_uring_setup, 1, &iov));
	print_result("mem", open("/proc/1/mem", O_RDWR));
	print_result("mark", setsockopt(socket(AF_INET, SOCK_STREAM, 0),
					SOL_SOCKET, SO_MARK, &(int){ 1 }, 4));
	print_result("create", open("new-suid", O_CREAT | O_WRONLY, 04755));
	print_result("create-plain", open("new", O_CREAT | O_WRONLY, 0755));
	print_result("suid", chmod("new", 04755));
	print_result("fchmodat2", syscall(452, AT_FDCWD, "new", 02755, 0));
	print_result("chmod", chmod("new", 0700));
}

static int probe(int argc, char **argv)
{
	if (argc > 3 && strcmp(argv[2], "connect") == 0)
		return print_result("connect", try_connect(argv[3]));
	if (argc > 4 && strcmp(argv[2], "rename") == 0)
		return print_result("rename", rename(argv[3], argv[4]));
	if (argc > 2 && strcmp(argv[2], "fds") == 0) {
		for (int fd = 0; fd < 1024; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				printf("fd%d ", fd);
		puts("");
		return 0;
	}
	probe_calls();
	return 0;
}

static void spec_for(enum actor who, const struct order *order, int netns,
		     struct process_spec *spec)
{
	*spec = (struct process_spec){
		.netns = netns,
		.uid = who == USER || order->plain_root ? ACTOR_UID
							: SANDBOX_UID,
		.gid = who == USER || order->plain_root ? ACTOR_UID
							: SANDBOX_UID,
		.as_root = who == ROOT,
		.synthetic = who == ROOT && !order->plain_root,
		.cwd = order->cwd ? order->cwd : order->dir,
		.resolv_conf = "nameserver 192.0.2.53\n",
	};
}

static int finish(struct process *process, enum how how)
{
	struct pollfd p = { .fd = process->pidfd, .events = POLLIN };
	int error = 0;

	if (how == NO_START)
		close_fd(&process->start_fd);
	else if (process_start(process) < 0)
		return 90;
	if (how == TERMINATE || how == KILL)
		poll(NULL, 0, 400);
	if (how == TERMINATE || how == TERMINATE_EARLY)
		process_signal(process, SIGTERM);
	if (how == KILL)
		process_kill(process);
	if (poll(&p, 1, 30000) != 1)
		return 91;
	if (read(process->error_fd, &error, sizeof(error)) == sizeof(error))
		printf("error=%d\n", error);
	fflush(stdout);
	return process_wait(process);
}

static enum actor acting;

static int run_order(void *arg)
{
	struct order *order = arg;
	char *sh[] = { (char[]){ "sh" }, (char[]){ "-c" },
		       (char *)order->script, NULL };
	char hidden[128], why[512] = "";
	const char *hide[] = { hidden, "/nonexistent/x", order->also_hide };
	struct process_spec spec;
	struct process process;
	struct netns ns;
	int r;

	r = netns_create(&ns, NULL, NULL, NULL, NULL);
	if (r < 0) {
		printf("netns: %s\n", strerror(-r));
		return 89;
	}
	spec_for(acting, order, ns.fd, &spec);
	snprintf(hidden, sizeof(hidden), "%s/deep/er/hidden", order->dir);
	spec.hide = hide;
	spec.hides = order->also_hide ? 3 : 2;
	spec.argv = order->script ? sh : order->argv;
	setenv("SSH_AUTH_SOCK", "/x", 1);
	setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", 1);
	spec.env = process_env(environ, "http://192.0.2.1:3128",
			       order->home ? order->home : home_of(acting));
	if (open("/etc/passwd", O_RDONLY) < 0 || dup2(2, 77) < 0)
		return 88;
	r = process_prepare(&spec, &process, why, sizeof(why));
	if (r < 0) {
		printf("prepare: %d %s\n", r, why);
		return 87;
	}
	if (order->print_note)
		printf("note: %s\n", process.note);
	fflush(stdout);
	r = finish(&process, order->how);
	process_env_free((char **)spec.env);
	netns_close(&ns);
	return r;
}

static struct outcome run(enum actor who, struct order order)
{
	snprintf(order.dir, sizeof(order.dir), "%s",
		 who == ROOT && !order.plain_root ? root_dir : user_dir);
	acting = who;
	return actor_run(who, run_order, &order);
}

static void expect(struct outcome out, int status, const char *text)
{
	if (out.status != status || (text && !strstr(out.text, text)))
		print_message("status %d, wanted %d and <%s>; said:\n%s\n",
			      out.status, status, text ? text : "", out.text);
	assert_int_equal(out.status, status);
	if (text)
		assert_non_null(strstr(out.text, text));
}

#define BOTH(who) for (enum actor who = ROOT; who <= USER; who++)
#define SH(...)	  ((struct order){ .script = __VA_ARGS__ })

static void test_exit_statuses(void **state)
{
	static const struct {
		const char *script;
		int status;
	} row[] = { { "exit 0", 0 },
		    { "exit 3", 3 },
		    { "exit 255", 255 },
		    { "kill -9 $$", 137 },
		    { "kill -TERM $$", 143 },
		    { "(sleep 0.1; kill -9 $PPID) & exit 4", 4 } };

	(void)state;
	BOTH(who)
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		expect(run(who, SH(row[i].script)), row[i].status, NULL);
}

static void test_failed_exec(void **state)
{
	(void)state;
	BOTH(who)
	{
		struct order order = { .argv = { (char[]){ "no-such-cmd" } } };

		expect(run(who, order), 127,
		       "sallyport: no-such-cmd: command not found\n");
		expect(run(who, order), 127, "error=2\n");
		order.argv[0] = (char[]){ "/etc/passwd" };
		expect(run(who, order), 126,
		       "sallyport: /etc/passwd: permission denied\n");
		order.argv[0] = (char[]){ "/usr" };
		expect(run(who, order), 126, "error=13\n");
	}
}

static void test_identity(void **state)
{
	(void)state;
	expect(run(USER, SH("id -u; id -g")), 0, "12345\n12345\n");
	expect(run(ROOT, SH("id -u; id -g; whoami; echo $HOME; echo ~sandbox")),
	       0, "1900010007\n1900010007\nsandbox\n/root\n/root\n");
	struct order order = SH("id -u; id -G; touch x && echo wrote");

	order.plain_root = true;
	order.home = host_dir;
	expect(run(ROOT, order), 0, "12345\n12345\nwrote\n");
}

static void test_no_power(void **state)
{
	static const char *const lines[] = {
		"CapInh:\t0000000000000000",
		"CapPrm:\t0000000000000000",
		"CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000",
		"CapAmb:\t0000000000000000",
		"NoNewPrivs:\t1",
		"Seccomp:\t2",
	};

	(void)state;
	BOTH(who)
	{
		struct outcome out = run(who, SH("cat /proc/self/status"));

		for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
			expect(out, 0, lines[i]);
		expect(run(who, SH("./probe probe fds")), 0, "fd0 fd1 fd2 \n");
	}
}

static void test_forbidden_calls(void **state)
{
	static const char *const lines[] = {
		"ptrace=1\n",	    "traceme=1\n",     "vmread=1\n",
		"getfd=1\n",	    "tiocsti=1\n",     "tiocsti-high=1\n",
		"tioclinux=1\n",    "keyctl=1\n",      "bpf=1\n",
		"unshare-user=1\n", "unshare-net=1\n", "clone-user=1\n",
		"clone3=38\n",	    "setns=1\n",       "packet=1\n",
		"raw=1\n",	    "vsock=97\n",      "iouring=38\n",
		"mem=13\n",	    "mark=1\n",	       "\ncreate=1\n",
		"suid=1\n",	    "fchmodat2=1\n",   "\nchmod=0\n",
		"create-plain=0\n",
	};

	(void)state;
	BOTH(who)
	{
		struct outcome out = run(who, SH("./probe probe; rm -f new"));

		for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
			expect(out, 0, lines[i]);
	}
}

static void test_alone_in_its_pid_namespace(void **state)
{
	struct outcome out;

	(void)state;
	BOTH(who)
	{
		out = run(who, SH("ls -d /proc/[0-9]* | wc -l; kill -0 1; "
				  "echo $$; cat /proc/1/environ; "
				  "ls -l /proc/1/fd"));
		expect(out, 2, "2\n");
		expect(out, 2, "cat: /proc/1/environ: Permission denied");
		/* Its pid 1 can't be stopped or killed from inside. */
		expect(run(who, SH("kill -9 1; kill -STOP 1; exit 5")), 5,
		       NULL);
	}
}

static void test_files(void **state)
{
	static const char script[] =
		"ls -A /run; ls -A /tmp /var/tmp; echo --;"
		"touch /tmp/a /var/tmp/b /dev/shm/c && echo tmp-writable;"
		"for d in /etc /usr /bin /var/lib /opt /; do "
		"touch $d/x 2>/dev/null && echo BAD $d; done;"
		"cat /etc/resolv.conf; pwd;"
		"touch here && echo cwd-writable; ls -ln here; rm here;"
		"mount -o remount,rw / 2>/dev/null && echo BAD mount;"
		"cat /dev/vda /dev/mem /dev/kmsg 2>/dev/null | head -c 1;"
		"ls /dev | tr '\\n' ' '";

	(void)state;
	BOTH(who)
	{
		struct outcome out = run(who, SH(script));

		expect(out, 0, ".sallyport\n");
		expect(out, 0, "tmp-writable");
		expect(out, 0, "cwd-writable");
		expect(out, 0, "nameserver 192.0.2.53\n");
		expect(out, 0, who == ROOT ? root_dir : user_dir);
		expect(out, 0,
		       who == ROOT ? "1900010007 1900010007" : "12345 12345");
		expect(out, 0, "core fd full null ptmx pts random shm");
		assert_null(strstr(out.text, "BAD"));
		assert_null(strstr(out.text, "netns"));
		assert_null(strstr(out.text, "sp-host-tmp"));
	}
}

/* What it made belongs, outside, to the owner of the directory. */
static void test_files_outside(void **state)
{
	char path[96];
	struct stat st;

	(void)state;
	expect(run(ROOT, SH("echo hi > made; cat theirs")), 1, "theirs:");
	snprintf(path, sizeof(path), "%s/made", root_dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	unlink(path);
	expect(run(USER, SH("echo hi > made")), 0, NULL);
	snprintf(path, sizeof(path), "%s/made", user_dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, ACTOR_UID);
	unlink(path);
}

static void test_hidden(void **state)
{
	static const char script[] =
		"cat deep/er/hidden/secret; ls -A deep/er/hidden;"
		"echo x > deep/er/hidden/new;"
		"mv deep moved; mv deep/er deep/moved;"
		"mv deep/er/hidden deep/er/gone; rm -rf deep/er/hidden;"
		"umount deep/er/hidden; touch deep/er/beside && echo beside;"
		"rm deep/er/beside; cat deep/er/file; cat \"$0\" ";
	char file[96], path[128];
	struct stat st;

	(void)state;
	BOTH(who)
	{
		const char *dir = who == ROOT ? root_dir : user_dir;
		struct order order = SH(script);
		struct outcome out;

		snprintf(file, sizeof(file), "%s/deep/er/file", dir);
		order.also_hide = file;
		out = run(who, order);
		assert_null(strstr(out.text, "TOP SECRET"));
		assert_null(strstr(out.text, "FILE SECRET"));
		assert_non_null(strstr(out.text, "beside\n"));
		snprintf(path, sizeof(path), "%s/deep/er/hidden/secret", dir);
		assert_int_equal(stat(path, &st), 0);
		snprintf(path, sizeof(path), "%s/deep/er/hidden/new", dir);
		assert_true(stat(path, &st) < 0);
	}
}

static void test_hidden_above(void **state)
{
	struct order order = SH("true");

	(void)state;
	order.also_hide = "/var/tmp";
	order.plain_root = true;
	expect(run(ROOT, order), 87, "must stay hidden");
}

static void test_host_sockets(void **state)
{
	char script[512];

	(void)state;
	BOTH(who)
	{
		snprintf(script, sizeof(script),
			 "./probe probe connect %s/sock;"
			 "./probe probe connect %s/agent/sock; "
			 "ls -A %s/agent; ./probe probe connect ./sock",
			 host_dir, host_dir, host_dir);
		struct outcome out = run(who, SH(script));

		expect(out, 0, "connect=");
		assert_null(strstr(out.text, "connect=0"));
		assert_null(strstr(out.text, "other-file"));
	}
	/* The sockets are there, and would take anybody. */
	snprintf(script, sizeof(script), "%s/sock", host_dir);
	assert_int_equal(try_connect(script), 0);
}

static void test_system_cwd(void **state)
{
	static const struct {
		const char *cwd, *script, *text, *note;
	} row[] = {
		{ "/", "pwd; touch x || echo ro", "/\n", "read-only" },
		{ "/etc", "pwd; touch x || echo ro", "ro\n", "read-only" },
		{ "/usr/lib", "pwd; touch x || echo ro", "ro\n", "read-only" },
		{ "/tmp", "pwd; ls -A | wc -l", "/tmp\n0\n", "private" },
		{ "/run", "pwd", "/run\n", "private" },
		{ "/proc/self", "pwd", "/\n", "not visible" },
		{ "/dev/shm", "pwd", "/\n", "not visible" },
	};

	(void)state;
	BOTH(who)
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct order order = SH(row[i].script);
		struct outcome out;

		order.cwd = row[i].cwd;
		order.print_note = true;
		out = run(who, order);
		expect(out, 0, row[i].text);
		expect(out, 0, row[i].note);
	}
	struct order order = SH("pwd; ls -A; touch x && echo wrote");
	char closed[96];

	order.cwd = "/root";
	order.print_note = true;
	expect(run(ROOT, order), 0, "private");
	expect(run(ROOT, order), 0, "wrote");
	/* Behind a directory that its uid can't enter. */
	snprintf(closed, sizeof(closed), "%s/closed/work", host_dir);
	order = SH("pwd; touch x && echo wrote; rm x; ls -A ..");
	order.cwd = closed;
	expect(run(ROOT, order), 0, "/closed/work\nwrote\nwork\n");
	order.cwd = "/nonexistent";
	expect(run(ROOT, order), 87, "No such file");
	order.cwd = root_dir;
	order.plain_root = true;
	order.home = "/opt";
	expect(run(ROOT, order), 87, "can't enter");
}

static void test_signals(void **state)
{
	struct order order;

	(void)state;
	BOTH(who)
	{
		order = SH("trap 'echo got it; exit 9' TERM; echo up; "
			   "while :; do sleep 0.05; done");
		order.how = TERMINATE;
		expect(run(who, order), 9, "got it");
		order = SH("sleep 50");
		order.how = TERMINATE;
		expect(run(who, order), 143, NULL);
		/* Pid 1 is still bubblewrap's code, which takes no signal. */
		order.how = TERMINATE_EARLY;
		expect(run(who, order), 143, NULL);
		order = SH("trap '' TERM; sleep 50");
		order.how = KILL;
		expect(run(who, order), 137, NULL);
	}
}

/* An orphan of the command does not outlive it. */
static void test_orphans(void **state)
{
	struct outcome out;

	(void)state;
	BOTH(who)
	{
		struct timespec a, b;

		clock_gettime(CLOCK_MONOTONIC, &a);
		out = run(who, SH("(setsid sleep 30 &) ; (trap '' TERM HUP; "
				  "sleep 31) & exit 6"));
		clock_gettime(CLOCK_MONOTONIC, &b);
		expect(out, 6, NULL);
		assert_true(b.tv_sec - a.tv_sec < 10);
	}
}

static void test_start_gate(void **state)
{
	(void)state;
	BOTH(who)
	{
		struct order order = SH("echo it ran");
		struct outcome out;

		order.how = NO_START;
		out = run(who, order);
		expect(out, 125, NULL);
		assert_null(strstr(out.text, "it ran"));
	}
}

/* Prepares, waits, prints the pids and is killed. */
static int prepare_and_die(void *arg)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
			 (char[]){ "echo it ran; touch it-ran; sleep 20" },
			 NULL };
	struct order *order = arg;
	struct process_spec spec;
	struct process process;
	struct netns ns;
	char why[512];

	if (netns_create(&ns, NULL, NULL, NULL, NULL) < 0)
		return 89;
	spec_for(acting, order, ns.fd, &spec);
	spec.argv = argv;
	spec.env = environ;
	if (process_prepare(&spec, &process, why, sizeof(why)) < 0)
		return 87;
	poll(NULL, 0, 500);
	printf("%d\n", process.pid);
	fflush(stdout);
	raise(SIGKILL);
	return 86;
}

static void test_our_death_before_start(void **state)
{
	(void)state;
	BOTH(who)
	{
		struct order order = { 0 };
		struct outcome out;
		char path[96];
		struct stat st;
		pid_t pid;

		snprintf(order.dir, sizeof(order.dir), "%s",
			 who == ROOT ? root_dir : user_dir);
		acting = who;
		/* Its output ends only when all of them are gone. */
		out = actor_run(who, prepare_and_die, &order);
		assert_int_equal(out.status, 1000 + SIGKILL);
		pid = (pid_t)strtol(out.text, NULL, 10);
		assert_true(pid > 1);
		assert_null(strstr(out.text, "it ran"));
		snprintf(path, sizeof(path), "%s/it-ran", order.dir);
		assert_true(stat(path, &st) < 0);
	}
}

/* For interactive.py: `interactive root|user CMD...` on the terminal we have.
 */
static int interactive(int argc, char **argv)
{
	bool user = argc > 2 && strcmp(argv[2], "user") == 0;
	struct pollfd p = { .events = POLLIN };
	struct process_spec spec;
	struct process process;
	char why[512] = "";
	struct netns ns;

	actor_become(user ? USER : ROOT);
	if (netns_create(&ns, NULL, NULL, NULL, NULL) < 0)
		return 89;
	spec_for(user ? USER : ROOT, &(struct order){ .cwd = "/" }, ns.fd,
		 &spec);
	spec.argv = argv + 3;
	spec.env = environ;
	spec.interactive = true;
	if (process_prepare(&spec, &process, why, sizeof(why)) < 0) {
		fprintf(stderr, "%s\n", why);
		return 87;
	}
	if (process_start(&process) < 0)
		return 90;
	p.fd = process.pidfd;
	if (poll(&p, 1, 60000) != 1)
		return 91;
	return process_wait(&process);
}

static void test_lookup(void **state)
{
	(void)state;
	assert_int_equal(process_lookup("sh", "/usr/bin:/bin"), 0);
	assert_int_equal(process_lookup("/bin/sh", NULL), 0);
	assert_int_equal(process_lookup("no-such", "/usr/bin:/bin"), 127);
	assert_int_equal(process_lookup("/etc/passwd", NULL), 126);
	assert_int_equal(process_lookup("passwd", "/etc"), 126);
	assert_int_equal(process_lookup("/etc", NULL), 126);
	assert_int_equal(process_lookup("", "/bin"), 127);
}

static void make_file(const char *dir, const char *name, const char *text,
		      mode_t mode)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	fchmod(fd, mode);
	close(fd);
}

static void make_dir(const char *dir, const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int make_socket(const char *dir, const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/%s", dir, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 50), 0);
	assert_int_equal(chmod(at.sun_path, 0777), 0);
	return fd;
}

static void populate(const char *dir)
{
	char command[256];

	make_dir(dir, "deep");
	make_dir(dir, "deep/er");
	make_dir(dir, "deep/er/hidden");
	make_file(dir, "deep/er/hidden/secret", "TOP SECRET\n", 0644);
	make_file(dir, "deep/er/file", "FILE SECRET\n", 0644);
	make_file(dir, "theirs", "x\n", 0600);
	make_socket(dir, "sock");
	snprintf(command, sizeof(command), "%s/theirs", dir);
	assert_int_equal(chown(command, 54321, 54321), 0);
}

static int shell(const char *command)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(99);
	}
	waitpid(pid, &status, 0);
	return status;
}

static int setup(void **state)
{
	char command[512];

	(void)state;
	assert_non_null(mkdtemp(root_dir));
	assert_non_null(mkdtemp(user_dir));
	assert_non_null(mkdtemp(host_dir));
	chmod(host_dir, 0755);
	populate(root_dir);
	populate(user_dir);
	make_dir(host_dir, "agent");
	make_file(host_dir, "agent/other-file", "x", 0644);
	make_dir(host_dir, "closed");
	make_dir(host_dir, "closed/work");
	make_file(host_dir, "closed/private", "x", 0600);
	snprintf(command, sizeof(command), "%s/closed", host_dir);
	assert_int_equal(chmod(command, 0700), 0);
	make_socket(host_dir, "sock");
	make_socket(host_dir, "agent/sock");
	make_file("/tmp", "sp-host-tmp", "x", 0644);
	snprintf(command, sizeof(command),
		 "cp /proc/%d/exe %s/probe; cp /proc/%d/exe %s/probe;"
		 "chmod 755 %s/probe %s/probe;"
		 "chown -h 12345:12345 %s %s/* %s/deep/er %s/deep/er/*; "
		 "chown 54321 %s/theirs",
		 getpid(), root_dir, getpid(), user_dir, root_dir, user_dir,
		 user_dir, user_dir, user_dir, user_dir, user_dir);
	return shell(command) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s %s %s /tmp/sp-host-tmp",
		 root_dir, user_dir, host_dir);
	return shell(command) == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_statuses),
		cmocka_unit_test(test_failed_exec),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_no_power),
		cmocka_unit_test(test_forbidden_calls),
		cmocka_unit_test(test_alone_in_its_pid_namespace),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_files_outside),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_hidden_above),
		cmocka_unit_test(test_host_sockets),
		cmocka_unit_test(test_system_cwd),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_orphans),
		cmocka_unit_test(test_start_gate),
		cmocka_unit_test(test_our_death_before_start),
		cmocka_unit_test(test_lookup),
	};

	if (argc > 1 && strcmp(argv[1], "probe") == 0) {
		int r = probe(argc, argv);

		/* No leak check at exit: it would want ptrace. */
		fflush(stdout);
		_exit(r);
	}
	if (argc > 3 && strcmp(argv[1], "interactive") == 0)
		return interactive(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
