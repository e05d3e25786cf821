/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_api.h - what the files of the control socket share; nobody else's.
 */
#ifndef CMD_DAEMON_API_H
#define CMD_DAEMON_API_H

#include "cmd/daemon_impl.h"
#include "cmd/daemon_request.h"

/* Answers. Each is the last use of @http. */
void api_error(struct http_request *http, int status, const char *error,
	       const char *hint);
void api_sandbox(struct http_request *http, int status,
		 const struct daemon_sandbox *sandbox);
/* Of an -errno of daemon.h. */
int api_status(int err);

/* The sandbox @name, if who asks may change it, or see it where @docker: one of
 * a container, too; or NULL. */
struct daemon_sandbox *api_find(struct daemon *daemon,
				const struct http_request *http,
				const char *name, bool docker);

/* daemon_read.c: reads the body of @http, a long one beside the loop, and looks
 * at its bundle (->bundle_err). Then @fn, perhaps at once: @err is
 * request_parse()'s. @request is freed when it returns. */
typedef void api_read_fn(void *arg, struct request *request, int err,
			 const struct request_error *why);
void api_read(struct daemon *daemon, struct http_request *http,
	      enum request_kind kind, api_read_fn *fn, void *arg);

/* daemon_api_change.c, daemon_api_end.c: routes, for who may use them. */
void api_create(struct daemon *daemon, struct http_request *http,
		struct daemon_sandbox *none);
void api_policy(struct daemon *daemon, struct http_request *http,
		struct daemon_sandbox *sandbox);
void api_publish(struct daemon *daemon, struct http_request *http,
		 struct daemon_sandbox *sandbox);
void api_remove(struct daemon *daemon, struct http_request *http,
		struct daemon_sandbox *sandbox);
/* As api_remove(), with the command's exit status. */
void api_end(struct daemon *daemon, struct http_request *http,
	     struct daemon_sandbox *sandbox);
void api_exec(struct daemon *daemon, struct http_request *http,
	      struct daemon_sandbox *sandbox);
void api_attacks(struct daemon *daemon, struct http_request *http,
		 struct daemon_sandbox *sandbox);

#endif
