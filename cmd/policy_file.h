/* SPDX-License-Identifier: Apache-2.0
 *
 * policy_file.h - which policy is in force, and reading it.
 *
 * Files named by --policy; else $SALLYPORT_POLICY; else policy.yaml of the
 * user's configuration, if it is there; else nothing is allowed. Never one of
 * the working directory. What the options say is added to any of them.
 */
#ifndef CMD_POLICY_FILE_H
#define CMD_POLICY_FILE_H

#include <limits.h>

#include "policy/bundle.h"

#define POLICY_PATHS_MAX 16

struct policy_choice {
	const char *path[POLICY_PATHS_MAX]; /* --policy, or the one found */
	size_t paths;
	char found[PATH_MAX];
	/* --allow, --deny, --permit, --observe, in order. */
	struct bundle words;
	bool again;  /* we are at work: only what can be read without waiting */
	bool allows; /* one of the words is not a restriction */
};

/* Where nothing was named, looks for a file, and fills in choice->path. 0, or
 * -EINVAL and @reterr for one that must not be followed. */
int policy_choose(struct policy_choice *choice, struct policy_error *reterr);

/* Reads it all, now; may be done again later. The caller frees *@ret_bundle. 0,
 * -EINVAL and @reterr, or -ENOMEM. */
int policy_read(const struct policy_choice *choice, struct bundle *ret_bundle,
		struct policy_error *reterr);

/* Could the command of another session have written to a file of @bundle? 0, or
 * -EINVAL and @reterr. policy_read() asks, unless choice->again: who is at work
 * looks first what its own command could do, and says it better. */
int policy_check_marks(const struct bundle *bundle,
		       struct policy_error *reterr);

void policy_choice_free(struct policy_choice *choice);

/* The directory that policy.yaml would be in; false if there is no HOME. */
bool policy_config_dir(char *buf, size_t cap);

/* "a.yaml, b.yaml, --allow ...": what @bundle, read by @choice, is made of. */
void policy_describe(const struct policy_choice *choice,
		     const struct bundle *bundle, char *buf, size_t cap);

#endif
