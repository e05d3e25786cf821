/* SPDX-License-Identifier: Apache-2.0
 *
 * seal.c - one thread that syncs, signs and appends, on a job at a time.
 *
 * The job is a copy of the tree's head (2 kB), taken when all of its leaves
 * were in files. Who has the job has the checkpoints' file, the key and what
 * is remembered of checkpoints: the thread while `state` is SEAL_BUSY, else
 * the caller. So there is nothing else to lock.
 */
#include "audit/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/checkpoint.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define STACK	 (512 * 1024)
#define DROP_MIN (256 * 1024) /* bytes of the log */
#define PAGE	 65536	      /* a multiple of any machine's */

enum seal_state {
	SEAL_IDLE, /* next: busy, stop */
	SEAL_BUSY, /* the thread has the job; next: idle */
	SEAL_STOP, /* the thread ends */
};

struct seal {
	struct key *key;
	int fd, event;
	bool durable, thread;
	pthread_t id;
	/* Of the caller alone. */
	uint64_t begun;	    /* leaves that are signed, or about to be */
	uint64_t oldest_ms; /* when a leaf after those was first seen; */
	bool waiting;	    /* if there is one */
	uint64_t next_ms;   /* seal_turn() begins none before */
	/* Of who has the job. */
	int log;
	off_t dropped; /* of the log: not in memory any more */
	struct merkle tree;
	off_t size;	/* of the file, all of it whole checkpoints; */
	uint64_t count; /* so many */
	char first[CHECKPOINT_NOTE_MAX], last[CHECKPOINT_NOTE_MAX];
	/* Of both. */
	_Atomic uint64_t last_ms;
	/* Under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum seal_state state;
	int failed; /* the -errno that ended it, or 0 */
	bool ended; /* the event says so, too */
};

int seal_new(struct key *key, int fd, bool durable, struct seal **ret_seal)
{
	AUTO_FD int taken = fd;
	AUTO_FD int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct seal *seal = NULL;
	struct stat st;
	int r = 0;

	if (event < 0 || fstat(taken, &st) < 0)
		r = -errno;
	else if (!(seal = calloc(1, sizeof(*seal))))
		r = -ENOMEM;
	if (r < 0) {
		key_free(key);
		return r;
	}
	seal->key = key;
	seal->fd = steal_fd(&taken);
	seal->event = steal_fd(&event);
	seal->durable = durable;
	seal->size = st.st_size;
	pthread_mutex_init(&seal->lock, NULL);
	pthread_cond_init(&seal->changed, NULL);
	*ret_seal = seal;
	return 0;
}

/* --- with the job -------------------------------------------------------- */

