/* SPDX-License-Identifier: Apache-2.0
 *
 * load.c - a file of the policy language: what it says itself, then whom it
 * extends, then its rules.
 *
 * Whom a file extends comes out of the bundle, not out of a file system. What
 * would open more than the file itself shows is not inherited: a parent with
 * `default: public` or `mode: observe` needs a child that says so too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/load_impl.h"
#include "policy/presets.h"

enum {
	T_VERSION,
	T_NAME,
	T_NOTE,
	T_EXTENDS,
	T_DEFAULT,
	T_MODE,
	T_DNS,
	T_ALLOW,
	T_DENY,
	T_LIMITS,
	T_LOG,
	T_SANDBOX,
	T_COUNT
};
static const char *const top_keys[T_COUNT] = {
	[T_VERSION] = "version", [T_NAME] = "name",
	[T_NOTE] = "note",	 [T_EXTENDS] = "extends",
	[T_DEFAULT] = "default", [T_MODE] = "mode",
	[T_DNS] = "dns",	 [T_ALLOW] = "allow",
	[T_DENY] = "deny",	 [T_LIMITS] = "limits",
	[T_LOG] = "log",	 [T_SANDBOX] = "sandbox",
};

/* --- whom it extends ----------------------------------------------------- */

static int check_inherited(const struct loader *l, const struct node *node,
			   const struct settings *own,
			   const struct settings *parent)
{
	const char *what = NULL;

	if (parent->is_public == SAID_YES && own->is_public != SAID_YES)
		what = "default: public";
	else if (parent->observes == SAID_YES && own->observes != SAID_YES)
		what = "mode: observe";
	if (what)
		return FAULT(l, node,
			     "'%s' says \"%s\", which is not inherited: say "
			     "so here too, or take it out there",
			     node->text, what);
	return 0;
}

static int check_chain(const struct loader *l, const struct node *node,
		       const char *path)
{
	unsigned depth = 0;

	for (const struct loader *at = l; at; at = at->parent) {
		if (strcmp(at->source.origin, path) == 0)
			return FAULT(l, node,
				     at == l ? "'%s' extends itself"
					     : "'%s' extends this file, so "
					       "this is a circle",
				     node->text);
		if (++depth == DEPTH_OF_EXTENDS)
			return FAULT(l, node,
				     "more than %d files extend each other",
				     DEPTH_OF_EXTENDS);
	}
	if (l->draft->loads == LOADS_MAX)
		return FAULT(l, node, "more than %d files are extended",
			     LOADS_MAX);
	return 0;
}

static bool is_known(const struct draft *draft, const char *path)
{
	for (size_t i = 0; i < draft->files; i++)
		if (strcmp(draft->loaded[i], path) == 0)
			return true;
	return false;
}

static int load_parent(const struct loader *l, const struct node *node,
		       struct settings *ret_settings)
{
	struct draft *draft = l->draft;
	char path[PATH_TEXT_MAX];
	const char *text;
	size_t len;
	int ret;

	if (!path_join(l->source.origin, node->text, path, sizeof(path)))
		return load_fault(l, node, "file",
				  "it is too long or climbs "
				  "above the root");
	ret = check_chain(l, node, path);
	if (ret < 0)
		return ret;
	if (!draft_find_part(draft, BUNDLE_INCLUDED, path, &text, &len))
		return load_fault(l, node, "file", "it was not read");
	bool known = is_known(draft, path);
	if (!known) {
		draft->loaded[draft->files] = strdup(path);
		if (!draft->loaded[draft->files])
			return -ENOMEM;
		draft->files++;
	}
	draft->loads++;
	return load_yaml(draft, l, known, path, text, len, ret_settings);
}

static int load_preset(const struct loader *l, const struct node *node)
{
	int i = preset_find(node->text);
	const char *guess;

	if (i >= 0)
		return draft_add_preset(l->draft, l, (size_t)i);
	guess = preset_guess(node->text);
	if (guess)
		return FAULT(l, node, "unknown preset, did you mean '%s'?",
			     guess);
	return load_fault(l, node, "preset",
			  "`sallyport presets` lists them; a file is written "
			  "with a '/', like ./base.yaml");
}

