/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_unix.c - unix sockets, with a name in files or without one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/prove.h"

#define WALK_ENTRIES 4000
#define WALK_DEPTH   4

/* --- unix sockets ----------------------------------------------------------
 */

/* By @len bytes of @path, which may begin with NUL. 0 or -errno. */
static int dial_unix(const char *path, size_t len)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const socklen_t size =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	int err = -ENAMETOOLONG;

	if (len > sizeof(to.sun_path))
		return err;
	memcpy(to.sun_path, path, len);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		AUTO_FD int fd = socket(
			AF_UNIX, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0)
			return -errno;
		if (connect(fd, (struct sockaddr *)&to, size) == 0 ||
		    errno == EAGAIN)
			return 0;
		err = -errno;
		if (err != -EPROTOTYPE)
			break;
	}
	return err;
}

static void try_path(struct prove_try *t, const char *path)
{
	int err = dial_unix(path, strlen(path));

	if (err == 0)
		prove_saw(t, PROVE_OUT, "%s is connected to", path);
	else
		prove_saw_error(t, path, err == -ECONNREFUSED ? -ENOENT : err);
}

static void unix_known(struct prove_try *t)
{
	static const char *const paths[] = {
		"/run/docker.sock",
		"/run/podman/podman.sock",
		"/run/containerd/containerd.sock",
		"/run/crio/crio.sock",
		"/run/dbus/system_bus_socket",
		"/run/systemd/private",
		"/run/systemd/notify",
		"/run/systemd/journal/stdout",
		"/run/systemd/resolve/io.systemd.Resolve",
		"/run/nscd/socket",
		"/run/snapd.socket",
		"/run/libvirt/libvirt-sock",
		"/run/sallyport/control",
		"/tmp/.X11-unix/X0",
	};
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		try_path(t, paths[i]);
	snprintf(path, sizeof(path), "/run/user/%u/bus", (unsigned)getuid());
	try_path(t, path);
	if (*t->task->path)
		try_path(t, t->task->path);
}

/* Those that variables lead to. */
static void unix_env(struct prove_try *t)
{
	static const char *const names[] = { "SSH_AUTH_SOCK",
					     "DBUS_SESSION_BUS_ADDRESS",
					     "DOCKER_HOST", "NOTIFY_SOCKET",
					     "CONTAINER_HOST" };

	prove_saw(t, PROVE_UNABLE, "no variable leads to a socket");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);
		const char *path = value ? strchr(value, '/') : NULL;
		int err;

		if (!path)
			continue;
		if (strncmp(path, "///", 3) == 0)
			path += 2;
		err = dial_unix(path, strcspn(path, ",;"));
		if (err == 0)
			prove_saw(t, PROVE_OUT, "%s leads to %s", names[i],
				  value);
	}
}

struct walk {
	struct prove_try *t;
	unsigned entries, sockets;
};

/* NOLINTNEXTLINE(misc-no-recursion): WALK_DEPTH deep. */
static void walk(struct walk *w, const char *dir, unsigned depth)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[PATH_MAX];

	while (d && (e = readdir(d)) && w->entries++ < WALK_ENTRIES) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >=
		    (int)sizeof(path))
			continue;
		if (e->d_type == DT_SOCK) {
			w->sockets++;
			try_path(w->t, path);
		} else if (e->d_type == DT_DIR && depth < WALK_DEPTH) {
			walk(w, path, depth + 1);
		}
	}
	if (d)
		closedir(d);
}

/* Whatever there is in places where sockets are. */
static void unix_found(struct prove_try *t)
{
	static const char *const dirs[] = { "/run", "/var/run", "/tmp",
					    "/var/lib", "/var/tmp" };
	struct walk w = { .t = t };
	char cwd[PATH_MAX];

	if (getcwd(cwd, sizeof(cwd)))
		walk(&w, cwd, 0);
	w.entries = 0;
	if (getenv("HOME"))
		walk(&w, getenv("HOME"), 1);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		w.entries = 0;
		walk(&w, dirs[i], 0);
	}
	prove_saw(t, PROVE_UNABLE, "there is none");
}

/* In abstract names a network namespace is the boundary. */
static void unix_abstract(struct prove_try *t)
{
	AUTO_FILE FILE *f = fopen("/proc/net/unix", "re");
	char line[512], name[110] = "";
	int err;

	if (*t->task->abstract) {
		snprintf(name + 1, sizeof(name) - 1, "%s", t->task->abstract);
		err = dial_unix(name, 1 + strlen(name + 1));
		if (err == 0)
			prove_saw(t, PROVE_OUT,
				  "a socket of this machine's answers: @%s",
				  t->task->abstract);
	}
	while (f && fgets(line, sizeof(line), f)) {
		char *at = strchr(line, '@');

		if (!at)
			continue;
		at[strcspn(at, "\n")] = '\0';
		if (dial_unix(memset(at, 0, 1), 1 + strlen(at + 1)) == 0)
			prove_saw(t, PROVE_OUT, "somebody listens at @%.90s",
				  at + 1);
	}
	prove_saw(t, PROVE_UNABLE, "nobody is there");
}

static const struct prove_attack attacks[] = {
	{ "unix-known", "K5", "well-known sockets", unix_known, NULL, 0,
	  PROVE_BOX },
	{ "unix-env", "K5", "sockets that variables name", unix_env, NULL, 0,
	  PROVE_BOX },
	{ "unix-found", "K5", "any socket in sight", unix_found, NULL, 0,
	  PROVE_BOX },
	{ "unix-abstract", "K5", "abstract sockets", unix_abstract, NULL, 0,
	  PROVE_ALONE },
};

const struct prove_group prove_unix = { attacks, ARRAY_SIZE(attacks) };
