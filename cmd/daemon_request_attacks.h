/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_request_attacks.h - a report of `sallyport prove`, as it comes by the
 * control socket.
 */
#ifndef CMD_DAEMON_REQUEST_ATTACKS_H
#define CMD_DAEMON_REQUEST_ATTACKS_H

#include <jansson.h>

#include "audit/attacks.h"

struct request_error;

/* {"duration_ms":N,"results":{NAME:WORD}}. 0, or -EINVAL and @reterr. */
int request_attacks(const json_t *root, struct attacks *ret,
		    struct request_error *reterr);

#endif