static int load_extends(const struct loader *l, const struct node *list,
			struct settings *own)
{
	struct settings parents = { .limits = { 0 } };
	bool any = false;
	int ret = expect_list(l, list, "extends", "[github, ./base.yaml]");

	for (const struct node *c = list->child; c && ret == 0; c = c->next) {
		struct settings one = { .limits = { 0 } };

		ret = expect_text(l, c, "extends");
		if (ret < 0)
			return ret;
		if (!path_is_file(c->text)) {
			ret = load_preset(l, c);
			continue;
		}
		ret = load_parent(l, c, &one);
		if (ret == 0)
			ret = check_inherited(l, c, own, &one);
		if (ret < 0)
			return ret;
		if (!any)
			parents = one;
		else if (!settings_add(&parents, &one) && !own->upstream_given)
			return FAULT(l, c,
				     "another file has another 'upstream', "
				     "name the servers here");
		any = true;
	}
	if (ret == 0)
		settings_inherit(own, &parents);
	return ret;
}

/* --- the file itself ----------------------------------------------------- */

static int check_version(const struct loader *l, const struct node *root,
			 const struct node *version)
{
	if (!version)
		return FAULT(l, root,
			     "'version' is missing, add \"version: 1\"");
	if (version->kind != NODE_SCALAR || !version->plain ||
	    strcmp(version->text, "1") != 0)
		return FAULT(l, version,
			     "'version' is the number 1, there is no other "
			     "yet");
	return 0;
}

static int load_own(const struct loader *l, const struct node *const v[],
		    struct settings *own)
{
	static const char *const defaults[] = { "deny", "public" };
	static const char *const modes[] = { "enforce", "observe" };
	int ret = load_name(l, v[T_NAME], own);

	if (ret == 0 && v[T_NOTE])
		ret = expect_note(l, v[T_NOTE]);
	if (ret == 0)
		ret = load_said(l, v[T_DEFAULT], "default", defaults,
				&own->is_public);
	if (ret == 0)
		ret = load_said(l, v[T_MODE], "mode", modes, &own->observes);
	if (ret == 0)
		ret = load_dns(l, v[T_DNS], own);
	if (ret == 0)
		ret = load_limits(l, v[T_LIMITS], own);
	if (ret == 0)
		ret = load_log(l, v[T_LOG], own);
	return ret;
}

static int load_root(const struct loader *l, const struct node *root,
		     bool known, struct settings *own)
{
	const struct node *v[T_COUNT];
	int ret = expect_map(l, root, "a policy");

	if (ret == 0)
		ret = load_keys(l, root, top_keys, T_COUNT, v);
	if (ret == 0)
		ret = check_version(l, root, v[T_VERSION]);
	if (ret == 0)
		ret = load_own(l, v, own);
	if (ret == 0)
		ret = load_cell(l, v[T_SANDBOX], known, &own->cell);
	if (ret == 0 && v[T_EXTENDS])
		ret = load_extends(l, v[T_EXTENDS], own);
	if (ret == 0 && v[T_ALLOW] && !known)
		ret = load_entries(l, v[T_ALLOW], false);
	if (ret == 0 && v[T_DENY] && !known)
		ret = load_entries(l, v[T_DENY], true);
	return ret;
}

int load_yaml(struct draft *draft, const struct loader *parent, bool known,
	      const char *origin, const char *text, size_t len,
	      struct settings *ret_settings)
{
	struct loader l = { .draft = draft,
			    .source = { .origin = origin, .err = draft->err },
			    .parent = parent };
	struct settings own = { .limits = { 0 } };
	struct node *root = NULL;
	int ret = tree_parse(text, len, &l.source, &root);

	if (ret < 0)
		return ret;
	if (!root)
		return source_fault(&l.source, 1, 1,
				    "the policy is empty, it starts with "
				    "\"version: 1\"");
	ret = load_root(&l, root, known, &own);
	tree_free(root);
	if (ret == 0)
		*ret_settings = own;
	return ret;
}
