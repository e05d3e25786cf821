/* SPDX-License-Identifier: Apache-2.0
 *
 * command.h - the sub-commands of the one binary, and its own exit statuses.
 */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#define EXIT_TIMEOUT   124 /* --timeout ended the command */
#define EXIT_SALLYPORT 125 /* we failed, or were asked wrongly */

struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help; /* NULL: internal, not listed */
};

int run_main(int argc, char **argv);
int serve_main(int argc, char **argv);
int daemon_main(int argc, char **argv);
int guard_main(int argc, char **argv);
int presets_main(int argc, char **argv);
int check_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int diff_main(int argc, char **argv);
int learn_main(int argc, char **argv);
int log_main(int argc, char **argv);
int key_main(int argc, char **argv);
int report_main(int argc, char **argv);
int verify_main(int argc, char **argv);
int reload_main(int argc, char **argv);
int create_main(int argc, char **argv);
int exec_main(int argc, char **argv);
int rm_main(int argc, char **argv);
int status_main(int argc, char **argv);
int policy_main(int argc, char **argv);
int prove_main(int argc, char **argv);

/* In a sandbox, by `prove`. */
int prove_inside_main(int argc, char **argv);
/* Children, started by launch/child.h. */
int keeper_main(int argc, char **argv);
/* Started by systemd; see cmd/builder.c. */
int builder_main(int argc, char **argv);
int gate_main(int argc, char **argv);
int ledger_main(void);

#endif
