/* SPDX-License-Identifier: Apache-2.0
 *
 * zalloc.h - calloc(3) of one object, for what comes and goes with each
 * connection: glibc's calloc does not take from the thread's own cache (before
 * 2.41), its malloc does.
 */
#ifndef BASE_ZALLOC_H
#define BASE_ZALLOC_H

#include <stdlib.h>
#include <string.h>

/* @size bytes of zeros, to be freed; NULL without memory. */
static inline void *zalloc(size_t size)
{
	void *p = malloc(size);

	/* A compiler that sees both makes a calloc(3) of it. */
	__asm__("" : "+r"(p));
	return p ? memset(p, 0, size) : NULL;
}

#endif
