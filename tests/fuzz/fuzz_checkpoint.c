/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_checkpoint.c - the text of a checkpoint, the saved state of a tree, and
 * an envelope, from anywhere.
 */
#include "audit/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "audit/dsse.h"

/* RFC 8032's B: a key like others. */
#define BASE_POINT                                                            \
	{                                                                     \
		0x58, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,   \
			0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, \
			0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, \
			0x66, 0x66, 0x66, 0x66                                \
	}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_saved(const uint8_t *data, size_t size)
{
	uint8_t again[MERKLE_SAVED_MAX];
	struct merkle_hash root;
	struct merkle tree;

	if (merkle_load(data, size, &tree))
		return;
	must(merkle_save(&tree, again) == size);
	must(memcmp(again, data, size) == 0);
	merkle_root(&tree, &root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct vkey nobody = { .name = "nobody.example",
					    .public = BASE_POINT };
	const struct text text = { (const char *)data, size };
	char again[CHECKPOINT_TEXT_MAX], *body;
	struct checkpoint checkpoint;
	size_t len;

	check_saved(data, size);
	must(dsse_open(text, "text/x", &nobody, &body, &len));
	must(checkpoint_open(text, &nobody, &checkpoint));
	if (checkpoint_parse(text, &checkpoint))
		return 0;
	must(!checkpoint_format(&checkpoint, again, sizeof(again), &len));
	must(len == size && memcmp(again, data, size) == 0);
	return 0;
}
