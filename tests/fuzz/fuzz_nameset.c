/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_nameset.c - bytes as a list of names. What was read is asked for, and
 * every answer compared with that of a plain search through the entries.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/hostname.h"
#include "policy/nameset.h"

#define ASKED_MAX 64 /* entries, as a plain search is slow */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The line that decides on @host, 0 for none; *@ret_name is where the listed
 * part begins. */
static uint32_t search(const struct nameset *set, const char *host,
		       const char **ret_name)
{
	for (const char *part = host; part;) {
		struct nameset_cursor cursor = { 0 };
		struct nameset_item item;
		int kind = part == host ? NAMESET_EXACT : NAMESET_BELOW;

		while (nameset_next(set, &cursor, &item)) {
			if (item.kind & kind && strcmp(item.name, part) == 0) {
				*ret_name = part;
				return item.line;
			}
		}
		part = strchr(part, '.');
		if (part)
			part++;
	}
	return 0;
}

static void ask(const struct nameset *set, const char *host)
{
	struct nameset_hit hit = { 0 };
	const char *name = NULL;
	uint32_t line = search(set, host, &name);

	if (nameset_find(set, host, &hit) != (line != 0))
		abort();
	if (line && (nameset_line(set, &hit) != line || hit.name != name ||
		     hit.exact != (name == host)))
		abort();
}

static void ask_around(const struct nameset *set, const char *name)
{
	char host[HOST_MAX + 3];
	const char *dot = strchr(name, '.');

	ask(set, name);
	if (dot)
		ask(set, dot + 1);
	if (snprintf(host, sizeof(host), "x.%s", name) <= HOST_MAX)
		ask(set, host);
	if (snprintf(host, sizeof(host), "x%s", name) <= HOST_MAX)
		ask(set, host);
}

static void check(const struct nameset *set)
{
	struct nameset_cursor cursor = { 0 };
	struct nameset_item item;
	uint32_t line = 1;
	size_t n = 0;

	while (nameset_next(set, &cursor, &item)) {
		char again[HOST_MAX + 1];

		if (!host_canonical(item.name, strlen(item.name), again) ||
		    strcmp(item.name, again) != 0)
			abort();
		if (item.line < line || !item.kind ||
		    item.kind > (NAMESET_EXACT | NAMESET_BELOW))
			abort();
		line = item.line;
		if (n++ < ASKED_MAX)
			ask_around(set, item.name);
	}
	if (n != nameset_count(set))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nameset *set = NULL;
	struct nameset_report report;
	int ret = nameset_new((const char *)data, size, &set, &report);

	if (ret < 0) {
		if (set || ret != -EINVAL || !report.skipped || report.names)
			abort();
		return 0;
	}
	if (report.names != nameset_count(set) ||
	    !report.skipped != !report.first_skipped_line)
		abort();
	check(set);
	nameset_free(set);
	return 0;
}
