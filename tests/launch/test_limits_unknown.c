/* SPDX-License-Identifier: Apache-2.0
 *
 * test_limits_unknown.c - who is to be limited can't be found: the command does
 * not begin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "launch/limits.h"
#include "launch/process.h"

/* Bubblewrap says nothing of its child. Was the command told to begin? */
static int start(const struct resources *limits, bool *ret_begun)
{
	const struct limits_groups groups = { .procs = { -1, -1, -1, -1 } };
	struct process process = { .limits = limits, .groups = &groups };
	struct pollfd p = { .events = POLLIN };
	int started[2], status[2], r;

	assert_int_equal(pipe2(started, O_CLOEXEC), 0);
	assert_int_equal(pipe2(status, O_CLOEXEC), 0);
	close(status[1]);
	process.start_fd = started[1];
	process.status_fd = status[0];
	r = process_start(&process);
	p.fd = started[0];
	*ret_begun = poll(&p, 1, 0) > 0 && p.revents & POLLIN;
	if (process.start_fd >= 0)
		close(process.start_fd);
	close(started[0]);
	close(status[0]);
	return r;
}

static void test_unknown(void **state)
{
	const struct resources none = { 0 }, some = { .fsize = 4096 };
	bool begun;

	(void)state;
	assert_int_equal(start(&none, &begun), 0);
	assert_true(begun);
	assert_int_equal(start(&some, &begun), -ETIMEDOUT);
	assert_false(begun);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
