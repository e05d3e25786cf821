/* SPDX-License-Identifier: Apache-2.0
 *
 * test_report_hostile.c - no text of others is obeyed in any format of a
 * report.
 */
#include "tests/cmd/report_case.h"

#define BIDI "\xe2\x80\xae"

#define EVIL                                                                  \
	"<img src=x onerror=alert(1)>\"'&]]>" BIDI "\xe2\x81\xa6\xe2\x80\x8b" \
	"\x1b[31m\r\n|`*_[a](b)\xff\x7f\xc2\x9b"

/* --- hostile texts ------------------------------------------------------- */

static char *text_by(void (*put_text)(FILE *, const char *), const char *s)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	assert_non_null(file);
	put_text(file, s);
	assert_int_equal(fclose(file), 0);
	return text;
}

static void test_texts(void **state)
{
	static const struct {
		const char *text, *html, *md, *csv;
	} rows[] = {
		{ "a.test", "a.test", "a.test", "\"a.test\"" },
		{ "<b>&\"'", "&lt;b&gt;&amp;&quot;&#39;", "&#60;b&#62;&#38;\"'",
		  "\"<b>&\"\"'\"" },
		{ "a" BIDI "b", "a\\u202eb", "a\\\\u202eb", "\"a\\u202eb\"" },
		{ "\xff\x1b\n\xc2\x85", "\\xff\\x1b\\n\\u0085",
		  "\\\\xff\\\\x1b\\\\n\\\\u0085", "\"\\xff\\x1b\\n\\u0085\"" },
		{ "\xf3\xa0\x81\x81", "\\ue0041", "\\\\ue0041",
		  "\"\\ue0041\"" },
		{ "=1+1", "=1+1", "=1+1", "\"'=1+1\"" },
		{ "+1", "+1", "+1", "\"'+1\"" },
		{ "-1", "-1", "-1", "\"'-1\"" },
		{ "@a", "@a", "&#64;a", "\"'@a\"" },
		{ "\t=1", "\\t=1", "\\\\t=1", "\"\\t=1\"" },
		{ "a|`*_~[x]", "a|`*_~[x]", "a\\|\\`\\*\\_\\~\\[x\\]",
		  "\"a|`*_~[x]\"" },
		{ "http://www.x", "http://www.x", "http&#58;//www&#46;x",
		  "\"http://www.x\"" },
		{ "a:443", "a:443", "a:443", "\"a:443\"" },
		{ "\xc3\xa4", "\xc3\xa4", "\xc3\xa4", "\"\xc3\xa4\"" },
		{ "", "", "", "\"\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_FREE char *html = text_by(text_html, rows[i].text);
		AUTO_FREE char *md = text_by(text_md, rows[i].text);
		AUTO_FREE char *csv = text_by(text_csv, rows[i].text);

		assert_string_equal(html, rows[i].html);
		assert_string_equal(md, rows[i].md);
		assert_string_equal(csv, rows[i].csv);
	}
}

/* EVIL in each text of each kind of record. */
static void put_evil(struct made *m)
{
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		struct audit_event event =
			event_of((enum event_kind)kind, REASON_MALFORMED);

		event.host = EVIL;
		event.rule = EVIL;
		event.rule_text = EVIL;
		event.sni = EVIL;
		event.method = EVIL;
		event.target = EVIL;
		event.detail = EVIL;
		event.process = EVIL;
		event.pid = 1;
		event.protocol = "<i>" BIDI;
		add(m, event);
		event.host = "=cmd|' /C calc'!A0";
		event.rule = "@x";
		event.detail = "+x";
		add(m, event);
	}
	free(m->session->name);
	free(m->session->path);
	m->session->name = strdup(EVIL);
	m->session->path = strdup("-" EVIL);
	m->session->result.verdict = VERIFY_BROKEN;
	m->session->result.problems = 1;
	snprintf(m->session->result.problem[0].text, 320, "%s", EVIL);
	snprintf(m->session->result.session, 64, "%.63s", "<u>" BIDI);
}

static const char *const obeyed[] = { "<img", "<u>",	      "<i>",
				      BIDI,   "\xe2\x81\xa6", "\xe2\x80\x8b",
				      "\x1b", "\x7f",	      "\xc2\x9b" };

/* No byte of a file is one that a terminal, a browser or an eye obeys. */
static void check_bytes(const char *text, const char *allowed)
{
	for (const char *s = text; *s; s++)
		if ((unsigned char)*s < 0x20)
			assert_non_null(strchr(allowed, *s));
	assert_null(strchr(text, '\xff'));
}

static void test_hostile_html(void **state)
{
	AUTO_FREE char *text = NULL;
	struct made m;

	(void)state;
	begin(&m);
	put_evil(&m);
	assert_int_equal(report_finish(m.report), 0);
	text = written(&m, report_html);
	check_bytes(text, "\n\t");
	for (size_t i = 0; i < ARRAY_SIZE(obeyed); i++)
		assert_null(strstr(text, obeyed[i]));
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "src=\""));
	assert_non_null(strstr(text, "&lt;img src=x onerror=alert(1)&gt;"));
	assert_non_null(strstr(text, "default-src 'none'"));
	report_free(m.report);
}

static size_t pipes(const char *line, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += line[i] == '|' && (!i || line[i - 1] != '\\');
	return n;
}

