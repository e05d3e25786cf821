/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_listed.c - hosts that make no rule because anybody can take in there
 * what a sandbox sends: pastes, uploads, request catchers, tunnels. Many more
 * are known to `check` (policy/lint.h), among them those that most people need:
 * of these a person hears, and they are never opened along with others.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cmd/learn_table.h"
#include "policy/lint.h"

/* Each with all that is below it. */
static const char *const listed[] = {
	"0x0.st",	"file.io",	  "gist.github.com",
	"hastebin.com", "interact.sh",	  "ngrok.app",
	"ngrok.io",	"ngrok-free.app", "oast.fun",
	"oast.live",	"oast.me",	  "oast.online",
	"oast.pro",	"oast.site",	  "oastify.com",
	"pastebin.com", "pipedream.net",  "requestbin.net",
	"termbin.com",	"transfer.sh",	  "trycloudflare.com",
	"webhook.site",
};

bool learn_hides_listed(const char *parent)
{
	for (size_t i = 0; i < lint_table_count; i++)
		if (host_below(lint_table[i].domain, parent))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(listed); i++)
		if (host_below(listed[i], parent))
			return true;
	return false;
}

bool learn_is_listed(const char *host)
{
	for (size_t i = 0; i < ARRAY_SIZE(listed); i++)
		if (strcmp(host, listed[i]) == 0 || host_below(host, listed[i]))
			return true;
	return false;
}

const char *learn_caution(const char *host)
{
	const struct lint_entry *entry = lint_lookup(host);

	return entry ? entry->reason : NULL;
}

const char *learn_resolver(const char *host)
{
	const struct lint_entry *entry = lint_lookup(host);

	return entry && strcmp(entry->class, "doh") == 0 ? entry->reason : NULL;
}
