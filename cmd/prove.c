/* SPDX-License-Identifier: Apache-2.0
 *
 * prove.c - `sallyport prove`: does the boundary hold, here, now?
 */
#include "cmd/prove.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/policy_options.h"
#include "cmd/session.h"
#include "policy/policy.h"

#define EXIT_USAGE 2

enum {
	OPT_LOG = 'l',
	OPT_KEY = 'k',
	OPT_NAME = 'n',
	OPT_USER = 'u',
	OPT_NETNS = 's',
	OPT_WATCH = 'w',
	OPT_GUARD = 'g',
	OPT_LIST = 'L',
	OPT_QUIET = 'q',
	OPT_JSON = 'j',
	OPT_HELP = 'h',
};

static const struct option table[] = {
	POLICY_OPTIONS,
	{ "log", required_argument, NULL, OPT_LOG },
	{ "key", required_argument, NULL, OPT_KEY },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "user", required_argument, NULL, OPT_USER },
	{ "netns", required_argument, NULL, OPT_NETNS },
	{ "watch", required_argument, NULL, OPT_WATCH },
	{ "guard", no_argument, NULL, OPT_GUARD },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"usage: sallyport prove [OPTION]...\n"
	"       sallyport prove --netns PATH [--watch DIR] [OPTION]...\n"
	"       sallyport prove --guard [OPTION]...\n\n"
	"Attacks a boundary from inside, and says what got out. Needs nothing "
	"outside:\nwhat is answered, goes another way, reaches a listener of "
	"this machine's, or is\nnot in the session's log, got out. By default "
	"in a sandbox as `sallyport run`\nmakes it; its receipt tells of the "
	"result.\n\n";

static const char more_text[] =
	"  --netns PATH      a network namespace that is there: a path, a name "
	"in\n"
	"                    /run/netns, or a sandbox of the daemon; needs "
	"root\n"
	"  --watch DIR       with it: the log of that sandbox's session, in "
	"which each\n"
	"                    refusal has to be\n"
	"  --guard           this machine, which is guarded; needs root\n"
	"  --log DIR         where audit.jsonl goes, as for `sallyport run`\n"
	"  --key FILE        what signs the log\n"
	"  --name NAME       a name for the session\n"
	"  --user NAME       as root: attack as this user\n"
	"  --list            the attacks; none is made\n"
	"  --quiet           only what got out\n"
	"  --json            the same for programs\n"
	"  --help            this text\n\n"
	"Exit status: 0 if nothing got out, 1 if something did, 2 on a bad "
	"command line,\n125 if sallyport failed.\n";

static _Noreturn void bad(const char *what, const char *arg)
{
	die(EXIT_USAGE, "%s%s%s\nTry `sallyport prove --help`.", what,
	    arg ? " " : "", arg ? arg : "");
}

static int list(void)
{
	const struct prove_attack *attack;

	for (size_t i = 0; (attack = prove_attack(i)); i++)
		printf("%-17s %-4s %s\n", attack->id, attack->threat,
		       attack->title);
	return 0;
}

static void apply(struct prove *prove, int code)
{
	struct options *o = prove->options;

	switch (code) {
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
	case OPT_NETNS:
		prove->netns = optarg;
		break;
	case OPT_WATCH:
		prove->watch = optarg;
		break;
	case OPT_GUARD:
		prove->guard = true;
		break;
	case OPT_QUIET:
		prove->quiet = true;
		break;
	case OPT_JSON:
		prove->json = true;
		break;
	case OPT_HELP:
		printf("%s%s%s", help_text, policy_options_help, more_text);
		exit(0);
	case OPT_LIST:
		exit(list());
	default:
		break;
	}
}

static void parse(struct prove *prove, int argc, char **argv)
{
	int code;

	opterr = 0;
	while ((code = getopt_long(argc, argv, "+:", table, NULL)) != -1) {
		if (code == '?')
			bad("no such option:", argv[optind - 1]);
		if (code == ':')
			bad("a value is missing after", argv[optind - 1]);
		if (!policy_option(&prove->options->policy, code, optarg))
			apply(prove, code);
	}
	if (optind < argc)
		bad("what is", argv[optind]);
	if (prove->netns && prove->guard)
		bad("--netns and --guard are two places", NULL);
	if (prove->watch && !prove->netns)
		bad("--watch goes with --netns: other logs are known", NULL);
	if ((prove->netns || prove->guard) &&
	    (prove->options->log_dir || prove->options->key ||
	     prove->options->name))
		bad("--log, --key and --name are for a session of its own",
		    NULL);
}

static void build_policy(struct prove *prove)
{
	struct options *o = prove->options;

	policy_options_read(&o->policy, &o->bundle);
	prove->policy = session_build(&o->bundle);
}

static void print(const struct prove *prove)
{
	struct prove_about about = { .what = "this sandbox",
				     .log = prove->log,
				     .receipt = prove->receipt };

	if (prove->netns)
		about.what = prove->netns;
	if (prove->guard)
		about.what = "this machine, guarded";
	if (*about.receipt && access(about.receipt, F_OK) < 0)
		about.receipt = "";
	if (prove->json)
		prove_print_json(prove->out, &prove->verdict, &about);
	else
		prove_print(prove->out, &prove->verdict, &about, prove->quiet);
}

int prove_main(int argc, char **argv)
{
	static struct options options;
	static struct prove prove;
	int status;

	log_init("sallyport", LOG_LEVEL_WARN);
	prove.options = &options;
	parse(&prove, argc, argv);
	build_policy(&prove);
	status = prove.netns   ? prove_netns(&prove)
		 : prove.guard ? prove_guarded(&prove)
			       : prove_own(&prove);
	print(&prove);
	policy_unref(prove.policy);
	return ferror(prove.out) ? EXIT_SALLYPORT : status;
}
