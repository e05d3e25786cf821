/* SPDX-License-Identifier: Apache-2.0
 *
 * view_args.c - writing the plan down for bubblewrap.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/view.h"

extern const char launch_init_start[], launch_init_end[];

void view_put(struct view *view, const char *arg, ...)
{
	va_list ap;

	va_start(ap, arg);
	for (; arg; arg = va_arg(ap, const char *)) {
		fputs(arg, view->out);
		putc('\0', view->out);
	}
	va_end(ap);
}

static int keep(struct view *view, int fd)
{
	if (view->fds == VIEW_FDS)
		return -E2BIG;
	view->fd[view->fds++] = fd;
	return 0;
}

/* A file inside, of the @len bytes at @text. */
static int put_data(struct view *view, const char *how, const char *path,
		    const char *perms, const char *text, size_t len)
{
	AUTO_FD int fd = memfd_create("sallyport-view", MFD_CLOEXEC);
	char number[16];
	size_t done = 0;
	int r;

	if (fd < 0)
		return -errno;
	while (done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	snprintf(number, sizeof(number), "%d", fd);
	view_put(view, "--perms", perms, how, number, path, NULL);
	r = keep(view, fd);
	if (r == 0)
		fd = -1;
	return r;
}

static int put_names(struct view *view)
{
	struct view_names names;
	int r = view_names(view, &names);

	if (r == 0 && names.passwd)
		r = put_data(view, "--ro-bind-data", view->passwd, "0444",
			     names.passwd, names.passwd_len);
	if (r == 0 && names.groups)
		r = put_data(view, "--ro-bind-data", view->groups, "0444",
			     names.groups, names.groups_len);
	view_names_free(&names);
	return r;
}

static int put_files(struct view *view)
{
	const char *resolv = view->spec->resolv_conf;
	int r = 0;

	if (resolv && view->resolv)
		r = put_data(view, "--ro-bind-data", view->resolv, "0444",
			     resolv, strlen(resolv));
	if (r == 0)
		r = put_names(view);
	/* In a private directory: nobody executes it a second time. */
	if (r == 0)
		r = put_data(view, "--file", VIEW_INIT, "0555",
			     launch_init_start,
			     (size_t)(launch_init_end - launch_init_start));
	return r;
}

static void put_identity(struct view *view)
{
	char uid[16], gid[16];

	snprintf(uid, sizeof(uid), "%u", view->spec->uid);
	snprintf(gid, sizeof(gid), "%u", view->spec->gid);
	view_put(view, "--unshare-user", "--uid", uid, "--gid", gid,
		 "--unshare-pid", "--unshare-ipc", "--unshare-uts",
		 "--unshare-cgroup-try", "--die-with-parent", "--as-pid-1",
		 "--cap-drop", "ALL", NULL);
}

static int put_all(struct view *view, char *reterr, size_t cap)
{
	int r;

	put_identity(view);
	r = view_layers(view, reterr, cap);
	if (r == 0)
		r = put_files(view);
	view_put(view, "--chdir", view->kind == VIEW_CWD_NONE ? "/" : view->cwd,
		 NULL);
	return r;
}

int view_write(struct view *view, char *reterr, size_t cap)
{
	int fd = memfd_create("sallyport-args", MFD_CLOEXEC);
	int copy, r;

	snprintf(reterr, cap, "cannot describe the view of the files");
	if (fd < 0)
		return -errno;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	view->out = copy < 0 ? NULL : fdopen(copy, "w");
	r = keep(view, fd);
	if (!view->out || r < 0)
		return -ENOMEM;
	r = put_all(view, reterr, cap);
	if (r < 0)
		return r;
	if (fflush(view->out) != 0 || ferror(view->out))
		return -ENOMEM;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd;
}
