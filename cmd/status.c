/* SPDX-License-Identifier: Apache-2.0
 *
 * status.c - `sallyport status [NAME]`: the sandboxes of the daemon, as far as
 * they are ours.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/client_call.h"
#include "cmd/client_options.h"
#include "cmd/command.h"
#include "cmd/print.h"
#include "cmd/report_view.h"

#define POLICY_SHOWN 28
#define TEXT_SHOWN   64

static const struct option table[] = {
	CLIENT_OPTIONS,
	CLIENT_OPTION_WITH_JSON,
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: sallyport status [OPTION]... [NAME]\n\n"
	"The daemon's sandboxes, as far as they are yours (root sees all), or "
	"all about\none.\n\n"
	"  --json            what the daemon answers\n";

static void option(void *arg, int code, const char *value)
{
	bool *json = arg;

	(void)value;
	*json |= code == CLIENT_OPTION_JSON;
}

/* --- all ----------------------------------------------------------------- */

enum { NAME, STATE, POLICY, SINCE, ALLOWED, REFUSED, UP, DOWN, COLUMNS };

struct row {
	char cell[COLUMNS][TEXT_SHOWN + 4];
};

static const char *const titles[COLUMNS] = {
	"NAME", "STATE", "POLICY", "SINCE", "ALLOWED", "REFUSED", "UP", "DOWN",
};

/* How wide is it shown? */
static size_t width(const char *text)
{
	size_t n = 0;
	bool bad;

	for (; *text; text += text_next(text, &bad))
		n++;
	return n;
}

/* At most @max characters, without what a terminal would obey. */
static void put_cell(char *cell, const char *text, size_t max)
{
	bool longer = width(text) > max;
	size_t at = 0, n, shown = longer ? max - 3 : max;
	bool bad;

	for (size_t i = 0; i < shown && *text; i++, text += n) {
		n = text_next(text, &bad);
		if (at + n > TEXT_SHOWN)
			break;
		memcpy(cell + at, bad ? "???" : text, bad ? 1 : n);
		at += bad ? 1 : n;
	}
	memcpy(cell + at, longer ? "..." : "", longer ? 4 : 1);
}

static uint64_t now_s(void)
{
	return (uint64_t)time(NULL);
}

static const char *policy_of(const json_t *s)
{
	const json_t *policy = json_object_get(s, "policy");
	const char *name = client_text(policy, "name");

	return *name ? name : client_text(policy, "text");
}

static void fill(struct row *row, const json_t *s)
{
	const json_t *counts = json_object_get(s, "counts");
	uint64_t made = client_number(s, "made"), now = now_s();
	char buf[CELL_MAX];

	put_cell(row->cell[NAME], client_text(s, "name"), TEXT_SHOWN);
	put_cell(row->cell[STATE], client_text(s, "state"), 8);
	put_cell(row->cell[POLICY], policy_of(s), POLICY_SHOWN);
	put_cell(row->cell[SINCE],
		 show_duration(now > made ? (now - made) * 1000 : 0, buf), 20);
	put_cell(row->cell[ALLOWED],
		 show_number(client_number(counts, "allowed"), buf), 20);
	put_cell(row->cell[REFUSED],
		 show_number(client_number(counts, "refused"), buf), 20);
	put_cell(row->cell[UP], show_bytes(client_number(counts, "up"), buf),
		 20);
	put_cell(row->cell[DOWN],
		 show_bytes(client_number(counts, "down"), buf), 20);
}

static void put_row(const struct row *row, const size_t *widths)
{
	for (size_t c = 0; c < COLUMNS; c++) {
		int pad = (int)(widths[c] - width(row->cell[c]));

		/* Numbers to the right; no space at the end. */
		if (c >= ALLOWED)
			print_text(stdout, TONE_PLAIN, "%*s%s", pad, "",
				   row->cell[c]);
		else
			print_text(stdout, TONE_PLAIN, "%s%*s", row->cell[c],
				   pad, "");
		fputs(c + 1 < COLUMNS ? "  " : "\n", stdout);
	}
}

