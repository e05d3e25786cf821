/* SPDX-License-Identifier: Apache-2.0
 *
 * statement.h - in-toto Statement v1: what a signed claim is about, by digest,
 * and the claim.
 *
 *	{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":...,
 *	 "digest":{"sha256":...}}],"predicateType":...,"predicate":{...}}
 */
#ifndef AUDIT_STATEMENT_H
#define AUDIT_STATEMENT_H

#include <jansson.h>

#include "audit/text.h"
#include "base/json.h"

/* The type of the DSSE envelope around it. */
#define STATEMENT_MEDIA_TYPE "application/vnd.in-toto+json"

struct statement_subject {
	const char *name;
	const char *sha256; /* 64 lower-case hexadecimal digits */
};

/* Writes all up to the predicate's first member; the caller writes those, then
 * ends with statement_close(). */
void statement_open(struct json *j, const struct statement_subject *subjects,
		    size_t count, const char *predicate_type);
void statement_close(struct json *j);

/* Reads a statement of that predicate type. Returns 0 and an object that the
 * caller releases; -EBADMSG if it is no statement, or a subject has no name or
 * no such digest, or two have one name; -ENOMSG of another predicate type. */
int statement_parse(struct text body, const char *predicate_type,
		    json_t **ret_statement);

/* The digest of the subject @name; NULL if it says nothing about it. */
const char *statement_digest(const json_t *statement, const char *name);

#endif
