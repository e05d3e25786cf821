/* SPDX-License-Identifier: Apache-2.0
 *
 * record_class.h - how OCSF sorts events; only for record_json.c.
 */
#ifndef AUDIT_RECORD_CLASS_H
#define AUDIT_RECORD_CLASS_H

#include <stdbool.h>

#include "policy/event.h"

struct json;

enum ocsf_class {
	CLASS_FINDING = 2004,
	CLASS_NETWORK = 4001,
	CLASS_HTTP = 4002,
	CLASS_DNS = 4003,
	CLASS_CONFIG = 5019,
	CLASS_LIFECYCLE = 6002,
};

/* @kind is one of the enum. */
enum ocsf_class record_class(enum event_kind kind);

/* Is it about traffic, and so has a verdict? */
bool record_is_network(enum event_kind kind);

/* The members from "time" to "type_uid", and those of severity, status and
 * verdict. */
void record_put_class(struct json *j, const struct audit_event *event);

#endif
