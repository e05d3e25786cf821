/* SPDX-License-Identifier: Apache-2.0
 *
 * load_cell.c - the `sandbox:` section of a file.
 *
 * A file that others extend, or a preset, must not open our user's machine
 * behind his back: there the keys that open are errors, and not left out
 * silently.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/load_impl.h"
#include "policy/values.h"

enum {
	B_FS,
	B_NEST,
	B_RW,
	B_RO,
	B_HIDE,
	B_ENV,
	B_MEMORY,
	B_PIDS,
	B_CPUS,
	B_FSIZE,
	B_NOFILE,
	B_TIMEOUT,
	B_COUNT
};
static const char *const keys[B_COUNT] = {
	[B_FS] = "fs",	       [B_NEST] = "nest",     [B_RW] = "rw",
	[B_RO] = "ro",	       [B_HIDE] = "hide",     [B_ENV] = "env",
	[B_MEMORY] = "memory", [B_PIDS] = "pids",     [B_CPUS] = "cpus",
	[B_FSIZE] = "fsize",   [B_NOFILE] = "nofile", [B_TIMEOUT] = "timeout",
};

/* --- what opens ---------------------------------------------------------- */

static bool is_preset(const struct loader *l)
{
	return strncmp(l->source.origin, "preset ", 7) == 0;
}

static int refuse_inherited(const struct loader *l, const struct node *node,
			    const char *what)
{
	if (!node || (!l->parent && !is_preset(l)))
		return 0;
	return FAULT(l, node,
		     "'%s' opens the sandbox, and is not taken from a file "
		     "that others extend: say it in the policy that is named "
		     "by --policy",
		     what);
}

static int check_opening(const struct loader *l, const struct node *const v[],
			 const struct cell_said *said)
{
	int ret = refuse_inherited(l, v[B_RW], "rw");

	if (ret == 0)
		ret = refuse_inherited(l, v[B_RO], "ro");
	if (ret == 0)
		ret = refuse_inherited(l, v[B_ENV], "env");
	if (ret == 0 && said->host_files == SAID_YES)
		ret = refuse_inherited(l, v[B_FS], "fs: host");
	if (ret == 0 && said->nest == SAID_YES)
		ret = refuse_inherited(l, v[B_NEST], "nest: true");
	return ret;
}

/* --- lists --------------------------------------------------------------- */

static const char *path_fault(const char *text)
{
	if (!*text)
		return "it is empty";
	if (text[0] == '~' && text[1] && text[1] != '/')
		return "only the own home is known: ~/...";
	/* What would hide nothing must not look as if it did. */
	if (strpbrk(text, "*?"))
		return "there are no patterns here: name a directory, all that "
		       "is below it is meant too";
	if (strchr(text, '$'))
		return "variables are not looked at; the home directory is ~";
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return "it has control characters";
	return NULL;
}

static const char *env_fault(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz"
				      "0123456789_";

	if (strchr(text, '='))
		return "a policy has no values of variables, it is recorded: "
		       "write the name";
	if (!*text || text[strspn(text, letters)] ||
	    (*text >= '0' && *text <= '9'))
		return "it is the name of a variable, like ANTHROPIC_API_KEY";
	return NULL;
}

static const char *place(const struct loader *l, const struct node *node,
			 char *buf, size_t cap)
{
	snprintf(buf, cap, "%.4000s:%u:%u", l->source.origin, node->line,
		 node->column);
	return buf;
}

static int add_path(const struct loader *l, const struct node *node,
		    enum cell_access access)
{
	char path[PATH_TEXT_MAX], at[PATH_TEXT_MAX + 32];
	struct cell_list *list = &l->draft->policy->cell.path;
	const char *text = node->text, *why = path_fault(text);

	if (why)
		return load_fault(l, node, "path", why);
	if (list->count == CELL_PATHS_MAX)
		return FAULT(l, node, "more than %d paths of rw, ro and hide",
			     CELL_PATHS_MAX);
	if (*text != '~') {
		/* "." beside a policy of the working directory is "". */
		if (!path_join(l->source.origin, text, path, sizeof(path))) {
			if (*path)
				return load_fault(l, node, "path",
						  "it is too long or climbs "
						  "above the root");
			memcpy(path, ".", 2);
		}
		text = path;
	}
	return cell_add(list, text, place(l, node, at, sizeof(at)), access);
}

static int add_env(const struct loader *l, const struct node *node)
{
	char at[PATH_TEXT_MAX + 32];
	struct cell_list *list = &l->draft->policy->cell.env;
	const char *why = env_fault(node->text);

	if (why)
		return load_fault(l, node, "variable", why);
	if (list->count == CELL_ENV_MAX)
		return FAULT(l, node, "more than %d variables", CELL_ENV_MAX);
	return cell_add(list, node->text, place(l, node, at, sizeof(at)),
			CELL_HIDE);
}

static int load_paths(const struct loader *l, const struct node *list,
		      enum cell_access access)
{
	struct cell *cell = &l->draft->policy->cell;
	int ret;

