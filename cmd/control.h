/* SPDX-License-Identifier: Apache-2.0
 *
 * control.h - the socket by which a running session is told something: DIR/
 * control, SOCK_SEQPACKET, mode 0600, in the session's own directory, which its
 * sandbox cannot see.
 *
 * One request a connection: a word, then perhaps lines "key value". One answer:
 * "ok" and lines "key value", or "error" and a line for people. Whoever asks
 * must be our own user or root.
 */
#ifndef CMD_CONTROL_H
#define CMD_CONTROL_H

#include <stddef.h>
#include <sys/types.h>

struct control;
struct event_base;

#define CONTROL_NAME	    "control"
#define CONTROL_REQUEST_MAX 8192
#define CONTROL_REPLY_MAX   2048

/* Fills @reply, of CONTROL_REPLY_MAX bytes, with what answers @request of the
 * user @uid. */
typedef void control_fn(void *arg, uid_t uid, const char *request, char *reply);

/* Listens in @dir, before privileges change. 0 or -errno; -EADDRINUSE: somebody
 * else serves there. */
int control_listen(const char *dir, struct control **ret_control);
/* Answers from @base's loop on. 0 or -errno. */
int control_attach(struct control *control, struct event_base *base,
		   control_fn *fn, void *arg);
/* Takes the socket away. NULL is fine. */
void control_close(struct control *control);

/* Asks who serves in @dir. 0 and its answer, or -errno: -ECONNREFUSED and
 * -ENOENT if nobody does, -ETIMEDOUT. @reply as above. */
int control_ask(const char *dir, const char *request, int timeout_ms,
		char *reply);

#endif
