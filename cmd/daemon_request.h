/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_request.h - the JSON that comes by the control socket, as a struct.
 *
 * Every key must be known, and there once; a value of another type than it has
 * to be is an error, never converted.
 */
#ifndef CMD_DAEMON_REQUEST_H
#define CMD_DAEMON_REQUEST_H

#include "cmd/daemon.h"

/* Of policy text; a bundle may be longer. */
#define REQUEST_POLICY_MAX ((size_t)1 << 20)
#define REQUEST_BUNDLE_MAX ((size_t)64 << 20)
/* A bundle in base64, and the rest. */
#define REQUEST_BODY_MAX (REQUEST_BUNDLE_MAX / 3 * 4 + (64 << 10))

enum request_kind {
	REQUEST_CREATE,
	REQUEST_POLICY,
	REQUEST_PUBLISH,
	REQUEST_EXEC,
	REQUEST_END,
	REQUEST_ATTACKS,
};

struct request {
	char name[DAEMON_NAME_MAX];
	bool has_bundle; /* .bundle is what was sent, not yet looked at */
	struct bundle bundle;
	/* The user's own, of what the daemon does with that: api_read(). */
	int bundle_err;
	struct policy_error bundle_why;
	char policy_name[64], policy_text[512];
	uint32_t timeout_s; /* 0: none */
	bool temporary;	    /* it ends with the process that asks */
	struct daemon_publish publish[DAEMON_PUBLISH_MAX];
	size_t publishes;	    /* REQUEST_PUBLISH: 1 */
	char command[MSG_EXEC_MAX]; /* REQUEST_EXEC; never "" */
	uint8_t status;		    /* REQUEST_END */
	enum ended_by ended;	    /* the same */
	struct attacks attacks;	    /* REQUEST_ATTACKS */
};

struct request_error {
	char error[640], hint[256];
};

/* Reads @len bytes of @body. 0, and the caller calls request_free(); -EINVAL
 * and @reterr; -EFBIG, the same, for a policy that is too long; -ENOMEM. */
int request_parse(enum request_kind kind, const char *body, size_t len,
		  struct request *ret, struct request_error *reterr);
void request_free(struct request *request);

#endif
