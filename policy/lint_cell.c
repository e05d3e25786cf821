/* SPDX-License-Identifier: Apache-2.0
 *
 * lint_cell.c - `sandbox:`: what leaves little of a sandbox.
 */
#include <string.h>

#include "base/cleanup.h"
#include "policy/lint_impl.h"

/* In which a command finds what the next login runs, or everything. */
static bool is_wide(const char *path)
{
	static const char *const wide[] = { "/",     "~",    "~/",   "/home",
					    "/root", "/etc", "/usr", "/var" };

	for (size_t i = 0; i < ARRAY_SIZE(wide); i++)
		if (strcmp(path, wide[i]) == 0)
			return true;
	return false;
}

/* Keys of our user's, by which others know him. */
static bool is_credential(const char *path)
{
	static const char *const known[] = {
		"/.ssh",	   "/.aws",    "/.gnupg",
		"/.docker",	   "/.kube",   "/.netrc",
		"/.config/gcloud", "/.azure",  "/.config/gh",
		"/.npmrc",	   "/.pypirc", "/.git-credentials",
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const char *at = strstr(path, known[i]);
		size_t len = strlen(known[i]);

		if (at && (!at[len] || at[len] == '/'))
			return true;
	}
	return false;
}

static void lint_path(struct linter *l, const struct cell_entry *entry)
{
	const char *word = cell_access_word(entry->access);

	if (entry->access == CELL_HIDE)
		return;
	if (entry->access == CELL_RW && is_wide(entry->text))
		lint_found(l, NULL, LINT_SANDBOX_FILES,
			   "%.200s: 'rw: %.200s' lets the command change what "
			   "others run later",
			   entry->origin, entry->text);
	else if (is_credential(entry->text))
		lint_found(l, NULL, LINT_SANDBOX_SECRET,
			   "%.200s: '%s: %.200s' gives the command "
			   "credentials, which it may send to each host that "
			   "it reaches",
			   entry->origin, word, entry->text);
}

void lint_cell(struct linter *l)
{
	const struct cell *cell = policy_cell(l->policy);

	if (cell->said.host_files == SAID_YES)
		lint_found(l, NULL, LINT_SANDBOX_FILES,
			   "\"fs: host\" shows the command all files of its "
			   "user, to change and to read, credentials too");
	for (size_t i = 0; i < cell->path.count; i++)
		lint_path(l, &cell->path.at[i]);
	for (size_t i = 0; i < cell->env.count; i++)
		lint_found(l, NULL, LINT_SANDBOX_SECRET,
			   "%.200s: 'env: %.100s' gives the command a secret, "
			   "if it is one: it may send it to each host that it "
			   "reaches",
			   cell->env.at[i].origin, cell->env.at[i].text);
	if (cell->said.nest == SAID_YES)
		lint_found(l, NULL, LINT_SANDBOX_NEST,
			   "\"nest: true\" lets the command make namespaces: "
			   "more of the kernel can be attacked, and Landlock "
			   "is not behind the view of the files");
	if (!cell_is_empty(cell))
		lint_found(l, NULL, LINT_SANDBOX_RUN,
			   "'sandbox' is for `sallyport run`: serve, guard, "
			   "exec and networks of docker do not look at it");
}
