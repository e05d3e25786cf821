/* SPDX-License-Identifier: Apache-2.0
 *
 * policy_options.h - the options that say which policy is meant, the same in
 * all commands that take one.
 */
#ifndef CMD_POLICY_OPTIONS_H
#define CMD_POLICY_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>

#include "cmd/policy_file.h"

enum policy_option {
	POLICY_OPTION_ALLOW = 512,
	POLICY_OPTION_DENY,
	POLICY_OPTION_PERMIT,
	POLICY_OPTION_POLICY,
	POLICY_OPTION_OBSERVE,
};

/* For a table of getopt_long(). */
#define POLICY_OPTIONS                                                       \
	{ "allow", required_argument, NULL, POLICY_OPTION_ALLOW },           \
		{ "deny", required_argument, NULL, POLICY_OPTION_DENY },     \
		{ "permit", required_argument, NULL, POLICY_OPTION_PERMIT }, \
		{ "policy", required_argument, NULL, POLICY_OPTION_POLICY }, \
	{                                                                    \
		"observe", no_argument, NULL, POLICY_OPTION_OBSERVE          \
	}

extern const char policy_options_help[];

/* Adds what getopt_long() found to @choice; false if @code is none of ours.
 * @arg is kept. Dies where there is too much of it. */
bool policy_option(struct policy_choice *choice, int code, const char *arg);

/* Looks for a file where none was named and reads all of it, now, as it may
 * come by a pipe; dies with what is wrong. The caller frees *@ret_bundle. */
void policy_options_read(struct policy_choice *choice,
			 struct bundle *ret_bundle);

#endif
