/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_api_call.h - a request whose answer comes when a keeper is done.
 */
#ifndef CMD_DAEMON_API_CALL_H
#define CMD_DAEMON_API_CALL_H

#include "cmd/daemon_api.h"

struct api_call {
	struct daemon *daemon;
	struct http_request *http;
	int status; /* of a good end */
	/* Published when the sandbox is there. */
	struct daemon_publish publish[DAEMON_PUBLISH_MAX];
	int fd[DAEMON_PUBLISH_MAX];
	size_t publishes, waits;
	char name[DAEMON_NAME_MAX]; /* whom it is about */
	bool made; /* the sandbox is new, and goes if this goes wrong */
	bool any;  /* it changes nothing: it may be a container's */
	char why[512];
};

/* @status: of a good end. NULL: out of memory, and so it is answered. */
struct api_call *api_call_new(struct daemon *daemon, struct http_request *http,
			      int status);
/* One about @sandbox, that is to end with 200. */
struct api_call *api_call_on(struct daemon *daemon, struct http_request *http,
			     const struct daemon_sandbox *sandbox);
void api_call_free(struct api_call *call);

/* Answers with -errno @err and @why ("": what the errno says); frees @call. */
void api_refuse(struct api_call *call, int err, const char *why);

/* Is what api_read() gave in order? If not, that is answered, and @call freed.
 */
bool api_is_read(struct api_call *call, int err,
		 const struct request_error *why);

/* The same, and whom @call is about: it may have gone meanwhile, and another
 * one have come. NULL: that is answered, and @call freed. */
struct daemon_sandbox *api_read_on(struct api_call *call, int err,
				   const struct request_error *why);

/* A daemon_done of what changes a sandbox: answers with what it is now. */
void api_on_changed(void *arg, struct daemon_sandbox *sandbox, int err,
		    const char *why);

#endif
