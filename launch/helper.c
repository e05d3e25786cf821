/* SPDX-License-Identifier: Apache-2.0
 *
 * helper.c - two uses of clone(2) with CLONE_VM.
 *
 * What runs in the child must end by returning, not by _exit(), which the
 * sanitizers take for the end of our own stack.
 */
#include "launch/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STACK_SIZE (256u << 10) /* only what is used takes memory */

static pid_t start(int (*work)(void *), void *arg, int flags, void **ret_stack)
{
	void *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	pid_t pid;

	if (stack == MAP_FAILED)
		return -errno;
	pid = clone(work, (char *)stack + STACK_SIZE,
		    flags | CLONE_VM | SIGCHLD, arg);
	if (pid < 0) {
		pid = -errno;
		munmap(stack, STACK_SIZE);
		return pid;
	}
	*ret_stack = stack;
	return pid;
}

static int finish(pid_t pid, void *stack)
{
	int status = -1, r;

	do
		r = waitpid(pid, &status, 0);
	while (r < 0 && errno == EINTR);
	munmap(stack, STACK_SIZE);
	/* ECHILD is fine: somebody may ignore SIGCHLD. */
	return r < 0 || status == 0 ? 0 : -ECHILD;
}

int helper_run(int (*work)(void *arg), void *arg)
{
	void *stack = NULL;
	pid_t pid = start(work, arg, CLONE_VFORK | CLONE_FILES, &stack);

	return pid < 0 ? pid : finish(pid, stack);
}

/* We run on meanwhile, and errno is one for both: nothing here may fail. */
static int hold(void *arg)
{
	const struct helper *helper = arg;
	char byte;

	close(helper->wait[1]);
	return read(helper->wait[0], &byte, 1) != 0;
}

int helper_hold_userns(struct helper *ret)
{
	int r;

	if (pipe2(ret->wait, O_CLOEXEC) < 0)
		return -errno;
	ret->pid = start(hold, ret, CLONE_NEWUSER, &ret->stack);
	if (ret->pid > 0)
		return 0;
	r = ret->pid;
	close_fd(&ret->wait[0]);
	close_fd(&ret->wait[1]);
	return r;
}

void helper_end(struct helper *helper)
{
	/* Before the child ran, it still has our end as well: then only a
	 * signal ends it. */
	kill(helper->pid, SIGKILL);
	finish(helper->pid, helper->stack);
	close_fd(&helper->wait[0]);
	close_fd(&helper->wait[1]);
}
