/* SPDX-License-Identifier: Apache-2.0
 *
 * load_list.c - files of denied names. They come out of the bundle too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/load_impl.h"
#include "policy/nameset.h"

static bool is_loaded(const struct draft *draft, const char *path)
{
	for (size_t i = 0; i < draft->lists; i++)
		if (strcmp(draft->listed[i], path) == 0)
			return true;
	return false;
}

static int list_fault(const struct loader *l, const struct node *node,
		      const char *path, int err,
		      const struct nameset_report *report)
{
	switch (err) {
	case -EINVAL:
		return FAULT(l, node,
			     "%.150s: no line of it is a name (the first that "
			     "is none is line %u), is it a list?",
			     path, report->first_skipped_line);
	case -EFBIG:
		return FAULT(l, node, "%.150s: more than %d names", path,
			     NAMESET_NAMES_MAX);
	default:
		return err;
	}
}

static int add_list(const struct loader *l, const struct node *node,
		    const char *path, const char *text, size_t len)
{
	const struct target nowhere = { .host = "" };
	struct nameset_report report;
	struct nameset *set = NULL;
	AUTO_FREE char *origin = NULL;
	struct rule *rule;
	int ret = nameset_new(text, len, &set, &report);

	if (ret < 0)
		return list_fault(l, node, path, ret, &report);
	if (asprintf(&origin, "%s:%u", l->source.origin, node->line) < 0) {
		origin = NULL;
		nameset_free(set);
		return -ENOMEM;
	}
	ret = draft_add_rule(l->draft, &nowhere, true, path, origin, &rule);
	if (ret < 0) {
		nameset_free(set);
		return ret;
	}
	rule->list = set;
	rule->skipped = report.skipped;
	rule->first_skipped_line = report.first_skipped_line;
	l->draft->listed[l->draft->lists++] = rule->text;
	return 0;
}

int load_list(const struct loader *l, const struct node *node)
{
	char path[PATH_TEXT_MAX];
	const char *text;
	size_t len;
	int ret = expect_text(l, node, "file");

	if (ret < 0)
		return ret;
	if (!path_join(l->source.origin, node->text, path, sizeof(path)))
		return load_fault(l, node, "file",
				  "it is too long or climbs above the root");
	if (is_loaded(l->draft, path))
		return 0;
	if (l->draft->lists == LOADS_MAX)
		return FAULT(l, node, "more than %d lists are named",
			     LOADS_MAX);
	if (!draft_find_part(l->draft, BUNDLE_LIST, path, &text, &len))
		return load_fault(l, node, "file", "it was not read");
	return add_list(l, node, path, text, len);
}
