/* SPDX-License-Identifier: Apache-2.0
 *
 * process.h - the sandboxed command: bubblewrap makes its view of the files, a
 * small static init (launch/init.c, embedded) is its pid 1.
 */
#ifndef LAUNCH_PROCESS_H
#define LAUNCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

struct resources;
struct limits_groups;

/* What our user says of a file or directory. */
enum process_access {
	PROCESS_HIDE,
	PROCESS_RO, /* shown, read-only */
	PROCESS_RW,
};

struct process_path {
	const char *path;    /* canonical */
	const char *spelled; /* as our user wrote it, absolute */
	enum process_access access;
	bool optional; /* it need not be there */
};

struct process_spec {
	int netns; /* its network namespace */
	uid_t uid; /* real uid outside; and as seen inside */
	gid_t gid;
	bool as_root; /* we are real root: map @uid; else we are uid 0 of a user
			 namespace whose 0 is @uid */
	bool synthetic;	 /* @uid has no passwd entry: add one inside, private
			    HOME */
	const char *cwd; /* writable inside, unless a system directory */
	char *const *argv;
	char *const *env;	 /* complete: process_env() */
	const char *const *hide; /* paths masked inside, files or directories */
	size_t hides;
	const struct process_path *path; /* beside the working directory */
	size_t paths;
	const struct resources *limits; /* or NULL; with the next. Both as long
					   as the process */
	const struct limits_groups *groups;
	const char *known;	 /* launch/sockets_known.h, or NULL */
	bool nest;		 /* it may make namespaces of its own */
	bool host_files;	 /* no view of its own: see launch/view.h */
	const char *resolv_conf; /* contents */
	bool interactive;	 /* shares our terminal session */
};

struct process {
	const struct resources *limits; /* of the spec */
	const struct limits_groups *groups;
	pid_t pid; /* bwrap's (our child) */
	int pidfd;
	int start_fd;  /* process_start() */
	int status_fd; /* bwrap's --json-status-fd */
	int report_fd; /* of the preparations; -1: they are over */
	int error_fd;  /* an int, errno, if the command can't be executed */
	pid_t init;  /* pid 1 of the sandbox, as we see it; 0: not yet known */
	int init_fd; /* its pidfd, or -1 */
	bool interactive; /* we have a terminal to put right at the end */
	struct termios terminal;
	char note[200]; /* what our user should know about the view, or "" */
};

/* Prepares the sandbox: everything but running it. The child waits, already in
 * its network namespace; if we die before process_start(), it exits. 0, or
 * -errno and a sentence for people in @reterr. */
int process_prepare(const struct process_spec *spec, struct process *ret,
		    char *reterr, size_t cap);
/* The same in two steps, between which the caller need not wait: @spec may go
 * after the first. An error of the second ends the process. */
int process_begin(const struct process_spec *spec, struct process *ret,
		  char *reterr, size_t cap);
int process_ready(struct process *process, char *reterr, size_t cap);

/* Lets the command run. Its first instruction comes after this. */
int process_start(struct process *process);

/* Forwards @signal to the command's pid 1, which passes it on. */
void process_signal(struct process *process, int signal);

/* Kills every process of the sandbox. */
void process_kill(struct process *process);

/* After the pidfd turned readable: reaps, returns the exit status as a shell
 * would (126, 127, 128 + signal), or 125 if bwrap itself failed (its own
 * message is on stderr). */
int process_wait(struct process *process);

/* The command's environment: ours, less what must not be inherited, plus the
 * proxy variables (FACTS: both cases, ALL_PROXY as http://, NO_PROXY) for
 * @proxy_url; @home where not NULL. An array to be freed by
 * process_env_free(). NULL without memory. */
char **process_env(char *const *from, const char *proxy_url, const char *home);
void process_env_free(char **env);

/* Is @argv0 a command that could run (looked up as execvp would)? 0, or 126 or
 * 127. A first guess for a quick answer; init has the last word. */
int process_lookup(const char *argv0, const char *path);

#endif
