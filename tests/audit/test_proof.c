/* SPDX-License-Identifier: Apache-2.0
 *
 * Proofs: all of small trees are made and hold, and nothing close to one does.
 */
#include "audit/proof.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/audit/trees.h"

#define SIZES 64

static struct merkle_hash leaf[1000], root[SIZES + 1];

struct stream {
	const struct merkle_hash *leaf;
	size_t given, fail_at;
};

static int next_leaf(void *ctx, struct merkle_hash *ret_leaf)
{
	struct stream *stream = ctx;

	if (stream->given == stream->fail_at)
		return -EIO;
	*ret_leaf = stream->leaf[stream->given++];
	return 0;
}

static struct proof inclusion(const struct merkle_hash *leaves, size_t index,
			      size_t size)
{
	struct stream stream = { leaves, 0, SIZE_MAX };
	const struct proof_leaves source = { next_leaf, &stream };
	struct proof proof;

	assert_int_equal(proof_make_inclusion(index, size, &source, &proof), 0);
	return proof;
}

static struct proof consistency(const struct merkle_hash *leaves, size_t old,
				size_t size)
{
	struct stream stream = { leaves, 0, SIZE_MAX };
	const struct proof_leaves source = { next_leaf, &stream };
	struct proof proof;

	assert_int_equal(proof_make_consistency(old, size, &source, &proof), 0);
	return proof;
}

/* RFC 6962 section 2.1.1, word by word. */
static size_t naive_path(size_t m, const struct merkle_hash *d, size_t n,
			 struct merkle_hash *ret)
{
	size_t k = 1, count;

	if (n == 1)
		return 0;
	while (k * 2 < n)
		k *= 2;
	if (m < k) {
		count = naive_path(m, d, k, ret);
		ret[count] = naive_root(d + k, n - k);
	} else {
		count = naive_path(m - k, d + k, n - k, ret);
		ret[count] = naive_root(d, k);
	}
	return count + 1;
}

/* RFC 6962 section 2.1.2. */
static size_t naive_subproof(size_t m, const struct merkle_hash *d, size_t n,
			     bool whole, struct merkle_hash *ret)
{
	size_t k = 1, count;

	if (m == n) {
		if (!whole)
			ret[0] = naive_root(d, n);
		return whole ? 0 : 1;
	}
	while (k * 2 < n)
		k *= 2;
	if (m <= k) {
		count = naive_subproof(m, d, k, whole, ret);
		ret[count] = naive_root(d + k, n - k);
	} else {
		count = naive_subproof(m - k, d + k, n - k, false, ret);
		ret[count] = naive_root(d, k);
	}
	return count + 1;
}

static void assert_hashes(const struct proof *proof,
			  const struct merkle_hash *want, size_t count)
{
	assert_int_equal(proof->count, count);
	for (size_t i = 0; i < count; i++)
		assert_memory_equal(proof->hash[i].byte, want[i].byte,
				    MERKLE_HASH);
}

static void test_known_proofs(void **state)
{
	struct merkle_hash leaves[8], want[3];
	struct proof proof;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		merkle_leaf(known[i].data, known[i].len, &leaves[i]);
	want[0] = hash_of_hex("bc1a0643b12e4d2d7c77918f44e0f4f7"
			      "9a838b6cf9ec5b5c283e1f4d88599e6b");
	want[1] = hash_of_hex("ca854ea128ed050b41b35ffc1b87b8eb"
			      "2bde461e9e3b5596ece6b9d5975a0ae0");
	want[2] = hash_of_hex("d37ee418976dd95753c1c73862b9398f"
			      "a2a2cf9b4ff0fdfe8b30cd95209614b7");
	proof = inclusion(leaves, 5, 8);
	assert_hashes(&proof, want, 3);
	want[0] = hash_of_hex("0ebc5d3437fbe2db158b9f126a1d118e"
			      "308181031d0a949f8dededebc558ef6a");
	proof = consistency(leaves, 6, 8);
	assert_hashes(&proof, want, 3);
	want[0] = hash_of_hex("5f083f0a1a33ca076a95279832580db3"
			      "e0ef4584bdff1f54c8a360f50de3031e");
	want[1] = hash_of_hex("bc1a0643b12e4d2d7c77918f44e0f4f7"
			      "9a838b6cf9ec5b5c283e1f4d88599e6b");
	proof = consistency(leaves, 2, 5);
	assert_hashes(&proof, want, 2);
}

