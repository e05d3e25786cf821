/* SPDX-License-Identifier: Apache-2.0
 *
 * test_env.c - what a command's environment has, and what it must not have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "launch/process.h"

#define URL "http://10.0.0.1:3128"

/* The value of @name, which must be there at most once; or NULL. */
static const char *value(char **env, const char *name)
{
	size_t n = strlen(name);
	const char *found = NULL;

	for (char **e = env; *e; e++) {
		if (strncmp(*e, name, n) != 0 || (*e)[n] != '=')
			continue;
		assert_null(found);
		found = *e + n + 1;
	}
	return found;
}

static void test_proxy_variables(void **state)
{
	static const char *const row[][2] = {
		{ "HTTP_PROXY", URL },
		{ "http_proxy", URL },
		{ "HTTPS_PROXY", URL },
		{ "https_proxy", URL },
		{ "ALL_PROXY", URL },
		{ "all_proxy", URL },
		{ "FTP_PROXY", URL },
		{ "ftp_proxy", URL },
		{ "GRPC_PROXY", URL },
		{ "grpc_proxy", URL },
		{ "NO_PROXY", "localhost,127.0.0.1,::1" },
		{ "no_proxy", "localhost,127.0.0.1,::1" },
		{ "NODE_USE_ENV_PROXY", "1" },
		{ "RSYNC_PROXY", "10.0.0.1:3128" },
		{ "CLOUDSDK_PROXY_TYPE", "http" },
		{ "CLOUDSDK_PROXY_ADDRESS", "10.0.0.1" },
		{ "CLOUDSDK_PROXY_PORT", "3128" },
	};
	static const char *const urls[] = { URL, URL "/" };
	/* The caller's own, in any case, are replaced. */
	char *from[] = { (char[]){ "HTTP_PROXY=http://evil:1" },
			 (char[]){ "http_proxy=http://evil:1" },
			 (char[]){ "No_Proxy=*" },
			 (char[]){ "NO_PROXY=*" },
			 (char[]){ "npm_config_proxy=http://evil:1" },
			 NULL };

	(void)state;
	for (size_t u = 0; u < ARRAY_SIZE(urls); u++) {
		char **env = process_env(from, urls[u], NULL);

		assert_non_null(env);
		for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
			const char *got = value(env, row[i][0]);

			assert_non_null(got);
			assert_int_equal(
				strncmp(got, row[i][1], strlen(row[i][1])), 0);
		}
		for (char **e = env; *e; e++) {
			assert_null(strstr(*e, "evil"));
			assert_null(strstr(*e, "=*"));
		}
		assert_string_equal(value(env, "RSYNC_PROXY"), "10.0.0.1:3128");
		process_env_free(env);
	}
}

static void test_inheritance(void **state)
{
	static const char *const gone[] = {
		"LD_PRELOAD",	   "LD_AUDIT",
		"LD_LIBRARY_PATH", "SSH_AUTH_SOCK",
		"XDG_RUNTIME_DIR", "DISPLAY",
		"DOCKER_HOST",	   "WAYLAND_DISPLAY",
		"SALLYPORT_KEY",   "DBUS_SESSION_BUS_ADDRESS",
	};
	static const char *const kept[][2] = {
		{ "PATH", "/bin" }, { "LANG", "C.UTF-8" },  { "EMPTY", "" },
		{ "LDX", "1" },	    { "API_KEY", "k=v=w" }, { "HOMEX", "2" },
	};
	char *from[32], text[32][64];
	size_t n = 0;
	char **env;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++, n++)
		snprintf(text[n], sizeof(text[n]), "%s=x", gone[i]);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++, n++)
		snprintf(text[n], sizeof(text[n]), "%s=%s", kept[i][0],
			 kept[i][1]);
	snprintf(text[n++], sizeof(text[0]), "HOME=/home/me");
	snprintf(text[n++], sizeof(text[0]), "no equals sign");
	for (size_t i = 0; i < n; i++)
		from[i] = text[i];
	from[n] = NULL;

	env = process_env(from, URL, "/root");
	assert_non_null(env);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		assert_null(value(env, gone[i]));
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		assert_string_equal(value(env, kept[i][0]), kept[i][1]);
	assert_string_equal(value(env, "HOME"), "/root");
	for (char **e = env; *e; e++)
		assert_non_null(strchr(*e, '='));
	process_env_free(env);

	env = process_env(from, NULL, NULL);
	assert_non_null(env);
	assert_string_equal(value(env, "HOME"), "/home/me");
	assert_null(value(env, "HTTP_PROXY"));
	process_env_free(env);
	process_env_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proxy_variables),
		cmocka_unit_test(test_inheritance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
