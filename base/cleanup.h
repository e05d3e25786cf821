/* SPDX-License-Identifier: Apache-2.0
 *
 * cleanup.h - locals that release themselves when they leave scope.
 *
 *	AUTO_FREE char *text = strdup(s);
 *	AUTO_FD int fd = open(...);
 *	*ret_text = STEAL(text);	the caller owns it from here on
 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define AUTO_FREE __attribute__((cleanup(cleanup_free)))
#define AUTO_FD	  __attribute__((cleanup(cleanup_fd)))
#define AUTO_FILE __attribute__((cleanup(cleanup_file)))

#define STEAL(p)                             \
	({                                   \
		__typeof__(p) stolen_ = (p); \
		(p) = NULL;                  \
		stolen_;                     \
	})

static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

/* Closes *@fd if it is open and marks it closed. */
static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
