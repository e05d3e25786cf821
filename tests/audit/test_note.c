/* SPDX-License-Identifier: Apache-2.0
 *
 * Signed notes: the published ones verify and are written again to the byte,
 * and what is not a note by the specification is none here.
 */
#include "audit/note.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/base64.h"
#include "base/cleanup.h"

#define DASH "\xe2\x80\x94 "

/* From the tests of golang.org/x/mod/sumdb/note and from C2SP. */
#define PETER_VKEY \
	"PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
#define ENOCH_VKEY \
	"EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
#define TEXT                                                         \
	"If you think cryptography is the answer to your problem,\n" \
	"then you don't know what your problem is.\n"
#define PETER                                                               \
	DASH "PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIu" \
	     "GUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
#define ENOCH                                                            \
	DASH "EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2" \
	     "tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"
#define EXAMPLE_VKEY \
	"example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
#define EXAMPLE                                                               \
	"This is an example message.\n\n" DASH                                \
	"example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7" \
	"Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
#define SOMEBODY DASH "somebody.example AAAAAQID\n"

static struct text of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

static struct vkey vkey_of(const char *s)
{
	struct vkey vkey;

	assert_int_equal(vkey_parse(of(s), &vkey), 0);
	return vkey;
}

static int open_note(const char *s, const char *by)
{
	struct vkey vkey = vkey_of(by);
	struct note note;
	int r = note_parse(of(s), &note);

	return r ? r : note_verify(&note, &vkey);
}

static struct key *peter(void)
{
	static const char secret[] =
		"AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
	uint8_t raw[33];
	struct key *key;

	assert_int_equal(base64_decode_exactly(secret, strlen(secret), raw, 33),
			 0);
	assert_int_equal(key_of_seed(of("PeterNeumann"), raw + 1, &key), 0);
	return key;
}

static struct key *enoch(void)
{
	static const uint8_t zero[KEY_SEED];
	struct key *key;

	assert_int_equal(key_of_seed(of("EnochRoot"), zero, &key), 0);
	return key;
}

static void test_published_notes(void **state)
{
	(void)state;
	assert_int_equal(open_note(TEXT "\n" PETER, PETER_VKEY), 0);
	assert_int_equal(open_note(TEXT "\n" PETER ENOCH, ENOCH_VKEY), 0);
	assert_int_equal(open_note(TEXT "\n" SOMEBODY PETER, PETER_VKEY), 0);
	assert_int_equal(open_note(TEXT "\n" PETER PETER, PETER_VKEY), 0);
	assert_int_equal(open_note(EXAMPLE, EXAMPLE_VKEY), 0);
	assert_int_equal(open_note(TEXT "\n" PETER, ENOCH_VKEY), -ENOKEY);
	assert_int_equal(open_note("x" TEXT "\n" PETER, PETER_VKEY),
			 -EKEYREJECTED);
	/* One wrong signature of a known key spoils a right one. */
	assert_int_equal(open_note(TEXT "\n" PETER DASH
					"PeterNeumann x08go/Zx\n",
				   PETER_VKEY),
			 -EKEYREJECTED);
}

static void test_written_to_the_byte(void **state)
{
	struct key *a = peter(), *b = enoch();
	struct note note;
	char one[1024], two[1024];
	size_t len;

	(void)state;
	assert_int_equal(note_of_text(of(TEXT), &note), 0);
	assert_int_equal(note_format(&note, a, one, sizeof(one), &len), 0);
	assert_string_equal(one, TEXT "\n" PETER);
	assert_int_equal(len, strlen(one));
	assert_int_equal(note_parse(of(one), &note), 0);
	assert_int_equal(note_format(&note, b, two, sizeof(two), &len), 0);
	assert_string_equal(two, TEXT "\n" PETER ENOCH);
	/* Signing again replaces, strangers stay, nobody added changes
	 * nothing. */
	assert_int_equal(note_parse(of(TEXT "\n" PETER SOMEBODY), &note), 0);
	assert_int_equal(note_format(&note, a, two, sizeof(two), &len), 0);
	assert_string_equal(two, TEXT "\n" SOMEBODY PETER);
	assert_int_equal(note_format(&note, NULL, two, sizeof(two), &len), 0);
	assert_string_equal(two, TEXT "\n" PETER SOMEBODY);
	for (size_t cap = 0; cap <= strlen(TEXT "\n" PETER SOMEBODY); cap++)
		assert_int_equal(note_format(&note, a, two, cap, &len),
				 -ENOBUFS);
	note.count = 0;
	assert_int_equal(note_format(&note, NULL, two, sizeof(two), &len),
			 -EBADMSG);
	key_free(a);
	key_free(b);
}

