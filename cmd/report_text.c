/* SPDX-License-Identifier: Apache-2.0
 *
 * report_text.c - see report_text.h.
 */
#include "cmd/report_text.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

/* @text is @n bytes of valid UTF-8. */
static uint32_t code_of(const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t code = n < 2 ? s[0] : s[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		code = code << 6 | (s[i] & 0x3fu);
	return code;
}

size_t text_visible(const char *text, char ret_shown[VISIBLE_MAX],
		    bool *ret_bad)
{
	size_t n = text_next(text, ret_bad);
	unsigned char byte = (unsigned char)*text;
	uint32_t code;

	if (!*ret_bad) {
		memcpy(ret_shown, text, n);
		ret_shown[n] = '\0';
		return n;
	}
	code = code_of(text, n);
	if (*text == '\n' || *text == '\r' || *text == '\t')
		snprintf(ret_shown, VISIBLE_MAX, "\\%c",
			 *text == '\n'	 ? 'n'
			 : *text == '\r' ? 'r'
					 : 't');
	else if (n == 1)
		snprintf(ret_shown, VISIBLE_MAX, "\\x%02x", byte);
	else
		snprintf(ret_shown, VISIBLE_MAX, "\\u%04x", (unsigned)code);
	return n;
}

/* What XML gives a meaning; NULL: nothing. */
static const char *entity(const char *shown)
{
	switch (*shown) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

static void put_html(FILE *out, const char *text, bool marked)
{
	char shown[VISIBLE_MAX];
	bool bad, open = false;

	while (*text) {
		text += text_visible(text, shown, &bad);
		if (marked && bad != open)
			fputs(bad ? "<i class=\"esc\">" : "</i>", out);
		open = bad;
		fputs(entity(shown) ? entity(shown) : shown, out);
	}
	if (marked && open)
		fputs("</i>", out);
}

void text_html(FILE *out, const char *text)
{
	put_html(out, text, false);
}

void text_html_marked(FILE *out, const char *text)
{
	put_html(out, text, true);
}

/* What begins a link, an emoji or a mention, which a backslash does not stop on
 * GitHub: "www.", "http://", ":smile:", "@name", "#12". */
static bool is_link(const char *shown, const char *rest, const char *before)
{
	switch (*shown) {
	case '@':
	case '#':
	case '&':
	case '<':
	case '>':
		return true;
	case ':':
		return (*rest < '0' || *rest > '9') && *rest != ' ';
	case '.':
		return (*before == 'w' || *before == 'W') && *rest;
	default:
		return false;
	}
}

void text_md(FILE *out, const char *text)
{
	const char *start = text, *before;
	char shown[VISIBLE_MAX];
	bool bad;

	while (*text) {
		before = text > start ? text - 1 : "";
		text += text_visible(text, shown, &bad);
		if (bad)
			fprintf(out, "\\%s", shown);
		else if (is_link(shown, text, before))
			fprintf(out, "&#%d;", *shown);
		else if (strchr("\\`*_[]|~$!", *shown))
			fprintf(out, "\\%s", shown);
		else
			fputs(shown, out);
	}
}

void text_csv(FILE *out, const char *text)
{
	char shown[VISIBLE_MAX];
	bool bad;

	fputc('"', out);
	if (*text && strchr("=+-@", *text))
		fputc('\'', out);
	while (*text) {
		text += text_visible(text, shown, &bad);
		fputs(*shown == '"' ? "\"\"" : shown, out);
	}
	fputc('"', out);
}
