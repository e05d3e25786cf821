/* SPDX-License-Identifier: Apache-2.0
 *
 * faulty.c - memory that runs out where a test says so.
 *
 * Linked into a second copy of the program, sallyport_faulty, whose malloc()
 * and the like come before libc's, also for the libraries that it uses. Each
 * process maps a file that lies beside the binary before main() begins, and so
 * before it has shut itself off from files: what the test writes there is seen
 * at once, without a system call, which the seccomp filters would refuse.
 * Nothing of the product knows of this.
 *
 * A site is where an allocation comes from: the whole way to it, every caller's
 * place. In a round that is armed, the first allocation from a site that has
 * not failed before fails, and its site is remembered: so a test repeats a flow
 * until a round ends without a failure, and has failed each site once, also
 * those that only some rounds come by.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#ifdef SALLYPORT_SANITIZED
#define REAL(name)   __interceptor_##name
#define REAL_ALIGNED __interceptor_memalign
#else
#define REAL(name)   __libc_##name
#define REAL_ALIGNED __libc_memalign
#endif
void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *old, size_t size);
void REAL(free)(void *old);
void *REAL_ALIGNED(size_t align, size_t size);

#define SITES  16384 /* a power of two */
#define FRAMES 40

enum mode {
	OFF,
	ONE, /* one allocation fails, those after it do not */
	ON,  /* it, and each one after it until the round ends */
};

/* As faulty.py has it. */
struct control {
	_Atomic uint32_t mode;
	_Atomic uint32_t fired; /* failures in this round */
	_Atomic uint32_t seen;	/* allocations in this round */
	_Atomic uint32_t known; /* sites that have failed */
	_Atomic int64_t live;	/* what the role has and has not given back */
	_Atomic uint64_t only;	/* a site: fail no other one */
	_Atomic uint64_t hit;	/* the site that failed */
	_Atomic uint32_t depth;
	_Atomic uint32_t every; /* only sites of which the hash modulo this */
	_Atomic uint32_t which; /* is this; 0: all of them */
	_Atomic uint32_t unused;
	char role[16]; /* as the program calls itself in argv[1] */
	_Atomic uint64_t frame[FRAMES]; /* places in the program, or 0 */
	_Atomic uint64_t site[SITES];
};

extern char __executable_start, etext;

static struct control *control;
static __thread bool within;

struct walk {
	uint64_t hash, frame[FRAMES];
	uint32_t depth;
};

/* Addresses are other ones in each process; places in the program are not, and
 * a library's keep their place within the page. */
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
	struct walk *walk = arg;
	uintptr_t at = _Unwind_GetIP(context);
	uintptr_t start = (uintptr_t)&__executable_start;
	uint64_t place = at & 0xfff, ours = 0;

	if (at >= start && at < (uintptr_t)&etext)
		place = ours = at - start;
	walk->hash = (walk->hash ^ place) * 0x100000001b3;
	walk->frame[walk->depth++] = ours;
	return walk->depth < FRAMES ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* Whether @hash was not there before; it is now. */
static bool take(uint64_t hash)
{
	for (uint64_t i = hash, n = 0; n < SITES; i++, n++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&control->site[i % SITES],
						   &none, hash))
			return true;
		if (none == hash)
			return false;
	}
	return false;
}

static bool first_of_round(uint32_t mode)
{
	struct walk walk = { .hash = 0xcbf29ce484222325 };
	uint32_t none = 0;
	uint64_t only = atomic_load(&control->only);
	uint32_t every = atomic_load(&control->every);

	_Unwind_Backtrace(step, &walk);
	if (every && (walk.hash >> 32) % every != control->which)
		return false;
	if (only ? only != walk.hash : !take(walk.hash))
		return false;
	if (!atomic_compare_exchange_strong(&control->fired, &none, 1))
		return mode == ON;
	atomic_store(&control->hit, walk.hash);
	atomic_store(&control->depth, walk.depth);
	for (uint32_t i = 0; i < walk.depth; i++)
		atomic_store(&control->frame[i], walk.frame[i]);
	if (!only)
		atomic_fetch_add(&control->known, 1);
	return true;
}

static bool fails(void)
{
	uint32_t mode;
	bool yes;

	if (!control || within)
		return false;
	mode = atomic_load(&control->mode);
	if (mode == OFF)
		return false;
	atomic_fetch_add(&control->seen, 1);
	if (atomic_load(&control->fired)) {
		yes = mode == ON;
	} else {
		within = true;
		yes = first_of_round(mode);
		within = false;
	}
	if (yes)
		errno = ENOMEM;
	return yes;
}

static void *counted(void *made)
{
	if (control && made)
		atomic_fetch_add(&control->live, 1);
	return made;
}

void *malloc(size_t size)
{
	return fails() ? NULL : counted(REAL(malloc)(size));
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : counted(REAL(calloc)(count, size));
}

void *realloc(void *old, size_t size)
{
	void *made;

	if (size && fails())
		return NULL;
	made = REAL(realloc)(old, size);
	return old ? made : counted(made);
}

void free(void *old)
{
	int saved = errno;

	if (control && old)
		atomic_fetch_sub(&control->live, 1);
	REAL(free)(old);
	errno = saved;
}

void *memalign(size_t align, size_t size)
{
	return fails() ? NULL : counted(REAL_ALIGNED(align, size));
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	void *made = memalign(align, size);

	if (!made)
		return ENOMEM;
	*ret = made;
	return 0;
}

/* The first walk may have to find libraries, which no filter allows later. */
static void first_walk(void)
{
	struct walk walk = { 0 };

	_Unwind_Backtrace(step, &walk);
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	static const char suffix[] = ".faults";
	char path[4096];
	struct control *map;
	ssize_t n =
		readlink("/proc/self/exe", path, sizeof(path) - sizeof(suffix));
	int fd;

	if (n < 0 || argc < 2)
		return;
	memcpy(path + n, suffix, sizeof(suffix));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   0);
	close(fd);
	if (map == MAP_FAILED)
		return;
	if (strncmp(map->role, argv[1], sizeof(map->role)) != 0) {
		munmap(map, sizeof(*map));
		return;
	}
	first_walk();
	control = map;
}
