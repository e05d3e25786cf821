/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h - texts of others that people will read: names of files and hosts come
 * from policies, logs and the network.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>

/* How many bytes at @text, which ends in a NUL, a terminal or an eye would obey
 * rather than read: controls, what has no width, directions of writing. 0: they
 * are text. */
size_t text_bad(const char *text);

/* Each of them becomes a '?', in place; a character that is cut off at the end
 * goes. */
void text_clean(char *text);

#endif
