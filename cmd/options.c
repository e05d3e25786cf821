/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c - the command line of `run`, `serve` and `guard up`.
 */
#include "cmd/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/policy_options.h"

#define DNS_PORT 53

enum option_code {
	OPT_LOG = 256,
	OPT_KEY,
	OPT_NAME,
	OPT_USER,
	OPT_QUIET,
	OPT_JSON,
	OPT_VERBOSE,
	OPT_TIMEOUT,
	OPT_HELP,
	OPT_PROXY,
	OPT_DNS,
	OPT_TLS,
	OPT_HTTP,
	OPT_CLIENT,
	OPT_PUBLISH,
	OPT_FOREGROUND,
	OPT_UPSTREAM,
	OPT_INBOUND,
	OPT_NO_DAEMON,
};

#define COMMON_OPTIONS                                               \
	POLICY_OPTIONS, { "log", required_argument, NULL, OPT_LOG }, \
		{ "key", required_argument, NULL, OPT_KEY },         \
		{ "name", required_argument, NULL, OPT_NAME },       \
		{ "quiet", no_argument, NULL, OPT_QUIET },           \
		{ "json", no_argument, NULL, OPT_JSON },             \
		{ "verbose", no_argument, NULL, OPT_VERBOSE },       \
	{                                                            \
		"help", no_argument, NULL, OPT_HELP                  \
	}

static const struct option run_options[] = {
	COMMON_OPTIONS,
	BOUNDS_OPTIONS,
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "user", required_argument, NULL, OPT_USER },
	{ "publish", required_argument, NULL, OPT_PUBLISH },
	{ "no-daemon", no_argument, NULL, OPT_NO_DAEMON },
	{ NULL, 0, NULL, 0 },
};

static const struct option serve_options[] = {
	COMMON_OPTIONS,
	{ "proxy", required_argument, NULL, OPT_PROXY },
	{ "dns", required_argument, NULL, OPT_DNS },
	{ "tls", required_argument, NULL, OPT_TLS },
	{ "http", required_argument, NULL, OPT_HTTP },
	{ "client", required_argument, NULL, OPT_CLIENT },
	{ NULL, 0, NULL, 0 },
};

static const struct option guard_options[] = {
	COMMON_OPTIONS,
	{ "proxy", required_argument, NULL, OPT_PROXY },
	{ "upstream", required_argument, NULL, OPT_UPSTREAM },
	{ "inbound", required_argument, NULL, OPT_INBOUND },
	{ "foreground", no_argument, NULL, OPT_FOREGROUND },
	{ NULL, 0, NULL, 0 },
};

static const char common_help[] =
	"  --log DIR         where audit.jsonl goes (default: a directory a "
	"session under\n"
	"                    $XDG_STATE_HOME/sallyport; for root "
	"/var/log/sallyport)\n"
	"  --key FILE        what signs the log; see `sallyport key --help` (made "
	"by the\n"
	"                    first session that needs one)\n"
	"  --name NAME       a name for the session, in its records\n"
	"  --quiet           no summary at the end\n"
	"  --json            the summary as JSON\n"
	"  --verbose         say what is done\n"
	"  --help            this text\n";

static const char run_help[] =
	"usage: sallyport run [OPTION]... [--] COMMAND [ARGUMENT]...\n\n"
	"Runs COMMAND in a sandbox whose only way out is a gate that lets it "
	"reach the\nhosts you allow, and records every attempt.\n\n";

static const char run_more[] =
	"  --timeout TIME    end it after 90, 90s, 5m, 2h; exit status 124\n"
	"  --user NAME       as root: run it as this user (default: a uid "
	"nobody uses)\n"
	"  --publish [ADDR:]PORT:PORT\n"
	"                    connections to the first port on this machine "
	"(127.0.0.1\n"
	"                    if ADDR is not given) go to the second one in "
	"the sandbox,\n"
	"                    recorded; there the server has to listen on "
	"0.0.0.0 or\n"
	"                    eth0's address, as 127.0.0.1 in the sandbox is "
	"the\n"
	"                    sandbox's alone; may be repeated\n"
	"  --no-daemon       no sandbox of the daemon, also where one lets this "
	"user in;\n"
	"                    so it is with --log, --key, and "
	"$SALLYPORT_NO_DAEMON=1 too\n\n"
	"Signals go to COMMAND, SIGHUP too; `sallyport reload` makes it read "
	"the policy\nagain.\n\n"
	"Exit status: COMMAND's own; 124 on timeout; 125 if sallyport failed; "
	"126 or 127\nif COMMAND can't be run or found.\n";

