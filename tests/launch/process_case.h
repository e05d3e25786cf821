/* SPDX-License-Identifier: Apache-2.0
 *
 * process_case.h - real commands in real sandboxes, as root and as an ordinary
 * user. The program is also the attacker: a copy of it in the working directory
 * is run as `probe WHAT`.
 */
#ifndef TESTS_LAUNCH_PROCESS_CASE_H
#define TESTS_LAUNCH_PROCESS_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
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
	bool says_up; /* before it is to end: by a file of that name */
	char dir[64];
};

static inline const char *home_of(enum actor who)
{
	return who == ROOT ? "/root" : host_dir;
}

/* Kept by the probe while the sandbox runs. */
static inline int print_result(const char *name, long r)
{
	printf("%s=%d\n", name, r < 0 ? errno : 0);
	return 0;
}

static inline int try_connect(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if ((size_t)snprintf(to.sun_path, sizeof(to.sun_path), "%s", path) >=
	    sizeof(to.sun_path))
		return -1;
	return connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static inline void probe_calls(void)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	print_result("ptrace-init", ptrace(PTRACE_ATTACH, 1, 0, 0));
	print_result("ptrace-init-seize", ptrace(PTRACE_SEIZE, 1, 0, 0));
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

static inline int probe(int argc, char **argv)
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

static inline void spec_for(enum actor who, const struct order *order,
			    int netns, struct process_spec *spec)
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

/* Until the command has made its file, at most 20 s. */
static inline void await_up(const struct order *order)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/up", order->dir);
	for (int i = 0; i < 2000 && unlink(path) < 0; i++)
		poll(NULL, 0, 10);
}

static inline int finish(struct process *process, const struct order *order)
{
	const enum how how = order->how;
	struct pollfd p = { .fd = process->pidfd, .events = POLLIN };
	int error = 0;

	if (how == NO_START)
		close_fd(&process->start_fd);
	else if (process_start(process) < 0)
		return 90;
	if (order->says_up)
		await_up(order);
	else if (how == TERMINATE || how == KILL)
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

static inline int run_order(void *arg)
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
	r = finish(&process, order);
	process_env_free((char **)spec.env);
	netns_close(&ns);
	return r;
}

static inline struct outcome run(enum actor who, struct order order)
{
	snprintf(order.dir, sizeof(order.dir), "%s",
		 who == ROOT && !order.plain_root ? root_dir : user_dir);
	acting = who;
	return actor_run(who, run_order, &order);
}

static inline void expect(struct outcome out, int status, const char *text)
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

static inline void make_file(const char *dir, const char *name,
			     const char *text, mode_t mode)
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

static inline void make_dir(const char *dir, const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static inline int make_socket(const char *dir, const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/%s", dir, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 50), 0);
	assert_int_equal(chmod(at.sun_path, 0777), 0);
	return fd;
}

static inline void populate(const char *dir)
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

static inline int shell(const char *command)
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

static inline int setup(void **state)
{
	char command[512];

	(void)state;
	/* Sockets that come and go in /opt are in the way of whatever view is
	 * made meanwhile: nobody else sees these. */
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", "/opt", "tmpfs", 0, "mode=755"), 0);
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

static inline int teardown(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s %s %s /tmp/sp-host-tmp",
		 root_dir, user_dir, host_dir);
	return shell(command) == 0 ? 0 : -1;
}

#endif
