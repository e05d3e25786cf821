/* SPDX-License-Identifier: Apache-2.0
 *
 * scratch.h - a directory for a test, which ends with it.
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static inline int scratch_drop(const char *path, const struct stat *st,
			       int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Removes @path and all below it, and follows no link. 0 or -1. */
static inline int scratch_remove(const char *path)
{
	return nftw(path, scratch_drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes an empty directory, mode 0700, and writes its path into @buf of @cap
 * bytes. 0 or -1. */
static inline int scratch_make(char *buf, size_t cap)
{
	int len = snprintf(buf, cap, "/tmp/sallyport-test-XXXXXX");

	return len > 0 && (size_t)len < cap && mkdtemp(buf) ? 0 : -1;
}

#endif
