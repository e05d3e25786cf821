/* SPDX-License-Identifier: Apache-2.0
 *
 * xdp_hold.c - for each queue a socket with the least that can be bound: one
 * page of memory that is nobody's, and rings of one.
 */
#include "firewall/xdp_hold.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CHUNK	   4096
#define QUEUES_MAX 256
#define BUSY_TRIES 50

struct held {
	LIST_ENTRY(held) entry;
	char name[16];
	unsigned ifindex;
	bool wanted;
	size_t n;
	int fd[QUEUES_MAX];
};

struct xdp_hold {
	LIST_HEAD(, held) all;
};

static int give_memory(int fd)
{
	void *page = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct xdp_umem_reg reg = { .addr = (uintptr_t)page,
				    .len = CHUNK,
				    .chunk_size = CHUNK };
	int err = 0;

	if (page == MAP_FAILED)
		return -errno;
	if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)) < 0)
		err = -errno;
	/* The socket keeps the page. */
	munmap(page, CHUNK);
	return err;
}

/* The socket, or -errno. */
static int hold_queue(unsigned ifindex, uint32_t queue)
{
	static const int ring[] = { XDP_UMEM_FILL_RING,
				    XDP_UMEM_COMPLETION_RING, XDP_TX_RING };
	const struct sockaddr_xdp at = { .sxdp_family = AF_XDP,
					 .sxdp_flags = XDP_COPY,
					 .sxdp_ifindex = ifindex,
					 .sxdp_queue_id = queue };
	AUTO_FD int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	const int one = 1;
	int err;

	if (fd < 0)
		return -errno;
	err = give_memory(fd);
	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(ring); i++)
		if (setsockopt(fd, SOL_XDP, ring[i], &one, sizeof(one)) < 0)
			return -errno;
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* The kernel lets go of those of a process that was killed a moment after it.
 */
static int hold_soon(unsigned ifindex, uint32_t queue)
{
	const struct timespec moment = { .tv_nsec = 10 * 1000 * 1000 };
	int fd = hold_queue(ifindex, queue);

	for (int i = 0; fd == -EBUSY && i < BUSY_TRIES; i++) {
		nanosleep(&moment, NULL);
		fd = hold_queue(ifindex, queue);
	}
	return fd;
}

/* There is no queue of a number: -EINVAL. */
static int hold_device(struct held *h)
{
	while (h->n < QUEUES_MAX) {
		const int fd = hold_soon(h->ifindex, (uint32_t)h->n);

		if (fd == -EINVAL && h->n)
			return 0;
		/* It has gone meanwhile. */
		if (fd == -ENODEV)
			return 0;
		if (fd < 0)
			return fd;
		h->fd[h->n++] = fd;
	}
	return -E2BIG;
}

static void let_go(struct held *h)
{
	LIST_REMOVE(h, entry);
	while (h->n)
		close(h->fd[--h->n]);
	free(h);
}

static struct held *find(struct xdp_hold *hold, const char *name,
			 unsigned ifindex)
{
	struct held *h;

	LIST_FOREACH (h, &hold->all, entry)
		if (h->ifindex == ifindex && strcmp(h->name, name) == 0)
			return h;
	return NULL;
}

static int want(struct xdp_hold *hold, const char *name)
{
	const unsigned ifindex = if_nametoindex(name);
	struct held *h = find(hold, name, ifindex);
	int err;

	if (!ifindex)
		return 0;
	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return -ENOMEM;
		memcpy(h->name, name, strnlen(name, sizeof(h->name) - 1));
		h->ifindex = ifindex;
		LIST_INSERT_HEAD(&hold->all, h, entry);
		err = hold_device(h);
		if (err) {
			let_go(h);
			return err;
		}
	}
	h->wanted = true;
	return 0;
}

int xdp_hold_follow(struct xdp_hold *hold, const char (*device)[16], size_t n)
{
	struct held *h, *next;
	int err = 0;

	LIST_FOREACH (h, &hold->all, entry)
		h->wanted = false;
	for (size_t i = 0; i < n; i++) {
		const int one = want(hold, device[i]);

		if (!err && one != -EAFNOSUPPORT)
			err = one;
	}
	for (h = LIST_FIRST(&hold->all); h; h = next) {
		next = LIST_NEXT(h, entry);
		if (!h->wanted)
			let_go(h);
	}
	return err;
}

int xdp_hold_new(struct xdp_hold **ret_hold)
{
	struct xdp_hold *hold = calloc(1, sizeof(*hold));

	if (!hold)
		return -ENOMEM;
	LIST_INIT(&hold->all);
	*ret_hold = hold;
	return 0;
}

void xdp_hold_free(struct xdp_hold *hold)
{
	while (hold && !LIST_EMPTY(&hold->all))
		let_go(LIST_FIRST(&hold->all));
	free(hold);
}
