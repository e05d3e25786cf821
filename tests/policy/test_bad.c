/* SPDX-License-Identifier: Apache-2.0
 *
 * test_bad.c - every file of bad/ is one mistake, and bad/EXPECTED says what it
 * gets: file, line, column, what is wrong and what to do. And texts made to be
 * expensive cost neither time nor memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "policy/bundle.h"
#include "policy/policy.h"

#define FILES_MIN 150

static int build(const char *path, struct policy_error *err)
{
	struct bundle bundle = { 0 };
	struct policy *policy = NULL;
	int ret = bundle_add_policy(&bundle, path, err);

	if (ret == 0)
		ret = policy_build(bundle.data, bundle.len, &policy, err);
	bundle_free(&bundle);
	policy_unref(policy);
	return ret;
}

/* "name.yaml<TAB>the whole message" */
static bool find_expected(FILE *table, const char *name, char *line, size_t cap,
			  const char **ret_text)
{
	size_t len = strlen(name);

	rewind(table);
	while (fgets(line, (int)cap, table)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, name, len) == 0 && line[len] == '\t') {
			*ret_text = line + len + 1;
			return true;
		}
	}
	return false;
}

static void check_file(FILE *table, const char *name)
{
	struct policy_error err = { "" };
	const char *want = "";
	char line[1024];
	int ret = build(name, &err);

	if (!find_expected(table, name, line, sizeof(line), &want))
		fail_msg("%s is not in EXPECTED; it gives: %s", name, err.text);
	if (ret != -EINVAL || strcmp(err.text, want) != 0)
		fail_msg("%s gives %d: %s\nwanted: %s", name, ret, err.text,
			 want);
}

static void test_corpus(void **state)
{
	AUTO_FILE FILE *table = fopen("EXPECTED", "re");
	DIR *dir = opendir(".");
	unsigned files = 0;

	(void)state;
	assert_non_null(table);
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		const char *dot = strrchr(e->d_name, '.');

		if (!dot || strcmp(dot, ".yaml") != 0)
			continue;
		check_file(table, e->d_name);
		files++;
	}
	closedir(dir);
	if (files < FILES_MIN)
		fail_msg("only %u files", files);
}

/* --- what is made to be expensive ---------------------------------------- */

static double seconds(void)
{
	struct timespec ts;

	/* Of this process: the machine may be busy. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static void repeat(FILE *f, const char *text, size_t bytes)
{
	for (size_t n = 0; n < bytes; n += strlen(text))
		fputs(text, f);
}

struct bomb {
	const char *head, *text, *tail;
	size_t bytes;
};

static const struct bomb bombs[] = {
	{ "version: 1\nallow:\n", "  - a.example\n", "", 10 << 20 },
	{ "version: 1\nallow:\n", "  - a.example\n", "", (1 << 19) - 64 },
	{ "version: 1\nallow:\n", "- a\n", "", (1 << 19) - 64 },
	{ "version: 1\nallow: [", "a,", "]\n", (1 << 19) - 64 },
	{ "version: 1\nallow: ", "[", "\n", (1 << 19) - 128 },
	{ "version: 1\nallow: ", "{a: ", "\n", (1 << 19) - 128 },
	{ "version: 1\nallow:\n", "- - - - ", "\n", (1 << 19) - 128 },
	{ "version: 1\n", "? ", "\n", (1 << 19) - 128 },
	{ "version: 1\nname: \"", "\\x41", "\"\n", (1 << 19) - 128 },
	{ "version: 1\nname: |\n", "  a\n", "", (1 << 19) - 128 },
	{ "version: 1\nname: ", "a ", "\n", (1 << 19) - 128 },
	{ "", "# comment\n", "", (1 << 19) - 128 },
	{ "", "\n", "", (1 << 19) - 64 },
	{ "version: 1\n", "k: v\n", "", (1 << 19) - 128 },
	{ "version: 1\nallow:\n- host: a.example\n  ports: [", "1,", "1]\n",
	  (1 << 19) - 128 },
	{ "version: 1\nallow:\n- host: a.example\n  addresses: [",
	  "10.0.0.0/8,", "10.0.0.0/8]\n", (1 << 19) - 128 },
	{ "version: 1\na: &a [x]\nallow: [", "*a,", "*a]\n", (1 << 19) - 128 },
	{ "version: 1\nextends: [", "github,", "github]\n", (1 << 19) - 128 },
	{ "version: 1\nextends: [", "./b.yaml,", "./b.yaml]\n",
	  (1 << 19) - 128 },
	{ "version: 1\nnote: '", "''", "'\n", (1 << 19) - 128 },
	{ "version: 1\nallow: [\"", "\xc3\xa4.", "example\"]\n",
	  (1 << 19) - 128 },
	{ "version: 1\nallow: [\"", "x.", "example\"]\n", (1 << 19) - 128 },
};

/* Sanitizers take their time over each allocation, put something around it, and
 * keep what is freed: of that, little. */
#ifdef SALLYPORT_SANITIZED
#define SLOWER 30
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64";
}
#else
#define SLOWER 1
#endif

#define PEAK_KIB (64 * 1024)

#define SECONDS (0.1 * SLOWER)

/* Who has the other half of the processor only ever adds: the best of many is
 * what it takes. */
static double best_of_many(const char *path, struct policy_error *err, int *ret)
{
	double best = 1e9;

	for (int i = 0; i < 3 || (i < 30 && best > SECONDS); i++) {
		double before = seconds(), took;

		*ret = build(path, err);
		took = seconds() - before;
		if (took < best)
			best = took;
	}
	return best;
}

static double try_bomb(const struct bomb *bomb, const char *path)
{
	struct policy_error err = { "" };
	FILE *f = fopen(path, "we");
	int ret = 0;
	double took;

	assert_non_null(f);
	fputs(bomb->head, f);
	repeat(f, bomb->text, bomb->bytes);
	fputs(bomb->tail, f);
	assert_int_equal(fclose(f), 0);
	took = best_of_many(path, &err, &ret);
	assert_true(ret == 0 || (ret == -EINVAL && *err.text));
	return took;
}

static void test_bombs(void **state)
{
	char path[] = "/tmp/sallyport-bomb-XXXXXX";
	int fd = mkstemp(path);
	double took;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(bombs); i++) {
		took = try_bomb(&bombs[i], path);
		if (took > SECONDS)
			fail_msg("number %zu took %.0f ms", i, took * 1000);
	}
	unlink(path);
	if (peak_kib() > PEAK_KIB)
		fail_msg("it took %ld KiB", peak_kib());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bombs), /* first: it measures memory */
		cmocka_unit_test(test_corpus),
	};

	if (chdir(BAD_FOLDER)) {
		perror(BAD_FOLDER);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
