/* SPDX-License-Identifier: Apache-2.0
 *
 * bundle.c - parts one after the other, each counted: kind (1 byte), length of
 * origin (2), length of text (4), origin, text; integers in network order.
 */
#include "policy/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/wire.h"
#include "policy/part.h"

#define HEAD_LEN 7
/* Of a bundle that somebody sent. */
#define PARTS_MAX	4096
#define ORIGIN_TEXT_MAX 4096

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

/* 0 if it is whole and none of its parts is a ceiling. */
static int expect_plain(const struct bundle *bundle)
{
	struct wire parts = wire_of(bundle->data, bundle->len);
	struct part part;

	while (parts.left)
		if (!part_next(&parts, &part) || part.kind == BUNDLE_CEILING)
			return -EINVAL;
	return 0;
}

int bundle_add_ceiling(struct bundle *bundle, const struct bundle *ceiling,
		       const char *origin)
{
	if (expect_plain(bundle) < 0 || expect_plain(ceiling) < 0)
		return -EINVAL;
	return bundle_add(bundle, BUNDLE_CEILING, origin,
			  (const char *)ceiling->data, ceiling->len);
}

/* Words for an eye, and none that stand for the ceiling in a record. */
static bool is_origin(const struct part *part)
{
	char origin[ORIGIN_TEXT_MAX + 1];
	bool bad;

	if (!part->origin_len || part->origin_len > ORIGIN_TEXT_MAX ||
	    memchr(part->origin, '\0', part->origin_len))
		return false;
	memcpy(origin, part->origin, part->origin_len);
	origin[part->origin_len] = '\0';
	if (strncmp(origin, "ceiling", 7) == 0)
		return false;
	for (const char *at = origin; *at;) {
		at += text_next(at, &bad);
		if (bad)
			return false;
	}
	return true;
}

static const char *sent_fault(const struct bundle *bundle)
{
	struct wire parts = wire_of(bundle->data, bundle->len);
	struct part part;
	size_t n = 0;

	if (bundle->len > BUNDLE_MAX)
		return "it is too large";
	while (parts.left) {
		if (!part_next(&parts, &part))
			return "it is damaged";
		if (part.kind == BUNDLE_CEILING)
			return "only who runs this machine sets a ceiling";
		if (part.kind < BUNDLE_FILE || part.kind > BUNDLE_LIST)
			return "it has a part of a kind unknown here";
		if (++n > PARTS_MAX)
			return "it has too many parts";
		if (!is_origin(&part))
			return "a file's name in it is empty, can't be shown, "
			       "or begins with \"ceiling\"";
	}
	return NULL;
}

int bundle_check_sent(const struct bundle *bundle, struct policy_error *reterr)
{
	const char *fault = sent_fault(bundle);

	if (!fault)
		return 0;
	snprintf(reterr->text, sizeof(reterr->text), "policy bundle: %s",
		 fault);
	return -EINVAL;
}
