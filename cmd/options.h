/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - the command line of `run`, `serve` and `guard up`.
 */
#ifndef CMD_OPTIONS_H
#define CMD_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/addr.h"
#include "cmd/bounds.h"
#include "cmd/policy_file.h"
#include "policy/services.h"

#define OPTION_CLIENTS_MAX   32
#define OPTION_PUBLISH_MAX   32
#define OPTION_UPSTREAMS_MAX 8
#define OPTION_INBOUND_MAX   16

/* [ADDR:]PORT:PORT, of --publish. */
struct publish_option {
	struct endpoint at; /* on this machine; 127.0.0.1 if not given */
	uint16_t port;	    /* of the sandbox */
};

struct options {
	struct policy_choice policy;
	struct bundle bundle; /* of it, as read at the start */
	struct policy *built; /* from that, by whoever had to; or NULL */
	const char *log_dir, *key, *name, *user;
	uid_t log_reader; /* who may read it too; 0: nobody. Of a keeper */
	bool no_daemon;	  /* run */
	bool quiet, json, verbose;
	unsigned timeout_ms;  /* 0: none */
	char **argv;	      /* run: the command */
	struct bounds bounds; /* run */
	struct publish_option publish[OPTION_PUBLISH_MAX]; /* run */
	size_t published;

	struct endpoint proxy, dns, tls, http; /* serve; .ip.len 0: none */
	struct cidr client[OPTION_CLIENTS_MAX];
	size_t clients;

	/* guard up; it has .proxy too */
	bool foreground;
	struct endpoint upstream[OPTION_UPSTREAMS_MAX];
	size_t upstreams;
	uint16_t inbound[OPTION_INBOUND_MAX];
	size_t inbounds;
};

enum options_for { OPTIONS_RUN, OPTIONS_SERVE, OPTIONS_GUARD };

/* Parses; on a bad command line says what and exits EXIT_SALLYPORT; prints help
 * and exits 0 when asked to. */
void options_parse(enum options_for which, int argc, char **argv,
		   struct options *ret);
void options_free(struct options *options);

/* "8080:3000", "10.0.0.1:8080:3000", "[::1]:8080:3000"; false if not so. */
bool options_publish(const char *text, struct publish_option *ret);

/* "90", "90s", "5m", "2h": milliseconds, at most 30 days; false if not so. */
bool options_duration(const char *text, unsigned *ret_ms);

#endif