/* EINVAL: a pipe or a terminal, which has nothing to sync. */
static int sync_fd(int fd)
{
	return fdatasync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

/* A log is written and, for a long time, not read. In memory it takes the place
 * of what others read, and each page is a new one, which on a virtual machine
 * costs more than all that is written to it. */
static int sync_log(struct seal *seal)
{
	struct stat st;
	off_t size = fstat(seal->log, &st) < 0 ? 0 : st.st_size;
	int r = sync_fd(seal->log);

	/* The last page is still written to: it would have to be read. */
	size -= size % PAGE;
	if (size < seal->dropped)
		seal->dropped = 0; /* another part */
	if (r < 0 || size - seal->dropped < DROP_MIN)
		return r;
	/* It has nothing to do with what is safe: who can't, needn't. */
	(void)posix_fadvise(seal->log, seal->dropped, size - seal->dropped,
			    POSIX_FADV_DONTNEED);
	seal->dropped = size;
	return 0;
}

/* Whole, or not at all: half of one is cut off again, if that is possible. */
static int append(struct seal *seal, const char *note, size_t len)
{
	ssize_t n;
	int r;

	do {
		n = write(seal->fd, note, len);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len) {
		seal->size += n;
		return 0;
	}
	r = n < 0 ? -errno : -ENOSPC;
	if (n > 0 && ftruncate(seal->fd, seal->size) < 0)
		return -EIO;
	return r;
}

static int do_job(struct seal *seal)
{
	struct checkpoint checkpoint = { .size = seal->tree.size };
	char note[CHECKPOINT_NOTE_MAX];
	size_t len;
	int r = sync_log(seal);

	if (r < 0)
		return r;
	snprintf(checkpoint.origin, sizeof(checkpoint.origin), "%s",
		 key_public(seal->key)->name);
	merkle_root(&seal->tree, &checkpoint.root);
	r = checkpoint_sign(&checkpoint, seal->key, note, sizeof(note), &len);
	if (r == 0)
		r = append(seal, note, len);
	if (r == 0 && seal->durable)
		r = sync_fd(seal->fd);
	if (r < 0)
		return r;
	seal->count++;
	atomic_store(&seal->last_ms, clock_ms(CLOCK_REALTIME));
	memcpy(seal->last, note, len + 1);
	if (!seal->first[0])
		memcpy(seal->first, note, len + 1);
	return 0;
}

static void *run(void *arg)
{
	const uint64_t one = 1;
	struct seal *seal = arg;

	pthread_mutex_lock(&seal->lock);
	while (seal->state != SEAL_STOP) {
		int r;

		if (seal->state == SEAL_IDLE) {
			pthread_cond_wait(&seal->changed, &seal->lock);
			continue;
		}
		pthread_mutex_unlock(&seal->lock);
		r = do_job(seal);
		pthread_mutex_lock(&seal->lock);
		seal->failed = r;
		seal->state = SEAL_IDLE;
		pthread_cond_broadcast(&seal->changed);
		seal->ended = true;
		/* It can't be full; the caller empties it. */
		if (write(seal->event, &one, sizeof(one)) < 0 && !r)
			seal->failed = -errno;
	}
	pthread_mutex_unlock(&seal->lock);
	return NULL;
}

/* --- the caller's -------------------------------------------------------- */

int seal_start(struct seal *seal)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int r;

	if (seal->thread)
		return 0;
	r = pthread_attr_init(&attr);
	if (r)
		return -r;
	/* Signals are the caller's: a thread inherits the mask. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_attr_setstacksize(&attr, STACK);
	if (!r)
		r = pthread_create(&seal->id, &attr, run, seal);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	seal->thread = !r;
	return -r;
}

void seal_free(struct seal *seal)
{
	if (!seal)
		return;
	if (seal->thread) {
		seal_wait(seal);
		pthread_mutex_lock(&seal->lock);
		seal->state = SEAL_STOP;
		pthread_cond_broadcast(&seal->changed);
		pthread_mutex_unlock(&seal->lock);
		pthread_join(seal->id, NULL);
	}
	pthread_cond_destroy(&seal->changed);
	pthread_mutex_destroy(&seal->lock);
	key_free(seal->key);
	close_fd(&seal->fd);
	close_fd(&seal->event);
	free(seal);
}

int seal_wait(struct seal *seal)
{
	int r;

	pthread_mutex_lock(&seal->lock);
	while (seal->state == SEAL_BUSY)
		pthread_cond_wait(&seal->changed, &seal->lock);
	r = seal->failed;
	pthread_mutex_unlock(&seal->lock);
	return r;
}

static void take_job(struct seal *seal, int log, const struct merkle *tree)
{
	seal->log = log;
	seal->tree = *tree;
	seal->begun = tree->size;
	seal->waiting = false;
}

int seal_now(struct seal *seal, int log, const struct merkle *tree)
{
	int r = seal_wait(seal);

	if (r < 0 || tree->size == seal->begun)
		return r;
	take_job(seal, log, tree);
	r = do_job(seal);
	pthread_mutex_lock(&seal->lock);
	seal->failed = r;
	pthread_mutex_unlock(&seal->lock);
	return r;
}

/* What the thread says: busy or not, or that it failed. */
static int look(struct seal *seal, bool *ret_busy)
{
	uint64_t ended;
	int r;

	pthread_mutex_lock(&seal->lock);
	r = seal->failed;
	*ret_busy = seal->state == SEAL_BUSY;
	if (seal->ended && read(seal->event, &ended, sizeof(ended)) < 0 && !r)
		r = -errno;
	seal->ended = false;
	pthread_mutex_unlock(&seal->lock);
	return r;
}

static int begin(struct seal *seal, int log, const struct merkle *tree)
{
	/* Here, as a short session never comes to this. */
	int r = seal_start(seal);

	if (r < 0)
		return r;
	take_job(seal, log, tree);
	pthread_mutex_lock(&seal->lock);
	seal->state = SEAL_BUSY;
	pthread_mutex_unlock(&seal->lock);
	/* The thread wakes up to a lock that is free. */
	pthread_cond_broadcast(&seal->changed);
	return 0;
}

int seal_turn(struct seal *seal, int log, const struct merkle *tree,
	      uint64_t now_ms, int *ret_timeout_ms)
{
	uint64_t due;
	bool busy;
	int r = look(seal, &busy);

	if (r < 0)
		return r;
	*ret_timeout_ms = -1;
	if (tree->size == seal->begun)
		return 0;
	if (!seal->waiting) {
		seal->waiting = true;
		seal->oldest_ms = now_ms;
	}
	if (busy)
		return 0;
	due = tree->size - seal->begun >= SEAL_RECORDS
		      ? now_ms
		      : seal->oldest_ms + SEAL_MS;
	if (due < seal->next_ms)
		due = seal->next_ms;
	if (due > now_ms) {
		*ret_timeout_ms = (int)(due - now_ms);
		return 0;
	}
	seal->next_ms = now_ms + SEAL_GAP_MS;
	return begin(seal, log, tree);
}

int seal_fd(const struct seal *seal)
{
	return seal->event;
}

int seal_sync(struct seal *seal)
{
	return sync_fd(seal->fd);
}

const char *seal_first(const struct seal *seal)
{
	return seal->first;
}

const char *seal_last(const struct seal *seal)
{
	return seal->last;
}

uint64_t seal_count(const struct seal *seal)
{
	return seal->count;
}

uint64_t seal_last_ms(const struct seal *seal)
{
	return atomic_load(&seal->last_ms);
}

const struct key *seal_key(const struct seal *seal)
{
	return seal->key;
}
