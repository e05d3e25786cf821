/* SPDX-License-Identifier: Apache-2.0
 *
 * presets.c - `sallyport presets [NAME]`: what is built in.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "policy/bundle.h"

int presets_main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const char *yaml;
	size_t len;

	if (name && strcmp(name, "--help") == 0) {
		puts("usage: sallyport presets [NAME]\n\n"
		     "Lists the built-in presets, or shows what NAME allows.");
		return 0;
	}
	if (!name) {
		for (size_t i = 0; (name = preset_name(i)); i++)
			puts(name);
		return 0;
	}
	yaml = preset_yaml(name, &len);
	if (!yaml) {
		fprintf(stderr,
			"sallyport: no preset '%s'; `sallyport presets` lists "
			"them\n",
			name);
		return EXIT_SALLYPORT;
	}
	fwrite(yaml, 1, len, stdout);
	return 0;
}
