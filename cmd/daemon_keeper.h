/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_keeper.h - a keeper as a process: started, talked to without ever
 * waiting for it, and buried.
 */
#ifndef CMD_DAEMON_KEEPER_H
#define CMD_DAEMON_KEEPER_H

#include "cmd/privsep.h"

struct event_base;
struct keeper;

#define KEEPER_LINE_MAX 500

struct keeper_calls {
	/* It said something; msg->fd is -1. */
	void (*message)(void *arg, const struct msg *msg);
	/* It is dead, and has no zombie; @last is the last line that it wrote
	 * on stderr, or what became of it. Then the keeper is gone. */
	void (*died)(void *arg, const char *last);
};

/* Starts one, which dies with us; what it writes on stderr appears on ours
 * behind @name (kept). Nothing is called before this returns. 0 or -errno. */
int keeper_start(struct event_base *base, const char *name,
		 const struct keeper_calls *calls, void *arg,
		 struct keeper **ret_keeper);
/* From now on it is somebody else's: @name (kept), @calls and @arg as for
 * keeper_start(). */
void keeper_hand_over(struct keeper *keeper, const char *name,
		      const struct keeper_calls *calls, void *arg);
/* As msg_send(). One that does not read is killed. */
int keeper_tell(struct keeper *keeper, enum msg_type type, const void *payload,
		int fd);
/* Its end comes by .died. NULL is fine. */
void keeper_kill(struct keeper *keeper);
/* Kills it, waits for that, and calls nobody. NULL is fine. */
void keeper_free(struct keeper *keeper);

#endif
