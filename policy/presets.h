/* SPDX-License-Identifier: Apache-2.0
 *
 * presets.h - the files of policy/presets/, compiled in by CMakeLists.txt.
 * preset_name() and preset_yaml() of bundle.h read them.
 */
#ifndef POLICY_PRESETS_H
#define POLICY_PRESETS_H

#include <stddef.h>

#define PRESETS_MAX 64

struct preset {
	const char *name, *yaml;
	size_t len;
};

/* Sorted by name. */
extern const struct preset preset_table[];
extern const size_t preset_count;

/* Its number, or -ENOENT. */
int preset_find(const char *name);
/* The preset that @word was probably meant to be, or NULL. */
const char *preset_guess(const char *word);

#endif
