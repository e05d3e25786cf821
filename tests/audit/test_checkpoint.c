/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints: three lines and no other, signed by the log they name.
 */
#include "audit/checkpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

#define NAME "log.example/s1"
#define ROOT "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
#define NONE "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"

static struct text of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

static struct key *key_of(const char *name, uint8_t seed)
{
	uint8_t bytes[KEY_SEED] = { seed };
	struct key *key;

	assert_int_equal(key_of_seed(of(name), bytes, &key), 0);
	return key;
}

static struct checkpoint parsed(const char *s)
{
	struct checkpoint checkpoint;

	assert_int_equal(checkpoint_parse(of(s), &checkpoint), 0);
	return checkpoint;
}

/* The example of the specification, and the ends of what may be. */
static void test_there_and_back(void **state)
{
	static const char *const good[] = {
		"example.com/behind-the-sofa\n20852163\n" ROOT,
		NAME "\n0\n" NONE,
		NAME "\n1\n" ROOT,
		NAME "\n9223372036854775807\n" ROOT,
		"log with spaces - 42\n7\n" ROOT,
	};
	char text[CHECKPOINT_TEXT_MAX];
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct checkpoint checkpoint = parsed(good[i]);

		assert_int_equal(checkpoint_format(&checkpoint, text,
						   sizeof(text), &len),
				 0);
		assert_string_equal(text, good[i]);
		assert_int_equal(len, strlen(text));
		for (size_t cap = 0; cap <= len; cap++)
			assert_int_equal(
				checkpoint_format(&checkpoint, text, cap, &len),
				-ENOBUFS);
	}
	assert_int_equal(parsed(good[0]).size, 20852163);
	assert_int_equal(parsed(good[0]).root.byte[0], 0x0a);
}

static void test_what_is_no_checkpoint(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		NAME "\n",
		NAME "\n1\n",
		NAME "\n1\n" ROOT "extension\n",
		NAME "\n1\n" ROOT "\n",
		"\n1\n" ROOT,
		NAME "\n\n" ROOT,
		NAME "\n01\n" ROOT,
		NAME "\n+1\n" ROOT,
		NAME "\n-1\n" ROOT,
		NAME "\n 1\n" ROOT,
		NAME "\n1 \n" ROOT,
		NAME "\n0x1\n" ROOT,
		NAME "\n1\r\n" ROOT,
		NAME "\r\n1\n" ROOT,
		NAME "\n9223372036854775808\n" ROOT,
		NAME "\n99999999999999999999999\n" ROOT,
		NAME "\n0\n" ROOT,
		NAME "\n1\n\n",
		NAME "\n1\nAAAA\n",
		NAME "\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I\n",
		NAME "\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J=\n",
		NAME "\n1\nCsUYapGGPo4dkMgIAUqom_Xajj7h2fB2MPA3j2jxq2I=\n",
		NAME "\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=",
		"log\x1b[31m\n1\n" ROOT,
		"log\xff\n1\n" ROOT,
	};
	struct checkpoint checkpoint = { .size = 99 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (checkpoint_parse(of(bad[i]), &checkpoint) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
	}
	assert_int_equal(checkpoint.size, 99);
}

static void test_origins(void **state)
{
	struct checkpoint checkpoint = parsed(NAME "\n1\n" ROOT);
	char text[CHECKPOINT_TEXT_MAX];
	size_t len;

	(void)state;
	memset(checkpoint.origin, 'a', CHECKPOINT_ORIGIN_MAX);
	checkpoint.size = MERKLE_SIZE_MAX;
	assert_int_equal(
		checkpoint_format(&checkpoint, text, sizeof(text), &len), 0);
	assert_int_equal(parsed(text).size, checkpoint.size);
	checkpoint.size++;
	assert_int_equal(
		checkpoint_format(&checkpoint, text, sizeof(text), &len),
		-EINVAL);
	checkpoint.size = 1;
	checkpoint.origin[0] = '\0';
	assert_int_equal(
		checkpoint_format(&checkpoint, text, sizeof(text), &len),
		-EINVAL);
	strcpy(checkpoint.origin, "two\nlines");
	assert_int_equal(
		checkpoint_format(&checkpoint, text, sizeof(text), &len),
		-EINVAL);
}

static void test_signed(void **state)
{
	struct checkpoint checkpoint = parsed(NAME "\n7\n" ROOT), again;
	struct key *key = key_of(NAME, 1), *forger = key_of(NAME, 2);
	char note[CHECKPOINT_NOTE_MAX], other[CHECKPOINT_NOTE_MAX];
	size_t len;

	(void)state;
	assert_int_equal(
		checkpoint_sign(&checkpoint, key, note, sizeof(note), &len), 0);
	assert_ptr_equal(strstr(note, NAME "\n7\n" ROOT "\n"), note);
	assert_int_equal(checkpoint_open(of(note), key_public(key), &again), 0);
	assert_int_equal(again.size, 7);
	assert_string_equal(again.origin, NAME);
	assert_true(merkle_hash_equal(&again.root, &checkpoint.root));
	assert_int_equal(checkpoint_open(of(note), key_public(forger), &again),
			 -ENOKEY);
	note[strlen(NAME) + 1] = '8';
	assert_int_equal(checkpoint_open(of(note), key_public(key), &again),
			 -EKEYREJECTED);
	/* A right signature under the origin of another log. */
	strcpy(checkpoint.origin, "log.example/s2");
	assert_int_equal(
		checkpoint_sign(&checkpoint, key, other, sizeof(other), &len),
		0);
	assert_int_equal(checkpoint_open(of(other), key_public(key), &again),
			 -ENOKEY);
	assert_int_equal(again.size, 7);
	key_free(key);
	key_free(forger);
}

/* A note that the key signed, but not as a checkpoint. */
static void test_signed_something_else(void **state)
{
	struct key *key = key_of(NAME, 1);
	struct checkpoint checkpoint;
	struct note note;
	char text[1024];
	size_t len;

	(void)state;
	assert_int_equal(note_of_text(of(NAME "\n7\n" ROOT "more\n"), &note),
			 0);
	assert_int_equal(note_format(&note, key, text, sizeof(text), &len), 0);
	assert_int_equal(
		checkpoint_open(of(text), key_public(key), &checkpoint),
		-EBADMSG);
	key_free(key);
}

/* The sizes that the header promises are enough. */
static void test_longest(void **state)
{
	struct checkpoint checkpoint = { .size = MERKLE_SIZE_MAX };
	char name[VKEY_NAME_MAX + 1] = { 0 }, note[CHECKPOINT_NOTE_MAX];
	struct checkpoint again;
	struct key *key;
	size_t len;

	(void)state;
	memset(name, 'n', VKEY_NAME_MAX);
	memcpy(checkpoint.origin, name, sizeof(name));
	key = key_of(name, 3);
	assert_int_equal(
		checkpoint_sign(&checkpoint, key, note, sizeof(note), &len), 0);
	assert_int_equal(checkpoint_open(of(note), key_public(key), &again), 0);
	key_free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_what_is_no_checkpoint),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_signed),
		cmocka_unit_test(test_signed_something_else),
		cmocka_unit_test(test_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