static void test_every_bit_matters(void **state)
{
	char note[] = TEXT "\n" PETER;
	size_t end = sizeof(note) - 1;

	(void)state;
	for (size_t bit = 0; bit < end * 8; bit++) {
		note[bit / 8] ^= (char)(1 << bit % 8);
		/* A NUL ends it early, which is no note either. */
		if (open_note(note, PETER_VKEY) == 0)
			fail_msg("bit %zu does not matter", bit);
		note[bit / 8] ^= (char)(1 << bit % 8);
	}
}

static void test_what_is_no_note(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"\n\n",
		"\n" PETER,
		TEXT,
		TEXT "\n",
		TEXT PETER,
		TEXT "\n\n",
		TEXT "\n" PETER "\n",
		TEXT "\n" PETER "more\n",
		TEXT "\n" DASH "x AAAAAQID",
		TEXT "\n" DASH "x AAAAAQ==\n",
		TEXT "\n" DASH "x AAAA\n",
		TEXT "\n" DASH "x AAAAAQI\n",
		TEXT "\n" DASH "x AAAAAQJ=\n",
		TEXT "\n" DASH "x AAAA AQID\n",
		TEXT "\n" DASH "x  AAAAAQID\n",
		TEXT "\n" DASH "x AAAAAQID \n",
		TEXT "\n" DASH "x\n",
		TEXT "\n" DASH " AAAAAQID\n",
		TEXT "\n" DASH "x+y AAAAAQID\n",
		TEXT "\n" DASH "x\xc2\xa0y AAAAAQID\n",
		TEXT "\n" DASH "x\xe2\x80\xafy AAAAAQID\n",
		TEXT "\n- x AAAAAQID\n",
		TEXT "\n\xe2\x80\x93 x AAAAAQID\n",
		TEXT "\n \xe2\x80\x94 x AAAAAQID\n",
		"tab\there\n\n" SOMEBODY,
		"return\r\n\n" SOMEBODY,
		"escape\x1b\n\n" SOMEBODY,
		"latin \xe9\n\n" SOMEBODY,
		"overlong \xc0\xaf\n\n" SOMEBODY,
		"overlong \xe0\x80\xaf\n\n" SOMEBODY,
		"surrogate \xed\xa0\x80\n\n" SOMEBODY,
		"beyond \xf4\x90\x80\x80\n\n" SOMEBODY,
		"cut \xf0\x9f\x98\n\n" SOMEBODY,
	};
	struct note note = { .count = 99 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (note_parse(of(bad[i]), &note) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
	}
	assert_int_equal(note_parse((struct text){ "a\0b\n\n" SOMEBODY,
						   5 + strlen(SOMEBODY) },
				    &note),
			 -EBADMSG);
	assert_int_equal(note.count, 99);
}

static void test_what_is_a_note(void **state)
{
	struct note note;

	(void)state;
	/* Empty lines and lines like signatures are text before the last
	 * empty line. */
	assert_int_equal(note_parse(of("a\n\n" SOMEBODY "\n" SOMEBODY), &note),
			 0);
	assert_int_equal(note.count, 1);
	assert_int_equal(note.text.len, 3 + strlen(SOMEBODY));
	assert_int_equal(note_parse(of("\xc3\xa9 \xf0\x9f\x98\x80\n\n" DASH
				       "s\xc3\xa9 AAAAAQID\n"),
				    &note),
			 0);
	assert_int_equal(note.signature[0].id, 1);
	assert_true(text_is(note.signature[0].name, "s\xc3\xa9"));
	assert_true(text_is(note.signature[0].base64, "AAAAAQID"));
}

static void test_limits(void **state)
{
	AUTO_FREE char *big = calloc(1, NOTE_MAX + 2);
	char many[2048] = "a\n\n", out[2048];
	struct key *key = peter();
	struct note note;
	size_t len;

	(void)state;
	for (int i = 0; i < NOTE_SIGNATURES_MAX; i++)
		strcat(many, SOMEBODY);
	assert_int_equal(note_parse(of(many), &note), 0);
	assert_int_equal(note.count, NOTE_SIGNATURES_MAX);
	assert_int_equal(note_format(&note, key, out, sizeof(out), &len),
			 -E2BIG);
	strcat(many, SOMEBODY);
	assert_int_equal(note_parse(of(many), &note), -E2BIG);
	memset(big, 'a', NOTE_MAX);
	big[NOTE_MAX] = '\n';
	assert_int_equal(note_parse(of(big), &note), -E2BIG);
	assert_int_equal(note_of_text(of(big + 1), &note), 0);
	assert_int_equal(note_of_text(of("no end"), &note), -EBADMSG);
	key_free(key);
}

