/* SPDX-License-Identifier: Apache-2.0
 *
 * cell_json.c - `sandbox:` as JSON, which the loader reads as well.
 */
#include <stdio.h>

#include "base/json.h"
#include "policy/cell.h"

static void put_list(struct json *j, const char *key,
		     const struct cell_list *list, enum cell_access access)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < list->count; i++)
		if (list->at[i].access == access)
			json_text(j, NULL, list->at[i].text);
	json_close(j, ']');
}

static void put_number(struct json *j, const char *key, uint64_t n)
{
	if (n)
		json_uint(j, key, n);
}

void cell_json(const struct cell *cell, struct json *j)
{
	const struct cell_said *said = &cell->said;
	char cpus[24];

	json_open(j, NULL, '{');
	if (said->host_files)
		json_text(j, "fs",
			  said->host_files == SAID_YES ? "host" : "private");
	if (said->nest)
		json_text(j, "nest", said->nest == SAID_YES ? "true" : "false");
	if (cell->says_rw)
		put_list(j, "rw", &cell->path, CELL_RW);
	if (cell->says_ro)
		put_list(j, "ro", &cell->path, CELL_RO);
	put_list(j, "hide", &cell->path, CELL_HIDE);
	if (cell->env.said)
		put_list(j, "env", &cell->env, CELL_HIDE);
	put_number(j, "memory", said->memory);
	put_number(j, "pids", said->pids);
	put_number(j, "fsize", said->fsize);
	put_number(j, "nofile", said->nofile);
	put_number(j, "timeout", said->timeout_s);
	snprintf(cpus, sizeof(cpus), "%u.%03u", said->cpus / 1000,
		 said->cpus % 1000);
	if (said->cpus)
		json_text(j, "cpus", cpus);
	json_close(j, '}');
}
