/* SPDX-License-Identifier: Apache-2.0
 *
 * isolate.c - four steps down, none of them back up.
 *
 * 1 files	Should leave an empty, read-only root, without /proc. Needs
 *		the own mount namespace that child_spawn() made; without one,
 *		an empty directory of root's.
 * 2 identity	Should leave no group and no uid of anybody else. The bounding
 *		set goes first: dropping it takes a capability.
 * 3 rights	Should leave nothing that execve(2) or a debugger could give
 *		back. A change of identity cleared the parent-death signal, so
 *		it is set again here.
 * 4 calls	The filter comes last: it forbids what the others needed.
 */
#include "launch/isolate.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/filter.h"

#define ISOLATE_EMPTY_ABOVE "/run/sallyport"
#define ISOLATE_EMPTY_DIR   ISOLATE_EMPTY_ABOVE "/empty"

static int isolate_files(void)
{
	const unsigned long flags =
		MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	/* Any directory that surely exists will do. */
	if (mount("none", "/proc", "tmpfs", flags, "mode=0555,nr_inodes=2") < 0)
		return -errno;
	if (chdir("/proc") < 0)
		return -errno;
	/* The old root ends up stacked on the new one, and is taken off. */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return -errno;
	if (umount2(".", MNT_DETACH) < 0)
		return -errno;
	return chdir("/") < 0 ? -errno : 0;
}

/* Where no mount namespace could be made (see child_spawn_bare()), the next
 * best is a directory in which there is nothing, and which nobody but root can
 * put anything into. Files can't be opened in it, nor out of it: step 4. */
static int isolate_files_bare(void)
{
	const char *const dir = ISOLATE_EMPTY_DIR;
	struct stat st;

	if ((mkdir(ISOLATE_EMPTY_ABOVE, 0755) < 0 && errno != EEXIST) ||
	    (mkdir(dir, 0555) < 0 && errno != EEXIST) || lstat(dir, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != 0 || st.st_mode & 022)
		return -EPERM;
	if (chdir(dir) < 0 || chroot(".") < 0)
		return -errno;
	return chdir("/") < 0 ? -errno : 0;
}

/* A child in a pid namespace of its own is the first in it, and has a mount
 * namespace of its own too. */
static bool is_bare(void)
{
	return getpid() != 1;
}

static int isolate_identity(const struct isolate_spec *spec)
{
	if (capng_apply(CAPNG_SELECT_BOUNDS) < 0)
		return -EPERM;
	if (spec->uid == 0)
		return 0;
	if (setgroups(0, NULL) < 0 ||
	    setresgid(spec->gid, spec->gid, spec->gid) < 0 ||
	    setresuid(spec->uid, spec->uid, spec->uid) < 0)
		return -errno;
	return 0;
}

static int isolate_limits(enum isolate_role role)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit files;

	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return -errno;
	if (role != ISOLATE_GATE)
		return 0;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? -errno : 0;
}

static int isolate_rights(const struct isolate_spec *spec)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	if (capng_apply(CAPNG_SELECT_CAPS) < 0)
		return -EPERM;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return isolate_limits(spec->role);
}

bool isolate_has_own_root(void)
{
	const unsigned long flags =
		CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
	int status = -1;
	long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(isolate_files() < 0);
	while (pid > 0 && waitpid((pid_t)pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int isolate_self(const struct isolate_spec *spec, const char **reterr)
{
	int r;

	/* Learns from /proc how many capabilities there are. */
	capng_clear(CAPNG_SELECT_ALL);

	*reterr = "cannot make an empty root";
	r = is_bare() ? isolate_files_bare() : isolate_files();
	if (r < 0)
		return r;
	*reterr = "cannot change the identity";
	r = isolate_identity(spec);
	if (r < 0)
		return r;
	*reterr = "cannot give up rights";
	r = isolate_rights(spec);
	if (r < 0)
		return r;
	*reterr = "cannot install the system call filter";
	return filter_apply(spec->role);
}
