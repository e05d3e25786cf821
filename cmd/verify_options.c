/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_options.c - the command line of `sallyport verify`, and which key is
 * trusted.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/key.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/signing.h"
#include "cmd/verify.h"

enum option_code {
	OPT_KEY = 256,
	OPT_RECEIPT,
	OPT_CHECKPOINT,
	OPT_JSON,
	OPT_PROOF,
	OPT_RECORD,
	OPT_WITH,
	OPT_SESSIONS,
	OPT_HELP,
};

static const struct option long_options[] = {
	{ "key", required_argument, NULL, OPT_KEY },
	{ "receipt", required_argument, NULL, OPT_RECEIPT },
	{ "checkpoint", required_argument, NULL, OPT_CHECKPOINT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "proof", required_argument, NULL, OPT_PROOF },
	{ "output", required_argument, NULL, 'o' },
	{ "record", required_argument, NULL, OPT_RECORD },
	{ "with", required_argument, NULL, OPT_WITH },
	{ "sessions", no_argument, NULL, OPT_SESSIONS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: sallyport verify [OPTION]... [LOG|DIR|SESSION]\n"
	"       sallyport verify --sessions [OPTION]... [DIR]\n"
	"       sallyport verify --record FILE --with PROOF [--key KEY]\n"
	"\n"
	"Is a log what was written, all of it, and by whom? Names the first line that\n"
	"was edited, removed, added or moved. A log is an audit.jsonl, the directory of\n"
	"a session, its id or name; without any, the newest session's. A directory of\n"
	"sessions: each of them, a line each, and the log of all sessions in it (host),\n"
	"which knows of each that was removed or got another receipt.\n"
	"\n"
	"  --sessions             DIR is such a directory; without one, that of all\n"
	"                         sessions. There has to be a log of all\n"
	"  --key KEY              who must have signed: NAME+ID+BASE64, or a file with\n"
	"                         that; of the signer or of the session. Without it\n"
	"                         signing.vkey of the configuration directory\n"
	"  --receipt FILE         the receipt, if it is not in the directory\n"
	"  --checkpoint FILE      a checkpoint that was kept elsewhere: the log must\n"
	"                         be a continuation of it\n"
	"  --json                 the result as one JSON object\n"
	"  -q, --quiet            no output, only the exit status\n"
	"  --proof N              write a proof (C2SP tlog-proof) that record N is in\n"
	"                         the log, so that it can be shown without the rest\n"
	"  -o, --output FILE      to this new file rather than standard output\n"
	"  --record FILE          verify one line, the record\n"
	"  --with PROOF           with the proof that came with it\n"
	"  --help                 this text\n"
	"\n"
	"Exit status: 0 it holds; 1 it is broken; 2 nothing is wrong, but it does not\n"
	"prove all of it; 125 it could not be verified.\n";

static _Noreturn void bad(const char *what, const char *arg)
{
	die(EXIT_SALLYPORT, "%s%s%s\nTry `sallyport verify --help`.", what,
	    arg ? " " : "", arg ? arg : "");
}

static void parse_proof(struct verify_command *command)
{
	struct text text = { optarg, strlen(optarg) };

	command->prove = true;
	if (!text_decimal(text, MERKLE_SIZE_MAX - 1, &command->proof))
		bad("--proof is no number of a record:", optarg);
}

static void parse_one(int code, char **argv, struct verify_command *command)
{
	switch (code) {
	case OPT_KEY:
		command->key = optarg;
		break;
	case OPT_RECEIPT:
		command->receipt = optarg;
		break;
	case OPT_CHECKPOINT:
		command->checkpoint = optarg;
		break;
	case OPT_JSON:
		command->json = true;
		break;
	case 'q':
		command->quiet = true;
		break;
	case OPT_PROOF:
		parse_proof(command);
		break;
	case 'o':
		command->out = optarg;
		break;
	case OPT_RECORD:
		command->record = optarg;
		break;
	case OPT_WITH:
		command->with = optarg;
		break;
	case OPT_SESSIONS:
		command->sessions = true;
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

void verify_options_parse(int argc, char **argv, struct verify_command *ret)
{
	int code;

	*ret = (struct verify_command){ .log = NULL };
	opterr = 0;
	while ((code = getopt_long(argc, argv, ":qo:", long_options, NULL)) !=
	       -1)
		parse_one(code, argv, ret);
	if (optind < argc)
		ret->log = argv[optind++];
	if (optind < argc)
		bad("one log at a time, or a directory of them; not also",
		    argv[optind]);
	if (!ret->record != !ret->with)
		bad("--record and --with belong together", NULL);
	if (ret->record &&
	    (ret->log || ret->prove || ret->receipt || ret->checkpoint))
		bad("--record is about one line: no log goes with it", NULL);
	if (ret->sessions &&
	    (ret->record || ret->prove || ret->receipt || ret->checkpoint))
		bad("--sessions is about all of them: a receipt, checkpoint, "
		    "proof or record is of one",
		    NULL);
	if (ret->out && !ret->prove)
		bad("-o is for --proof", NULL);
	if (ret->prove && ret->json)
		bad("a proof has its own form: --json does not go with --proof",
		    NULL);
}

static void read_key(struct verify_command *command, const char *path,
		     bool needed)
{
	int r = key_read_public(AT_FDCWD, path, &command->vkey);

	if (r == -ENOENT && !needed)
		return;
	if (r == -EBADMSG)
		die(EXIT_SALLYPORT,
		    "%s: there is no public key in it (NAME+ID+BASE64)", path);
	if (r < 0)
		die(EXIT_SALLYPORT, "%s: %s", path, strerror(-r));
	command->has_vkey = true;
}

void verify_options_key_of(struct verify_command *command, const char *log)
{
	static const char key[] = SIGNING_DIR_ROOT "/" SIGNING_VKEY;
	struct stat st;

	if (command->key || geteuid() == 0 || stat(log, &st) < 0 ||
	    st.st_uid != 0)
		return;
	command->has_vkey = false;
	command->key_from = key;
	read_key(command, key, false);
}

void verify_options_key(struct verify_command *command)
{
	static char path[PATH_MAX];
	const char *key = command->key;
	char dir[PATH_MAX - sizeof("/" SIGNING_VKEY)];

	if (key &&
	    !vkey_parse((struct text){ key, strlen(key) }, &command->vkey)) {
		command->has_vkey = true;
		command->key_from = "--key";
		return;
	}
	if (key) {
		command->key_from = key;
		read_key(command, key, true);
		return;
	}
	if (!signing_dir(dir, sizeof(dir)))
		return;
	snprintf(path, sizeof(path), "%s/" SIGNING_VKEY, dir);
	command->key_from = path;
	read_key(command, path, false);
}
