/* SPDX-License-Identifier: Apache-2.0
 *
 * keeper_case.h - what is done with a keeper and seen of it.
 */
#ifndef TESTS_CMD_KEEPER_CASE_H
#define TESTS_CMD_KEEPER_CASE_H

#include "tests/cmd/keeper_rig.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "cmd/command.h"
#include "cmd/sandbox_file.h"
#include "launch/owned.h"

#define ALLOWS(host)                                                      \
	"version: 1\ndns: {upstream: [203.0.113.53]}\nallow:\n"           \
	"  - {host: " host ", ports: [7000], addresses: [203.0.113.0/24]" \
	", upload: 1 kB}\n"

static const struct ip usual = { .len = 4, .byte = { 198, 19, 0, 1 } };

/* The children of @pid: at most two. */
static inline size_t children(pid_t pid, pid_t *ret)
{
	char path[64];
	size_t n = 0;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid,
		 (int)pid);
	AUTO_FILE FILE *file = fopen(path, "re");
	while (file && n < 2 && fscanf(file, "%d", &child) == 1)
		ret[n++] = child;
	return n;
}

/* A keeper is this program, executed again, and so are its children. Any other
 * word is the tests that are to be run. */
static inline bool is_role(int argc, char **argv)
{
	static const char *const roles[] = { "keeper", "gate", "ledger" };

	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(roles); i++)
		if (strcmp(argv[1], roles[i]) == 0)
			return true;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return false;
}

static inline int run_role(int argc, char **argv)
{
	if (*argv[1] == 'k')
		return keeper_main(argc - 1, argv + 1);
	return *argv[1] == 'g' ? gate_main(argc - 1, argv + 1) : ledger_main();
}

#endif