/* Each row of a table has the cells of its head. */
static void test_hostile_md(void **state)
{
	AUTO_FREE char *text = NULL;
	size_t head = 0, rows = 0, len;
	struct made m;

	(void)state;
	begin(&m);
	put_evil(&m);
	assert_int_equal(report_finish(m.report), 0);
	text = written(&m, report_md);
	check_bytes(text, "\n");
	for (size_t i = 0; i < ARRAY_SIZE(obeyed); i++)
		assert_null(strstr(text, obeyed[i]));
	for (const char *line = text; *line; line += len + (line[len] != 0)) {
		len = strcspn(line, "\n");
		if (*line != '|') {
			head = 0;
			continue;
		}
		rows++;
		if (!head)
			head = pipes(line, len);
		assert_int_equal(pipes(line, len), head);
	}
	assert_true(rows > 10);
	report_free(m.report);
}

static void test_hostile_json(void **state)
{
	AUTO_FREE char *text = NULL;
	struct made m;
	json_t *o;

	(void)state;
	begin(&m);
	put_evil(&m);
	assert_int_equal(report_finish(m.report), 0);
	text = written(&m, report_json);
	check_bytes(text, "\n");
	for (const char *s = text; *s; s++)
		assert_true((unsigned char)*s < 0x7f);
	o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	json_decref(o);
	report_free(m.report);
}

/* RFC 4180 by its grammar. Returns where the record ends, with its cells. */
static const char *csv_record(const char *at, size_t *ret_cells)
{
	*ret_cells = 0;
	for (;;) {
		++*ret_cells;
		if (*at == '"') {
			assert_null(memchr("=+-@\t\r", at[1], 6));
			for (at++; *at != '"' || at[1] == '"'; at++) {
				assert_true((unsigned char)*at >= 0x20);
				at += *at == '"';
			}
			at++;
		} else {
			at += strcspn(at, ",\r\n\"");
		}
		if (*at != ',')
			break;
		at++;
	}
	assert_memory_equal(at, "\r\n", 2);
	return at + 2;
}

static void test_hostile_csv(void **state)
{
	AUTO_FREE char *text = NULL;
	size_t head, cells, rows = 0;
	const char *at;
	struct made m;

	(void)state;
	begin(&m);
	put_evil(&m);
	assert_int_equal(report_finish(m.report), 0);
	text = written(&m, report_csv);
	for (size_t i = 3; i < ARRAY_SIZE(obeyed); i++)
		assert_null(strstr(text, obeyed[i]));
	for (at = csv_record(text, &head); *at; rows++) {
		at = csv_record(at, &cells);
		assert_int_equal(cells, head);
	}
	assert_true(rows > 6);
	assert_non_null(strstr(text, "\"'=cmd|"));
	report_free(m.report);
}

/* What is very long keeps to its bound, and ends in valid UTF-8 or is shown. */
static void test_long_texts(void **state)
{
	static char host[4096];
	AUTO_FREE char *html = NULL;
	struct audit_event event;
	struct made m;

	(void)state;
	memset(host, '\xc3', sizeof(host) - 1);
	begin(&m);
	event = flow(EVENT_FLOW_OPEN, host, REASON_MALFORMED, 0, 0);
	event.rule = host;
	event.detail = host;
	add(&m, event);
	event.kind = EVENT_FINDING;
	add(&m, event);
	assert_int_equal(report_finish(m.report), 0);
	assert_true(strlen(m.report->table[REPORT_REFUSED].at[0].host) <=
		    REPORT_HOST_MAX);
	html = written(&m, report_html);
	assert_non_null(strstr(html, "</html>"));
	report_free(m.report);
}

/* --- sentences ----------------------------------------------------------- */

static void test_sentences(void **state)
{
	static const struct {
		enum verify_verdict verdict;
		const char *held, *kind;
		enum report_mark mark;
		const char *says;
	} rows[] = {
		{ VERIFY_HOLDS, "held", "netns", REPORT_HELD,
		  "The boundary held" },
		{ VERIFY_HOLDS, "restored", "netns", REPORT_HELD,
		  "put back in order" },
		{ VERIFY_HOLDS, "broken", "netns", REPORT_BROKEN,
		  "did not hold" },
		{ VERIFY_HOLDS, "unknown", "netns", REPORT_NOT_PROVED,
		  "not known" },
		{ VERIFY_HOLDS, "unknown", "external", REPORT_NOT_PROVED,
		  "somebody else's" },
		{ VERIFY_HOLDS, "held", "external", REPORT_NOT_PROVED,
		  "somebody else's" },
		{ VERIFY_INCOMPLETE, "held", "netns", REPORT_NOT_PROVED,
		  "does not prove" },
		{ VERIFY_BROKEN, "held", "netns", REPORT_BROKEN,
		  "does not verify" },
	};
	char buf[2048];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct report_session s = { .boundary = (char *)"netns" };

		s.result.verdict = rows[i].verdict;
		s.result.receipt =
			json_pack("{s{ss ss}}", "boundary", "held",
				  rows[i].held, "kind", rows[i].kind);
		assert_int_equal(report_mark(&s), rows[i].mark);
		report_sentence(&s, buf, sizeof(buf));
		assert_non_null(strstr(buf, rows[i].says));
		json_decref(s.result.receipt);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_hostile_html),
		cmocka_unit_test(test_hostile_md),
		cmocka_unit_test(test_hostile_json),
		cmocka_unit_test(test_hostile_csv),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
