/* SPDX-License-Identifier: Apache-2.0
 *
 * lint_listed.c - look-ups in the compiled-in policy/lint/listed.txt: one
 * binary search for each label.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/hostname.h"
#include "policy/lint_impl.h"

static int compare(const void *key, const void *entry)
{
	return strcmp(key, ((const struct lint_entry *)entry)->domain);
}

const struct lint_entry *lint_lookup(const char *host)
{
	while (*host) {
		const struct lint_entry *entry =
			bsearch(host, lint_table, lint_table_count,
				sizeof(lint_table[0]), compare);
		const char *dot = strchr(host, '.');

		if (entry || !dot)
			return entry;
		host = dot + 1;
	}
	return NULL;
}

bool lint_below(size_t i, const char *apex)
{
	return host_below(lint_table[i].domain, apex);
}
