/* SPDX-License-Identifier: Apache-2.0
 *
 * init_landlock.h - the second wall, for init.c: no libc.
 */
#ifndef LAUNCH_INIT_LANDLOCK_H
#define LAUNCH_INIT_LANDLOCK_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

#include "launch/init_sys.h"

/* The same numbers on every architecture; not in every libc's headers. */
#define NR_LANDLOCK_CREATE   444
#define NR_LANDLOCK_ADD	     445
#define NR_LANDLOCK_RESTRICT 446

#define LANDLOCK_VERSION 1u /* as a flag: which one is there? */
#define LANDLOCK_BENEATH 1
/* Rename to another directory, truncate: without them too little would work,
 * or too much. */
#define LANDLOCK_LEAST 3

#define LANDLOCK_WRITE	  (1u << 1)
#define LANDLOCK_TRUNCATE (1u << 14)
/* Write, remove, make, refer, truncate; not execute, read. */
#define LANDLOCK_ALL (LANDLOCK_WRITE | (0x7ffu << 4))

struct landlock_beneath {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));

static void landlock_allow(int rules, int fd, uint64_t access)
{
	struct landlock_beneath beneath = { access, fd };

	sys(NR_LANDLOCK_ADD, rules, LANDLOCK_BENEATH, (long)&beneath, 0, 0);
}

/* A file that our user gave it to write to can be opened again. One to read
 * from, or a pipe, needs no rule. */
static void landlock_allow_given(int rules, int fd)
{
	long flags = sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0);

	if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY)
		landlock_allow(rules, fd, LANDLOCK_WRITE | LANDLOCK_TRUNCATE);
}

/* @write: "--write", PATH, ... up to another word. False if the kernel has it,
 * and it does not work. */
static bool landlock(char *const *write)
{
	const uint64_t handled = LANDLOCK_ALL;
	long version = sys(NR_LANDLOCK_CREATE, 0, 0, LANDLOCK_VERSION, 0, 0);
	int rules;

	if (version < LANDLOCK_LEAST)
		return true;
	rules = (int)sys(NR_LANDLOCK_CREATE, (long)&handled, sizeof(handled), 0,
			 0, 0);
	if (rules < 0)
		return false;
	for (; write[0][0] == '-' && write[0][2] == 'w'; write += 2) {
		int fd = (int)sys(SYS_openat, AT_FDCWD, (long)write[1],
				  O_PATH | O_CLOEXEC, 0, 0);

		if (fd < 0)
			continue;
		landlock_allow(rules, fd, LANDLOCK_ALL);
		/* A file takes no more than this. */
		landlock_allow(rules, fd, LANDLOCK_WRITE | LANDLOCK_TRUNCATE);
		sys(SYS_close, fd, 0, 0, 0, 0);
	}
	for (int fd = 0; fd <= 2; fd++)
		landlock_allow_given(rules, fd);
	if (sys(NR_LANDLOCK_RESTRICT, rules, 0, 0, 0, 0) < 0)
		return false;
	sys(SYS_close, rules, 0, 0, 0, 0);
	return true;
}

#endif
