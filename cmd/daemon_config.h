/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_config.h - /etc/sallyport/daemon.yaml: what the operator says.
 *
 *	version: 1
 *	policies: { agent: /etc/sallyport/agent.yaml }
 *	default_policy: agent
 *	ceiling: /etc/sallyport/ceiling.yaml
 *	limits: { max_sandboxes: 1000, max_sandboxes_per_user: 64,
 *		  wall_clock: 24h, policy_bytes_per_user: 256 MB,
 *		  spare_per_user: 2 }
 *	docker: { enabled: true, socket: PATH, dns: require }
 *	group: sallyport
 *
 * As strict as a policy is. The policies that it names are read with it: one
 * that is wrong makes all of it wrong.
 */
#ifndef CMD_DAEMON_CONFIG_H
#define CMD_DAEMON_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/bundle.h"

#define DAEMON_CONFIG	       "/etc/sallyport/daemon.yaml"
#define DAEMON_POLICIES_MAX    256
#define DAEMON_POLICY_NAME_MAX 64
#define DAEMON_SANDBOXES_MAX   10000
#define DAEMON_SPARE_MAX       16

#define DAEMON_CEILING_TEXT_MAX 16384

struct daemon_policy {
	char name[DAEMON_POLICY_NAME_MAX];
	char path[PATH_MAX];
	struct bundle bundle; /* what was there when it was read */
};

struct daemon_config {
	struct daemon_policy *policy;
	size_t policies;
	char default_policy[DAEMON_POLICY_NAME_MAX]; /* "": none */
	char ceiling_path[PATH_MAX];
	struct bundle ceiling;			       /* empty: none */
	char ceiling_sandbox[DAEMON_CEILING_TEXT_MAX]; /* its `sandbox:`, JSON;
							  "": none */
	unsigned max_sandboxes, max_sandboxes_per_user;
	unsigned spare_per_user; /* made before they are asked for; 0: none */
	uint32_t wall_clock_s;	 /* 0: none */
	/* Of all policies together that a user (not root) sent. */
	uint64_t policy_bytes_per_user;
	bool docker;
	char docker_socket[PATH_MAX]; /* "": the usual one */
	char docker_dns[16]; /* "require", "tables", or "": as it depends */
	char group[64];
	unsigned others; /* who have it, too */
};

/* Fills in .ceiling_sandbox: daemon_bounds.c. 0, -ENOMEM, or -E2BIG. */
int daemon_config_bounds(struct daemon_config *config);

/* Reads @path; @optional: one that is not there says nothing, and all is as
 * usual. 0 and a configuration, or -EINVAL and @reterr, or -ENOMEM. */
int daemon_config_read(const char *path, bool optional,
		       struct daemon_config **ret_config,
		       struct policy_error *reterr);
/* The same for a text; errors say @origin. */
int daemon_config_parse(const char *origin, const char *text, size_t len,
			struct daemon_config **ret_config,
			struct policy_error *reterr);
/* One more who frees it; from one thread. */
struct daemon_config *daemon_config_ref(struct daemon_config *config);
/* NULL is fine. */
void daemon_config_free(struct daemon_config *config);

/* NULL: there is none of that name. */
const struct daemon_policy *
daemon_config_policy(const struct daemon_config *config, const char *name);

#endif
