/* SPDX-License-Identifier: Apache-2.0
 *
 * log_reader.h - somebody who may read a session's log, and do no more to it:
 * the user whose sandbox of the daemon it is.
 *
 * The files stay root's. An access control list lets one uid more read them; a
 * group would let in others, and an owner may change the mode of his file.
 */
#ifndef CMD_LOG_READER_H
#define CMD_LOG_READER_H

#include <stdbool.h>
#include <sys/types.h>

/* @fd is a file of ours, or (@dir) a directory: @uid may read it, too. 0 or
 * -errno: -EOPNOTSUPP where the file system has no such lists. */
int log_reader_add(int fd, bool dir, uid_t uid);

/* Who has a directory below @home can get there: others may pass through it,
 * but not list it. 0 or -errno. */
int log_reader_pass(const char *home);

#endif
