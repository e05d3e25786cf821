/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_witness.c - what listens outside the sandbox while it is attacked.
 *
 * Nobody serves these sockets. The kernel takes connections and datagrams for
 * them by itself, and whether there are any is looked at when the attacks are
 * over.
 */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/prove.h"

/* --- on addresses --------------------------------------------------------- */

/* The same port for both. */
static bool listen_at(struct prove_witness *w, struct prove_task *task,
		      const struct ip *ip)
{
	union sockaddr_any at;
	socklen_t len = ip_to_sockaddr(ip, 0, &at);
	AUTO_FD int tcp = socket(at.sa.sa_family,
				 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	AUTO_FD int udp = socket(at.sa.sa_family,
				 SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	uint32_t i = task->witnesses;

	if (tcp < 0 || udp < 0 || i == PROVE_WITNESS_MAX ||
	    bind(tcp, &at.sa, len) < 0 || listen(tcp, 16) < 0 ||
	    getsockname(tcp, &at.sa, &len) < 0 || bind(udp, &at.sa, len) < 0)
		return false;
	task->witness[i] = (struct endpoint){ *ip, port_from_sockaddr(&at) };
	w->tcp[i] = steal_fd(&tcp);
	w->udp[i] = steal_fd(&udp);
	task->witnesses++;
	return true;
}

static void listen_everywhere(struct prove_witness *w, struct prove_task *task)
{
	struct ip ip = ip_v4(0x7f000001);
	struct ifaddrs *all = NULL;

	if (!listen_at(w, task, &ip) || getifaddrs(&all) < 0)
		return;
	for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
		const char *word;

		if (!at->ifa_addr || (at->ifa_addr->sa_family != AF_INET &&
				      at->ifa_addr->sa_family != AF_INET6))
			continue;
		ip = ip_from_sockaddr(
			(const union sockaddr_any *)(const void *)at->ifa_addr);
		word = ip_special(&ip);
		if (word && (strcmp(word, "loopback") == 0 ||
			     strcmp(word, "link-local") == 0))
			continue;
		listen_at(w, task, &ip);
	}
	freeifaddrs(all);
}

/* --- on names ------------------------------------------------------------- */

/* @name with @len bytes, of which the first may be NUL. -1: not. */
static int listen_unix(const char *name, size_t len)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	AUTO_FD int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(at.sun_path, name, len);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) <
		    0 ||
	    listen(fd, 16) < 0)
		return -1;
	return steal_fd(&fd);
}

static void listen_names(struct prove_witness *w, struct prove_task *task)
{
	char name[sizeof(task->abstract) + 1] = "";
	int len = snprintf(name + 1, sizeof(name) - 1, "sallyport-prove-%s",
			   task->token);

	w->abstract = listen_unix(name, 1 + (size_t)len);
	if (w->abstract >= 0)
		memcpy(task->abstract, name + 1, (size_t)len + 1);
	len = snprintf(w->path_name, sizeof(w->path_name),
		       "/tmp/sallyport-prove-%s", task->token);
	w->path = listen_unix(w->path_name, (size_t)len);
	if (w->path < 0)
		return;
	memcpy(task->path, w->path_name, (size_t)len + 1);
}

static void shared_memory(const struct prove_task *task, char buf[64])
{
	snprintf(buf, 64, "/dev/shm/sallyport-prove-%s", task->token);
}

void prove_witness_open(struct prove_witness *w, struct prove_task *task,
			bool network)
{
	char shm[64];

	for (size_t i = 0; i < PROVE_WITNESS_MAX; i++)
		w->tcp[i] = w->udp[i] = -1;
	w->abstract = w->path = -1;
	if (network)
		listen_everywhere(w, task);
	listen_names(w, task);
	shared_memory(task, shm);
	AUTO_FD int fd =
		open(shm, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		     0600);
	(void)fd;
	memcpy(w->shm, shm, sizeof(w->shm));
}

/* --- afterwards ------------------------------------------------------------
 */

static bool took_connection(int fd)
{
	AUTO_FD int peer = fd < 0 ? -1 : accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	return peer >= 0;
}

bool prove_witness_heard(struct prove_witness *w, const struct prove_task *task,
			 char *buf, size_t cap)
{
	char ip[IP_TEXT_MAX], byte;

	for (uint32_t i = 0; i < task->witnesses; i++) {
		const bool tcp = took_connection(w->tcp[i]);

		if (!tcp && recv(w->udp[i], &byte, 1, MSG_DONTWAIT) < 0)
			continue;
		snprintf(buf, cap, "%s of the sandbox's arrived at %s port %u",
			 tcp ? "a connection" : "a datagram",
			 ip_format(&task->witness[i].ip, ip),
			 task->witness[i].port);
		return true;
	}
	if (!took_connection(w->abstract) && !took_connection(w->path))
		return false;
	snprintf(buf, cap, "a unix socket outside was connected to");
	return true;
}

void prove_witness_close(struct prove_witness *w)
{
	for (size_t i = 0; i < PROVE_WITNESS_MAX; i++) {
		close_fd(&w->tcp[i]);
		close_fd(&w->udp[i]);
	}
	close_fd(&w->abstract);
	if (w->path >= 0)
		unlink(w->path_name);
	close_fd(&w->path);
	unlink(w->shm);
}
