/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_work.c - a queue, a few threads, and an eventfd that wakes the loop.
 *
 * Long ones are done one at a time, so that whoever sends much waits for
 * himself, and a thread is left for the others. Who sends many has no thread
 * that somebody with fewer under way waits for: the disk may be slow.
 */
#include "cmd/daemon_work.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "cmd/turn.h"

#define THREADS	   3
#define LONG_BYTES ((size_t)1 << 20)

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	/* Under the lock: in order, those that run among them; what is done. */
	struct work *queue, **last, *finished, **last_finished;
	uint64_t turn; /* that came last: see turn.h */
	bool over;
	/* The loop's. */
	struct work *told; /* by .other: whatever .done was not called for */
	pthread_t thread[THREADS];
	size_t threads;
	int ready;
	struct event *event;
};

/* --- in a thread --------------------------------------------------------- */

/* Is there something before it that it has to wait for? */
static bool has_to_wait(const struct workers *w, const struct work *work)
{
	for (const struct work *before = w->queue; before != work;
	     before = before->next)
		if (*work->key && strcmp(before->key, work->key) == 0)
			return true;
	if (work->bytes <= LONG_BYTES)
		return false;
	for (const struct work *other = w->queue; other; other = other->next)
		if (other->running && other->bytes > LONG_BYTES)
			return true;
	return false;
}

/* Nobody is behind all of somebody else's. */
static struct work *next_work(struct workers *w)
{
	struct turn_choice choice = turn_choice();
	struct work *ret = NULL;

	for (const struct work *work = w->queue; work; work = work->next)
		if (work->running)
			turn_busy(&choice, work->uid);
	for (struct work *work = w->queue; work; work = work->next)
		if (!work->running && !has_to_wait(w, work) &&
		    turn_is_next(&choice, work->uid, work->turn))
			ret = work;
	if (ret && ret->turn > w->turn)
		w->turn = ret->turn;
	return ret;
}

/* Behind what its user has there already. */
static void take_turn(const struct workers *w, struct work *work)
{
	work->turn = w->turn + 1;
	for (const struct work *other = w->queue; other; other = other->next)
		if (other->uid == work->uid && other->turn >= work->turn)
			work->turn = other->turn + 1;
}

static void finish(struct workers *w, struct work *work)
{
	struct work **at = &w->queue;

	while (*at != work)
		at = &(*at)->next;
	*at = work->next;
	if (w->last == &work->next)
		w->last = at;
	work->next = NULL;
	*w->last_finished = work;
	w->last_finished = &work->next;
	eventfd_write(w->ready, 1);
	/* Others may have waited for it. */
	pthread_cond_broadcast(&w->wanted);
}

static void *serve(void *arg)
{
	struct workers *w = arg;
	struct work *work;

	pthread_mutex_lock(&w->lock);
	while (!w->over) {
		work = next_work(w);
		if (!work) {
			pthread_cond_wait(&w->wanted, &w->lock);
			continue;
		}
		work->running = true;
		pthread_mutex_unlock(&w->lock);
		work->run(work);
		pthread_mutex_lock(&w->lock);
		finish(w, work);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* --- in the loop --------------------------------------------------------- */

static void forget(struct workers *w, const struct work *work)
{
	struct work **at = &w->told;

	while (*at != work)
		at = &(*at)->other;
	*at = work->other;
}

static void tell_finished(struct workers *w)
{
	struct work *work;

	pthread_mutex_lock(&w->lock);
	work = w->finished;
	w->finished = NULL;
	w->last_finished = &w->finished;
	pthread_mutex_unlock(&w->lock);
	while (work) {
		struct work *next = work->next;

		forget(w, work);
		work->done(work);
		work = next;
	}
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	eventfd_t n;

	(void)what;
	(void)eventfd_read(fd, &n);
	tell_finished(arg);
}

void work_add(struct workers *w, struct work *work)
{
	work->running = false;
	work->next = NULL;
	work->other = w->told;
	w->told = work;
	pthread_mutex_lock(&w->lock);
	take_turn(w, work);
	*w->last = work;
	w->last = &work->next;
	pthread_cond_signal(&w->wanted);
	pthread_mutex_unlock(&w->lock);
}

size_t work_bytes(const struct workers *w, uid_t uid)
{
	size_t bytes = 0;

	for (const struct work *work = w->told; work; work = work->other)
		if (work->uid == uid)
			bytes += work->bytes;
	return bytes;
}

/* --- all of it ----------------------------------------------------------- */

int work_open(struct event_base *base, struct workers **ret)
{
	struct workers *w = calloc(1, sizeof(*w));
	int err = 0;

	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wanted, NULL);
	w->last = &w->queue;
	w->last_finished = &w->finished;
	w->ready = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->ready < 0)
		err = -errno;
	if (!err)
		w->event = event_new(base, w->ready, EV_READ | EV_PERSIST,
				     on_ready, w);
	if (!err && (!w->event || event_add(w->event, NULL)))
		err = -ENOMEM;
	while (!err && w->threads < THREADS) {
		err = -pthread_create(&w->thread[w->threads], NULL, serve, w);
		w->threads += !err;
	}
	if (err)
		work_close(w);
	else
		*ret = w;
	return err;
}

void work_close(struct workers *w)
{
	struct pollfd p;

	if (!w)
		return;
	p = (struct pollfd){ .fd = w->ready, .events = POLLIN };
	while (w->told && w->threads) {
		(void)poll(&p, 1, -1);
		on_ready(w->ready, EV_READ, w);
	}
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_cond_broadcast(&w->wanted);
	pthread_mutex_unlock(&w->lock);
	while (w->threads)
		pthread_join(w->thread[--w->threads], NULL);
	if (w->event)
		event_free(w->event);
	close_fd(&w->ready);
	pthread_cond_destroy(&w->wanted);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
