/* SPDX-License-Identifier: Apache-2.0
 *
 * print.c - see print.h. Names of files and hosts come from policies, which
 * others may have written.
 */
#include "cmd/print.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/command.h"

static bool has_colours(FILE *out)
{
	const char *term = getenv("TERM"), *none = getenv("NO_COLOR");

	return isatty(fileno(out)) && (!none || !*none) && term &&
	       strcmp(term, "dumb") != 0;
}

static void put_clean(FILE *out, const char *text)
{
	while (*text) {
		bool bad;
		size_t n = text_next(text, &bad);

		if (bad)
			putc('?', out);
		else
			fwrite(text, 1, n, out);
		text += n;
	}
}

void print_text(FILE *out, enum tone tone, const char *format, ...)
{
	static const char *const codes[] = { [TONE_GOOD] = "32",
					     [TONE_WARNING] = "33",
					     [TONE_BAD] = "31",
					     [TONE_FAINT] = "2" };
	bool coloured = tone != TONE_PLAIN && has_colours(out);
	size_t len = strlen(format);
	bool line = len && format[len - 1] == '\n';
	AUTO_FREE char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return;
	}
	if (line)
		text[n - 1] = '\0';
	if (coloured)
		fprintf(out, "\033[%sm", codes[tone]);
	put_clean(out, text);
	if (coloured)
		fputs("\033[0m", out);
	if (line)
		putc('\n', out);
}

void json_out_init(struct json_out *out)
{
	out->json = json_of(out->buf, sizeof(out->buf));
}

bool json_flush(struct json_out *out)
{
	bool fits = !out->json.full;

	fwrite(out->json.buf, 1, fits ? out->json.len : 0, stdout);
	out->json.len = 0;
	out->json.full = false;
	return fits;
}

/* The number behind the last ':' of the first *@len bytes, which are cut off
 * with it; 0: there is none. */
static unsigned number_before(const char *text, size_t *len)
{
	size_t n = *len;

	while (n && isdigit((unsigned char)text[n - 1]))
		n--;
	if (n == *len || n < 2 || text[n - 1] != ':' || *len - n > 9)
		return 0;
	*len = n - 1;
	return (unsigned)strtoul(text + n, NULL, 10);
}

void json_place(struct json *j, const char *place, const char **ret_rest)
{
	const char *end = ret_rest ? strstr(place, ": ") : NULL;
	size_t len = end ? (size_t)(end - place) : strlen(place);
	unsigned second = number_before(place, &len);
	unsigned first = second ? number_before(place, &len) : 0;

	if (ret_rest)
		*ret_rest = end && second ? end + 2 : place;
	if (ret_rest && !second)
		return;
	json_bytes(j, "file", place, len);
	if (second)
		json_uint(j, "line", first ? first : second);
	if (first)
		json_uint(j, "column", second);
}

int print_end(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	log_err("cannot write to standard output: %s", strerror(errno));
	return EXIT_SALLYPORT;
}
