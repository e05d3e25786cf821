/* SPDX-License-Identifier: Apache-2.0
 *
 * A statement, as it lies in an envelope that somebody signed. One that is
 * taken has subjects, each with a digest.
 */
#include "audit/statement.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct text body = { (const char *)data, size };
	json_t *statement = NULL;
	const json_t *list;
	int r = statement_parse(body, "https://type.example/v1", &statement);

	if (r < 0) {
		if ((r != -EBADMSG && r != -ENOMSG) || statement)
			abort();
		return 0;
	}
	list = json_object_get(statement, "subject");
	if (!json_array_size(list) || statement_digest(statement, ""))
		abort();
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(
			json_object_get(json_array_get(list, i), "name"));
		const char *digest = statement_digest(statement, name);

		if (!digest || strlen(digest) != 64)
			abort();
	}
	json_decref(statement);
	return 0;
}
