/* SPDX-License-Identifier: Apache-2.0
 *
 * bundle.c - parts one after the other, each counted: kind (1 byte), length of
 * origin (2), length of text (4), origin, text; integers in network order.
 */
#include "policy/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int read_all(int fd, char **ret_text, size_t *ret_len)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0, cap = 0;

	for (;;) {
		if (len == cap) {
			/* One byte more than allowed shows that it is more. */
			cap = cap ? cap * 2 : 65536;
			if (cap > FILE_TEXT_MAX + 1)
				cap = FILE_TEXT_MAX + 1;
			char *grown = realloc(text, cap);
			if (!grown)
				return -ENOMEM;
			text = grown;
		}
		ssize_t n = read(fd, text + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > FILE_TEXT_MAX)
			return -EFBIG;
	}
	*ret_text = STEAL(text);
	*ret_len = len;
	return 0;
}

int bundle_add_file(struct bundle *bundle, const char *path)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	int ret = read_all(fd, &text, &len);
	if (ret < 0)
		return ret;
	return bundle_add(bundle, BUNDLE_FILE, path, text, len);
}