static void test_vkeys(void **state)
{
	static const char good[] = PETER_VKEY;
	char text[VKEY_TEXT_MAX], bad[sizeof(good)];
	struct vkey vkey = vkey_of(good);

	(void)state;
	vkey_format(&vkey, text);
	assert_string_equal(text, good);
	assert_int_equal(vkey.id, 0xc74f20a3);
	/* No part of it, and nothing one bit away, is a key. */
	for (size_t i = 0; i < sizeof(good); i++) {
		for (size_t n = 0; i + n < sizeof(good); n++) {
			struct text part = { good + i, n };

			if (n != sizeof(good) - 1)
				assert_int_equal(vkey_parse(part, &vkey),
						 -EBADMSG);
		}
	}
	for (size_t bit = 0; bit < (sizeof(good) - 1) * 8; bit++) {
		memcpy(bad, good, sizeof(good));
		bad[bit / 8] ^= (char)(1 << bit % 8);
		assert_int_equal(
			vkey_parse((struct text){ bad, sizeof(good) - 1 },
				   &vkey),
			-EBADMSG);
	}
	/* Another length or type with the id that fits. */
	assert_int_equal(
		vkey_parse(of("PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBf"
			      "sVkmqq/LDE4izWy10TWBADKEY=="),
			   &vkey),
		-EBADMSG);
	assert_int_equal(
		vkey_parse(of("PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBf"
			      "sVkmqq/LDE4izWy10TW"),
			   &vkey),
		-EBADMSG);
}

/* OpenSSL takes a signature that is the neutral point and 0 for the key that
 * is the neutral point, over any text. So there are no such keys. */
static void test_weak_keys(void **state)
{
	uint8_t forged[VKEY_SIGNATURE] = { 1 }, public[VKEY_LEN] = { 1 };
	struct vkey vkey = { .name = "x", .public = { 1 } };

	(void)state;
	assert_int_equal(vkey_verify(&vkey, "any", 3, forged), 0);
	for (int sign = 0; sign <= 0x80; sign += 0x80) {
		memset(public, 0, sizeof(public));
		public[31] = (uint8_t)sign;
		for (public[0] = 0; public[0] < 2; public[0]++)
			assert_int_equal(vkey_make(of("x"), public, &vkey),
					 -EINVAL);
		assert_int_equal(vkey_make(of("x"), public, &vkey), 0);
		memset(public, 0xff, sizeof(public));
		public[31] = (uint8_t)(0x7f | sign);
		for (public[0] = 0xec; public[0]; public[0]++)
			assert_int_equal(vkey_make(of("x"), public, &vkey),
					 -EINVAL);
		public[0] = 0xeb;
		assert_int_equal(vkey_make(of("x"), public, &vkey), 0);
	}
	/* The text form, with the id that fits. */
	assert_int_equal(
		vkey_parse(
			of("x+48f9887e+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
			&vkey),
		-EBADMSG);
	assert_int_equal(
		vkey_parse(
			of("x+22ef6339+ASbolY/CsiewRcP0ifLvmPDV36wF08YzObE4AohtU/wF"),
			&vkey),
		-EBADMSG);
	assert_int_equal(
		vkey_parse(
			of("x+c3056879+AccXanA9TdhPujwLdg0QZw8qIFP6LDnMxk7H/XeSrAN6"),
			&vkey),
		-EBADMSG);
}

static void test_base64(void **state)
{
	static const char *const bad[] = { "A",	   "AA",       "AAA",
					   "A===", "====",     "AB==",
					   "AAB=", "AA=A",     "AA A",
					   "AAA-", "AA==AAAA", "AAAA\n",
					   "=AAA", "AAAAA",    "AAA_" };
	uint8_t data[8];
	char text[16];
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(
			base64_decode(bad[i], strlen(bad[i]), data, 8, &len),
			-EBADMSG);
	/* RFC 4648 section 10 */
	static const char *const known[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		size_t want = strlen(known[i][1]);

		base64_encode(known[i][0], i, text);
		assert_memory_equal(text, known[i][1], want);
		assert_int_equal(base64_decode(text, want, data, i, &len), 0);
		assert_int_equal(len, i);
		assert_memory_equal(data, known[i][0], i);
		if (i)
			assert_int_equal(
				base64_decode(text, want, data, i - 1, &len),
				-ENOBUFS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_notes),
		cmocka_unit_test(test_written_to_the_byte),
		cmocka_unit_test(test_every_bit_matters),
		cmocka_unit_test(test_what_is_no_note),
		cmocka_unit_test(test_what_is_a_note),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_vkeys),
		cmocka_unit_test(test_weak_keys),
		cmocka_unit_test(test_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
