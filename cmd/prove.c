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
#include "cmd/prove_statement.h"
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
	OPT_SOCKET = 'S',
	OPT_GUARD = 'g',
	OPT_DOCKER = 'd',
	OPT_CONTAINER = 'c',
	OPT_ENGINE = 'e',
	OPT_RECEIPT = 'r',
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
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "guard", no_argument, NULL, OPT_GUARD },
	{ "docker", required_argument, NULL, OPT_DOCKER },
	{ "container", required_argument, NULL, OPT_CONTAINER },
	{ "receipt", required_argument, NULL, OPT_RECEIPT },
	{ "docker-host", required_argument, NULL, OPT_ENGINE },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"usage: sallyport prove [OPTION]...\n"
	"       sallyport prove --netns PATH [--watch DIR] [OPTION]...\n"
	"       sallyport prove --guard [OPTION]...\n"
	"       sallyport prove --docker NETWORK [OPTION]...\n\n"
	"Attacks a boundary from inside, and says what got out. Needs nothing "
	"outside:\nwhat is answered, goes another way, reaches a listener of "
	"this machine's, or is\nnot in the session's log, got out. By default "
	"in a sandbox as `sallyport run`\nmakes it; its receipt tells of the "
	"result.\n\n";

static const char more_text[] =
	"  --netns PATH      a network namespace that is there: the name of a "
	"sandbox of\n"
	"                    the daemon; as root also a path, or a name in "
	"/run/netns\n"
	"  --watch DIR       with it: the log of that sandbox's session, in "
	"which each\n"
	"                    refusal has to be, and which is told the result; "
	"that of the\n"
	"                    daemon's is known\n"
	"  --socket PATH     with it: where the daemon is asked\n"
	"  --guard           this machine, which is guarded; needs root\n"
	"  --docker NETWORK  a network of the driver's: from a container that "
	"Docker\n"
	"                    makes on it, of an image that is this program; "
	"needs root\n"
	"  --container NAME  with it: from the network of a container that is "
	"there\n"
	"  --docker-host PATH\n"
	"                    with it: the engine's socket\n"
	"  --receipt FILE    of what is there: the result as a statement of its "
	"own,\n"
	"                    signed with your key, in this new file, for\n"
	"                    `sallyport verify`\n"
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

/* Where the value of an option goes; NULL: it has none. */
static const char **value_of(struct prove *prove, int code)
{
	switch (code) {
	case OPT_LOG:
		return &prove->options->log_dir;
	case OPT_KEY:
		return &prove->options->key;
	case OPT_NAME:
		return &prove->options->name;
	case OPT_USER:
		return &prove->options->user;
	case OPT_NETNS:
		return &prove->netns;
	case OPT_WATCH:
		return &prove->watch;
	case OPT_SOCKET:
		return &prove->socket;
	case OPT_DOCKER:
		return &prove->docker;
	case OPT_CONTAINER:
		return &prove->container;
	case OPT_ENGINE:
		return &prove->engine;
	case OPT_RECEIPT:
		return &prove->statement;
	default:
		return NULL;
	}
}

static void apply(struct prove *prove, int code)
{
	const char **value = value_of(prove, code);

	if (value)
		*value = optarg;
	else if (code == OPT_GUARD)
		prove->guard = true;
	else if (code == OPT_QUIET)
		prove->quiet = true;
	else if (code == OPT_JSON)
		prove->json = true;
	else if (code == OPT_LIST)
		exit(list());
	else {
		printf("%s%s%s", help_text, policy_options_help, more_text);
		exit(0);
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
	if (!!prove->netns + prove->guard + !!prove->docker > 1)
		bad("--netns, --guard and --docker are places: one at a time",
		    NULL);
	if ((prove->engine || prove->container) && !prove->docker)
		bad("--docker-host and --container go with --docker", NULL);
	if (prove->watch && !prove->netns)
		bad("--watch goes with --netns: other logs are known", NULL);
	if ((prove->netns || prove->guard || prove->docker) &&
	    (prove->options->log_dir || prove->options->name ||
	     (prove->options->key && !prove->statement)))
		bad("--log, --key and --name are for a session of its own",
		    NULL);
	if (prove->statement && !prove->netns && !prove->guard &&
	    !prove->docker)
		bad("a session of its own has a receipt: --receipt is for what "
		    "is there",
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
				     .receipt = prove->receipt,
				     .reported = prove->reported };

	if (prove->netns)
		about.what = prove->netns;
	if (prove->docker)
		about.what =
			prove->container ? prove->container : prove->docker;
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
	prove_statement_open(&prove);
	status = prove.netns	? prove_netns(&prove)
		 : prove.guard	? prove_guarded(&prove)
		 : prove.docker ? prove_docker(&prove)
				: prove_own(&prove);
	if (status <= 1)
		prove_statement_write(&prove);
	print(&prove);
	policy_unref(prove.policy);
	return ferror(prove.out) ? EXIT_SALLYPORT : status;
}
