/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys: RFC 8032's vectors, files that only we can read, and no others.
 */
#include "audit/key.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cleanup.h"

static char dir[] = "/tmp/sallyport-key-XXXXXX";
static int dirfd_ = -1;

static struct text of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

static int set_up(void **state)
{
	(void)state;
	strcpy(strrchr(dir, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(dir));
	dirfd_ = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	assert_true(dirfd_ >= 0);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const files[] = { "key", "key.vkey", "link" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		unlinkat(dirfd_, files[i], 0);
	close(dirfd_);
	return rmdir(dir);
}

static struct key *make(const char *name)
{
	struct key *key;

	assert_int_equal(key_generate(of(name), &key), 0);
	return key;
}

static int try_read(void)
{
	const char *why = NULL;
	struct key *key = NULL;
	int r = key_read(dirfd_, "key", of("log.example"), &key, &why);

	if (r < 0) {
		assert_non_null(why);
		assert_null(key);
	}
	key_free(key);
	return r;
}

/* RFC 8032 section 7.1, TEST 2. */
static void test_known_signature(void **state)
{
	static const uint8_t seed[] =
		"\x4c\xcd\x08\x9b\x28\xff\x96\xda\x9d\xb6\xc3\x46\xec\x11\x4e"
		"\x0f\x5b\x8a\x31\x9f\x35\xab\xa6\x24\xda\x8c\xf6\xed\x4f\xb8"
		"\xa6\xfb";
	static const uint8_t public[] =
		"\x3d\x40\x17\xc3\xe8\x43\x89\x5a\x92\xb7\x0a\xa7\x4d\x1b\x7e"
		"\xbc\x9c\x98\x2c\xcf\x2e\xc4\x96\x8c\xc0\xcd\x55\xf1\x2a\xf4"
		"\x66\x0c";
	static const uint8_t want[] =
		"\x92\xa0\x09\xa9\xf0\xd4\xca\xb8\x72\x0e\x82\x0b\x5f\x64\x25"
		"\x40\xa2\xb2\x7b\x54\x16\x50\x3f\x8f\xb3\x76\x22\x23\xeb\xdb"
		"\x69\xda\x08\x5a\xc1\xe4\x3e\x15\x99\x6e\x45\x8f\x36\x13\xd0"
		"\xf1\x1d\x8c\x38\x7b\x2e\xae\xb4\x30\x2a\xee\xb0\x0d\x29\x16"
		"\x12\xbb\x0c\x00";
	uint8_t got[VKEY_SIGNATURE];
	struct key *key;

	(void)state;
	assert_int_equal(key_of_seed(of("x"), seed, &key), 0);
	assert_memory_equal(key_public(key)->public, public, VKEY_LEN);
	assert_int_equal(key_sign(key, "\x72", 1, got), 0);
	assert_memory_equal(got, want, VKEY_SIGNATURE);
	assert_int_equal(vkey_verify(key_public(key), "\x72", 1, got), 0);
	assert_int_equal(vkey_verify(key_public(key), "\x73", 1, got),
			 -EKEYREJECTED);
	for (size_t bit = 0; bit < sizeof(got) * 8; bit++) {
		got[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(vkey_verify(key_public(key), "\x72", 1, got),
				 -EKEYREJECTED);
		got[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	key_free(key);
}

static void test_two_are_different(void **state)
{
	struct key *a = make("log.example"), *b = make("log.example"), *c;
	uint8_t signature[VKEY_SIGNATURE];

	(void)state;
	assert_memory_not_equal(key_public(a)->public, key_public(b)->public,
				VKEY_LEN);
	assert_int_equal(key_under_name(a, of("log.example/1"), &c), 0);
	assert_memory_equal(key_public(a)->public, key_public(c)->public,
			    VKEY_LEN);
	assert_int_not_equal(key_public(a)->id, key_public(c)->id);
	assert_string_equal(key_public(c)->name, "log.example/1");
	assert_int_equal(key_under_name(a, of("log example"), &b), -EINVAL);
	/* It needs nothing of the other. */
	assert_int_equal(key_sign(a, "\x72", 1, signature), 0);
	key_free(a);
	assert_int_equal(vkey_verify(key_public(c), "\x72", 1, signature), 0);
	memset(signature, 0, sizeof(signature));
	assert_int_equal(key_sign(c, "\x72", 1, signature), 0);
	assert_int_equal(vkey_verify(key_public(c), "\x72", 1, signature), 0);
	key_free(b);
	key_free(c);
	key_free(NULL);
}

static void test_names(void **state)
{
	static const char *const bad[] = {
		"", "a b", "a+b", "a\n", "\t", "\x7f", "\xc3\xa9", "a\x1b[0m"
	};
	char name[VKEY_NAME_MAX + 2] = { 0 };
	struct key *key = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(key_generate(of(bad[i]), &key), -EINVAL);
	assert_int_equal(key_generate((struct text){ "a\0b", 3 }, &key),
			 -EINVAL);
	memset(name, 'a', sizeof(name) - 1);
	assert_int_equal(key_generate(of(name), &key), -EINVAL);
	assert_null(key);
	key = make(name + 1);
	key_free(key);
}

static void test_files(void **state)
{
	struct key *key = make("log.example"), *again;
	struct vkey vkey;
	const char *why;
	struct stat st;

	(void)state;
	assert_int_equal(key_write(key, dirfd_, "key"), 0);
	assert_int_equal(key_write_public(key, dirfd_, "key.vkey"), 0);
	assert_int_equal(key_write(key, dirfd_, "key"), -EEXIST);
	assert_int_equal(key_write_public(key, dirfd_, "key.vkey"), -EEXIST);
	assert_int_equal(fstatat(dirfd_, "key", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(
		key_read(dirfd_, "key", of("log.example"), &again, &why), 0);
	assert_memory_equal(key_public(again), key_public(key), sizeof(vkey));
	assert_int_equal(key_read_public(dirfd_, "key.vkey", &vkey), 0);
	assert_memory_equal(&vkey, key_public(key), sizeof(vkey));
	assert_int_equal(key_read(dirfd_, "key", of("no name"), &again, &why),
			 -EINVAL);
	assert_int_equal(key_read_public(dirfd_, "key", &vkey), -EBADMSG);
	assert_int_equal(key_write(key, dirfd_, "no/such"), -ENOENT);
	key_free(key);
	key_free(again);
}

/* Nothing must stay that looks like a key. */
static void test_no_room(void **state)
{
	struct key *key = make("log.example");
	struct rlimit before, small;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 50;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(key_write(key, dirfd_, "key"), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(faccessat(dirfd_, "key", F_OK, 0), -1);
	assert_int_equal(key_write(key, dirfd_, "key"), 0);
	key_free(key);
}

static void test_files_not_trusted(void **state)
{
	struct key *key = make("log.example");

	(void)state;
	assert_int_equal(try_read(), -ENOENT);
	assert_int_equal(key_write(key, dirfd_, "key"), 0);
	assert_int_equal(try_read(), 0);
	for (mode_t bit = 01; bit < 0100; bit <<= 1) {
		assert_int_equal(fchmodat(dirfd_, "key", 0600 | bit, 0), 0);
		assert_int_equal(try_read(), -EPERM);
	}
	assert_int_equal(fchmodat(dirfd_, "key", 0400, 0), 0);
	assert_int_equal(try_read(), 0);
	if (geteuid() == 0) {
		assert_int_equal(fchownat(dirfd_, "key", 12345, -1u, 0), 0);
		assert_int_equal(try_read(), -EPERM);
	}
	renameat(dirfd_, "key", dirfd_, "link");
	assert_int_equal(symlinkat("link", dirfd_, "key"), 0);
	assert_int_equal(try_read(), -EPERM);
	unlinkat(dirfd_, "key", 0);
	assert_int_equal(mkfifoat(dirfd_, "key", 0600), 0);
	assert_int_equal(try_read(), -EPERM);
	unlinkat(dirfd_, "key", 0);
	assert_int_equal(mkdirat(dirfd_, "key", 0700), 0);
	assert_int_equal(try_read(), -EPERM);
	unlinkat(dirfd_, "key", AT_REMOVEDIR);
	key_free(key);
}

static void put(const char *data, size_t len)
{
	AUTO_FD int fd = openat(dirfd_, "key",
				O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
}

static void test_what_is_no_key(void **state)
{
	struct key *key = make("log.example");
	char pem[256];
	ssize_t len;

	(void)state;
	assert_int_equal(key_write(key, dirfd_, "key"), 0);
	AUTO_FD int fd = openat(dirfd_, "key", O_RDONLY | O_CLOEXEC);
	len = read(fd, pem, sizeof(pem));
	assert_int_equal(len, 119);
	for (size_t cut = 0; cut < (size_t)len; cut++) {
		put(pem, cut);
		assert_int_equal(try_read(), -EBADMSG);
	}
	pem[len] = '\n';
	put(pem, (size_t)len + 1);
	assert_int_equal(try_read(), -EBADMSG);
	pem[28 + 16]++; /* not the identifier of Ed25519 */
	put(pem, (size_t)len);
	assert_int_equal(try_read(), -EBADMSG);
	key_free(key);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	/* As in a ledger: what it leaves out, nobody here may miss. */
	if (key_warm_up() < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_signature),
		cmocka_unit_test(test_two_are_different),
		cmocka_unit_test(test_names),
		TEST(test_files),
		TEST(test_no_room),
		TEST(test_files_not_trusted),
		TEST(test_what_is_no_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
