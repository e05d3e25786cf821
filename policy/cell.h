/* SPDX-License-Identifier: Apache-2.0
 *
 * cell.h - what a policy says of the command itself, beside what it may reach:
 * the `sandbox:` section. Whoever runs commands bounds them by it (`run`);
 * paths are as written, made relative to the file that names them, or begin
 * with "~": they are the launcher's to look for.
 *
 * What narrows (hide, the limits) counts from any file, the strictest. What
 * opens (rw, ro, env, fs: host, nest: true) counts only in a file that our user
 * named himself; elsewhere it is an error (load_cell.c).
 */
#ifndef POLICY_CELL_H
#define POLICY_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CELL_PATHS_MAX 48
#define CELL_ENV_MAX   128
/* As --timeout. */
#define CELL_TIMEOUT_MAX_S (30u * 86400)
/* Less than that not even bubblewrap can do with. */
#define CELL_MEMORY_MIN (4u << 20)
#define CELL_PIDS_MAX	(1u << 22)
#define CELL_NOFILE_MAX (1u << 20)

struct policy;

/* Yes, no, or nothing said. */
enum said { SAID_NOTHING, SAID_NO, SAID_YES };

/* What is said once. Numbers are 0 where nothing is said. */
struct cell_said {
	enum said host_files; /* fs: private is no, host is yes */
	enum said nest;
	uint64_t memory, fsize; /* bytes */
	unsigned pids, nofile;
	unsigned cpus; /* thousandths of one */
	uint32_t timeout_s;
};

enum cell_access { CELL_HIDE, CELL_RO, CELL_RW };

struct cell_entry {
	char *text;   /* a path, or the name of a variable */
	char *origin; /* "policy.yaml:12:9" */
	enum cell_access access;
};

struct cell_list {
	struct cell_entry *at;
	size_t count;
	bool said; /* also where it is empty: a ceiling's [] allows none */
};

struct cell {
	struct cell_said said;
	struct cell_list path, env;
	bool says_rw, says_ro;
};

/* The section of @policy itself, never NULL; the policy owns it. */
const struct cell *policy_cell(const struct policy *policy);
/* That of its ceiling, or NULL. A key that is there restricts: the limits, `fs:
 * private` and `nest: false` hold, what it hides is hidden, and rw, ro and env
 * are the only ones there are. */
const struct cell *policy_ceiling_cell(const struct policy *policy);

/* Is nothing said at all? */
bool cell_is_empty(const struct cell *cell);
/* Is there one in @list that says the same? */
bool cell_has(const struct cell_list *list, const struct cell_entry *entry);
/* Do both ask for the same, whatever their files are called? */
bool cell_same(const struct cell *a, const struct cell *b);

/* @to becomes the stricter of both; no beats yes, and yes nothing. */
void cell_stricter(struct cell_said *to, const struct cell_said *more);

/* "fs host; rw a, b; memory 2147483648; ...": in one line for people, cut; ""
 * where nothing is said. */
void cell_describe(const struct cell *cell, char *buf, size_t cap);

struct json;
/* As JSON, which a policy may have after "sandbox: " as it is. */
void cell_json(const struct cell *cell, struct json *j);

const char *cell_access_word(enum cell_access access);

/* Copies. 0, or -ENOMEM. */
int cell_add(struct cell_list *list, const char *text, const char *origin,
	     enum cell_access access);
void cell_free(struct cell *cell);

#endif
