/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_cell.c - `sandbox:` of two policies.
 */
#include <stdio.h>

#include "policy/diff_impl.h"
#include "policy/explain_rule.h"

static void changed(struct differ *d, const char *what, enum diff_way way,
		    const char *was, const char *is)
{
	char detail[400];

	snprintf(detail, sizeof(detail), "%.190s -> %.190s", was, is);
	diff_add(d, &(struct difference){ .sign = DIFF_CHANGED,
					  .kind = DIFF_SETTING,
					  .what = (char *)what,
					  .way = way,
					  .detail = detail });
}

static void flag(struct differ *d, const char *what, enum said was,
		 enum said is, const char *no, const char *yes)
{
	bool a = was == SAID_YES, b = is == SAID_YES;

	if (a != b)
		changed(d, what, b ? DIFF_WIDER : DIFF_NARROWER, a ? yes : no,
			b ? yes : no);
}

static const char *amount(uint64_t n, bool bytes, char *buf, size_t cap)
{
	if (!n)
		return "unlimited";
	if (bytes)
		return size_format(n, buf, cap);
	snprintf(buf, cap, "%llu", (unsigned long long)n);
	return buf;
}

/* 0: no limit. */
static void limit(struct differ *d, const char *what, uint64_t was, uint64_t is,
		  bool bytes)
{
	char a[40], b[40];

	if (was != is)
		changed(d, what,
			!is || (was && is > was) ? DIFF_WIDER : DIFF_NARROWER,
			amount(was, bytes, a, sizeof(a)),
			amount(is, bytes, b, sizeof(b)));
}

/* What @of has, and the other one does not. */
static void entries(struct differ *d, const struct cell_list *of,
		    const struct cell_list *other, bool env, bool new)
{
	for (size_t i = 0; i < of->count; i++) {
		const struct cell_entry *e = &of->at[i];
		bool hides = !env && e->access == CELL_HIDE;
		char what[40];

		if (cell_has(other, e))
			continue;
		snprintf(what, sizeof(what), "sandbox.%s",
			 env ? "env" : cell_access_word(e->access));
		changed(d, what, new != hides ? DIFF_WIDER : DIFF_NARROWER,
			new ? "not there" : e->text,
			new ? e->text : "not there");
	}
}

void diff_cell(struct differ *d)
{
	const struct cell *was = policy_cell(d->policy[WAS]);
	const struct cell *is = policy_cell(d->policy[IS]);
	const struct cell_said *a = &was->said, *b = &is->said;

	flag(d, "sandbox.fs", a->host_files, b->host_files, "private", "host");
	flag(d, "sandbox.nest", a->nest, b->nest, "false", "true");
	entries(d, &was->path, &is->path, false, false);
	entries(d, &is->path, &was->path, false, true);
	entries(d, &was->env, &is->env, true, false);
	entries(d, &is->env, &was->env, true, true);
	limit(d, "sandbox.memory", a->memory, b->memory, true);
	limit(d, "sandbox.pids", a->pids, b->pids, false);
	limit(d, "sandbox.cpus (thousandths)", a->cpus, b->cpus, false);
	limit(d, "sandbox.fsize", a->fsize, b->fsize, true);
	limit(d, "sandbox.nofile", a->nofile, b->nofile, false);
	limit(d, "sandbox.timeout (s)", a->timeout_s, b->timeout_s, false);
}
