/* SPDX-License-Identifier: Apache-2.0
 *
 * policy_marks.h - policy files in a directory that a running command may write
 * to, and what became of them.
 *
 * Each is masked there, but only as long as it is the same file: an editor that
 * puts another one in its place takes the mask away. So a session notes which
 * files it masked, in HOME/masked/ID; takes the note back at its end if they
 * are still the same; and else, or if it never came to its end, nobody reads
 * another file of that name before somebody looked at it.
 */
#ifndef CMD_POLICY_MARKS_H
#define CMD_POLICY_MARKS_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/bundle.h"

struct policy_marks {
	char *note; /* its path; NULL: nothing was marked */
	char **path;
	int *fd; /* of each: keeps its inode number from being used again */
	size_t n;
};

/* Notes, before the command starts, @path (all of it canonical) in the state
 * directory @home, under the name of the session @id. 0 or -errno. */
int policy_marks_add(struct policy_marks *marks, const char *home,
		     const char *id, const char *path);

/* The command has ended. Returns the first path that it could have written to,
 * or NULL; the note then is gone. */
const char *policy_marks_settle(struct policy_marks *marks);

void policy_marks_free(struct policy_marks *marks);

/* Could the command of another session have written to @path? 0, or -EINVAL and
 * @reterr. */
int policy_marks_check(const char *home, const char *path,
		       struct policy_error *reterr);

#endif
