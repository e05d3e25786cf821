/* SPDX-License-Identifier: Apache-2.0
 *
 * signing_child.c - what is done with a private key.
 *
 * A new key gets its name in one step that fails if the name is taken, so of
 * two sessions that begin at once one makes the key of both. Its public half
 * comes a moment later; who finds it missing makes it again.
 */
#include "cmd/signing_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "audit/key.h"
#include "base/cleanup.h"
#include "cmd/signing.h"

static struct text text_of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

void place_close(struct place *place)
{
	close_fd(&place->dir);
}

int place_open(const char *file, struct place *ret)
{
	const char *slash = strrchr(file, '/');
	const char *base = slash ? slash + 1 : file;
	char dir[PATH_MAX] = ".";

	ret->dir = -1;
	if (!*base || strlen(base) >= sizeof(ret->key) ||
	    !signing_public_path(base, ret->vkey, sizeof(ret->vkey)))
		return -ENAMETOOLONG;
	snprintf(ret->key, sizeof(ret->key), "%s", base);
	if (slash && (size_t)(slash - file) + 2 > sizeof(dir))
		return -ENAMETOOLONG;
	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - file + 1),
			 file);
	ret->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ret->dir < 0 ? -errno : 0;
}

/* In memory that both have. */
struct work {
	int (*fn)(struct work *work);
	const struct place *place;
	const char *name;
	int fd;
	int err;
	struct vkey vkey;
	char why[128];
};

/* Our memory never holds a private key: a child makes it, and ends. */
static int in_child(const struct work *what, struct work *ret)
{
	struct work *shared =
		mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = -1;
	pid_t pid;

	if (shared == MAP_FAILED)
		return -errno;
	*shared = *what;
	shared->err = -ECHILD;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_DUMPABLE, 0);
		umask(022); /* our files have the modes that they need */
		shared->err = shared->fn(shared);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		shared->err = -errno;
	*ret = *shared;
	munmap(shared, sizeof(*shared));
	return ret->err;
}

/* Some file systems have no rename that keeps what is there. */
static int rename_new(int dir, const char *from, const char *to)
{
	if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(dir, from, dir, to, 0) < 0)
		return -errno;
	unlinkat(dir, from, 0);
	return 0;
}

/* Whole, or not at all. */
static int publish(const struct key *key, const struct place *place,
		   const char *as,
		   int (*write_new)(const struct key *, int, const char *))
{
	char tmp[64];
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(tmp, sizeof(tmp), ".key-%016llx.new",
		 (unsigned long long)random);
	r = write_new(key, place->dir, tmp);
	if (r == 0) {
		r = rename_new(place->dir, tmp, as);
		if (r < 0)
			unlinkat(place->dir, tmp, 0);
	}
	if (r == 0 && fsync(place->dir) < 0 && errno != EINVAL)
		r = -errno;
	return r;
}

static int publish_public(const struct key *key, const struct place *place)
{
	struct vkey there;
	int r = publish(key, place, place->vkey, key_write_public);

	/* Who found it missing was faster. */
	if (r == -EEXIST &&
	    key_read_public(place->dir, place->vkey, &there) == 0 &&
	    there.id == key_public(key)->id)
		return 0;
	return r;
}

static int make_in_child(struct work *work)
{
	struct key *key = NULL;
	int r = key_generate(text_of(work->name), &key);

	if (r == 0)
		r = publish(key, work->place, work->place->key, key_write);
	if (r == 0) {
		work->vkey = *key_public(key);
		r = publish_public(key, work->place);
		if (r == -EEXIST)
			r = -ENOTUNIQ;
	}
	key_free(key);
	return r;
}

static int make_ephemeral(struct work *work)
{
	struct key *key = NULL;
	int r = key_generate(text_of(work->name), &key);

	if (r == 0)
		r = key_write_fd(key, work->fd);
	key_free(key);
	return r;
}

static int read_in_child(struct work *work)
{
	const char *why = "";
	struct key *key = NULL;
	int r = key_read(work->place->dir, work->place->key,
			 text_of(work->name), &key, &why);

	if (r == 0)
		work->vkey = *key_public(key);
	snprintf(work->why, sizeof(work->why), "%s", why);
	key_free(key);
	return r;
}

static int repair_in_child(struct work *work)
{
	const char *why;
	struct key *key = NULL;
	int r = key_read(work->place->dir, work->place->key,
			 text_of(work->name), &key, &why);

	if (r == 0)
		r = publish_public(key, work->place);
	key_free(key);
	return r;
}

/* --- and the doors to it ------------------------------------------------- */

int child_make_key(const struct place *place, const char *name,
		   struct vkey *ret_vkey)
{
	struct work work;
	int r = in_child(&(struct work){ .fn = make_in_child,
					 .place = place,
					 .name = name },
			 &work);

	if (r == 0)
		*ret_vkey = work.vkey;
	return r;
}

int child_make_ephemeral(int fd, const char *name)
{
	struct work work;

	return in_child(
		&(struct work){ .fn = make_ephemeral, .fd = fd, .name = name },
		&work);
}

int child_read_key(const struct place *place, const char *name,
		   struct vkey *ret_vkey, char *reterr, size_t cap)
{
	struct work work = { .why = "" };
	int r = in_child(&(struct work){ .fn = read_in_child,
					 .place = place,
					 .name = name },
			 &work);

	if (r == 0)
		*ret_vkey = work.vkey;
	else
		snprintf(reterr, cap, "%s", work.why);
	return r;
}

int child_make_public(const struct place *place, const char *name)
{
	struct work work;

	return in_child(&(struct work){ .fn = repair_in_child,
					.place = place,
					.name = name },
			&work);
}
