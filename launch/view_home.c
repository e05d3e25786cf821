/* SPDX-License-Identifier: Apache-2.0
 *
 * view_home.c - the home directory, where it is nothing that was named: as it
 * is, and what is changed in it is the sandbox's alone and gone with it.
 *
 * Nearly every tool keeps something there (npm its cache, a compiler its
 * modules, an agent its history) and gives up where it can't. None of that may
 * reach what our user's next login runs. So it is the lower layer of an overlay
 * whose upper one is in memory.
 *
 * An overlay shows one file system. Where another is mounted below, or where
 * the kernel has none for users (before 5.11), the home stays read-only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/view.h"

static bool is_masked(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->masks; i++)
		if (view_covers(view, view->mask[i].path, path))
			return true;
	return false;
}

int view_plan_home(struct view *view, uid_t owner, char *reterr, size_t cap)
{
	const char *home = view->home;
	struct stat st;
	int r;

	if (!home || view->spec->host_files || view->spec->synthetic ||
	    view->binds == VIEW_BINDS || view_bind_of(view, home) ||
	    view_in_tree(view, home) || view_is_system(home) ||
	    is_masked(view, home) || lstat(home, &st) < 0 ||
	    !S_ISDIR(st.st_mode) || st.st_uid != owner)
		return 0;
	r = view_add_bind(view, home, true, reterr, cap);
	if (r == 0)
		view->bind[view->binds - 1].overlay = true;
	return r;
}

/* Is something else mounted below @dir? If that can't be said: yes. */
static bool holds_mounts(const char *dir)
{
	AUTO_FILE FILE *f = fopen("/proc/self/mountinfo", "re");
	AUTO_FREE char *line = NULL;
	bool found = !f;
	size_t cap = 0;

	while (!found && getline(&line, &cap, f) > 0) {
		char *at = line;

		/* id parent major:minor root mountpoint; a blank is \040,
		 * which is then no match. */
		for (int i = 0; i < 4 && at; i++) {
			at = strchr(at, ' ');
			at = at ? at + 1 : NULL;
		}
		if (!at)
			return true;
		at[strcspn(at, " ")] = '\0';
		found = strcmp(at, dir) != 0 && view_below(at, dir);
	}
	return found || strpbrk(dir, " \t\n\\");
}

int view_place_home(const struct view_bind *home, int fd, const char *place)
{
	AUTO_FREE char *memory = NULL;
	AUTO_FREE char *upper = NULL;
	AUTO_FREE char *work = NULL;
	AUTO_FREE char *options = NULL;
	struct stat st;

	if (holds_mounts(home->path))
		return -EXDEV;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (asprintf(&memory, "%s-changes", place) < 0 ||
	    asprintf(&upper, "%s/upper", memory) < 0 ||
	    asprintf(&work, "%s/work", memory) < 0 ||
	    asprintf(&options,
		     "lowerdir=/proc/self/fd/%d,upperdir=%s,workdir=%s,"
		     "userxattr",
		     fd, upper, work) < 0)
		return -ENOMEM;
	if (mkdir(memory, 0700) < 0 ||
	    mount("none", memory, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") <
		    0 ||
	    mkdir(upper, st.st_mode & 0777) < 0 ||
	    chown(upper, st.st_uid, st.st_gid) < 0 || mkdir(work, 0700) < 0 ||
	    mkdir(place, 0755) < 0 ||
	    mount("overlay", place, "overlay", MS_NOSUID | MS_NODEV, options) <
		    0)
		return -errno;
	return 0;
}
