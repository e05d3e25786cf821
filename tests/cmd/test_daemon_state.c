/* SPDX-License-Identifier: Apache-2.0
 *
 * What is written of a sandbox is what is read again, and nothing else is.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/daemon_impl.h"
#include "cmd/sandbox_file.h"

static char dir[] = "/tmp/sallyport-state-XXXXXX";
static struct daemon lord;

static struct daemon_sandbox sample(void)
{
	struct daemon_sandbox s = {
		.spec = { .name = "box",
			  .uid = 1000,
			  .gid = 1001,
			  .ip = ip_v4(0xc6130002),
			  .gateway = ip_v4(0xc6130001),
			  .bits = 30,
			  .ifname = "eth0",
			  .ends_s = 1795316421,
			  .command = "make \"it\"",
			  .policy_text = "a.yaml, b.yaml",
			  .policy_name = "agent" },
		.netns = "/run/netns/box",
		.userns = "/run/user/box",
		.made_s = 1795316400,
		.publishes = 1,
	};

	s.publish[0] = (struct daemon_publish){
		.at = { .ip = ip_v4(0x7f000001), .port = 8080 }, .inside = 80
	};
	return s;
}

static const struct bundle bundle = { .data = (uint8_t *)"bytes", .len = 5 };

static void make_sample(void)
{
	const struct daemon_sandbox s = sample();

	assert_int_equal(state_make(&lord, &s, &bundle), 0);
}

static void test_again(void **state)
{
	struct daemon_sandbox s = sample(), got = { 0 };
	struct bundle read;
	struct stat st;

	(void)state;
	make_sample();
	assert_int_equal(state_load(&lord, "box", &got), 0);
	assert_memory_equal(&got.spec, &s.spec, sizeof(s.spec));
	assert_string_equal(got.netns, s.netns);
	assert_string_equal(got.userns, s.userns);
	assert_int_equal(got.made_s, s.made_s);
	assert_int_equal(got.publishes, 1);
	assert_memory_equal(&got.publish[0], &s.publish[0],
			    sizeof(s.publish[0]));
	assert_int_equal(state_bundle(&lord, "box", &read), 0);
	assert_int_equal(read.len, 5);
	assert_memory_equal(read.data, "bytes", 5);
	bundle_free(&read);
	AUTO_FD int leases = state_leases(&lord, "box");
	assert_true(leases >= 0);
	assert_int_equal(fstat(leases, &st), 0);
	assert_int_equal(st.st_size, sandbox_file_size());
	assert_int_equal(st.st_mode & 0777, 0600);
	state_drop(&lord, "box");
	assert_int_equal(state_load(&lord, "box", &got), -ENOENT);
}

/* In force after a restart: these bytes, by that name. */
static void assert_kept(const char *bytes, const char *name)
{
	struct daemon_sandbox got = { 0 };
	struct bundle read;

	assert_int_equal(state_load(&lord, "box", &got), 0);
	assert_string_equal(got.spec.policy_name, name);
	assert_int_equal(state_bundle(&lord, "box", &read), 0);
	assert_int_equal(read.len, strlen(bytes));
	assert_memory_equal(read.data, bytes, read.len);
	bundle_free(&read);
}

static void test_bundles(void **state)
{
	const struct bundle next = { .data = (uint8_t *)"other", .len = 5 };
	const struct bundle third = { .data = (uint8_t *)"3", .len = 1 };
	struct daemon_sandbox s = sample();

	(void)state;
	make_sample();
	assert_int_equal(state_stage_bundle(&lord, "box", &next), 0);
	assert_kept("bytes", "agent");
	snprintf(s.spec.policy_name, sizeof(s.spec.policy_name), "other");
	/* Something else is kept meanwhile. */
	assert_int_equal(state_save(&lord, &s, false), 0);
	assert_kept("bytes", "agent");
	assert_int_equal(state_save(&lord, &s, true), 0);
	assert_kept("other", "other");
	assert_int_equal(state_stage_bundle(&lord, "box", &third), 0);
	assert_kept("other", "other");
	assert_int_equal(state_save(&lord, &s, true), 0);
	assert_kept("3", "other");
	state_drop(&lord, "box");
}

/* The bundle is written, what goes with it can't be: the old ones stay, both,
 * also when something else is kept later. */
