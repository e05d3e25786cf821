/* SPDX-License-Identifier: Apache-2.0
 *
 * reload_main.c - `sallyport reload [SESSION]`: asks a running one to read its
 * policy again. Where none is meant, the daemon is (cmd/reload_daemon.c).
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/command.h"
#include "cmd/control.h"
#include "cmd/reload_daemon.h"
#include "cmd/session.h"

#define STATUS_MS 2000
/* Longer than a gate may take, and another one in its place. */
#define RELOAD_MS 60000

#define FOUND_MAX 64
#define VALUE_MAX 256

static const char help_text[] =
	"usage: sallyport reload [OPTION]... [SESSION|SANDBOX]\n\n"
	"Makes a running `sallyport run` or `serve` read its policy files "
	"again. All of\nthe new policy is in force at once, and what goes on "
	"and is no longer allowed is\ncut; or, where a file is wrong, the old "
	"one stays in force. --allow and its like\nare kept.\n\n"
	"  SESSION           its id, its --name, or its log directory (--log); "
	"needed\n"
	"                    where several are running, or one with --log\n"
	"  --json            the result as JSON\n"
	"  --running         only say which one it is, if it answers: for "
	"health checks\n"
	"  --daemon          not a session: the daemon reads its configuration "
	"and the\n"
	"                    policies that it names; with SANDBOX, that one "
	"gets its own\n"
	"                    again. So it is too where no session is running, "
	"or none of\n"
	"                    that name\n"
	"  --socket PATH     where the daemon listens\n"
	"  --help            this text\n\n"
	"`serve` does the same on SIGHUP; `run` passes that signal to its "
	"command.\n\n"
	"Exit status: 0 if the policy is in force; 1 if it is wrong, and the "
	"old one\nstill is; 125 if there is no such session, or it does not "
	"answer.\n";

struct found {
	char dir[PATH_MAX];
	char id[VALUE_MAX], name[VALUE_MAX], what[VALUE_MAX];
};

struct search {
	const char *wanted; /* NULL: any */
	struct found at[FOUND_MAX];
	size_t n;
};

/* The value of @key in "ok\nkey value\n...", or "". */
static void value_of(const char *reply, const char *key, char *buf)
{
	size_t len = strlen(key);

	*buf = '\0';
	for (const char *line = strchr(reply, '\n'); line;
	     line = strchr(line, '\n')) {
		line++;
		if (strncmp(line, key, len) != 0 || line[len] != ' ')
			continue;
		snprintf(buf, VALUE_MAX, "%.*s",
			 (int)strcspn(line + len + 1, "\n"), line + len + 1);
		return;
	}
}

static bool is_ok(const char *reply)
{
	return strncmp(reply, "ok\n", 3) == 0;
}

/* --- which one ----------------------------------------------------------- */

/* False if nobody serves there. */
static bool look(const char *dir, struct found *ret)
{
	char reply[CONTROL_REPLY_MAX];

	if (control_ask(dir, "status", STATUS_MS, reply) || !is_ok(reply))
		return false;
	snprintf(ret->dir, sizeof(ret->dir), "%s", dir);
	value_of(reply, "session", ret->id);
	value_of(reply, "name", ret->name);
	value_of(reply, "what", ret->what);
	return true;
}

static bool is_wanted(const struct search *search, const struct found *found)
{
	return !search->wanted || strcmp(search->wanted, found->id) == 0 ||
	       strcmp(search->wanted, found->name) == 0;
}

static void search_home(struct search *search, const char *home)
{
	DIR *dir = opendir(home);
	const struct dirent *entry;
	char path[PATH_MAX];

	while (dir && search->n < FOUND_MAX && (entry = readdir(dir))) {
		int len = snprintf(path, sizeof(path), "%s/%s", home,
				   entry->d_name);

		if (*entry->d_name == '.' || len < 0 ||
		    (size_t)len >= sizeof(path))
			continue;
		if (look(path, &search->at[search->n]) &&
		    is_wanted(search, &search->at[search->n]))
			search->n++;
	}
	if (dir)
		closedir(dir);
}

static _Noreturn void not_one(const struct search *search, const char *home)
{
	if (!search->n && search->wanted)
		die(EXIT_SALLYPORT,
		    "no session '%s' is running\nIts log directory may be "
		    "given too.",
		    search->wanted);
	if (!search->n)
		die(EXIT_SALLYPORT,
		    "no session is running below %s\nOne that was started with "
		    "--log is named by that directory.",
		    *home ? home : "the state directory");
	fprintf(stderr, "sallyport: several sessions are running; say which "
			"one:\n");
	for (size_t i = 0; i < search->n; i++)
		fprintf(stderr, "  %s  %s %s\n", search->at[i].id,
			search->at[i].what,
			strcmp(search->at[i].id, search->at[i].name) != 0
				? search->at[i].name
				: "");
	exit(EXIT_SALLYPORT);
}

/* NULL: none, and there is a daemon at @socket (NULL: it is not looked for),
 * which may be meant. */
