/* SPDX-License-Identifier: Apache-2.0
 *
 * log_find.h - which file is meant by a log's name.
 */
#ifndef CMD_LOG_FIND_H
#define CMD_LOG_FIND_H

#include <limits.h>
#include <stdbool.h>

/* @what: a file, the directory of a session, its id or --name (the newest that
 * had it); NULL: the newest session below the state directory. Dies with a
 * message (EXIT_SALLYPORT) if there is none. Returns true if all parts of the
 * log are meant, of which @ret_path is the newest; false: that file. */
bool log_find(const char *what, char ret_path[PATH_MAX]);

#endif
