/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c - runs a fuzzer over its seeds, as an ordinary test. Where it is
 * linked with libFuzzer, the arguments of that (-runs=0 ...) have it fuzz.
 *
 * Each seed is also cut at every length up to TRUNCATE_MAX: that is what
 * arrives byte by byte from a slow sandbox. Each input is a heap block of its
 * exact size, so that AddressSanitizer sees one byte too far.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define SEED_MAX     (1024 * 1024)
#define TRUNCATE_MAX 4096
#define SEEDS_MIN    10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);
#ifdef REPLAY_FUZZES
int LLVMFuzzerRunDriver(int *argc, char ***argv,
			int (*one)(const uint8_t *data, size_t size));
#endif

static void try_input(const uint8_t *data, size_t size)
{
	AUTO_FREE uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
}

static bool replay(const char *dir, const char *name)
{
	AUTO_FREE uint8_t *data = malloc(SEED_MAX);
	AUTO_FREE char *path = NULL;
	size_t size;

	if (!data || asprintf(&path, "%s/%s", dir, name) < 0)
		abort();
	AUTO_FILE FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return false;
	}
	size = fread(data, 1, SEED_MAX, file);
	for (size_t cut = 0; cut < size && cut <= TRUNCATE_MAX; cut++)
		try_input(data, cut);
	try_input(data, size);
	return true;
}

static int replay_all(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	unsigned seeds = 0;
	bool ok = true;

	if (!dir) {
		perror(path);
		return 1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		ok &= replay(path, entry->d_name);
		seeds++;
	}
	closedir(dir);
	printf("%s: %u seeds\n", path, seeds);
	return ok && seeds >= SEEDS_MIN ? 0 : 1;
}

int main(int argc, char **argv)
{
#ifdef REPLAY_FUZZES
	if (argc > 1 && argv[1][0] == '-')
		return LLVMFuzzerRunDriver(&argc, &argv,
					   LLVMFuzzerTestOneInput);
#endif
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	if (argc != 2) {
		fprintf(stderr, "usage: %s SEEDS\n", argv[0]);
		return 2;
	}
	return replay_all(argv[1]);
}