static const struct found *find(struct search *search, const char *socket)
{
	char home[PATH_MAX] = "";

	if (session_home(home, sizeof(home)))
		search_home(search, home);
	/* Where one is named, a directory is another way to name it. */
	if (search->wanted && !search->n &&
	    look(search->wanted, &search->at[0]))
		search->n = 1;
	if (!search->n && socket && client_there(socket))
		return NULL;
	if (search->n && !search->wanted && socket && client_there(socket))
		die(EXIT_SALLYPORT,
		    "a session is running (%s), and the daemon too; say which "
		    "one: its name, or --daemon",
		    search->at[0].id);
	if (search->n != 1)
		not_one(search, home);
	return &search->at[0];
}

/* --- what came of it ----------------------------------------------------- */

static int print_json(const struct found *found, const char *reply)
{
	char buf[CONTROL_REPLY_MAX * 8], old[VALUE_MAX], new[VALUE_MAX],
		value[VALUE_MAX];
	struct json j = json_of(buf, sizeof(buf));
	const char *text = strchr(reply, '\n');

	value_of(reply, "old", old);
	value_of(reply, "new", new);
	json_open(&j, NULL, '{');
	json_text(&j, "session", found->id);
	json_bool(&j, "ok", is_ok(reply));
	if (is_ok(reply)) {
		json_bool(&j, "changed", strcmp(old, new) != 0);
		json_text(&j, "old", old);
		json_text(&j, "new", new);
		value_of(reply, "name", value);
		json_text(&j, "name", value);
		value_of(reply, "rules", value);
		json_uint(&j, "rules", strtoull(value, NULL, 10));
		value_of(reply, "note", value);
		if (*value)
			json_text(&j, "note", value);
	} else if (text) {
		text++;
		json_bytes(&j, "error", text, strlen(text) - (*text != '\0'));
	}
	json_close(&j, '}');
	printf("%.*s\n", (int)j.len, buf);
	return is_ok(reply) ? 0 : EXIT_REFUSED;
}

/* A line for people; what is no text stays out of their terminal. */
static void put_line(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 && *text != '\n'
			      ? '?'
			      : (unsigned char)*text,
		      out);
}

static int print(const char *reply)
{
	char old[VALUE_MAX], new[VALUE_MAX], name[VALUE_MAX], rules[VALUE_MAX];
	const char *text = strchr(reply, '\n');

	if (!is_ok(reply)) {
		fputs("sallyport: ", stderr);
		put_line(stderr, text ? text + 1 : "?\n");
		fputs("The old policy stays in force.\n", stderr);
		return EXIT_REFUSED;
	}
	value_of(reply, "old", old);
	value_of(reply, "new", new);
	value_of(reply, "name", name);
	value_of(reply, "rules", rules);
	if (strcmp(old, new) == 0)
		printf("unchanged: %s", new);
	else
		printf("%s -> %s", old, new);
	put_line(stdout, *name ? " " : "");
	put_line(stdout, name);
	printf(" (%s rule%s)\n", rules, strcmp(rules, "1") == 0 ? "" : "s");
	value_of(reply, "note", name);
	if (*name) {
		put_line(stdout, name);
		putchar('\n');
	}
	return 0;
}

static int print_running(const struct found *found, bool as_json)
{
	char buf[VALUE_MAX * 8 * 3];
	struct json j = json_of(buf, sizeof(buf));

	if (!as_json) {
		put_line(stdout, found->id);
		put_line(stdout, " ");
		put_line(stdout, found->what);
		putchar('\n');
		return 0;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "session", found->id);
	json_text(&j, "what", found->what);
	json_text(&j, "name", found->name);
	json_close(&j, '}');
	printf("%.*s\n", (int)j.len, buf);
	return 0;
}

struct line {
	bool json, running, daemon;
	const char *socket;
};

static void parse(int argc, char **argv, struct search *search,
		  struct line *line)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			fputs(help_text, stdout);
			exit(0);
		}
		if (strcmp(argv[i], "--json") == 0)
			line->json = true;
		else if (strcmp(argv[i], "--running") == 0)
			line->running = true;
		else if (strcmp(argv[i], "--daemon") == 0)
			line->daemon = true;
		else if (strcmp(argv[i], "--socket") == 0 && i + 1 < argc)
			line->socket = argv[++i];
		else if (*argv[i] == '-' || search->wanted)
			die(EXIT_SALLYPORT,
			    "what is %s\nTry `sallyport reload --help`.",
			    argv[i]);
		else
			search->wanted = argv[i];
	}
	line->socket = client_socket(line->socket);
}

int reload_main(int argc, char **argv)
{
	static struct search search;
	char reply[CONTROL_REPLY_MAX];
	const struct found *found = NULL;
	struct line line = { 0 };
	int err;

	log_init("sallyport", LOG_LEVEL_WARN);
	parse(argc, argv, &search, &line);
	if (!line.daemon)
		found = find(&search, line.running ? NULL : line.socket);
	if (!found)
		return reload_daemon(line.socket, search.wanted, line.json);
	if (line.running)
		return print_running(found, line.json);
	err = control_ask(found->dir, "reload", RELOAD_MS, reply);
	if (err)
		die(EXIT_SALLYPORT, "%s does not answer: %s", found->id,
		    strerror(-err));
	return line.json ? print_json(found, reply) : print(reply);
}
