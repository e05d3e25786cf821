/* SPDX-License-Identifier: Apache-2.0
 *
 * bounds.h - the options of `run` that bound the command itself: its
 * files, its environment, its resources, its system calls.
 */
#ifndef CMD_BOUNDS_OPTIONS_H
#define CMD_BOUNDS_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "launch/limits.h"
#include "launch/process.h"

enum bounds_option {
	BOUNDS_RW = 768,
	BOUNDS_RO,
	BOUNDS_HIDE,
	BOUNDS_FS,
	BOUNDS_ENV,
	BOUNDS_MEMORY,
	BOUNDS_PIDS,
	BOUNDS_CPUS,
	BOUNDS_FSIZE,
	BOUNDS_NOFILE,
	BOUNDS_NEST,
	BOUNDS_NO_NEST,
};

/* For a table of getopt_long(). */
#define BOUNDS_OPTIONS                                                \
	{ "rw", required_argument, NULL, BOUNDS_RW },                 \
		{ "ro", required_argument, NULL, BOUNDS_RO },         \
		{ "hide", required_argument, NULL, BOUNDS_HIDE },     \
		{ "fs", required_argument, NULL, BOUNDS_FS },         \
		{ "env", required_argument, NULL, BOUNDS_ENV },       \
		{ "memory", required_argument, NULL, BOUNDS_MEMORY }, \
		{ "pids", required_argument, NULL, BOUNDS_PIDS },     \
		{ "cpus", required_argument, NULL, BOUNDS_CPUS },     \
		{ "fsize", required_argument, NULL, BOUNDS_FSIZE },   \
		{ "nest", no_argument, NULL, BOUNDS_NEST },           \
		{ "no-nest", no_argument, NULL, BOUNDS_NO_NEST },     \
	{                                                             \
		"nofile", required_argument, NULL, BOUNDS_NOFILE      \
	}

#define BOUNDS_PATHS_MAX 60
#define BOUNDS_ENV_MAX	 256

struct policy;

struct bounds {
	struct process_path path[BOUNDS_PATHS_MAX]; /* canonical */
	size_t paths;
	bool host_files, nest;
	bool says_files, says_nest;	 /* an option does */
	const char *env[BOUNDS_ENV_MAX]; /* NAME, NAME=VALUE */
	size_t envs;
	size_t own_env[BOUNDS_ENV_MAX]; /* of those, copies of ours */
	size_t owns;
	struct resources limits;
};

extern const char bounds_help[];

/* Adds what getopt_long() found to @bounds; false if @code is none of ours.
 * What is wrong with @arg goes to *@reterr, static. */
bool bounds_option(struct bounds *bounds, int code, const char *arg,
		   const char **reterr);

/* "private" or "host", for records. */
const char *bounds_files_word(const struct bounds *bounds);

/* Adds the `sandbox:` section of @policy, below what the options say; also to
 * *@timeout_ms, where that is 0. Paths are looked for now. Dies
 * (EXIT_SALLYPORT) with the place in the policy where one is not there. */
void bounds_take(struct bounds *bounds, const struct policy *policy,
		 unsigned *timeout_ms);

/* Below the `sandbox:` of a ceiling, as JSON; "": none. Dies where it does not
 * let @bounds be. */
void bounds_limit(struct bounds *bounds, const char *ceiling,
		  unsigned *timeout_ms);
/* Is there a limit of resources in it? */
bool bounds_has_limits(const struct bounds *bounds);

struct cell_entry;
/* @entry's path, absolute, with our user's home in it. */
char *bounds_home(const struct cell_entry *entry);
/* Hides it, whatever else is said of it; what is not there is left out. */
void bounds_hide(struct bounds *bounds, const struct cell_entry *entry);

/* @arg made absolute, without a slash at its end. NULL without memory. */
char *bounds_spell(const char *arg);

void bounds_free(struct bounds *bounds);

#endif
