/* SPDX-License-Identifier: Apache-2.0
 *
 * pipes.c - pipes for splice(2), kept for reuse.
 *
 * A relay holds a pipe only while bytes are in it, so that a handful serves
 * any number of connections, and the one used last is still in the cache.
 * 1 MiB a pipe: with the kernel's 64 KiB bulk costs 2.6 times as much.
 *
 * #syscalls pipe2 fcntl close rt_sigaction
 */
#include "proxy/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define PIPE_WANTED    (1 << 20)
#define PIPE_LEAST     (1 << 16)
#define PIPES_POOL_MAX 32
/* Once the kernel refused one, this many callers copy before we ask again. */
#define PIPES_BACK_OFF 256

static _Thread_local struct pipe_pair *pool;
static _Thread_local size_t pooled, taken;
static _Thread_local unsigned back_off;

/* splice(2) to a closed socket raises SIGPIPE and has no flag against it. Our
 * processes ignore it anyway; a program that links us need not know. */
static void ignore_sigpipe(void)
{
	static bool looked;
	struct sigaction old;

	if (looked)
		return;
	looked = true;
	if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
}

static struct pipe_pair *make(void)
{
	struct pipe_pair *pair = calloc(1, sizeof(*pair));
	int fds[2], size;

	if (!pair)
		return NULL;
	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0) {
		free(pair);
		return NULL;
	}
	ignore_sigpipe();
	pair->out = fds[0];
	pair->in = fds[1];
	size = fcntl(pair->in, F_SETPIPE_SZ, PIPE_WANTED);
	if (size < 0)
		size = fcntl(pair->in, F_GETPIPE_SZ);
	if (size < PIPE_LEAST) {
		close(pair->out);
		close(pair->in);
		free(pair);
		return NULL;
	}
	pair->size = (size_t)size;
	return pair;
}

struct pipe_pair *pipes_take(void)
{
	struct pipe_pair *pair = pool;

	if (taken >= PIPES_MAX)
		return NULL;
	if (pair) {
		pool = pair->next;
		pair->next = NULL;
		pooled--;
	} else if (back_off) {
		back_off--;
	} else {
		pair = make();
		back_off = pair ? 0 : PIPES_BACK_OFF;
	}
	if (pair)
		taken++;
	return pair;
}

static void destroy(struct pipe_pair *pair)
{
	close(pair->out);
	close(pair->in);
	free(pair);
}

void pipes_drop(struct pipe_pair *pair)
{
	if (!pair)
		return;
	taken--;
	destroy(pair);
}

void pipes_put(struct pipe_pair *pair)
{
	if (!pair)
		return;
	if (pooled >= PIPES_POOL_MAX) {
		pipes_drop(pair);
		return;
	}
	taken--;
	pair->next = pool;
	pool = pair;
	pooled++;
}

void pipes_free(void)
{
	while (pool) {
		struct pipe_pair *pair = pool;

		pool = pair->next;
		pooled--;
		destroy(pair);
	}
}

void pipes_count(size_t *ret_taken, size_t *ret_pooled)
{
	*ret_taken = taken;
	*ret_pooled = pooled;
}
