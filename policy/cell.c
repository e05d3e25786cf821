/* SPDX-License-Identifier: Apache-2.0
 *
 * cell.c - see cell.h.
 */
#include "policy/cell.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/explain_rule.h"
#include "policy/rule.h"

const struct cell *policy_cell(const struct policy *policy)
{
	return &policy->cell;
}

const char *cell_access_word(enum cell_access access)
{
	static const char *const words[] = {
		[CELL_HIDE] = "hide", [CELL_RO] = "ro", [CELL_RW] = "rw"
	};

	return words[access];
}

int cell_add(struct cell_list *list, const char *text, const char *origin,
	     enum cell_access access)
{
	struct cell_entry *grown =
		reallocarray(list->at, list->count + 1, sizeof(*grown));
	struct cell_entry *entry;

	if (!grown)
		return -ENOMEM;
	list->at = grown;
	entry = &grown[list->count++];
	*entry = (struct cell_entry){ .text = strdup(text),
				      .origin = strdup(origin),
				      .access = access };
	return entry->text && entry->origin ? 0 : -ENOMEM;
}

static void free_list(struct cell_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->at[i].text);
		free(list->at[i].origin);
	}
	free(list->at);
}

void cell_free(struct cell *cell)
{
	free_list(&cell->path);
	free_list(&cell->env);
	*cell = (struct cell){ 0 };
}

/* --- the stricter one ---------------------------------------------------- */

static void smaller(unsigned *to, unsigned more)
{
	if (more && (!*to || more < *to))
		*to = more;
}

static void smaller_bytes(uint64_t *to, uint64_t more)
{
	if (more && (!*to || more < *to))
		*to = more;
}

static void one_refuses(enum said *to, enum said more)
{
	if (more == SAID_NO || *to == SAID_NOTHING)
		*to = more;
}

void cell_stricter(struct cell_said *to, const struct cell_said *more)
{
	one_refuses(&to->host_files, more->host_files);
	one_refuses(&to->nest, more->nest);
	smaller_bytes(&to->memory, more->memory);
	smaller_bytes(&to->fsize, more->fsize);
	smaller(&to->pids, more->pids);
	smaller(&to->nofile, more->nofile);
	smaller(&to->cpus, more->cpus);
	smaller(&to->timeout_s, more->timeout_s);
}

/* --- two of them --------------------------------------------------------- */

static bool same_said(const struct cell_said *a, const struct cell_said *b)
{
	return a->host_files == b->host_files && a->nest == b->nest &&
	       a->memory == b->memory && a->fsize == b->fsize &&
	       a->pids == b->pids && a->nofile == b->nofile &&
	       a->cpus == b->cpus && a->timeout_s == b->timeout_s;
}

bool cell_has(const struct cell_list *list, const struct cell_entry *entry)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->at[i].access == entry->access &&
		    strcmp(list->at[i].text, entry->text) == 0)
			return true;
	return false;
}

static bool has_all(const struct cell_list *list, const struct cell_list *of)
{
	for (size_t i = 0; i < of->count; i++)
		if (!cell_has(list, &of->at[i]))
			return false;
	return true;
}

bool cell_same(const struct cell *a, const struct cell *b)
{
	return same_said(&a->said, &b->said) && has_all(&a->path, &b->path) &&
	       has_all(&b->path, &a->path) && has_all(&a->env, &b->env) &&
	       has_all(&b->env, &a->env);
}

bool cell_is_empty(const struct cell *cell)
{
	static const struct cell_said nothing;

	return !cell->path.said && !cell->env.said &&
	       same_said(&cell->said, &nothing);
}

/* --- for people ---------------------------------------------------------- */

struct line {
	char *buf;
	size_t len, cap;
};

static void __attribute__((format(printf, 2, 3)))
put(struct line *line, const char *format, ...)
{
	size_t room = line->cap - line->len;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(line->buf + line->len, room, format, ap);
	va_end(ap);
	line->len += n < 0 || (size_t)n >= room ? room - 1 : (size_t)n;
}

/* "; rw a, b" */
static void put_list(struct line *line, const struct cell_list *list,
		     enum cell_access access, const char *what)
{
	bool first = true;

	for (size_t i = 0; i < list->count; i++) {
		if (list->at[i].access != access)
			continue;
		if (first)
			put(line, "%s%s %s", line->len ? "; " : "", what,
			    list->at[i].text);
		else
			put(line, ", %s", list->at[i].text);
		first = false;
	}
}

static void put_word(struct line *line, const char *what, const char *word)
{
	put(line, "%s%s %s", line->len ? "; " : "", what, word);
}

static void put_size(struct line *line, const char *what, uint64_t bytes)
{
	char text[40];

	if (bytes)
		put_word(line, what, size_format(bytes, text, sizeof(text)));
}

static void put_count(struct line *line, const char *what, unsigned n)
{
	if (n)
		put(line, "%s%s %u", line->len ? "; " : "", what, n);
}

void cell_describe(const struct cell *cell, char *buf, size_t cap)
{
	const struct cell_said *said = &cell->said;
	struct line line = { .buf = buf, .cap = cap };

	*buf = '\0';
	if (said->host_files)
		put_word(&line, "fs",
			 said->host_files == SAID_YES ? "host" : "private");
	if (said->nest)
		put_word(&line, "nest",
			 said->nest == SAID_YES ? "true" : "false");
	put_list(&line, &cell->path, CELL_RW, "rw");
	put_list(&line, &cell->path, CELL_RO, "ro");
	put_list(&line, &cell->path, CELL_HIDE, "hide");
	put_list(&line, &cell->env, CELL_HIDE, "env");
	put_size(&line, "memory", said->memory);
	put_count(&line, "pids", said->pids);
	if (said->cpus)
		put(&line, "%scpus %u.%03u", line.len ? "; " : "",
		    said->cpus / 1000, said->cpus % 1000);
	put_size(&line, "fsize", said->fsize);
	put_count(&line, "nofile", said->nofile);
	if (said->timeout_s)
		put(&line, "%stimeout %us", line.len ? "; " : "",
		    said->timeout_s);
}