static const char serve_help[] =
	"usage: sallyport serve --proxy ADDR:PORT [--dns ADDR:PORT] "
	"[OPTION]...\n\n"
	"The gate and its ledger on given addresses, without namespaces: for a "
	"gateway\ncontainer beside an internal network, or a sidecar. SIGHUP "
	"makes it read the\npolicy again, as `sallyport reload` does.\n\n"
	"  --proxy ADDR:PORT explicit proxy: CONNECT, plain HTTP, SOCKS5\n"
	"  --dns ADDR:PORT   resolver; allowed names get the address of --tls "
	"or --proxy\n"
	"  --tls ADDR:PORT   TLS for port 443, told apart by SNI\n"
	"  --http ADDR:PORT  HTTP for port 80, told apart by Host\n"
	"  --client CIDR     who may use it; needed where an address is not "
	"loopback\n";

static const char guard_help[] =
	"usage: sallyport guard up [OPTION]...\n\n"
	"From now on nothing in this network namespace (a container, a machine) "
	"leaves it\nbut through the gate. In the background; `sallyport guard "
	"status` and `down`.\n\n"
	"  --foreground      stay; SIGTERM ends the gate, the rules remain\n"
	"  --proxy ADDR:PORT the explicit proxy, on loopback (default "
	"127.0.0.1:3128)\n"
	"  --upstream ADDR[:PORT]\n"
	"                    a name server to ask instead of those in "
	"/etc/resolv.conf; may be\n"
	"                    repeated\n"
	"  --inbound PORT    connections from outside (IPv4, TCP) go to this port on "
	"127.0.0.1,\n"
	"                    recorded; others get no answer; may be repeated\n";

static const struct {
	const char *name, *help, *more;
	const struct option *table;
} command_line[] = {
	[OPTIONS_RUN] = { "run", run_help, run_more, run_options },
	[OPTIONS_SERVE] = { "serve", serve_help, "", serve_options },
	[OPTIONS_GUARD] = { "guard up", guard_help, "", guard_options },
};

static _Noreturn void bad(enum options_for which, const char *what,
			  const char *arg)
{
	die(EXIT_SALLYPORT, "%s%s%s\nTry `sallyport %s --help`.", what,
	    arg ? " " : "", arg ? arg : "", command_line[which].name);
}

static _Noreturn void help(enum options_for which)
{
	printf("%s%s%s%s%s", command_line[which].help, policy_options_help,
	       common_help, which == OPTIONS_RUN ? bounds_help : "",
	       command_line[which].more);
	exit(0);
}

bool options_duration(const char *text, unsigned *ret_ms)
{
	char *end;
	unsigned long value, unit = 1000;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text)
		return false;
	if (strcmp(end, "ms") == 0)
		unit = 1;
	else if (strcmp(end, "m") == 0)
		unit = 60 * 1000;
	else if (strcmp(end, "h") == 0)
		unit = 3600 * 1000;
	else if (*end && strcmp(end, "s") != 0)
		return false;
	if (value == 0 || value > 30ul * 24 * 3600 * 1000 / unit)
		return false;
	*ret_ms = (unsigned)(value * unit);
	return true;
}

bool options_publish(const char *text, struct publish_option *ret)
{
	const char *inside = strrchr(text, ':');
	struct endpoint in;
	char at[80], whole[80];
	int n = inside ? (int)(inside - text) : 0;

	if (!inside || n >= 64 || strlen(inside) > sizeof(":65535") - 1)
		return false;
	snprintf(at, sizeof(at), "%s%.*s",
		 memchr(text, ':', (size_t)n) ? "" : "127.0.0.1:", n, text);
	snprintf(whole, sizeof(whole), "0.0.0.0%s", inside);
	if (!endpoint_parse(at, &ret->at.ip, &ret->at.port) ||
	    !endpoint_parse(whole, &in.ip, &in.port))
		return false;
	ret->port = in.port;
	return true;
}

static void add_publish(enum options_for which, struct options *o,
			const char *text)
{
	if (o->published == OPTION_PUBLISH_MAX)
		bad(which, "too many --publish options", NULL);
	if (!options_publish(text, &o->publish[o->published++]))
		bad(which,
		    "not [ADDR:]PORT:PORT, like 8080:3000 (IPv6 in brackets):",
		    text);
}

static void parse_endpoint(enum options_for which, const char *text,
			   struct endpoint *ret)
{
	if (!endpoint_parse(text, &ret->ip, &ret->port))
		bad(which, "not ADDR:PORT (IPv6 in brackets):", text);
}

static void add_upstream(enum options_for which, struct options *o,
			 const char *text)
{
	struct endpoint at = { .port = DNS_PORT };

	if (o->upstreams == OPTION_UPSTREAMS_MAX)
		bad(which, "too many --upstream options", NULL);
	if (!ip_parse(text, &at.ip) && !endpoint_parse(text, &at.ip, &at.port))
		bad(which,
		    "not ADDR or ADDR:PORT (then IPv6 in brackets):", text);
	o->upstream[o->upstreams++] = at;
}

static void add_inbound(enum options_for which, struct options *o,
			const char *text)
{
	char whole[32];
	struct endpoint at;

	if (o->inbounds == OPTION_INBOUND_MAX)
		bad(which, "too many --inbound options", NULL);
	if (strlen(text) > sizeof("65535") - 1)
		bad(which, "not a port:", text);
	snprintf(whole, sizeof(whole), "0.0.0.0:%s", text);
	if (!endpoint_parse(whole, &at.ip, &at.port))
		bad(which, "not a port:", text);
	o->inbound[o->inbounds++] = at.port;
}

