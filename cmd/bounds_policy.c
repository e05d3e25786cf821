/* SPDX-License-Identifier: Apache-2.0
 *
 * bounds_policy.c - the `sandbox:` section of a policy becomes bounds of the
 * command, below what the command line says.
 *
 * What an option says replaces what the policy says of the same thing: a limit,
 * the view, one path, one variable. A ceiling comes last, and what it refuses
 * is an error: a command with less than it was meant to have would fail later,
 * and nobody would know why.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/bounds.h"
#include "cmd/command.h"
#include "policy/cell.h"

/* --- paths --------------------------------------------------------------- */

char *bounds_home(const struct cell_entry *entry)
{
	const char *home = getenv("HOME");
	char *path;

	if (*entry->text != '~') {
		path = bounds_spell(entry->text);
	} else {
		if (!home || *home != '/')
			die(EXIT_SALLYPORT, "%s: %s: there is no HOME",
			    entry->origin, entry->text);
		if (asprintf(&path, "%s%s", home, entry->text + 1) < 0)
			path = NULL;
	}
	if (!path)
		die(EXIT_SALLYPORT, "out of memory");
	return path;
}

static struct process_path *find_path(struct bounds *bounds, const char *path)
{
	for (size_t i = 0; i < bounds->paths; i++)
		if (strcmp(bounds->path[i].path, path) == 0)
			return &bounds->path[i];
	return NULL;
}

/* Both the policy's: the stricter one, in the order of their numbers. */
static void take_path(struct bounds *bounds, const struct cell_entry *entry,
		      size_t options)
{
	static const enum process_access access[] = {
		[CELL_HIDE] = PROCESS_HIDE,
		[CELL_RO] = PROCESS_RO,
		[CELL_RW] = PROCESS_RW,
	};
	AUTO_FREE char *spelled = bounds_home(entry);
	AUTO_FREE char *real = realpath(spelled, NULL);
	struct process_path *same = real ? find_path(bounds, real) : NULL;

	if (!real && errno == ENOENT && entry->access == CELL_HIDE)
		return; /* what is not there can't be seen */
	if (!real) {
		int err = errno;

		free(STEAL(spelled));
		die(EXIT_SALLYPORT, "%s: %s %s: %s", entry->origin,
		    cell_access_word(entry->access), entry->text,
		    strerror(err));
	}
	if (same && same < &bounds->path[options])
		return; /* an option has the word */
	if (same) {
		if (access[entry->access] < same->access)
			same->access = access[entry->access];
		return;
	}
	if (bounds->paths == BOUNDS_PATHS_MAX)
		die(EXIT_SALLYPORT, "%s: more than %d paths of rw, ro and hide",
		    entry->origin, BOUNDS_PATHS_MAX);
	bounds->path[bounds->paths++] =
		(struct process_path){ .path = STEAL(real),
				       .spelled = STEAL(spelled),
				       .access = access[entry->access] };
}

void bounds_hide(struct bounds *bounds, const struct cell_entry *entry)
{
	AUTO_FREE char *spelled = bounds_home(entry);
	AUTO_FREE char *real = realpath(spelled, NULL);
	struct process_path *same = real ? find_path(bounds, real) : NULL;

	if (same)
		same->access = PROCESS_HIDE;
	else
		take_path(bounds, entry, 0);
}

/* --- the environment ----------------------------------------------------- */

static bool names(const char *option, const char *name)
{
	size_t len = strlen(name);

	return strncmp(option, name, len) == 0 &&
	       (!option[len] || option[len] == '=');
}

static void take_env(struct bounds *bounds, const struct cell_entry *entry)
{
	for (size_t i = 0; i < bounds->envs; i++)
		if (names(bounds->env[i], entry->text))
			return;
	if (bounds->envs == BOUNDS_ENV_MAX)
		die(EXIT_SALLYPORT, "%s: more than %d variables", entry->origin,
		    BOUNDS_ENV_MAX);
	bounds->env[bounds->envs] = strdup(entry->text);
	if (!bounds->env[bounds->envs])
		die(EXIT_SALLYPORT, "out of memory");
	bounds->own_env[bounds->owns++] = bounds->envs++;
}

/* --- what is said once --------------------------------------------------- */

static void take(unsigned *to, unsigned from)
{
	if (!*to)
		*to = from;
}

static void take_said(struct bounds *bounds, const struct cell_said *said)
{
	struct resources *limits = &bounds->limits;

	if (!limits->memory)
		limits->memory = said->memory;
	if (!limits->fsize)
		limits->fsize = said->fsize;
	take(&limits->pids, said->pids);
	take(&limits->cpus, said->cpus);
	take(&limits->nofile, said->nofile);
	if (!bounds->says_files)
		bounds->host_files = said->host_files == SAID_YES;
	if (!bounds->says_nest)
		bounds->nest = said->nest == SAID_YES;
}

void bounds_take(struct bounds *bounds, const struct policy *policy,
		 unsigned *timeout_ms)
{
	const struct cell *cell = policy_cell(policy);
	const size_t options = bounds->paths;

	for (size_t i = 0; i < cell->path.count; i++)
		take_path(bounds, &cell->path.at[i], options);
	for (size_t i = 0; i < cell->env.count; i++)
		take_env(bounds, &cell->env.at[i]);
	take_said(bounds, &cell->said);
	take(timeout_ms, cell->said.timeout_s * 1000);
}
