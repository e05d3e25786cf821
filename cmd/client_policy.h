/* SPDX-License-Identifier: Apache-2.0
 *
 * client_policy.h - the policy that a command sends: contents, never paths.
 *
 * The files it was read from are remembered for `sallyport exec`, which keeps
 * them from the command: what that could write to would be the policy the next
 * time.
 */
#ifndef CMD_CLIENT_POLICY_H
#define CMD_CLIENT_POLICY_H

#include <jansson.h>
#include <stdbool.h>

#include "cmd/policy_file.h"

struct client_policy {
	struct policy_choice choice;
	const char *name; /* --policy-name: of the daemon's configuration */
	struct bundle bundle;
};

#define CLIENT_POLICY_NAME_HELP                                              \
	"  --policy-name N   one that the daemon's configuration has under " \
	"this name\n"

/* Reads it, and adds it to a request: "bundle" and "policy_text", or
 * "policy_name". False if nothing at all was named or found. Dies with what is
 * wrong. */
bool client_policy_put(struct client_policy *policy, json_t *body);

/* The same of one that is read: .choice and .bundle. */
void client_policy_put_read(const struct client_policy *policy, json_t *body);

/* Gives the sandbox @name the policy in @body. While another change of it is on
 * its way (the daemon's own, after a reload) it is asked again, for some
 * seconds. The answer, for the caller to decref, and its status. */
json_t *client_policy_send(const char *socket, const char *name,
			   const json_t *body, int *ret_status);

/* Remembers the files for the sandbox @name; where that can't be done there is
 * a warning. */
void client_policy_remember(const struct client_policy *policy,
			    const char *name);
/* What was remembered, as a bundle of files without text. 0 or -errno; the
 * caller frees it. */
int client_policy_recall(const char *name, struct bundle *ret_bundle);
void client_policy_forget(const char *name);

void client_policy_free(struct client_policy *policy);

#endif
