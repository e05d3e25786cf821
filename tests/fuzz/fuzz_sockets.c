/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's table of unix sockets: its lines are the kernel's, the names at
 * their ends are those of whoever made the sockets, line breaks and all. What
 * is found is a path, and stands in the table.
 */
#include "launch/sockets.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockets found = { 0 };
	AUTO_FREE char *table = malloc(size + 1);

	if (!table)
		abort();
	memcpy(table, data, size);
	table[size] = '\0';
	if (sockets_parse(&found, table) < 0)
		abort();
	for (size_t i = 0; i < found.n; i++)
		if (*found.path[i] != '/' || !strstr(table, found.path[i]))
			abort();
	sockets_free(&found);
	return 0;
}
