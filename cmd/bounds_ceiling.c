/* SPDX-License-Identifier: Apache-2.0
 *
 * bounds_ceiling.c - what a daemon's operator leaves of a command's bounds.
 *
 * Limits become the smaller ones, and what is to be hidden is. What may not be
 * opened is an error: a command with less than it was meant to have would fail
 * later, and nobody would know why.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/bounds.h"
#include "cmd/command.h"
#include "policy/bundle.h"
#include "policy/cell.h"
#include "policy/policy.h"

#define CEILING "the daemon's ceiling"

/* Is @path one of the ceiling's with this access or more, or below one? */
static bool is_within(const struct cell *cell, const struct process_path *path)
{
	enum cell_access least = path->access == PROCESS_RW ? CELL_RW : CELL_RO;

	for (size_t i = 0; i < cell->path.count; i++) {
		const struct cell_entry *entry = &cell->path.at[i];
		AUTO_FREE char *spelled = bounds_home(entry);
		AUTO_FREE char *real = realpath(spelled, NULL);
		size_t len = real ? strlen(real) : 0;

		if (!real || entry->access < least ||
		    strncmp(path->path, real, len) != 0)
			continue;
		if (len == 1 || !path->path[len] || path->path[len] == '/')
			return true;
	}
	return false;
}

static void check_paths(const struct bounds *bounds, const struct cell *cell)
{
	for (size_t i = 0; i < bounds->paths; i++) {
		const struct process_path *path = &bounds->path[i];
		bool rw = path->access == PROCESS_RW;

		if (path->access == PROCESS_HIDE ||
		    !(rw ? cell->says_rw : cell->says_ro) ||
		    is_within(cell, path))
			continue;
		die(EXIT_SALLYPORT, "%s has no '%s' with %s in it", CEILING,
		    rw ? "rw" : "ro", path->path);
	}
}

/* A value is no secret that is inherited. */
static void check_env(const struct bounds *bounds, const struct cell *cell)
{
	for (size_t i = 0; cell->env.said && i < bounds->envs; i++) {
		bool found = strchr(bounds->env[i], '=') != NULL;

		for (size_t k = 0; !found && k < cell->env.count; k++)
			found = strcmp(cell->env.at[k].text, bounds->env[i]) ==
				0;
		if (!found)
			die(EXIT_SALLYPORT, "%s has no 'env' with %s in it",
			    CEILING, bounds->env[i]);
	}
}

static void smaller(unsigned *to, unsigned limit)
{
	if (limit && (!*to || limit < *to))
		*to = limit;
}

static void smaller_bytes(uint64_t *to, uint64_t limit)
{
	if (limit && (!*to || limit < *to))
		*to = limit;
}

static void limit(struct bounds *bounds, const struct cell *cell,
		  unsigned *timeout_ms)
{
	const struct cell_said *said = &cell->said;

	if (bounds->host_files && said->host_files == SAID_NO)
		die(EXIT_SALLYPORT, "%s has 'fs: private'", CEILING);
	if (bounds->nest && said->nest == SAID_NO)
		die(EXIT_SALLYPORT, "%s has 'nest: false'", CEILING);
	check_paths(bounds, cell);
	check_env(bounds, cell);
	smaller_bytes(&bounds->limits.memory, said->memory);
	smaller_bytes(&bounds->limits.fsize, said->fsize);
	smaller(&bounds->limits.pids, said->pids);
	smaller(&bounds->limits.cpus, said->cpus);
	smaller(&bounds->limits.nofile, said->nofile);
	smaller(timeout_ms, said->timeout_s * 1000);
	for (size_t i = 0; i < cell->path.count; i++)
		if (cell->path.at[i].access == CELL_HIDE)
			bounds_hide(bounds, &cell->path.at[i]);
}

void bounds_limit(struct bounds *bounds, const char *ceiling,
		  unsigned *timeout_ms)
{
	__attribute__((cleanup(bundle_free))) struct bundle bundle = { 0 };
	struct policy_error why;
	struct policy *policy;
	AUTO_FREE char *text = NULL;
	int err;

	if (!*ceiling)
		return;
	if (asprintf(&text, "version: 1\nsandbox: %s\n", ceiling) < 0) {
		text = NULL;
		die(EXIT_SALLYPORT, "out of memory");
	}
	err = bundle_add(&bundle, BUNDLE_FILE, "/" CEILING, text, strlen(text));
	if (!err)
		err = policy_build(bundle.data, bundle.len, &policy, &why);
	if (err)
		die(EXIT_SALLYPORT, CEILING " can't be read: %s",
		    err == -EINVAL ? why.text : strerror(-err));
	limit(bounds, policy_cell(policy), timeout_ms);
	policy_unref(policy);
}
