/* SPDX-License-Identifier: Apache-2.0
 *
 * report_html_receipt.c - what a stranger needs to verify a session without
 * this report: digests, signed tree heads, the key.
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/report.h"
#include "cmd/report_html.h"
#include "cmd/report_receipt.h"
#include "cmd/report_text.h"
#include "cmd/report_view.h"

static void put_term(const char *term, const char *text, FILE *out)
{
	if (!*text)
		return;
	fprintf(out, "<dt>%s</dt><dd>", term);
	text_html_marked(out, text);
	fputs("</dd>\n", out);
}

/* Keeps its lines; what else is in it is shown, not obeyed. */
static void put_lines(const char *text, FILE *out)
{
	char line[1024];

	fputs("<pre>", out);
	while (*text) {
		size_t len = strcspn(text, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		text_html_marked(out, line);
		fputc('\n', out);
		text += len + (text[len] == '\n');
	}
	fputs("</pre>\n", out);
}

static void put_note(const char *term, const char *note, FILE *out)
{
	if (!*note)
		return;
	fprintf(out, "<dt>%s</dt><dd>", term);
	put_lines(note, out);
	fputs("</dd>\n", out);
}

static void put_problems(const struct verify_result *result, FILE *out)
{
	size_t n = result->problems < VERIFY_PROBLEMS_MAX ? result->problems
							  : VERIFY_PROBLEMS_MAX;

	if (!n)
		return;
	fputs("<dt>Problems</dt><dd><ol>\n", out);
	for (size_t i = 0; i < n; i++) {
		const struct verify_problem *p = &result->problem[i];

		fprintf(out, "<li><b>%s</b> ", verify_word(p->fault));
		text_html_marked(out, p->file);
		if (p->line)
			fprintf(out, ":%" PRIu64, p->line);
		fputs(": ", out);
		text_html_marked(out, p->text);
		fputs("</li>\n", out);
	}
	fputs("</ol></dd>\n", out);
}

static void put_boundary(const struct report_session *s, FILE *out)
{
	char buf[CELL_MAX];

	snprintf(buf, sizeof(buf), "%.64s, %.64s, separation by %.64s",
		 receipt_text(s, "boundary", "kind"),
		 receipt_text(s, "boundary", "held"),
		 receipt_text(s, "boundary", "separation"));
	put_term("Boundary", s->result.receipt ? buf : s->boundary, out);
}

/* "name, files", "start", then each change: digests are long. */
static void put_policy(const struct report_session *s, FILE *out)
{
	const char *digest = receipt_text(s, "policy", "digest");
	const json_t *changes = receipt_get(s, "policy", "changes");
	char buf[CELL_MAX];

	snprintf(buf, sizeof(buf), "%.200s %.200s %.200s", s->policy,
		 *digest ? digest : s->digest,
		 receipt_text(s, "policy", "files"));
	put_term("Policy", buf, out);
	for (size_t i = 0; i < json_array_size(changes); i++) {
		const char *to = json_string_value(
			json_object_get(json_array_get(changes, i), "digest"));

		put_term("then", to ? to : "", out);
	}
	put_term("Rules at the start", receipt_text(s, "ruleset", "start"),
		 out);
	put_term("Rules at the end", receipt_text(s, "ruleset", "end"), out);
}

static void put_log(const struct report_session *s, FILE *out)
{
	const struct verify_result *result = &s->result;
	char buf[CELL_MAX], bytes[CELL_MAX];

	snprintf(buf, sizeof(buf),
		 "%" PRIu64 " records, %.40s, in %" PRIu64 " part%s; %" PRIu64
		 " checkpoints, the last one over %" PRIu64 " records",
		 result->records, show_bytes(result->bytes, bytes),
		 result->parts, result->parts == 1 ? "" : "s",
		 result->checkpoints, result->covered);
	put_term("Log", buf, out);
	put_term("Root", receipt_text(s, "log", "root"), out);
}

void html_receipt(const struct report_session *s, FILE *out)
{
	char vkey[VKEY_TEXT_MAX] = "";
	const char *command = receipt_text(s, "command", NULL);

	if (*s->result.key.name)
		vkey_format(&s->result.key, vkey);
	fputs("<article class=\"receipt\">\n<h3>", out);
	text_html_marked(out, *s->result.session ? s->result.session : s->path);
	fputs("</h3>\n<dl>\n", out);
	put_term("Read from", s->path, out);
	put_problems(&s->result, out);
	put_term("Command", command, out);
	put_boundary(s, out);
	put_term("Kernel", receipt_text(s, "kernel", NULL), out);
	put_policy(s, out);
	put_log(s, out);
	put_term("Key", vkey, out);
	put_note("First checkpoint", receipt_text(s, "log", "first_checkpoint"),
		 out);
	put_note("Last checkpoint", receipt_text(s, "log", "last_checkpoint"),
		 out);
	if (!s->result.receipt)
		put_term("Receipt", "none that is good", out);
	fputs("</dl>\n</article>\n", out);
}

void html_by_hand(FILE *out)
{
	fputs("<p class=\"about\">This report is no evidence; the files beside "
	      "a log are. Whoever has the signer\xe2\x80\x99s public key from a "
	      "source of their own can check them again:</p>\n"
	      "<pre>sallyport verify --key VKEY DIR</pre>\n"
	      "<p class=\"about\">Or without sallyport, the last signed tree "
	      "head with OpenSSL, in the directory of the log:</p>\n",
	      out);
	put_lines(report_by_hand, out);
}

const char report_by_hand[] =
	"tail -n 5 checkpoints | head -n 3 > head\n"
	"tail -n 1 checkpoints | sed 's/.* //' | base64 -d | tail -c 64 > sig\n"
	"{ echo MCowBQYDK2VwAyEA | base64 -d\n"
	"  cut -d+ -f3- session.vkey | base64 -d | tail -c 32; } > key.der\n"
	"openssl pkeyutl -verify -pubin -keyform DER -inkey key.der -rawin \\\n"
	"  -in head -sigfile sig\n";
