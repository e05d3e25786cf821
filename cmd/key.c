/* SPDX-License-Identifier: Apache-2.0
 *
 * key.c - `sallyport key`: the key that signs logs and receipts.
 *
 * A key is never replaced: what it has signed would be somebody else's.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "cmd/signing.h"

static const char help[] =
	"usage: sallyport key new [--name NAME] [--out FILE] [--json]\n"
	"       sallyport key show [FILE] [--json]\n\n"
	"The key that signs logs and receipts. `new` makes one, never over "
	"another;\n`show` prints the public half, which whoever verifies a log "
	"must know: send it\nby a way that nobody else can write to.\n\n"
	"  --name NAME  whose key it is (default: the name of this machine)\n"
	"  --out FILE   where the private half goes, mode 0600; the public one "
	"beside it,\n"
	"               in FILE with .vkey for .key (default: signing.key in\n"
	"               /etc/sallyport for root, else in ~/.config/sallyport)\n"
	"  --json       the public half as JSON\n"
	"  --help       this text\n\n"
	"FILE of `show` is either half. Exit status: 0; 125 if it failed.\n";

enum { KEY_NAME = 256, KEY_OUT, KEY_JSON, KEY_HELP };

static const struct option table[] = {
	{ "name", required_argument, NULL, KEY_NAME },
	{ "out", required_argument, NULL, KEY_OUT },
	{ "json", no_argument, NULL, KEY_JSON },
	{ "help", no_argument, NULL, KEY_HELP },
	{ NULL, 0, NULL, 0 },
};

struct key_options {
	const char *name, *out, *what, *file;
	bool json;
};

static _Noreturn void bad(const char *what, const char *arg)
{
	die(EXIT_SALLYPORT, "%s%s%s\nTry `sallyport key --help`.", what,
	    arg ? " " : "", arg ? arg : "");
}

/* False: it was for help. */
static bool parse(int argc, char **argv, struct key_options *o)
{
	int code;

	opterr = 0;
	while ((code = getopt_long(argc, argv, ":", table, NULL)) != -1) {
		if (code == KEY_NAME)
			o->name = optarg;
		else if (code == KEY_OUT)
			o->out = optarg;
		else if (code == KEY_JSON)
			o->json = true;
		else if (code == KEY_HELP)
			return false;
		else if (code == ':')
			bad("a value is missing after", argv[optind - 1]);
		else
			bad("no such option:", argv[optind - 1]);
	}
	o->what = optind < argc ? argv[optind++] : "";
	o->file = optind < argc ? argv[optind++] : NULL;
	if (optind < argc)
		bad("what is", argv[optind]);
	return true;
}

static void own_file(char *buf, size_t cap)
{
	char dir[PATH_MAX];
	int n;

	if (!signing_dir(dir, sizeof(dir)))
		die(EXIT_SALLYPORT, "there is no HOME: name a file");
	n = snprintf(buf, cap, "%s/" SIGNING_KEY, dir);
	if (n < 0 || (size_t)n >= cap)
		die(EXIT_SALLYPORT, "%s: the path is too long", dir);
}

static void print(const struct vkey *vkey, const char *private,
		  const char *public, bool json)
{
	char line[VKEY_TEXT_MAX], id[16];
	struct json_out out;

	vkey_format(vkey, line);
	if (!json) {
		puts(line);
		return;
	}
	snprintf(id, sizeof(id), "%08x", vkey->id);
	json_out_init(&out);
	json_open(&out.json, NULL, '{');
	json_text(&out.json, "vkey", line);
	json_text(&out.json, "name", vkey->name);
	json_text(&out.json, "id", id);
	if (private)
		json_text(&out.json, "private", private);
	if (public)
		json_text(&out.json, "public", public);
	json_close(&out.json, '}');
	json_flush(&out);
	putchar('\n');
}

static int new_key(const struct key_options *o)
{
	char own[PATH_MAX], public[PATH_MAX];
	const char *file = o->out ? o->out : own;
	struct signing_error error;
	struct vkey vkey;
	int r;

	if (o->file)
		bad("what is", o->file);
	if (!o->out) {
		own_file(own, sizeof(own));
		r = signing_mkdir();
		if (r < 0)
			die(EXIT_SALLYPORT,
			    "%s: %s\nName another file with --out FILE.", own,
			    strerror(-r));
	}
	if (!*file || !signing_public_path(file, public, sizeof(public)))
		bad("--out needs a file", NULL);
	if (signing_make(file, o->name, &vkey, &error))
		die(EXIT_SALLYPORT, "%s", error.text);
	if (!o->json)
		fprintf(stderr,
			"sallyport: the private half is in %s, the public one "
			"in %s\n",
			file, public);
	print(&vkey, file, public, o->json);
	return 0;
}

static int show_key(const struct key_options *o)
{
	char own[PATH_MAX];
	struct signing_error error;
	struct vkey vkey;
	int r;

	if (o->name || o->out)
		bad("--name and --out are for `key new`", NULL);
	if (!o->file)
		own_file(own, sizeof(own));
	r = signing_show(o->file ? o->file : own, &vkey, &error);
	if (r == -ENOENT && !o->file)
		die(EXIT_SALLYPORT,
		    "there is no key yet: %s\n`sallyport key new` makes one, "
		    "and so does the first `sallyport run`.",
		    own);
	if (r < 0)
		die(EXIT_SALLYPORT, "%s", error.text);
	print(&vkey, NULL, NULL, o->json);
	return 0;
}

int key_main(int argc, char **argv)
{
	struct key_options options = { 0 };

	log_init("sallyport", LOG_LEVEL_WARN);
	if (!parse(argc, argv, &options)) {
		fputs(help, stdout);
		return print_end(0);
	}
	if (strcmp(options.what, "new") == 0)
		return print_end(new_key(&options));
	if (strcmp(options.what, "show") == 0)
		return print_end(show_key(&options));
	bad(*options.what ? "`new` or `show`, not" : "`new` or `show`?",
	    *options.what ? options.what : NULL);
}
