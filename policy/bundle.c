/* SPDX-License-Identifier: Apache-2.0
 *
 * bundle.c - parts one after the other, each counted: kind (1 byte), length of
 * origin (2), length of text (4), origin, text; integers in network order.
 */
#include "policy/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/wire.h"
#include "policy/part.h"

#define HEAD_LEN 7

void bundle_free(struct bundle *bundle)
{
	free(bundle->data);
	*bundle = (struct bundle){ 0 };
}

int bundle_add(struct bundle *bundle, enum bundle_kind kind, const char *origin,
	       const char *text, size_t len)
{
	size_t origin_len = strlen(origin);
	uint8_t *grown;

	if (origin_len > UINT16_MAX)
		return -ENAMETOOLONG;
	if (len > BUNDLE_MAX ||
	    bundle->len + HEAD_LEN + origin_len + len > BUNDLE_MAX)
		return -EFBIG;
	size_t add = HEAD_LEN + origin_len + len;
	grown = realloc(bundle->data, bundle->len + add);
	if (!grown)
		return -ENOMEM;
	bundle->data = grown;

	struct wirebuf out = wirebuf_of(grown + bundle->len, add);
	wirebuf_u8(&out, (uint8_t)kind);
	wirebuf_u16(&out, (uint16_t)origin_len);
	wirebuf_u32(&out, (uint32_t)len);
	wirebuf_put(&out, origin, origin_len);
	wirebuf_put(&out, text, len);
	bundle->len += add;
	return 0;
}

bool part_next(struct wire *bundle, struct part *ret_part)
{
	struct part part = { .kind = wire_u8(bundle) };
	size_t origin_len = wire_u16(bundle);
	size_t text_len = wire_u32(bundle);

	part.origin = (const char *)wire_take(bundle, origin_len);
	part.origin_len = origin_len;
	part.text = (const char *)wire_take(bundle, text_len);
	part.len = text_len;
	if (!wire_ok(bundle))
		return false;
	*ret_part = part;
	return true;
}

bool bundle_file(const struct bundle *bundle, size_t i, char *buf, size_t cap)
{
	struct wire parts = wire_of(bundle->data, bundle->len);
	struct part part;

	while (parts.left && part_next(&parts, &part)) {
		if (part.kind != BUNDLE_FILE && part.kind != BUNDLE_INCLUDED &&
		    part.kind != BUNDLE_LIST)
			continue;
		if (i--)
			continue;
		if (part.origin_len >= cap)
			return false;
		memcpy(buf, part.origin, part.origin_len);
		buf[part.origin_len] = '\0';
		return true;
	}
	return false;
}
