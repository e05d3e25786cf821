/* SPDX-License-Identifier: Apache-2.0
 *
 * The head of the tree is RFC 6962's, at every size and after every pause.
 */
#include "audit/merkle.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "tests/audit/trees.h"

#define MANY 4100

static struct merkle_hash leaf[MANY];

static void assert_root(const struct merkle *tree,
			const struct merkle_hash *want)
{
	struct merkle_hash root;

	merkle_root(tree, &root);
	assert_memory_equal(root.byte, want->byte, MERKLE_HASH);
}

static void test_known_roots(void **state)
{
	struct merkle tree = { 0 };
	struct merkle_hash want = naive_root(NULL, 0);

	(void)state;
	assert_root(&tree, &want);
	for (size_t i = 0; i < 8; i++) {
		want = hash_of_hex(known[i].root);
		assert_int_equal(
			merkle_append(&tree, known[i].data, known[i].len), 0);
		assert_int_equal(tree.size, i + 1);
		assert_root(&tree, &want);
	}
}

/* Every size up to 300, then those around powers of two and some between. */
static void test_is_the_definition(void **state)
{
	struct merkle tree = { 0 };

	(void)state;
	for (size_t n = 0;; n++) {
		size_t low = n & 63;

		if (n <= 300 || low <= 1 || low == 63 || n % 97 == 0) {
			struct merkle_hash want = naive_root(leaf, n);

			assert_root(&tree, &want);
		}
		if (n == MANY)
			break;
		assert_int_equal(merkle_append_hash(&tree, &leaf[n]), 0);
	}
}

static void test_goes_on_after_a_pause(void **state)
{
	uint8_t saved[MERKLE_SAVED_MAX];
	struct merkle tree = { 0 }, straight = { 0 };
	struct merkle_hash want;

	(void)state;
	for (size_t n = 0; n < 520; n++) {
		size_t len = merkle_save(&tree, saved);
		struct merkle loaded;

		assert_int_equal(len, 8 + 32 * __builtin_popcountll(n));
		memset(&loaded, 0xa5, sizeof(loaded));
		assert_int_equal(merkle_load(saved, len, &loaded), 0);
		merkle_root(&straight, &want);
		assert_int_equal(loaded.size, n);
		assert_root(&loaded, &want);
		tree = loaded;
		merkle_append_hash(&tree, &leaf[n]);
		merkle_append_hash(&straight, &leaf[n]);
	}
}

static void test_saved_bytes_are_checked(void **state)
{
	uint8_t saved[MERKLE_SAVED_MAX + 1] = { 0 };
	struct merkle tree = { 0 };
	size_t len;

	(void)state;
	for (size_t n = 0; n < 21; n++)
		merkle_append_hash(&tree, &leaf[n]);
	len = merkle_save(&tree, saved);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(merkle_load(saved, cut, &tree), -EBADMSG);
	assert_int_equal(merkle_load(saved, len + 1, &tree), -EBADMSG);
	saved[7]++; /* 22: as many peaks, so nobody can tell by the length */
	assert_int_equal(merkle_load(saved, len, &tree), 0);
	saved[7]++; /* 23 has one more */
	assert_int_equal(merkle_load(saved, len, &tree), -EBADMSG);
	memset(saved, 0xff, sizeof(saved));
	for (size_t n = 0; n <= sizeof(saved); n++)
		assert_int_equal(merkle_load(saved, n, &tree), -EBADMSG);
}

static void test_full(void **state)
{
	uint8_t saved[MERKLE_SAVED_MAX];
	struct merkle tree;

	(void)state;
	memset(saved, 0xff, sizeof(saved));
	saved[0] = 0x7f;
	assert_int_equal(merkle_load(saved, sizeof(saved), &tree), 0);
	assert_true(tree.size == MERKLE_SIZE_MAX);
	assert_int_equal(merkle_append(&tree, "a", 1), -EOVERFLOW);
	assert_true(tree.size == MERKLE_SIZE_MAX);
	saved[7] = 0xfe;
	assert_int_equal(merkle_load(saved, sizeof(saved) - 32, &tree), 0);
	assert_int_equal(merkle_append(&tree, "a", 1), 0);
}

/* A leaf is not a node: the second root must differ from the first. */
static void test_leaf_and_node_are_apart(void **state)
{
	uint8_t both[2 * MERKLE_HASH];
	struct merkle two = { 0 }, one = { 0 };
	struct merkle_hash a, b;

	(void)state;
	merkle_append_hash(&two, &leaf[0]);
	merkle_append_hash(&two, &leaf[1]);
	memcpy(both, leaf[0].byte, MERKLE_HASH);
	memcpy(both + MERKLE_HASH, leaf[1].byte, MERKLE_HASH);
	merkle_append(&one, both, sizeof(both));
	merkle_root(&two, &a);
	merkle_root(&one, &b);
	assert_false(merkle_hash_equal(&a, &b));
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void test_speed(void **state)
{
	enum { LEAVES = 200000 };
	uint8_t line[600] = { 0 };
	double took = 1e9;

	(void)state;
	/* What the machine does beside it only ever adds. */
	for (int round = 0; round < 5 && LEAVES / took < 200000; round++) {
		struct merkle tree = { 0 };
		double start = cpu_seconds();

		for (uint32_t i = 0; i < LEAVES; i++) {
			memcpy(line, &i, sizeof(i));
			merkle_append(&tree, line, sizeof(line));
		}
		took = cpu_seconds() - start;
	}
	printf("%.0f leaves of 600 bytes a second, state of %zu bytes\n",
	       LEAVES / took, sizeof(struct merkle));
	assert_true(LEAVES / took >= 200000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_roots),
		cmocka_unit_test(test_is_the_definition),
		cmocka_unit_test(test_goes_on_after_a_pause),
		cmocka_unit_test(test_saved_bytes_are_checked),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_leaf_and_node_are_apart),
		cmocka_unit_test(test_speed),
	};

	fill_leaves(leaf, MANY);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
