/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_command.c - what the daemon has to do with commands in sandboxes: it
 * starts none. A command is in the log before it begins; and a sandbox may be
 * for one `sallyport run`, which it does not outlive.
 *
 * That process is held by a pidfd, so that another one of the same number is
 * not taken for it; and over a restart by the inode of that, which the kernel
 * gives once (before Linux 6.9 all have the same one: then the number has to
 * do, and what it may keep is a sandbox that its owner could as well have made
 * to stay).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"

#define INODE_MASK (uint64_t) INT64_MAX /* as JSON has it */

static void on_gone(evutil_socket_t fd, short what, void *arg)
{
	struct box *box = arg;

	(void)fd;
	(void)what;
	if (box->removing)
		return;
	log_warn("%s: its run is gone, and so is it", box->sandbox.spec.name);
	box->sandbox.status = DAEMON_STATUS_KILLED;
	daemon_remove(box->daemon, &box->sandbox, ENDED_SIGNAL, NULL, NULL);
}

static int hold(struct box *box)
{
	struct daemon_spec *spec = &box->sandbox.spec;
	struct stat st;

	box->holder = (int)syscall(SYS_pidfd_open, spec->holder, 0);
	if (box->holder < 0 || fstat(box->holder, &st) < 0)
		return -errno;
	if (spec->holder_id && spec->holder_id != (st.st_ino & INODE_MASK))
		return -ESRCH;
	spec->holder_id = st.st_ino & INODE_MASK;
	box->held = event_new(box->daemon->base, box->holder, EV_READ, on_gone,
			      box);
	return box->held && event_add(box->held, NULL) == 0 ? 0 : -ENOMEM;
}

int box_hold(struct box *box)
{
	return box->sandbox.spec.holder ? hold(box) : 0;
}

void box_let_go(struct box *box)
{
	if (box->held)
		event_free(box->held);
	box->held = NULL;
	close_fd(&box->holder);
	close_fd(&box->sandbox.summary);
}

/* What can't be asked is answered by the death of its keeper. */
static int ask_keeper(struct box *box, enum msg_type type, const void *payload,
		      daemon_done_fn *done, void *arg)
{
	if (box->sandbox.state != SANDBOX_READY)
		return -EBUSY;
	if (!box_wait(box, type, done, arg))
		return -ENOMEM;
	if (keeper_tell(box->keeper, type, payload, -1))
		keeper_kill(box->keeper);
	return 0;
}

int daemon_attacks(struct daemon_sandbox *sandbox,
		   const struct attacks *attacks, daemon_done_fn *done,
		   void *arg)
{
	return ask_keeper(box_of(sandbox), MSG_KEEP_ATTACKS, attacks, done,
			  arg);
}

int daemon_exec(struct daemon_sandbox *sandbox, uid_t uid, const char *command,
		daemon_done_fn *done, void *arg)
{
	struct msg_keep_exec msg = { .uid = uid };
	size_t len = strnlen(command, sizeof(msg.command) - 1);

	memcpy(msg.command, command, len);
	return ask_keeper(box_of(sandbox), MSG_KEEP_EXEC, &msg, done, arg);
}
