/* SPDX-License-Identifier: Apache-2.0
 *
 * The operator's configuration. What is wrong with it is said with a place;
 * what is taken keeps to its limits. Policies that it names are not there.
 */
#include "cmd/daemon_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* A device or a pipe of the machine would be read for ever. */
static bool names_devices(const uint8_t *data, size_t size)
{
	static const char *const words[] = { "/dev", "/proc", "/sys", "/run",
					     "\\" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(data, size, words[i], strlen(words[i])))
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy_error error = { 0 };
	struct daemon_config *config = NULL;
	int err;

	if (names_devices(data, size))
		return 0;
	err = daemon_config_parse("daemon.yaml", (const char *)data, size,
				  &config, &error);
	if (err) {
		must(!config && (err == -EINVAL || err == -ENOMEM));
		return 0;
	}
	must(config->policies <= DAEMON_POLICIES_MAX);
	must(config->max_sandboxes <= DAEMON_SANDBOXES_MAX);
	must(config->spare_per_user <= DAEMON_SPARE_MAX);
	must(memchr(config->group, '\0', sizeof(config->group)));
	must(!*config->default_policy ||
	     daemon_config_policy(config, config->default_policy));
	daemon_config_free(config);
	return 0;
}
