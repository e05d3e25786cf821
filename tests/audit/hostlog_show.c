/* SPDX-License-Identifier: Apache-2.0
 *
 * What hostlog_check() finds, a line for each session and each problem:
 *
 *	hostlog_show HOME [VKEY]
 */
#include <stdio.h>
#include <string.h>

#include "audit/hostlog_check.h"

static void show(void *arg, const struct hostlog_session *session)
{
	(void)arg;
	printf("%s %s %s\n", session->session,
	       hostlog_trouble_word(session->trouble), session->directory);
}

int main(int argc, char **argv)
{
	struct hostlog_checked checked;
	struct vkey vkey;
	int r;

	if (argc < 2 ||
	    (argc > 2 &&
	     vkey_parse((struct text){ argv[2], strlen(argv[2]) }, &vkey) < 0))
		return 2;
	r = hostlog_check(argv[1], argc > 2 ? &vkey : NULL, show, NULL,
			  &checked);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
		return 1;
	}
	for (size_t i = 0; i < checked.problems && i < HOSTLOG_PROBLEMS_MAX;
	     i++)
		printf("problem %s\n", checked.problem[i]);
	printf("records %llu covered %llu logs %u\n",
	       (unsigned long long)checked.records,
	       (unsigned long long)checked.covered, checked.logs);
	return 0;
}
