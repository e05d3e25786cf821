/* SPDX-License-Identifier: Apache-2.0
 *
 * env_secrets.c - what a name says of its value, and nothing else does.
 */
#include "launch/env_secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* A '*' at one end: anything there. Capitals or not. */
static const char *const listed[] = {
	"*_API_KEY",
	"*_APIKEY",
	"*_ACCESS_KEY",
	"*_ACCESS_KEY_ID",
	"*_PRIVATE_KEY",
	"*_SECRET_KEY",
	"*_SECRET",
	"*_TOKEN",
	"*_PASSWORD",
	"*_PASSWD",
	"*_PASSPHRASE",
	"*_CREDENTIALS",
	"*_CREDENTIALS_JSON",
	"*_CONNECTION_STRING",
	"*_WEBHOOK_URL",
	"*_DATABASE_URL",
	"*_DSN",
	"*_PAT",
	"API_KEY",
	"APIKEY",
	"SECRET",
	"SECRET_KEY",
	"TOKEN",
	"PASSWORD",
	"AWS_*",
	"AZURE_*",
	"ARM_CLIENT_*",

	"VAULT_*",
	"OP_SESSION_*",
	"BW_SESSION",
	"CLOUDSDK_AUTH_*",
	"GOOGLE_CREDENTIALS",
	"GOOGLE_OAUTH_*",
	"NPM_CONFIG__AUTH*",
	"NPM_CONFIG_//*",
	"DOCKER_AUTH_CONFIG",
	"COMPOSER_AUTH",
	"DATABASE_URL",
	"REDIS_URL",
	"MONGODB_URI",
	"MONGO_URL",
	"AMQP_URL",
	"PGPASSWORD",
	"MYSQL_PWD",
	"SSHPASS",
	"SOPS_AGE_KEY",
	"RESTIC_PASSWORD*",
	"BORG_PASSPHRASE",
	"TWINE_PASSWORD",
};

/* No secrets in what the list says above. */
static const char *const harmless[] = { "AWS_REGION", "AWS_DEFAULT_REGION",
					"AWS_PAGER", "AWS_CA_BUNDLE",
					"AWS_EC2_METADATA_DISABLED" };

static bool matches(const char *pattern, const char *name, size_t len)
{
	size_t n = strlen(pattern);

	if (pattern[0] == '*')
		return len >= n - 1 &&
		       strncasecmp(pattern + 1, name + len - (n - 1), n - 1) ==
			       0;
	if (pattern[n - 1] == '*')
		return len >= n - 1 && strncasecmp(pattern, name, n - 1) == 0;
	return len == n && strncasecmp(pattern, name, n) == 0;
}

bool env_is_secret(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (matches(harmless[i], name, len))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(listed); i++)
		if (matches(listed[i], name, len))
			return true;
	return false;
}

static bool same_name(const char *entry, const char *pass)
{
	size_t len = strcspn(entry, "=");

	return strcspn(pass, "=") == len && strncmp(entry, pass, len) == 0;
}

/* The last word on this variable, or NULL. */
static const char *find(const char *entry, const char *const *pass, size_t n)
{
	while (n--)
		if (same_name(entry, pass[n]))
			return pass[n];
	return NULL;
}

/* An empty value is none. */
static void note(const char *entry, char *left, size_t cap)
{
	size_t len = strcspn(entry, "="), at = strlen(left);

	if (entry[len] == '=' && entry[len + 1])
		snprintf(left + at, cap - at, "%s%.*s", at ? ", " : "",
			 (int)len, entry);
}

char **env_without_secrets(char *const *from, const char *const *pass, size_t n,
			   char *left, size_t cap)
{
	size_t count = 0, kept = 0;
	char **env;

	*left = '\0';
	while (from[count])
		count++;
	env = calloc(count + n + 1, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const char *said = find(from[i], pass, n);

		if (said ? !strchr(said, '=')
			 : !env_is_secret(from[i], strcspn(from[i], "=")))
			env[kept++] = from[i];
		else if (!said)
			note(from[i], left, cap);
	}
	for (size_t i = 0; i < n; i++)
		if (strchr(pass[i], '=') && find(pass[i], pass, n) == pass[i])
			env[kept++] = (char *)(size_t)pass[i];
	return env;
}
