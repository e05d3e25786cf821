/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c - `sallyport explain POLICY TARGET`: what every door makes of a
 * target, by which rule, and what would change it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/explain_print.h"
#include "cmd/print.h"
#include "cmd/source.h"
#include "policy/explain.h"
#include "policy/values.h"
#include "proxy/sniff/http_authority.h"

#define EXIT_REFUSED 1

static const char help[] =
	"usage: sallyport explain [OPTION]... [POLICY] TARGET\n\n"
	"Says what each door makes of TARGET, by which rule, and what would "
	"allow it.\nPOLICY is a file, \"-\" for standard input, or "
	"preset:NAME; it may be left out\nwith --allow, --deny, --permit or "
	"--policy. TARGET is HOST, HOST:PORT, ADDRESS,\n[ADDRESS]:PORT or a "
	"URL; a host alone is asked about on 443 and 80.\n\n"
	"  --method METHOD   of a plain HTTP request for TARGET's path\n"
	"  --at TIME         as if it were then, like 2027-01-01T00:00:00Z\n"
	"  --allow WHAT      as for `run`; may be repeated, like the next "
	"three\n"
	"  --deny WHAT\n"
	"  --permit CIDR\n"
	"  --policy FILE\n"
	"  --ceiling FILE    below this policy: both must allow it\n"
	"  --json            for programs\n"
	"  --help            this text\n\n"
	"Exit status: 0 if a door lets it out (DNS alone does not), 1 if none "
	"does,\n125 if sallyport failed or was asked wrongly.\n";

static const struct option table[] = {
	{ "method", required_argument, NULL, 'm' },
	{ "at", required_argument, NULL, 't' },
	{ "allow", required_argument, NULL, 'a' },
	{ "deny", required_argument, NULL, 'd' },
	{ "permit", required_argument, NULL, 'p' },
	{ "policy", required_argument, NULL, 'f' },
	{ "ceiling", required_argument, NULL, 'c' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct request {
	struct bundle bundle;
	const char *target, *ceiling;
	bool json, any;
	struct inquiry inquiry;
};

static _Noreturn void bad(const char *what, const char *arg)
{
	die(EXIT_SALLYPORT, "%s%s%s\nTry `sallyport explain --help`.", what,
	    arg ? " " : "", arg ? arg : "");
}

static void add_option(struct request *r, enum bundle_kind kind,
		       const char *origin)
{
	if (bundle_add(&r->bundle, kind, origin, optarg, strlen(optarg)) < 0)
		die(EXIT_SALLYPORT, "%s: no memory left", origin);
	r->any = true;
}

static void add_policy(struct request *r, const char *what)
{
	struct policy_error error;
	int err = source_add(&r->bundle, what, &error);

	if (err == -EINVAL)
		die(EXIT_SALLYPORT, "%s", error.text);
	if (err)
		die(EXIT_SALLYPORT, "%s: %s", what, strerror(-err));
	r->any = true;
}

/* RFC 9110 section 5.6.2. Case counts. */
static bool is_method(const char *text)
{
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"abcdefghijklmnopqrstuvwxyz"
				"0123456789!#$%&'*+-.^_`|~");

	return n && !text[n] && n <= 32;
}

static void apply(struct request *r, int code)
{
	const char *why;

	switch (code) {
	case 'm':
		if (!is_method(optarg))
			bad("--method: it is a word like GET, not", optarg);
		r->inquiry.method = optarg;
		break;
	case 't':
		why = value_time(optarg, &r->inquiry.now_s);
		if (why)
			bad("--at:", why);
		break;
	case 'a':
		add_option(r, BUNDLE_ALLOW, "--allow");
		break;
	case 'd':
		add_option(r, BUNDLE_DENY, "--deny");
		break;
	case 'p':
		add_option(r, BUNDLE_PERMIT, "--permit");
		break;
	case 'f':
		add_policy(r, optarg);
		break;
	case 'c':
		r->ceiling = optarg;
		break;
	case 'j':
		r->json = true;
		break;
	case 'h':
		fputs(help, stdout);
		exit(0);
	}
}

static void go_below(struct request *r)
{
	struct policy_error error;
	int err = 0;

	if (r->ceiling)
		err = source_add_ceiling(&r->bundle, r->ceiling, &error);
	if (err == -EINVAL)
		die(EXIT_SALLYPORT, "%s", error.text);
	if (err)
		die(EXIT_SALLYPORT, "%s: %s", r->ceiling, strerror(-err));
}

/* The path as the gate will see it. */
static void settle_path(struct inquiry *inquiry)
{
	const struct http_text path = { inquiry->path, strlen(inquiry->path) };
	char canonical[EXPLAIN_PATH_MAX + 1];
	const char *fault;

	if (!path.len || inquiry->fault || inquiry->spoken == SPOKEN_TLS ||
	    inquiry->spoken == SPOKEN_OTHER)
		return;
	fault = http_path_canonical(path, canonical, sizeof(canonical));
	if (fault)
		inquiry->fault = fault;
	else
		snprintf(inquiry->path, sizeof(inquiry->path), "%s", canonical);
}

static void parse(int argc, char **argv, struct request *ret)
{
	const char *why;
	int code;

	opterr = 0;
	ret->inquiry.now_s = time(NULL);
	while ((code = getopt_long(argc, argv, ":", table, NULL)) != -1) {
		if (code == ':' || code == '?')
			bad(code == ':' ? "a value is missing after"
					: "no such option:",
			    argv[optind - 1]);
		apply(ret, code);
	}
	if (optind < argc - 2)
		bad("what is", argv[optind + 2]);
	if (optind == argc)
		bad("a target is missing", NULL);
	if (optind == argc - 1 && !ret->any)
		bad("a policy and a target are needed, there is only",
		    argv[optind]);
	if (optind == argc - 2)
		add_policy(ret, argv[optind++]);
	ret->target = argv[optind];
	why = inquiry_parse(ret->target, &ret->inquiry);
	if (why)
		die(EXIT_SALLYPORT, "no target '%s': %s", ret->target, why);
	settle_path(&ret->inquiry);
}

int explain_main(int argc, char **argv)
{
	struct request request = { .json = false };
	struct explanation explanation;
	struct policy *policy;

	parse(argc, argv, &request);
	go_below(&request);
	policy = source_must_build(&request.bundle);
	explain(policy, &request.inquiry, &explanation);
	if (request.json)
		explain_json(request.target, &request.inquiry, policy,
			     &explanation);
	else
		explain_print(request.target, &request.inquiry, &explanation);
	policy_unref(policy);
	bundle_free(&request.bundle);
	return print_end(explanation.reachable ? 0 : EXIT_REFUSED);
}