	if (!list)
		return 0;
	ret = expect_list(l, list, cell_access_word(access), "[~/.cache]");
	for (const struct node *c = list->child; c && ret == 0; c = c->next) {
		if (node_is_null(c))
			return FAULT(l, c,
				     "a bare ~ is nothing to YAML: write "
				     "\"~\", or ~/...");
		ret = expect_text(l, c, cell_access_word(access));
		if (ret == 0)
			ret = add_path(l, c, access);
	}
	cell->path.said = true;
	cell->says_rw |= access == CELL_RW;
	cell->says_ro |= access == CELL_RO;
	return ret;
}

static int load_env(const struct loader *l, const struct node *list)
{
	int ret;

	if (!list)
		return 0;
	ret = expect_list(l, list, "env", "[ANTHROPIC_API_KEY]");
	for (const struct node *c = list->child; c && ret == 0; c = c->next) {
		ret = expect_text(l, c, "env");
		if (ret == 0)
			ret = add_env(l, c);
	}
	l->draft->policy->cell.env.said = true;
	return ret;
}

/* --- limits -------------------------------------------------------------- */

static int load_bytes(const struct loader *l, const struct node *node,
		      const char *what, uint64_t least, uint64_t *ret)
{
	const char *why;
	int ret_code;

	if (!node)
		return 0;
	ret_code = expect_scalar(l, node, what);
	if (ret_code < 0)
		return ret_code;
	why = value_amount(node->text, least, ret);
	return why ? load_fault(l, node, what, why) : 0;
}

static int load_number(const struct loader *l, const struct node *node,
		       const char *what, unsigned max, unsigned *ret)
{
	char why[64];
	int ret_code;

	if (!node)
		return 0;
	ret_code = expect_scalar(l, node, what);
	if (ret_code < 0 || value_count(node->text, max, ret))
		return ret_code;
	snprintf(why, sizeof(why), "it is a whole number from 1 to %u", max);
	return load_fault(l, node, what, why);
}

static int load_cpus(const struct loader *l, const struct node *node,
		     unsigned *ret)
{
	int ret_code;

	if (!node)
		return 0;
	ret_code = expect_scalar(l, node, "cpus");
	if (ret_code < 0 || value_cpus(node->text, ret))
		return ret_code;
	return load_fault(l, node, "cpus",
			  "it is a number of CPUs from 0.01 to 4096, like 2 or "
			  "0.5");
}

static int load_timeout(const struct loader *l, const struct node *node,
			uint32_t *ret)
{
	const char *why;
	int ret_code;

	if (!node)
		return 0;
	ret_code = expect_scalar(l, node, "timeout");
	if (ret_code < 0)
		return ret_code;
	why = value_duration(node->text, ret);
	if (why || *ret > CELL_TIMEOUT_MAX_S)
		return load_fault(l, node, "timeout",
				  "it is a whole number of s, m, h or d, from "
				  "1s to 30d: 30m");
	return 0;
}

static int load_limits_of(const struct loader *l, const struct node *const v[],
			  struct cell_said *said)
{
	int ret = load_bytes(l, v[B_MEMORY], "memory", CELL_MEMORY_MIN,
			     &said->memory);

	if (ret == 0)
		ret = load_number(l, v[B_PIDS], "pids", CELL_PIDS_MAX,
				  &said->pids);
	if (ret == 0)
		ret = load_cpus(l, v[B_CPUS], &said->cpus);
	if (ret == 0)
		ret = load_bytes(l, v[B_FSIZE], "fsize", 1, &said->fsize);
	if (ret == 0)
		ret = load_number(l, v[B_NOFILE], "nofile", CELL_NOFILE_MAX,
				  &said->nofile);
	return ret == 0 ? load_timeout(l, v[B_TIMEOUT], &said->timeout_s) : ret;
}

/* --- */

int load_cell(const struct loader *l, const struct node *map, bool known,
	      struct cell_said *ret_said)
{
	static const char *const views[] = { "private", "host" };
	static const char *const nests[] = { "false", "true" };
	const struct node *v[B_COUNT];
	int ret;

	if (!map)
		return 0;
	ret = expect_map(l, map, "'sandbox'");
	if (ret == 0)
		ret = load_keys(l, map, keys, B_COUNT, v);
	if (ret == 0)
		ret = load_said(l, v[B_FS], "fs", views, &ret_said->host_files);
	if (ret == 0)
		ret = load_said(l, v[B_NEST], "nest", nests, &ret_said->nest);
	if (ret == 0)
		ret = load_limits_of(l, v, ret_said);
	if (ret == 0)
		ret = check_opening(l, v, ret_said);
	if (ret < 0 || known) /* its lists are there already */
		return ret;
	ret = load_paths(l, v[B_RW], CELL_RW);
	if (ret == 0)
		ret = load_paths(l, v[B_RO], CELL_RO);
	if (ret == 0)
		ret = load_paths(l, v[B_HIDE], CELL_HIDE);
	return ret == 0 ? load_env(l, v[B_ENV]) : ret;
}