static void add_client(enum options_for which, struct options *o,
		       const char *text)
{
	if (o->clients == OPTION_CLIENTS_MAX)
		bad(which, "too many --client options", NULL);
	if (!cidr_parse(text, &o->client[o->clients++]))
		bad(which, "not a CIDR, like 10.1.0.0/16:", text);
}

/* Where it listens, whom it asks, whom it lets in. False: it is none of these.
 */
static bool apply_address(enum options_for which, struct options *o, int code)
{
	switch ((enum option_code)code) {
	case OPT_PROXY:
		parse_endpoint(which, optarg, &o->proxy);
		break;
	case OPT_DNS:
		parse_endpoint(which, optarg, &o->dns);
		break;
	case OPT_TLS:
		parse_endpoint(which, optarg, &o->tls);
		break;
	case OPT_HTTP:
		parse_endpoint(which, optarg, &o->http);
		break;
	case OPT_CLIENT:
		add_client(which, o, optarg);
		break;
	case OPT_UPSTREAM:
		add_upstream(which, o, optarg);
		break;
	case OPT_INBOUND:
		add_inbound(which, o, optarg);
		break;
	case OPT_PUBLISH:
		add_publish(which, o, optarg);
		break;
	default:
		return false;
	}
	return true;
}

static void apply(enum options_for which, struct options *o, int code)
{
	const char *why = NULL;

	if (apply_address(which, o, code) ||
	    policy_option(&o->policy, code, optarg))
		return;
	if (bounds_option(&o->bounds, code, optarg, &why)) {
		if (why)
			bad(which, why, optarg);
		return;
	}
	switch ((enum option_code)code) {
	case OPT_LOG:
		o->log_dir = optarg;
		break;
	case OPT_KEY:
		o->key = optarg;
		break;
	case OPT_NAME:
		o->name = optarg;
		break;
	case OPT_USER:
		o->user = optarg;
		break;
	case OPT_QUIET:
		o->quiet = true;
		break;
	case OPT_JSON:
		o->json = true;
		break;
	case OPT_VERBOSE:
		o->verbose = true;
		break;
	case OPT_TIMEOUT:
		if (!options_duration(optarg, &o->timeout_ms))
			bad(which,
			    "not a time like 90, 90s, 5m or 2h:", optarg);
		break;
	case OPT_FOREGROUND:
		o->foreground = true;
		break;
	case OPT_NO_DAEMON:
		o->no_daemon = true;
		break;
	case OPT_HELP:
		help(which);
	default:
		break;
	}
}

static bool is_loopback(const struct ip *ip)
{
	const char *word = ip_special(ip);

	return word && strcmp(word, "loopback") == 0;
}

/* Never an open proxy. */
static void check_serve(const struct options *o)
{
	const struct endpoint *all[] = { &o->proxy, &o->dns, &o->tls,
					 &o->http };

	if (!o->proxy.ip.len)
		bad(OPTIONS_SERVE, "--proxy ADDR:PORT is missing", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i]->ip.len && !is_loopback(&all[i]->ip) && !o->clients)
			bad(OPTIONS_SERVE,
			    "an address that is not loopback needs --client "
			    "CIDR, who may use it",
			    NULL);
	}
}

/* For this namespace alone. */
static void check_guard(const struct options *o)
{
	if (o->proxy.ip.len && !is_loopback(&o->proxy.ip))
		bad(OPTIONS_GUARD, "--proxy is not on loopback", NULL);
}

void options_parse(enum options_for which, int argc, char **argv,
		   struct options *ret)
{
	const struct option *table = command_line[which].table;
	int code;

	*ret = (struct options){ 0 };
	opterr = 0;
	/* '+': what follows the first plain word is the command's own. */
	while ((code = getopt_long(argc, argv, "+:", table, NULL)) != -1) {
		if (code == '?')
			bad(which, "no such option:", argv[optind - 1]);
		if (code == ':')
			bad(which, "a value is missing after",
			    argv[optind - 1]);
		apply(which, ret, code);
	}
	ret->argv = argv + optind;
	if (which != OPTIONS_RUN) {
		if (optind < argc)
			bad(which, "what is", argv[optind]);
		if (which == OPTIONS_SERVE)
			check_serve(ret);
		else
			check_guard(ret);
	} else if (optind >= argc) {
		bad(which,
		    "a command is missing: sallyport run [OPTION]... -- "
		    "COMMAND",
		    NULL);
	}
	/* Now, as it may come by a pipe. */
	policy_options_read(&ret->policy, &ret->bundle);
}

void options_free(struct options *options)
{
	policy_choice_free(&options->policy);
	policy_unref(options->built);
	bounds_free(&options->bounds);
	bundle_free(&options->bundle);
}
