/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h - texts of others that people will read: names of files and hosts come
 * from policies, logs and the network.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* How many bytes the character at @text has, which ends in a NUL and is not
 * empty. Bad is what a terminal or an eye would obey rather than read:
 * controls, what has no width, directions of writing, and a byte that is no
 * UTF-8. */
size_t text_next(const char *text, bool *ret_bad);

/* Each bad character becomes a '?', in place; one that is cut off at the end
 * goes. */
void text_clean(char *text);

#endif
