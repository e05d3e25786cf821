/* SPDX-License-Identifier: Apache-2.0
 *
 * log_options.c - the command line of `sallyport log`.
 */
#include "cmd/log_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/command.h"

enum option_code {
	OPT_VERDICT = 256,
	OPT_REASON,
	OPT_KIND,
	OPT_HOST,
	OPT_SANDBOX,
	OPT_FLOW,
	OPT_SINCE,
	OPT_UNTIL,
	OPT_TAIL,
	OPT_JSON,
	OPT_WIDE,
	OPT_COLOUR,
	OPT_HELP,
};

static const struct option long_options[] = {
	{ "follow", optional_argument, NULL, 'f' },
	{ "verdict", required_argument, NULL, OPT_VERDICT },
	{ "reason", required_argument, NULL, OPT_REASON },
	{ "kind", required_argument, NULL, OPT_KIND },
	{ "host", required_argument, NULL, OPT_HOST },
	{ "sandbox", required_argument, NULL, OPT_SANDBOX },
	{ "flow", required_argument, NULL, OPT_FLOW },
	{ "since", required_argument, NULL, OPT_SINCE },
	{ "until", required_argument, NULL, OPT_UNTIL },
	{ "tail", required_argument, NULL, OPT_TAIL },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "wide", no_argument, NULL, OPT_WIDE },
	{ "color", required_argument, NULL, OPT_COLOUR },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: sallyport log [OPTION]... [LOG|DIR|SESSION]...\n"
	"\n"
	"Shows audit logs, a row a record: time, verdict, what it was, reason, door,\n"
	"host and port, rule, bytes out and in, duration, details. A log is an\n"
	"audit.jsonl, the directory of a session, its id or name, or - for standard\n"
	"input; without any, the newest session's.\n"
	"\n"
	"  -f, --follow           wait for more, until the session ends\n"
	"  --follow=always        the same, and for what comes after it\n"
	"  --tail N               the last N rows only\n"
	"  --json                 the records as they are in the log\n"
	"  --wide                 all of each row, whatever the width of the terminal;\n"
	"                         this is how it is where the output is none\n"
	"  --color=WHEN           always, never or auto: on a terminal, without NO_COLOR\n"
	"\n"
	"Only records that fit all of these; what has a * may be repeated, and one of\n"
	"them must fit:\n"
	"\n"
	"  --verdict WORD *       allowed, refused, failed (allowed, but the network or\n"
	"                         its name server failed), observed, cut, event\n"
	"  --kind WORD *          dns, flow, http, packet, finding, session, policy\n"
	"  --reason WORD *        not_in_policy, port, ...; also of what observe mode\n"
	"                         let pass\n"
	"  --host PATTERN         a name, *.NAME (what is below it) or an address\n"
	"  --flow N               a connection, by the number in its details\n"
	"  --sandbox N            one client of `serve`\n"
	"  --since TIME           2027-01-01T00:00:00Z, a date, or \"10m ago\" (s, m, h, d)\n"
	"  --until TIME\n"
	"  --help                 this text\n"
	"\n"
	"Where nothing is cut, each column but the last is one word, - for none. What is\n"
	"not printable ASCII is escaped.\n"
	"\n"
	"Exit status: 0; 1 if there are lines that are no records; 125 if sallyport\n"
	"failed.\n";

static _Noreturn void bad(const char *what, const char *arg)
{
	die(EXIT_SALLYPORT, "%s%s%s\nTry `sallyport log --help`.", what,
	    arg ? " " : "", arg ? arg : "");
}

static uint64_t parse_number(const char *option, uint64_t max)
{
	uint64_t value;

	if (!log_number(optarg, max, &value))
		bad(option, optarg);
	return value;
}

static uint64_t parse_moment(const char *option)
{
	uint64_t ms;

	if (!log_moment(optarg, time(NULL), &ms))
		bad(option, optarg);
	return ms;
}

static bool is_colourful(const char *when, bool tty)
{
	const char *term = getenv("TERM"), *none = getenv("NO_COLOR");

	if (strcmp(when, "always") == 0)
		return true;
	if (strcmp(when, "never") == 0)
		return false;
	if (strcmp(when, "auto") != 0)
		bad("--color is always, never or auto, not", when);
	return tty && (!none || !*none) && term && strcmp(term, "dumb") != 0;
}

/* False if it is none of the filter's. */
static bool parse_filter(int code, struct log_filter *filter)
{
	char buf[LOG_WHY_MAX];
	const char *why = NULL;

	if (code == OPT_VERDICT)
		why = log_filter_verdict(filter, optarg, buf);
	else if (code == OPT_REASON)
		why = log_filter_reason(filter, optarg, buf);
	else if (code == OPT_KIND)
		why = log_filter_kind(filter, optarg, buf);
	else if (code == OPT_HOST)
		why = log_filter_host(filter, optarg, buf);
	else if (code == OPT_SINCE)
		filter->since_ms = parse_moment("--since is no time:");
	else if (code == OPT_UNTIL)
		filter->until_ms = parse_moment("--until is no time:");
	else if (code == OPT_SANDBOX)
		filter->sandbox =
			parse_number("--sandbox is no number:", UINT32_MAX);
	else if (code == OPT_FLOW)
		filter->flow = parse_number("--flow is no number:", UINT64_MAX);
	else
		return false;
	filter->has_sandbox |= code == OPT_SANDBOX;
	filter->has_flow |= code == OPT_FLOW;
	if (why)
		bad(why, NULL);
	return true;
}

static void parse_follow(struct log_options *options)
{
	options->follow = LOG_FOLLOW_SESSION;
	if (!optarg)
		return;
	if (strcmp(optarg, "always") != 0)
		bad("--follow or --follow=always, not", optarg);
	options->follow = LOG_FOLLOW_ALWAYS;
}

static void parse_view(int code, char **argv, struct log_options *options)
{
	switch (code) {
	case 'f':
		parse_follow(options);
		break;
	case OPT_TAIL:
		options->tailing = true;
		options->tail =
			parse_number("--tail is no number:", UINT64_MAX);
		break;
	case OPT_JSON:
		options->json = true;
		break;
	case OPT_WIDE:
		options->wide = true;
		break;
	case OPT_COLOUR:
		options->colour = is_colourful(optarg, options->tty);
		break;
	case OPT_HELP:
		fputs(help, stdout);
		exit(0);
	case ':':
		bad("a value is missing after", argv[optind - 1]);
	default:
		bad("no such option:", argv[optind - 1]);
	}
}

void log_options_parse(int argc, char **argv, struct log_options *ret)
{
	int code;

	*ret = (struct log_options){ .tty = isatty(STDOUT_FILENO) };
	ret->colour = is_colourful("auto", ret->tty);
	opterr = 0;
	while ((code = getopt_long(argc, argv, ":f", long_options, NULL)) !=
	       -1) {
		if (!parse_filter(code, &ret->filter))
			parse_view(code, argv, ret);
	}
	ret->log = argv + optind;
	ret->logs = (size_t)(argc - optind);
	if (ret->follow && ret->logs > 1)
		bad("--follow takes one log", NULL);
	if (ret->filter.until_ms &&
	    ret->filter.until_ms <= ret->filter.since_ms)
		bad("--until is not after --since", NULL);
}

struct log_layout log_options_layout(const struct log_options *options)
{
	struct winsize size = { .ws_col = 0 };

	if (options->tty && !options->wide &&
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		size.ws_col = 0;
	return log_layout_of(size.ws_col, options->colour);
}
