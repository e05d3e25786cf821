/* SPDX-License-Identifier: Apache-2.0
 *
 * path.h - path patterns of rules for plain HTTP: inside policy/ only.
 *
 *	/v1/models	that path
 *	/repos/ * /tags	'*' is one segment, not empty (written without blanks)
 *	/files/ **	everything below /files/, at any depth; last only
 *
 * Case counts. The query is not looked at.
 */
#ifndef POLICY_PATH_H
#define POLICY_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* What is wrong with @pattern, for people; NULL if nothing is. */
const char *path_pattern_fault(const char *pattern);

/* May servers disagree on what the canonical @path (@len bytes, without query)
 * means? Escaped separators and escapes (%2f %5c %25 %3b %00), parameters,
 * backslashes, and empty segments other than the last. */
bool path_ambiguous(const char *path, size_t len);

bool path_matches(const char *pattern, const char *path, size_t len);

#endif
