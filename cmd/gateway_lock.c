/* SPDX-License-Identifier: Apache-2.0
 *
 * gateway_lock.c - the tables that keep a sandbox in where its namespace is an
 * engine's, which may connect it to other networks (firewall/lock.h).
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cmd/docker_lock.h"
#include "cmd/gateway_impl.h"
#include "firewall/lock.h"

int gateway_lock(struct gateway *g, char *reterr, size_t cap)
{
	struct nft *lock = NULL;
	int err = docker_lock(g->sandbox.fd, &g->link.gateway, &lock, reterr,
			      cap);

	if (err)
		return err;
	nft_close(g->lock);
	g->lock = lock;
	return 0;
}

int gateway_verify_lock(struct gateway *g, char *reterr, size_t cap)
{
	const struct lock_spec spec = { .gateway = g->link.gateway };
	char why[200] = "";
	int err;

	if (!g->lock)
		return 0;
	err = lock_verify(g->lock, &spec, reterr, cap);
	if (err && gateway_lock(g, why, sizeof(why))) {
		snprintf(reterr, cap, "%s", why);
		return -EPERM;
	}
	/* Whoever took the tables away may have opened these, too. */
	if (g->others && gateway_shut(g)) {
		snprintf(reterr, cap, "other networks can't be shut out");
		return -EPERM;
	}
	return err ? 1 : 0;
}

int gateway_shut(struct gateway *g)
{
	char name[16];
	int got = docker_shut(g->sandbox.fd, name);

	return got < 0 ? got : 0;
}
