/* SPDX-License-Identifier: Apache-2.0
 *
 * gate_build.c - from a bundle to a policy.
 *
 * A list of a million names takes half a second, in which nobody else would be
 * served. So while the gate serves, a thread builds. It has the bytes and gives
 * back a policy; of all the rest it touches nothing.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cmd/gate.h"
#include "policy/bundle.h"

struct gate_build {
	pthread_t thread;
	int file, ready; /* the bundle; readable when done */
	uint64_t len;
	struct policy *policy;
	struct policy_error error;
	int err;
	struct event *event;
	gate_built_fn *done;
	struct gate *gate;
};

int gate_build(int file, uint64_t len, struct policy **ret_policy,
	       struct policy_error *reterr)
{
	struct stat st;
	void *data = NULL;
	int err;

	*reterr = (struct policy_error){ 0 };
	if (fstat(file, &st) < 0)
		return -errno;
	/* Reading past its end would kill us. */
	if (len > SIZE_MAX / 2 || st.st_size < (off_t)len)
		return -EBADMSG;
	if (len)
		data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, file, 0);
	if (data == MAP_FAILED)
		return -errno;
	err = policy_build(data, len, ret_policy, reterr);
	if (data)
		munmap(data, len);
	return err;
}

static void *work(void *arg)
{
	struct gate_build *build = arg;

	build->err = gate_build(build->file, build->len, &build->policy,
				&build->error);
	eventfd_write(build->ready, 1);
	return NULL;
}

static void release(struct gate_build *build)
{
	if (build->event)
		event_free(build->event);
	policy_unref(build->policy);
	close_fd(&build->ready);
	close_fd(&build->file);
	free(build);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct gate_build *build = arg;

	(void)fd;
	(void)what;
	pthread_join(build->thread, NULL);
	build->gate->build = NULL;
	build->done(build->gate, build->err, STEAL(build->policy),
		    &build->error);
	release(build);
}

int gate_build_start(struct gate *gate, int file, uint64_t len,
		     gate_built_fn *done)
{
	struct gate_build *build = calloc(1, sizeof(*build));
	int err = -ENOMEM;

	if (!build) {
		close_fd(&file);
		return -ENOMEM;
	}
	*build = (struct gate_build){
		.file = file, .len = len, .done = done, .gate = gate
	};
	build->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (build->ready < 0)
		err = -errno;
	else
		build->event = event_new(gate->base, build->ready, EV_READ,
					 on_ready, build);
	if (build->event && !event_add(build->event, NULL))
		err = -pthread_create(&build->thread, NULL, work, build);
	if (err)
		release(build);
	else
		gate->build = build;
	return err;
}

void gate_build_unwatch(struct gate *gate)
{
	if (gate->build)
		event_del(gate->build->event);
}

void gate_build_free(struct gate *gate)
{
	struct gate_build *build = gate->build;

	if (!build)
		return;
	gate->build = NULL;
	pthread_join(build->thread, NULL);
	release(build);
}
