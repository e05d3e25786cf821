/* SPDX-License-Identifier: Apache-2.0
 *
 * view_names.c - a name for a uid that nobody has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launch/view.h"

#define NAMES_MAX (4u << 20)

/* The file at @path and @line. */
static int with_line(const char *path, const char *line, char **ret_text,
		     size_t *ret_len)
{
	AUTO_FILE FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t cap = 0, len = 0;
	int c, last = '\n';
	FILE *out;

	if (!f)
		return -errno;
	out = open_memstream(&text, &cap);
	if (!out)
		return -errno;
	while (len++ < NAMES_MAX && (c = getc_unlocked(f)) != EOF)
		putc_unlocked(last = c, out);
	fprintf(out, "%s%s", last == '\n' ? "" : "\n", line);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	*ret_len = cap;
	return 0;
}

int view_names(const struct view *view, struct view_names *ret)
{
	const struct process_spec *spec = view->spec;
	const char *home = view->home;
	char line[256];
	int r = 0;

	*ret = (struct view_names){ 0 };
	if (!spec->synthetic)
		return 0;
	if (!home || strpbrk(home, ":\n"))
		home = "/";
	if (view->passwd) {
		snprintf(line, sizeof(line),
			 "sandbox:x:%u:%u:sallyport:%.120s:/bin/sh\n",
			 spec->uid, spec->gid, home);
		r = with_line(view->passwd, line, &ret->passwd,
			      &ret->passwd_len);
	}
	if (r == 0 && view->groups) {
		snprintf(line, sizeof(line), "sandbox:x:%u:\n", spec->gid);
		r = with_line(view->groups, line, &ret->groups,
			      &ret->groups_len);
	}
	return r;
}

void view_names_free(struct view_names *names)
{
	free(names->passwd);
	free(names->groups);
	*names = (struct view_names){ 0 };
}
