/* SPDX-License-Identifier: Apache-2.0
 *
 * observed.h - the way back from a line of the log: what was asked for, and
 * what came of it. For `sallyport learn` and `sallyport log`.
 *
 * A log is made by us, but names and paths in it by a sandbox, and the file may
 * be anybody's: nothing is believed that record_format() would not write.
 */
#ifndef AUDIT_OBSERVED_H
#define AUDIT_OBSERVED_H

#include <stddef.h>

#include "policy/event.h"

#define OBSERVED_LINE_MAX 65536 /* bytes; a longer line is none of ours */

enum observed {
	OBSERVED_OK,
	OBSERVED_OTHER, /* a record, but not of somebody asking for a host */
	OBSERVED_BAD,	/* no record */
};

struct observation {
	enum event_kind kind; /* DNS_QUERY, DNS_ANSWER, FLOW_OPEN, FLOW_DIAL,
				 FLOW_CLOSE, HTTP_REQUEST; PACKET with a host */
	enum door door;
	struct verdict verdict;	 /* .rule is NULL */
	char host[HOST_MAX + 1]; /* canonical; "": none, or */
	bool strange;		 /* a text that is no host name */
	struct ip address;	 /* dialled, or asked for as a literal */
	uint16_t port;		 /* 0: a DNS question */
	char type[12];		 /* DNS: "A", "TXT", "TYPE65280"; else "" */
	char protocol[16];	 /* "tls", "http", "tcp"; as written, or "" */
	char method[16], path[128]; /* HTTP, cut; any bytes but NUL */
	uint64_t session;	    /* a hash of the session's uid */
	uint64_t flow;		    /* joins the lines of a connection */
	uint64_t time_ms;	    /* since the epoch */
	uint32_t sandbox;
};

/* One line, @len bytes, neither terminated nor trusted. @ret is filled with
 * OBSERVED_OK; with OBSERVED_OTHER only what all records have is: .kind,
 * .session, .time_ms and .sandbox. */
enum observed observed_parse(const char *line, size_t len,
			     struct observation *ret);

/* The same, for who needs more of the line than that: *@ret_json is all of it
 * (jansson's; json_decref() it), whatever is returned; NULL if it is no JSON
 * object. */
struct json_t;
enum observed observed_parse_json(const char *line, size_t len,
				  struct observation *ret,
				  struct json_t **ret_json);

#endif
