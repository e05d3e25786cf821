/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c - a command table, nothing else.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"

static int ledger_command(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return ledger_main();
}

static const struct command commands[] = {
	{ "run", run_main, "run a command that reaches allowed hosts only" },
	{ "serve", serve_main, "the gate alone, on given addresses" },
	{ "daemon", daemon_main, "many sandboxes: create, exec, rm; Docker" },
	{ "guard", guard_main, "the gate for a network that is there already" },
	{ "reload", reload_main, "read the policy of a running one again" },
	{ "create", create_main, "make a sandbox that stays, of the daemon" },
	{ "exec", exec_main, "run a command in one of them" },
	{ "rm", rm_main, "end some of them" },
	{ "status", status_main, "what they do" },
	{ "policy", policy_main, "give one another policy" },
	{ "key", key_main, "make or show the key that signs the logs" },
	{ "log", log_main, "show the log of a session" },
	{ "report", report_main, "what sessions came to, for a review" },
	{ "verify", verify_main, "is a log whole, and whose is it?" },
	{ "prove", prove_main, "attack a boundary from inside" },
	{ "presets", presets_main, "list the built-in sets of hosts" },
	{ "check", check_main, "is a policy valid, and is it wise?" },
	{ "explain", explain_main, "what a policy makes of one host, and why" },
	{ "diff", diff_main, "what two policies let reach differently" },
	{ "learn", learn_main, "write a policy from the logs of sessions" },
	{ "prove-inside", prove_inside_main, NULL },
	{ "keeper", keeper_main, NULL },
	{ "builder", builder_main, NULL },
	{ "gate", gate_main, NULL },
	{ "ledger", ledger_command, NULL },
};

static int usage(FILE *out, int status)
{
	fputs("usage: sallyport COMMAND [OPTION]...\n\n"
	      "The only way out of a sandbox: to the hosts you allow, and "
	      "recorded.\n\ncommands:\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (commands[i].help)
			fprintf(out, "  %-9s %s\n", commands[i].name,
				commands[i].help);
	}
	fputs("  help      this text; COMMAND --help tells more\n"
	      "  version   print the version\n\n"
	      "example:\n"
	      "  sallyport run --allow github --allow example.com -- "
	      "git clone https://github.com/o/r\n",
	      out);
	return status;
}

/* What we open must not become somebody's standard error, nor our messages go
 * to what we opened; and who started us may have ignored what we wait for. A
 * file that may not grow is an error like others. */
static void settle(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN);
}

/* libevent ends a process that runs out of descriptors while it is set up. */
static void on_fatal(int err)
{
	(void)err;
	die(EXIT_SALLYPORT, "event loop: %s", strerror(errno));
}

/* Lists are read again and again in processes that go on for long. Memory of
 * that size goes back when it is freed: glibc would keep it as soon as the
 * first was, and each time more, as it moves its limit. This is where that
 * begins; with a higher one more is cleared that nobody uses. */
static void return_memory(void)
{
#if defined(__GLIBC__)
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	settle();
	return_memory();
	event_set_fatal_callback(on_fatal);

	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 ||
	    strcmp(name, "-h") == 0)
		return usage(stdout, 0);
	if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
		puts("sallyport " SALLYPORT_VERSION);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(name, commands[i].name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	}
	if (*name)
		fprintf(stderr, "sallyport: no command '%s'\n\n", name);
	return usage(stderr, EXIT_SALLYPORT);
}