static void show_all(const json_t *list)
{
	size_t n = json_array_size(list), widths[COLUMNS] = { 0 };
	AUTO_FREE struct row *rows = calloc(n + 1, sizeof(*rows));

	if (!rows)
		die(EXIT_SALLYPORT, "out of memory");
	if (!n) {
		puts("There is no sandbox; `sallyport create NAME` makes one.");
		return;
	}
	for (size_t c = 0; c < COLUMNS; c++)
		put_cell(rows[0].cell[c], titles[c], TEXT_SHOWN);
	for (size_t i = 0; i < n; i++)
		fill(&rows[i + 1], json_array_get(list, i));
	for (size_t i = 0; i <= n; i++)
		for (size_t c = 0; c < COLUMNS; c++)
			if (width(rows[i].cell[c]) > widths[c])
				widths[c] = width(rows[i].cell[c]);
	for (size_t i = 0; i <= n; i++)
		put_row(&rows[i], widths);
}

/* --- one ----------------------------------------------------------------- */

static void line(const char *title, const char *text)
{
	if (*text)
		print_text(stdout, TONE_PLAIN, "%-10s %s\n", title, text);
}

static void line_time(const char *title, uint64_t seconds)
{
	char buf[CELL_MAX];

	if (seconds)
		print_text(stdout, TONE_PLAIN, "%-10s %s UTC\n", title,
			   show_time(seconds * 1000, buf));
}

static void show_counts(const json_t *counts)
{
	char a[CELL_MAX], b[CELL_MAX];

	print_text(stdout, TONE_PLAIN, "%-10s %s allowed, %s refused\n",
		   "verdicts", show_number(client_number(counts, "allowed"), a),
		   show_number(client_number(counts, "refused"), b));
	print_text(stdout, TONE_PLAIN, "%-10s %s up, %s down\n", "traffic",
		   show_bytes(client_number(counts, "up"), a),
		   show_bytes(client_number(counts, "down"), b));
	line("records", show_number(client_number(counts, "records"), a));
	line("boundary", client_text(counts, "held"));
}

static void show_published(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *p = json_array_get(list, i);
		const char *ip = client_text(p, "address");
		bool v6 = strchr(ip, ':');

		print_text(stdout, TONE_PLAIN, "%-10s %s%s%s:%llu to %llu\n",
			   "published", v6 ? "[" : "", ip, v6 ? "]" : "",
			   (unsigned long long)client_number(p, "port"),
			   (unsigned long long)client_number(p, "inside"));
	}
}

static void show_one(const json_t *s)
{
	const json_t *policy = json_object_get(s, "policy");
	const char *digest = client_text(policy, "digest");
	char text[128];

	line("name", client_text(s, "name"));
	line("state", client_text(s, "state"));
	line("why", client_text(s, "why"));
	snprintf(text, sizeof(text), "%llu",
		 (unsigned long long)client_number(s, "uid"));
	line("user", text);
	line("policy", policy_of(s));
	snprintf(text, sizeof(text), "sha256:%.64s", digest);
	line("digest", *digest ? text : "");
	line("session", client_text(s, "session"));
	line("log", client_text(s, "log"));
	line("namespace", client_text(s, "netns"));
	line("user ns", client_text(s, "userns"));
	line("address", client_text(s, "ip"));
	line("gateway", client_text(s, "gateway"));
	line_time("made", client_number(s, "made"));
	line_time("ends", client_number(s, "ends"));
	show_published(json_object_get(s, "publish"));
	show_counts(json_object_get(s, "counts"));
}

int status_main(int argc, char **argv)
{
	bool json = false;
	struct client_line command = { .command = "status",
				       .table = table,
				       .option = option,
				       .arg = &json,
				       .help = help };
	struct client_call call = { .method = "GET", .path = "/v1/sandboxes" };
	const char *name = NULL;
	json_t *answer;

	log_init("sallyport", LOG_LEVEL_WARN);
	if (client_read_line(&command, argc, argv, 0, 1, &name)) {
		client_check_name(name);
		call.path = NULL;
		call.name = name;
	}
	call.socket = client_socket(command.socket);
	answer = client_want(&call);
	if (json)
		client_print_json(answer);
	else if (name)
		show_one(answer);
	else
		show_all(json_object_get(answer, "sandboxes"));
	json_decref(answer);
	return print_end(0);
}
