/* SPDX-License-Identifier: Apache-2.0
 *
 * bounds.c - what a user says of the box.
 *
 * Paths are resolved at once, in the working directory and with the rights that
 * the user has; the view of the files resolves them again and takes no other.
 */
#include "cmd/bounds.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const char bounds_help[] =
	"  --rw PATH         the command may write there too\n"
	"  --ro PATH         it sees that as it is, read-only; like --rw also "
	"where it is\n"
	"                    hidden otherwise: in /tmp, or ~/.aws\n"
	"  --hide PATH       it does not see that\n"
	"  --fs host         it sees and may change all files as its user may, "
	"passwords and\n"
	"                    keys too (what is hidden by default: see the "
	"manual)\n"
	"  --env NAME[=VALUE]\n"
	"                    it inherits this variable although it may be a "
	"secret, like\n"
	"                    ANTHROPIC_API_KEY; or one more\n";

static bool add_path(struct bounds *bounds, enum process_access access,
		     const char *arg, const char **reterr)
{
	char *real = realpath(arg, NULL);

	if (!real)
		*reterr = "there is no such file or directory:";
	else if (bounds->paths == BOUNDS_PATHS_MAX)
		*reterr = "too many --rw, --ro and --hide options:";
	if (*reterr) {
		free(real);
		return true;
	}
	bounds->path[bounds->paths++] =
		(struct process_path){ .path = real, .access = access };
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
		if (strcmp(arg, "host") == 0)
			bounds->host_files = true;
		else if (strcmp(arg, "private") != 0)
			*reterr = "neither host nor private:";
		return true;
	case BOUNDS_ENV:
		return add_env(bounds, arg, reterr);
	default:
		return false;
	}
}

const char *bounds_files_word(const struct bounds *bounds)
{
	return bounds->host_files ? "host" : "private";
}

void bounds_free(struct bounds *bounds)
{
	for (size_t i = 0; i < bounds->paths; i++)
		free((char *)(uintptr_t)bounds->path[i].path);
	*bounds = (struct bounds){ 0 };
}
