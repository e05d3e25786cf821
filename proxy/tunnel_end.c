/* SPDX-License-Identifier: Apache-2.0
 *
 * tunnel_end.c - how a tunnel ends: by itself, by whoever made it, or with a
 * socket that is lost. Who is to notice gets a reset, not an orderly end.
 *
 * #syscalls close setsockopt
 */
#include "proxy/tunnel.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "proxy/tunnel_impl.h"

const char tunnel_spent[] = "byte budget used up";

void tunnel_release(struct tunnel *t)
{
	wheel_cancel(&t->timer);
	for (int i = CLIENT; i <= SERVER; i++) {
		watch_close(&t->side[i].watch);
		relay_drop(&t->relay[i]);
	}
	hold_free(STEAL(t->hold));
}

void tunnel_finish(struct tunnel *t, const char *how, bool reset_client,
		   bool reset_server)
{
	if (reset_client)
		sock_reset_on_close(tunnel_fd(t, CLIENT));
	if (reset_server)
		sock_reset_on_close(tunnel_fd(t, SERVER));
	tunnel_release(t);
	t->inside++;
	t->ops->closed(t->arg, t->relay[CLIENT].bytes, t->relay[SERVER].bytes,
		       how);
	free(t);
}

void tunnel_abort(struct tunnel *t, uint64_t *ret_up, uint64_t *ret_down)
{
	if (!t)
		return;
	if (ret_up)
		*ret_up = t->relay[CLIENT].bytes;
	if (ret_down)
		*ret_down = t->relay[SERVER].bytes;
	for (int i = CLIENT; i <= SERVER; i++)
		if (tunnel_fd(t, i) >= 0)
			sock_reset_on_close(tunnel_fd(t, i));
	tunnel_release(t);
	t->aborted = true;
	if (!t->inside)
		free(t);
}

int tunnel_detach(struct tunnel *t, struct watch **ret_client)
{
	const struct relay *down = &t->relay[SERVER];
	struct hold *hold;

	if (down->bytes || relay_in_flight(down))
		return -EBUSY;
	hold = STEAL(t->hold);
	*ret_client = STEAL(t->side[CLIENT].watch);
	watch_tell(*ret_client, NULL, NULL);
	sock_reset_on_close(tunnel_fd(t, SERVER));
	tunnel_release(t);
	t->hold = hold; /* freed by whoever asked */
	t->aborted = true;
	return 0;
}

bool tunnel_is_reset(int error)
{
	return error == ECONNRESET || error == EPIPE;
}

const char *tunnel_lost(int side, int error)
{
	if (!tunnel_is_reset(error))
		return "error";
	return side == CLIENT ? "reset by client" : "reset by server";
}

void tunnel_write_failed(struct tunnel *t, int i, int error)
{
	relay_drop(&t->relay[!i]);
	t->relay[!i].dead = true;
	if (!tunnel_is_reset(error))
		t->relay[i].dead = true;
	if (!t->how)
		t->how = tunnel_lost(i, error);
}
