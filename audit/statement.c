/* SPDX-License-Identifier: Apache-2.0
 *
 * statement.c - in-toto Statement v1.
 */
#include "audit/statement.h"

#include <errno.h>
#include <string.h>

static const char statement_type[] = "https://in-toto.io/Statement/v1";

void statement_open(struct json *j, const struct statement_subject *subjects,
		    size_t count, const char *predicate_type)
{
	json_open(j, NULL, '{');
	json_text(j, "_type", statement_type);
	json_open(j, "subject", '[');
	for (size_t i = 0; i < count; i++) {
		json_open(j, NULL, '{');
		json_text(j, "name", subjects[i].name);
		json_open(j, "digest", '{');
		json_text(j, "sha256", subjects[i].sha256);
		json_close(j, '}');
		json_close(j, '}');
	}
	json_close(j, ']');
	json_text(j, "predicateType", predicate_type);
	json_open(j, "predicate", '{');
}

void statement_close(struct json *j)
{
	json_close(j, '}');
	json_close(j, '}');
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static const char *digest_of(const json_t *subject)
{
	return text_of(json_object_get(subject, "digest"), "sha256");
}

const char *statement_digest(const json_t *statement, const char *name)
{
	const json_t *list = json_object_get(statement, "subject");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *subject = json_array_get(list, i);

		if (strcmp(text_of(subject, "name"), name) == 0)
			return digest_of(subject);
	}
	return NULL;
}

/* Each subject has a name of its own and a digest. */
static bool subjects_ok(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *subject = json_array_get(list, i);
		const char *name = text_of(subject, "name");
		const char *digest = digest_of(subject);

		if (!name || !*name || !digest || strlen(digest) != 64 ||
		    strspn(digest, "0123456789abcdef") != 64)
			return false;
		for (size_t k = 0; k < i; k++) {
			if (strcmp(text_of(json_array_get(list, k), "name"),
				   name) == 0)
				return false;
		}
	}
	return json_array_size(list);
}

int statement_parse(struct text body, const char *predicate_type,
		    json_t **ret_statement)
{
	json_t *statement =
		json_loadb(body.at, body.len, JSON_REJECT_DUPLICATES, NULL);
	const char *type = text_of(statement, "_type");
	const char *predicate = text_of(statement, "predicateType");
	int r = 0;

	if (!type || strcmp(type, statement_type) != 0 || !predicate ||
	    !json_is_object(json_object_get(statement, "predicate")) ||
	    !subjects_ok(json_object_get(statement, "subject")))
		r = -EBADMSG;
	else if (strcmp(predicate, predicate_type) != 0)
		r = -ENOMSG;
	if (r < 0)
		json_decref(statement);
	else
		*ret_statement = statement;
	return r;
}
