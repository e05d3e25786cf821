/* SPDX-License-Identifier: Apache-2.0
 *
 * diff.c - see diff.h.
 */
#include "policy/diff.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/diff_impl.h"

const char *diff_way_word(enum diff_way way)
{
	static const char *const word[] = { [DIFF_WIDER] = "wider",
					    [DIFF_NARROWER] = "narrower",
					    [DIFF_OTHERWISE] = "different" };

	return word[way];
}

static struct difference *grow(struct differences *all)
{
	if ((all->count & (all->count - 1)) == 0) {
		size_t cap = all->count ? all->count * 2 : 1;
		struct difference *grown =
			reallocarray(all->at, cap, sizeof(*grown));

		if (!grown)
			return NULL;
		all->at = grown;
	}
	return &all->at[all->count];
}

void diff_add(struct differ *d, const struct difference *difference)
{
	struct difference copy = *difference, *slot = grow(&d->out);

	copy.what = strdup(difference->what);
	copy.detail = difference->detail && *difference->detail
			      ? strdup(difference->detail)
			      : NULL;
	if (!slot || !copy.what ||
	    (difference->detail && *difference->detail && !copy.detail)) {
		free(copy.what);
		free(copy.detail);
		d->error = -ENOMEM;
		return;
	}
	*slot = copy;
	d->out.count++;
}

void change_add(struct change *change, enum diff_way way, const char *format,
		...)
{
	size_t room = sizeof(change->text) - change->len;
	va_list ap;
	int n;

	change->way = change->any && change->way != way ? DIFF_OTHERWISE : way;
	if (change->any && room > 2) {
		memcpy(change->text + change->len, "; ", 3);
		change->len += 2;
		room -= 2;
	}
	change->any = true;
	va_start(ap, format);
	n = vsnprintf(change->text + change->len, room, format, ap);
	va_end(ap);
	if (n > 0)
		change->len += (size_t)n < room ? (size_t)n : room - 1;
}

int policy_diff(const struct policy *was, const struct policy *is,
		int64_t now_s, struct differences *ret)
{
	struct differ d = { .policy = { was, is }, .now_s = now_s };

	diff_settings(&d);
	diff_names(&d);
	diff_addresses(&d);
	if (d.error) {
		differences_free(&d.out);
		return d.error;
	}
	*ret = d.out;
	return 0;
}

void differences_free(struct differences *differences)
{
	for (size_t i = 0; i < differences->count; i++) {
		free(differences->at[i].what);
		free(differences->at[i].detail);
	}
	free(differences->at);
	*differences = (struct differences){ 0 };
}
