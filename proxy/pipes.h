/* SPDX-License-Identifier: Apache-2.0
 *
 * pipes.h - pipes for splice(2), kept for reuse. One pool a thread.
 *
 * Only an empty pipe may be put back: what is left in one would come out in
 * somebody else's connection.
 */
#ifndef PROXY_PIPES_H
#define PROXY_PIPES_H

#include <stddef.h>

struct pipe_pair {
	struct pipe_pair *next; /* in the pool */
	int out, in;		/* read end, write end */
	size_t size;
};

/* At most so many at once a thread: kernel memory is pinned by their content.
 */
#define PIPES_MAX 128

/* NULL if there are too many, or the kernel gives us no pipe worth its while
 * (pipe-user-pages-soft): then copy. */
struct pipe_pair *pipes_take(void);
/* Puts an empty pipe back. NULL is fine. */
void pipes_put(struct pipe_pair *pair);
/* Closes one, with what is in it. NULL is fine. */
void pipes_drop(struct pipe_pair *pair);
/* Closes those that are in the pool. */
void pipes_free(void);

/* How many are taken, and how many lie in the pool: for tests. */
void pipes_count(size_t *ret_taken, size_t *ret_pooled);

#endif
