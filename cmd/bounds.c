/* SPDX-License-Identifier: Apache-2.0
 *
 * bounds.c - what a user says of the box.
 *
 * Paths are resolved at once, in the working directory and with the rights that
 * the user has; the view of the files resolves them again and takes no other.
 */
#include "cmd/bounds.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "policy/cell.h"
#include "policy/values.h"

const char bounds_help[] =
	"  --rw PATH         the command may write there too\n"
	"  --ro PATH         it sees that as it is, read-only; like --rw also "
	"where it is\n"
	"                    hidden otherwise: in /tmp, or ~/.aws\n"
	"  --hide PATH       it does not see that\n"
	"  --fs VIEW         host: it sees and may change all files as its "
	"user may, also\n"
	"                    keys and passwords, hidden otherwise (see the "
	"manual)\n"
	"  --env NAME        it inherits this variable although it may be a "
	"secret, like\n"
	"                    ANTHROPIC_API_KEY; NAME=VALUE: one more\n"
	"  --nest            it may make namespaces of its own, to sandbox its "
	"tools;\n"
	"                    they have no other way out\n"
	"  --no-nest         it may not, also if the policy says so\n"
	"  --memory SIZE     for the command and all that it starts, like 2G; "
	"what needs\n"
	"                    more is killed\n"
	"  --pids N          processes and threads\n"
	"  --cpus N          like 2 or 0.5\n"
	"  --fsize SIZE      of a file that it writes\n"
	"  --nofile N        open files, of each process\n";

char *bounds_spell(const char *arg)
{
	AUTO_FREE char *cwd = *arg == '/' ? strdup("") : getcwd(NULL, 0);
	char *path;
	size_t n;

	while (arg[0] == '.' && arg[1] == '/')
		arg += 2;
	if (!cwd)
		return NULL;
	if (asprintf(&path, "%s%s%s", cwd, *arg == '/' ? "" : "/",
		     strcmp(arg, ".") == 0 ? "" : arg) < 0)
		return NULL;
	n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	return path;
}

static bool add_path(struct bounds *bounds, enum process_access access,
		     const char *arg, const char **reterr)
{
	char *real = realpath(arg, NULL), *spelled = bounds_spell(arg);

	if (!spelled)
		*reterr = "out of memory:";
	else if (!real)
		*reterr = "there is no such file or directory:";
	else if (bounds->paths == BOUNDS_PATHS_MAX)
		*reterr = "too many --rw, --ro and --hide options:";
	if (*reterr) {
		free(real);
		free(spelled);
		return true;
	}
	bounds->path[bounds->paths++] = (struct process_path){
		.path = real, .spelled = spelled, .access = access
	};
	return true;
}

static bool add_env(struct bounds *bounds, const char *arg, const char **reterr)
{
	if (!*arg || *arg == '=')
		*reterr = "neither NAME nor NAME=VALUE:";
	else if (bounds->envs == BOUNDS_ENV_MAX)
		*reterr = "too many --env options:";
	else
		bounds->env[bounds->envs++] = arg;
	return true;
}

static bool add_size(uint64_t *limit, uint64_t least, const char *arg,
		     const char **reterr)
{
	if (value_amount(arg, 1, limit))
		*reterr = "not a size like 512M or 2 GB:";
	else if (*limit < least)
		*reterr = "too little for anything to run:";
	return true;
}

static bool add_count(unsigned *limit, unsigned max, const char *arg,
		      const char **reterr)
{
	if (!value_count(arg, max, limit))
		*reterr = "not a number, or too large:";
	return true;
}

static bool add_cpus(unsigned *limit, const char *arg, const char **reterr)
{
	if (!value_cpus(arg, limit))
		*reterr = "not a number of CPUs like 2 or 0.5:";
	return true;
}

static bool set_files(struct bounds *bounds, const char *arg,
		      const char **reterr)
{
	bounds->says_files = true;
	bounds->host_files = strcmp(arg, "host") == 0;
	if (!bounds->host_files && strcmp(arg, "private") != 0)
		*reterr = "neither host nor private:";
	return true;
}

static bool set_nest(struct bounds *bounds, bool nest)
{
	bounds->says_nest = true;
	bounds->nest = nest;
	return true;
}

bool bounds_option(struct bounds *bounds, int code, const char *arg,
		   const char **reterr)
{
	switch (code) {
	case BOUNDS_RW:
		return add_path(bounds, PROCESS_RW, arg, reterr);
	case BOUNDS_RO:
		return add_path(bounds, PROCESS_RO, arg, reterr);
	case BOUNDS_HIDE:
		return add_path(bounds, PROCESS_HIDE, arg, reterr);
	case BOUNDS_FS:
		return set_files(bounds, arg, reterr);
	case BOUNDS_NEST:
	case BOUNDS_NO_NEST:
		return set_nest(bounds, code == BOUNDS_NEST);
	case BOUNDS_ENV:
		return add_env(bounds, arg, reterr);
	case BOUNDS_MEMORY:
		return add_size(&bounds->limits.memory, CELL_MEMORY_MIN, arg,
				reterr);
	case BOUNDS_FSIZE:
		return add_size(&bounds->limits.fsize, 1, arg, reterr);
	case BOUNDS_PIDS:
		return add_count(&bounds->limits.pids, CELL_PIDS_MAX, arg,
				 reterr);
	case BOUNDS_NOFILE:
		return add_count(&bounds->limits.nofile, CELL_NOFILE_MAX, arg,
				 reterr);
	case BOUNDS_CPUS:
		return add_cpus(&bounds->limits.cpus, arg, reterr);
	default:
		return false;
	}
}

const char *bounds_files_word(const struct bounds *bounds)
{
	return bounds->host_files ? "host" : "private";
}

bool bounds_has_limits(const struct bounds *bounds)
{
	const struct resources *limits = &bounds->limits;

	return limits->memory || limits->fsize || limits->pids ||
	       limits->cpus || limits->nofile;
}

void bounds_free(struct bounds *bounds)
{
	for (size_t i = 0; i < bounds->paths; i++) {
		free((char *)(uintptr_t)bounds->path[i].path);
		free((char *)(uintptr_t)bounds->path[i].spelled);
	}
	for (size_t i = 0; i < bounds->owns; i++)
		free((char *)(uintptr_t)bounds->env[bounds->own_env[i]]);
	*bounds = (struct bounds){ 0 };
}
