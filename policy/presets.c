/* SPDX-License-Identifier: Apache-2.0
 *
 * presets.c - look-ups in the compiled-in table.
 */
#include "policy/presets.h"

#include <errno.h>
#include <string.h>

#include "policy/bundle.h"
#include "policy/words.h"

int preset_find(const char *name)
{
	for (size_t i = 0; i < preset_count; i++)
		if (strcmp(preset_table[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

const char *preset_name(size_t i)
{
	return i < preset_count ? preset_table[i].name : NULL;
}

const char *preset_yaml(const char *name, size_t *ret_len)
{
	int i = preset_find(name);

	if (i < 0)
		return NULL;
	*ret_len = preset_table[i].len;
	return preset_table[i].yaml;
}

static size_t names(const char *list[PRESETS_MAX])
{
	size_t n = 0;

	while (n < PRESETS_MAX && (list[n] = preset_name(n)))
		n++;
	return n;
}

const char *preset_guess(const char *word)
{
	const char *list[PRESETS_MAX];

	return word_guess(word, list, names(list));
}