static void test_half_a_change(void **state)
{
	const struct bundle next = { .data = (uint8_t *)"other", .len = 5 };
	struct daemon_sandbox s = sample();

	(void)state;
	make_sample();
	assert_int_equal(state_stage_bundle(&lord, "box", &next), 0);
	*s.spec.policy_name = '\0';
	assert_int_equal(mkdirat(lord.state_dir, "box/state.json.new", 0700),
			 0);
	assert_int_equal(state_save(&lord, &s, true), -EISDIR);
	assert_kept("bytes", "agent");
	assert_int_equal(
		unlinkat(lord.state_dir, "box/state.json.new", AT_REMOVEDIR),
		0);
	assert_int_equal(state_save(&lord, &s, false), 0);
	assert_kept("bytes", "agent");
	assert_int_equal(state_stage_bundle(&lord, "box", &next), 0);
	assert_int_equal(state_save(&lord, &s, true), 0);
	assert_kept("other", "");
	state_drop(&lord, "box");
}

static void put_state(const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/sandboxes/box/state.json", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

#define REST "\"gid\":0,\"bits\":30,\"ends\":0,\"made\":0"

/* Cut, of another version, of another name, or of what is no number. */
static void test_damaged(void **state)
{
	static const char *const rows[] = {
		"",
		"{",
		"{}",
		"{\"version\":2,\"name\":\"box\",\"uid\":0," REST "}",
		"{\"version\":1,\"name\":\"bax\",\"uid\":0," REST "}",
		"{\"version\":1,\"name\":\"box\"," REST "}",
		"{\"version\":1,\"name\":\"box\",\"uid\":\"0\"," REST "}",
		"{\"version\":1,\"name\":\"box\",\"uid\":-1," REST "}",
		"{\"version\":1,\"name\":\"box\",\"uid\":4294967295," REST "}",
		"{\"version\":1,\"name\":\"box\",\"uid\":0,\"uid\":1," REST "}",
		"{\"version\":1,\"name\":\"box\",\"uid\":0,\"ip\":\"x\"," REST
		"}",
		"{\"version\":1,\"name\":\"box\",\"uid\":0,\"publish\":[{}]," REST
		"}",
		"{\"version\":1,\"name\":\"box\",\"uid\":0,\"ifname\":"
		"\"sixteen-or-more-\"," REST "}",
	};
	struct daemon_sandbox got;

	(void)state;
	make_sample();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		put_state(rows[i]);
		if (state_load(&lord, "box", &got) != -EBADMSG)
			fail_msg("%s", rows[i]);
	}
	put_state("{\"version\":1,\"name\":\"box\",\"uid\":0," REST "}");
	assert_int_equal(state_load(&lord, "box", &got), 0);
	state_drop(&lord, "box");
}

/* A file of leases that is no such file is a new one. */
static void test_leases(void **state)
{
	struct stat st;

	(void)state;
	make_sample();
	AUTO_FD int first = state_leases(&lord, "box");
	assert_int_equal(write(first, "x", 1), 1);
	assert_int_equal(ftruncate(first, 100), 0);
	AUTO_FD int second = state_leases(&lord, "box");
	char byte = 'y';
	assert_int_equal(fstat(second, &st), 0);
	assert_int_equal(st.st_size, sandbox_file_size());
	assert_int_equal(pread(second, &byte, 1, 0), 1);
	assert_int_equal(byte, 0);
	state_drop(&lord, "box");
}

/* Where the disk has no room for all of it, there is no such file, and so no
 * sandbox: a hole would be found when a gate writes to it. */
static void test_leases_room(void **state)
{
	const struct daemon_sandbox s = sample();
	struct daemon small = { 0 };
	char path[] = "/tmp/sallyport-room-XXXXXX", size[32];
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(path));
	snprintf(size, sizeof(size), "size=%zu", sandbox_file_size() / 2);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", path, "tmpfs", 0, size), 0);
	assert_int_equal(state_open(path, &small.state_dir), 0);
	assert_int_equal(state_make(&small, &s, &bundle), -ENOSPC);
	assert_int_equal(faccessat(small.state_dir, "box", F_OK, 0), -1);
	snprintf(size, sizeof(size), "size=%zu", sandbox_file_size() * 2);
	assert_int_equal(mount("none", path, "tmpfs", MS_REMOUNT, size), 0);
	assert_int_equal(state_make(&small, &s, &bundle), 0);
	AUTO_FD int leases = state_leases(&small, "box");
	assert_int_equal(fstat(leases, &st), 0);
	assert_true((size_t)st.st_blocks * 512 >= sandbox_file_size());
	close(small.state_dir);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	assert_int_equal(rmdir(path), 0);
}

static int open_all(void **state)
{
	(void)state;
	return mkdtemp(dir) ? state_open(dir, &lord.state_dir) : -1;
}

static int close_all(void **state)
{
	char path[64];

	(void)state;
	close(lord.state_dir);
	snprintf(path, sizeof(path), "%s/sandboxes", dir);
	/* Empty, or it stays. */
	return rmdir(path) || rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_bundles),
		cmocka_unit_test(test_half_a_change),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_leases_room),
	};
	return cmocka_run_group_tests(tests, open_all, close_all);
}
