/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_reply.h - the JSON that goes back by the control socket.
 */
#ifndef CMD_DAEMON_REPLY_H
#define CMD_DAEMON_REPLY_H

#include "base/json.h"
#include "cmd/daemon.h"

/* More than any one sandbox takes: paths of which each byte is escaped. */
#define REPLY_SANDBOX_MAX 32768

/* An address, if there is one; what is published: as states are kept, too. */
void reply_ip(struct json *j, const char *key, const struct ip *ip);
void reply_publish(struct json *j, const struct daemon_sandbox *sandbox);
/* A sandbox as an object; @key NULL: in a list, or alone. */
/* @ceiling: the `sandbox:` of the ceiling that it is below, or NULL. */
void reply_sandbox(struct json *j, const struct daemon_sandbox *sandbox,
		   const char *ceiling);
/* What daemon_remove() came to. */
void reply_removed(struct json *j, const struct daemon_sandbox *sandbox);
/* So much room that takes. */
size_t reply_removed_max(const struct daemon_sandbox *sandbox);
/* {"error":..., "hint":...} */
void reply_error(struct json *j, const char *error, const char *hint);

#endif