static void flip(void *hash, size_t bit)
{
	((uint8_t *)hash)[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

static void reject_inclusion(struct proof *proof, size_t m, size_t n)
{
	struct merkle_hash bad_leaf = leaf[m], bad_root = root[n];

	for (size_t bit = 0; bit < proof->count * 256; bit++) {
		flip(proof->hash, bit);
		assert_false(
			proof_shows_inclusion(proof, m, n, &leaf[m], &root[n]));
		flip(proof->hash, bit);
	}
	for (size_t bit = 0; bit < 256; bit++) {
		flip(&bad_leaf, bit);
		flip(&bad_root, bit);
		assert_false(proof_shows_inclusion(proof, m, n, &bad_leaf,
						   &root[n]));
		assert_false(proof_shows_inclusion(proof, m, n, &leaf[m],
						   &bad_root));
		flip(&bad_leaf, bit);
		flip(&bad_root, bit);
	}
	for (size_t other = 0; other < n + 2; other++) {
		if (other != m)
			assert_false(proof_shows_inclusion(proof, other, n,
							   &leaf[m], &root[n]));
	}
	proof->count++;
	assert_false(proof_shows_inclusion(proof, m, n, &leaf[m], &root[n]));
	proof->count -= 2;
	if (n > 1)
		assert_false(
			proof_shows_inclusion(proof, m, n, &leaf[m], &root[n]));
}

static void test_every_inclusion(void **state)
{
	(void)state;
	for (size_t n = 1; n <= SIZES; n++) {
		for (size_t m = 0; m < n; m++) {
			struct merkle_hash want[PROOF_MAX];
			struct proof proof = inclusion(leaf, m, n);

			assert_hashes(&proof, want,
				      naive_path(m, leaf, n, want));
			assert_true(proof_shows_inclusion(&proof, m, n,
							  &leaf[m], &root[n]));
			memset(&proof.hash[proof.count], 0,
			       sizeof(proof.hash[0]));
			reject_inclusion(&proof, m, n);
		}
	}
}

static void reject_consistency(struct proof *proof, size_t m, size_t n)
{
	struct merkle_hash bad_old = root[m], bad_new = root[n];

	for (size_t bit = 0; bit < proof->count * 256; bit++) {
		flip(proof->hash, bit);
		assert_false(proof_shows_consistency(proof, m, n, &root[m],
						     &root[n]));
		flip(proof->hash, bit);
	}
	for (size_t bit = 0; bit < 256; bit++) {
		flip(&bad_old, bit);
		flip(&bad_new, bit);
		assert_false(proof_shows_consistency(proof, m, n, &bad_old,
						     &root[n]));
		/* Of no leaves, every tree is the continuation. */
		if (m)
			assert_false(proof_shows_consistency(
				proof, m, n, &root[m], &bad_new));
		flip(&bad_old, bit);
		flip(&bad_new, bit);
	}
	proof->count++;
	assert_false(proof_shows_consistency(proof, m, n, &root[m], &root[n]));
	proof->count--;
	if (proof->count--)
		assert_false(proof_shows_consistency(proof, m, n, &root[m],
						     &root[n]));
}

static void test_every_consistency(void **state)
{
	(void)state;
	for (size_t n = 0; n <= SIZES; n++) {
		for (size_t m = 0; m <= n; m++) {
			struct merkle_hash want[PROOF_MAX];
			struct proof proof = consistency(leaf, m, n);
			size_t count =
				m ? naive_subproof(m, leaf, n, true, want) : 0;

			assert_hashes(&proof, want, count);
			assert_true(proof_shows_consistency(
				&proof, m, n, &root[m], &root[n]));
			memset(&proof.hash[proof.count], 0,
			       sizeof(proof.hash[0]));
			reject_consistency(&proof, m, n);
		}
	}
}

static void test_larger_trees(void **state)
{
	struct merkle_hash all = naive_root(leaf, 1000);

	(void)state;
	for (size_t m = 1; m < 1000; m += 13) {
		struct merkle_hash before = naive_root(leaf, m);
		struct proof proof = inclusion(leaf, m, 1000);

		assert_true(
			proof_shows_inclusion(&proof, m, 1000, &leaf[m], &all));
		proof = consistency(leaf, m, 1000);
		assert_true(proof_shows_consistency(&proof, m, 1000, &before,
						    &all));
	}
}

static void test_what_cannot_be_proved(void **state)
{
	struct stream stream = { leaf, 0, 7 };
	const struct proof_leaves source = { next_leaf, &stream };
	struct proof proof = { .count = 99 };
	struct merkle_hash h = leaf[0];

	(void)state;
	assert_int_equal(proof_make_inclusion(8, 8, &source, &proof), -EINVAL);
	assert_int_equal(proof_make_inclusion(0, 0, &source, &proof), -EINVAL);
	assert_int_equal(proof_make_consistency(9, 8, &source, &proof),
			 -EINVAL);
	assert_int_equal(
		proof_make_inclusion(1, MERKLE_SIZE_MAX + 1, &source, &proof),
		-EINVAL);
	assert_int_equal(stream.given, 0);
	assert_int_equal(proof_make_inclusion(1, 8, &source, &proof), -EIO);
	assert_int_equal(proof.count, 99);
	/* Nor does a proof too long, or of nothing, show anything. */
	assert_false(proof_shows_inclusion(&proof, 0, 8, &h, &h));
	assert_false(proof_shows_consistency(&proof, 1, 8, &h, &h));
	proof.count = 0;
	assert_true(proof_shows_inclusion(&proof, 0, 1, &h, &h));
	assert_false(proof_shows_inclusion(&proof, 0, 0, &h, &h));
	assert_false(proof_shows_inclusion(&proof, UINT64_MAX - 1, UINT64_MAX,
					   &h, &h));
	assert_false(proof_shows_consistency(&proof, 2, 1, &h, &h));
	assert_false(proof_shows_consistency(&proof, 1, 2, &h, &h));
}

static void test_file(void **state)
{
	static const char signed_text[] =
		"log.example\n7\nroot\n\nsignatures\n";
	const struct text note = { signed_text, sizeof(signed_text) - 1 };
	struct proof proof = inclusion(leaf, 4, 7), again;
	struct text file, rest;
	char buf[1024];
	uint64_t index;

	(void)state;
	file.at = buf;
	assert_int_equal(
		proof_format(4, &proof, note, buf, sizeof(buf), &file.len), 0);
	assert_int_equal(file.len, strlen(buf));
	assert_ptr_equal(strstr(buf, "c2sp.org/tlog-proof@v1\nindex 4\n"), buf);
	assert_int_equal(proof_parse(file, &index, &again, &rest), 0);
	assert_int_equal(index, 4);
	assert_hashes(&again, proof.hash, proof.count);
	assert_int_equal(rest.len, note.len);
	assert_memory_equal(rest.at, note.at, note.len);
	for (size_t cap = 0; cap <= file.len; cap++)
		assert_int_equal(
			proof_format(4, &proof, note, buf, cap, &index),
			-ENOBUFS);
}

static int parse(const char *s)
{
	struct proof proof;
	struct text rest;
	uint64_t index;

	return proof_parse((struct text){ s, strlen(s) }, &index, &proof,
			   &rest);
}

#define HEAD "c2sp.org/tlog-proof@v1\n"
#define HASH "gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ="
#define END  "\nlog.example\n"

static void test_hostile_files(void **state)
{
	char many[PROOF_MAX * 45 + 200] = HEAD "index 1\n";

	(void)state;
	assert_int_equal(parse(HEAD "index 1\n" HASH "\n" END), 0);
	assert_int_equal(parse(HEAD "index 0\n" END), 0);
	assert_int_equal(parse(HEAD "extra AA==\nindex 0\n" END), 0);
	static const char *const bad[] = {
		"",
		HEAD,
		"c2sp.org/tlog-proof@v2\nindex 1\n" END,
		HEAD "index 01\n" END,
		HEAD "index +1\n" END,
		HEAD "index  1\n" END,
		HEAD "index -1\n" END,
		HEAD "index \n" END,
		HEAD "index 1 \n" END,
		HEAD "index 1\r\n" END,
		HEAD "index 9223372036854775807\n" END,
		HEAD "index 18446744073709551617\n" END,
		HEAD "Index 1\n" END,
		HEAD "index 1\nindex 1\n" END,
		HEAD "index 1\n" HASH "=\n" END,
		HEAD "index 1\n" HASH " \n" END,
		HEAD "index 1\nAAAA\n" END,
		HEAD "index 1\n" HASH "\n",
		HEAD "index 1\n" HASH "\n\n",
		HEAD "index 1\n" HASH,
		HEAD "extra \nindex 0\n" END,
		HEAD "extra A\nindex 0\n" END,
		HEAD "extra AB==\nindex 0\n" END,
		HEAD "extra AA==\nextra AA==\nindex 0\n" END,
		HEAD "index 0\nextra AA==\n" END,
		" " HEAD "index 0\n" END,
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(bad[i]) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
	}
	for (size_t i = 0; i < PROOF_MAX; i++)
		strcat(many, HASH "\n");
	size_t full = strlen(many);
	strcat(many, END);
	assert_int_equal(parse(many), 0);
	many[full] = '\0';
	strcat(many, HASH "\n" END);
	assert_int_equal(parse(many), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_proofs),
		cmocka_unit_test(test_every_inclusion),
		cmocka_unit_test(test_every_consistency),
		cmocka_unit_test(test_larger_trees),
		cmocka_unit_test(test_what_cannot_be_proved),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_hostile_files),
	};

	fill_leaves(leaf, 1000);
	for (size_t n = 0; n <= SIZES; n++)
		root[n] = naive_root(leaf, n);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
