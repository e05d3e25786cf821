/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pin.c - a namespace that nobody is in stays under its name, and goes
 * when it is dropped. In mounts of our own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* before cmocka.h */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/link.h"
#include "launch/netns.h"
#include "launch/pin.h"

#define TOP  "/mnt/run"
#define PATH TOP "/netns/one.test"

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void test_stays(void **state)
{
	struct netns ns, other;
	uint32_t index;
	struct stat st;
	ino_t made;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(netns_create(&other, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(link_veth(ns.route, "here", "there", ns.fd), 0);
	made = inode(ns.fd);
	assert_int_equal(pin_open(PATH), -ENOENT);
	assert_int_equal(pin_make(PATH, ns.fd), 0);
	assert_int_equal(stat(TOP "/netns", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	/* Nobody else has it open, and the interface is still there. */
	netns_close(&ns);
	AUTO_FD int again = pin_open(PATH);
	assert_true(again >= 0);
	assert_true(inode(again) == made);
	assert_true(fcntl(again, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(link_veth(other.route, "a", "there", again), -EEXIST);
	assert_int_equal(link_index(other.route, "a", &index), -ENODEV);
	/* One at a time. */
	assert_int_equal(pin_make(PATH, other.fd), -EEXIST);
	assert_int_equal(pin_drop(PATH), 0);
	assert_int_equal(pin_open(PATH), -ENOENT);
	assert_int_equal(access(PATH, F_OK), -1);
	assert_int_equal(pin_drop(PATH), 0);
	assert_int_equal(pin_make(PATH, other.fd), 0);
	assert_int_equal(pin_drop(PATH), 0);
	netns_close(&other);
}

/* What is there is no namespace, or no file, or leads elsewhere. */
static void test_in_the_way(void **state)
{
	struct netns ns;

	(void)state;
	assert_int_equal(netns_create(&ns, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(pin_make("relative", ns.fd), -EINVAL);
	AUTO_FD int file = open(TOP "/file", O_CREAT | O_RDWR, 0600);
	assert_true(file >= 0);
	assert_int_equal(pin_open(TOP "/file"), -ENOENT);
	assert_int_equal(pin_make(PATH, file), -EINVAL);
	assert_int_equal(pin_make(TOP "/file/below", ns.fd), -ENOTDIR);
	assert_int_equal(symlink(TOP "/file", TOP "/link"), 0);
	assert_int_equal(pin_make(TOP "/link", ns.fd), -EEXIST);
	assert_int_equal(pin_open(TOP "/link"), -ELOOP);
	assert_int_equal(pin_open(TOP "/file"), -ENOENT);
	assert_int_equal(mkdir(TOP "/dir", 0755), 0);
	assert_int_equal(pin_make(TOP "/dir", ns.fd), -EEXIST);
	/* A file that an earlier pin left, as after a reboot. */
	assert_int_equal(pin_make(TOP "/file", ns.fd), 0);
	AUTO_FD int again = pin_open(TOP "/file");
	assert_true(inode(again) == inode(ns.fd));
	assert_int_equal(pin_drop(TOP "/file"), 0);
	netns_close(&ns);
}

static int setup(void **state)
{
	(void)state;
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", "/mnt", "tmpfs", 0, NULL), 0);
	return mkdir(TOP, 0755);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stays),
		cmocka_unit_test(test_in_the_way),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
