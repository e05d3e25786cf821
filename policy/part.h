/* SPDX-License-Identifier: Apache-2.0
 *
 * part.h - reading a bundle: inside policy/ only.
 */
#ifndef POLICY_PART_H
#define POLICY_PART_H

#include "base/wire.h"
#include "policy/bundle.h"

#define BUNDLE_MAX ((size_t)256 << 20)
/* What is parsed within a tenth of a second. */
#define FILE_TEXT_MAX ((size_t)512 << 10)

struct part {
	uint8_t kind;		   /* enum bundle_kind, not checked */
	const char *origin, *text; /* not terminated */
	size_t origin_len, len;
};

/* Takes the next part; false if it is cut short. */
bool part_next(struct wire *bundle, struct part *ret_part);

#endif
