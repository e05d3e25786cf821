/* SPDX-License-Identifier: Apache-2.0
 *
 * `log` as people run it: which log, and which records.
 */
#include "tests/cmd/log_world.h"

#include "cmd/log_filter.h"

/* How many rows, if all of them are in order. */
static size_t rows(const struct shown *shown)
{
	size_t n = 0;

	assert_int_equal(shown->status, 0);
	assert_string_equal(shown->err, "");
	for (const char *s = shown->out; (s = strchr(s, '\n')); s++)
		n++;
	return n;
}

/* Twelve records, one of each kind and verdict. */
static void put_samples(FILE *file)
{
	struct audit_event event = { .kind = EVENT_SESSION_OPEN };

	put(file, event);
	event = event_of(EVENT_DNS_QUERY, REASON_RULE);
	event.flow = 0;
	event.door = DOOR_DNS;
	put(file, event);
	event = event_of(EVENT_FLOW_OPEN, REASON_NOT_IN_POLICY);
	event.host = "x.evil.example";
	put(file, event);
	event = event_of(EVENT_FLOW_OPEN, REASON_OBSERVE);
	event.sandbox = 3;
	event.flow = 8;
	put(file, event);
	put(file, event_of(EVENT_FLOW_DIAL, REASON_CONNECT_FAILED));
	event = event_of(EVENT_FLOW_PROGRESS, REASON_RULE);
	event.time_ms = TIME_MS + 10000;
	put(file, event);
	event = event_of(EVENT_FLOW_CLOSE, REASON_LIMIT_BYTES);
	event.time_ms = TIME_MS + 20000;
	put(file, event);
	event = event_of(EVENT_FLOW_OPEN, REASON_LITERAL_ADDRESS);
	event.host = NULL;
	put(file, event);
	event = event_of(EVENT_HTTP_REQUEST, REASON_PORT);
	put(file, event);
	event = event_of(EVENT_PACKET, REASON_BYPASS);
	event.host = NULL;
	event.flow = 0;
	put(file, event);
	put(file, (struct audit_event){
			  .kind = EVENT_FINDING,
			  .verdict = verdict_of(REASON_LEDGER_UNAVAILABLE) });
	put(file, (struct audit_event){ .kind = EVENT_POLICY });
	fflush(file);
}

static void test_filters(void **state)
{
	static const struct {
		const char *args[4];
		size_t rows;
	} cases[] = {
		{ { NULL }, 12 },
		{ { "--verdict=allowed" }, 2 },
		{ { "--verdict=refused" }, 4 },
		{ { "--verdict=failed" }, 1 },
		{ { "--verdict=observed" }, 1 },
		{ { "--verdict=cut" }, 1 },
		{ { "--verdict=event" }, 3 },
		{ { "--verdict=cut", "--verdict=event" }, 4 },
		{ { "--kind=dns" }, 1 },
		{ { "--kind=flow" }, 6 },
		{ { "--kind=http", "--kind=packet" }, 2 },
		{ { "--kind=finding" }, 1 },
		{ { "--kind=session" }, 1 },
		{ { "--kind=policy" }, 1 },
		{ { "--reason", "not_in_policy" }, 2 },
		{ { "--reason", "observe" }, 1 },
		{ { "--reason=rule" }, 2 },
		{ { "--reason=port", "--reason=bypass" }, 2 },
		{ { "--reason=port", "--verdict=allowed" }, 0 },
		{ { "--host=api.example" }, 6 },
		{ { "--host=API.Example." }, 6 },
		{ { "--host=*.example" }, 7 },
		{ { "--host=*.evil.example" }, 1 },
		{ { "--host=*.api.example" }, 0 },
		{ { "--host=pi.example" }, 0 },
		{ { "--host=203.0.113.5", "--kind=packet" }, 1 },
		{ { "--host=203.0.113.6" }, 0 },
		{ { "--sandbox=3" }, 1 },
		{ { "--sandbox", "1", "--kind=flow" }, 5 },
		{ { "--flow=7" }, 6 },
		{ { "--flow=8" }, 1 },
		{ { "--since=2026-04-01T03:29:00Z" }, 2 },
		{ { "--until=2026-04-01T03:29:00Z" }, 10 },
		{ { "--since=2026-04-01T03:29:00Z",
		    "--until=2026-04-01T03:29:10Z" },
		  1 },
		{ { "--since", "10m ago" }, 0 },
		{ { "--until", "1h" }, 12 },
		{ { "--tail=3" }, 3 },
		{ { "--tail=0" }, 0 },
		{ { "--tail=99" }, 12 },
		{ { "--kind=flow", "--tail", "2" }, 2 },
		{ { "--wide", "--color=never" }, 12 },
	};
	struct world *w = *state;

	put_samples(w->file);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const *a = cases[i].args;
		AUTO_SHOWN struct shown shown =
			LOG(w->dir, w->path, a[0], a[1], a[2], a[3]);
		if (rows(&shown) != cases[i].rows)
			fail_msg("%s %s: %s", a[0] ? a[0] : "",
				 a[1] ? a[1] : "", shown.out);
	}
	AUTO_SHOWN struct shown last =
		LOG(w->dir, "--kind=flow", "--tail", "2", w->path);
	assert_non_null(strstr(last.out, " cut "));
	assert_non_null(strstr(last.out, " literal_address "));
}

static void test_moments(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} good[] = {
		{ "10m", 1000000 - 600 },      { "10m ago", 1000000 - 600 },
		{ "90s ago", 1000000 - 90 },   { "2h", 1000000 - 7200 },
		{ "1d ago", 1000000 - 86400 }, { "999999999d", 0 },
		{ "1970-01-02", 86400 },       { "1970-01-01T00:00:01Z", 1 },
	};
	static const char *const bad[] = {
		"",
		"10",
		"m",
		"10x",
		"10m  ago",
		"10m agone",
		"-10m",
		" 10m",
		"2026-02-30",
		"2026-01-01T00:00:00",
		"9999999999s",
		"soon",
	};
	uint64_t ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(log_moment(good[i].text, 1000000, &ms));
		assert_int_equal(ms, good[i].want * 1000);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(log_moment(bad[i], 1000000, &ms));
}

static void test_wrong_words(void **state)
{
	static const struct {
		const char *args[2], *says;
	} cases[] = {
		{ { "--reason=not_in_polic" },
		  "did you mean 'not_in_policy'?" },
		{ { "--reason=xyzzy" }, "unknown reason 'xyzzy'; there are" },
		{ { "--verdict=alowed" }, "did you mean 'allowed'?" },
		{ { "--kind=flows" }, "did you mean 'flow'?" },
		{ { "--host=a b" }, "no host, *.HOST or address: 'a b'" },
		{ { "--host=*.*.example" }, "no host" },
		{ { "--sandbox=4294967296" }, "--sandbox is no number" },
		{ { "--flow=-1" }, "--flow is no number" },
		{ { "--tail=x" }, "--tail is no number" },
		{ { "--since=soon" }, "--since is no time: soon" },
		{ { "--since=1m", "--until=2m" }, "not after" },
		{ { "--follow=never" }, "--follow=always, not never" },
		{ { "--color=blue" }, "not blue" },
		{ { "--since" }, "a value is missing after --since" },
		{ { "--nonsense" }, "no such option: --nonsense" },
		{ { "-f", "other" }, "--follow takes one log" },
		{ { "/no/such.example" }, "No such file" },
		{ { "nobody" }, "session 'nobody'" },
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_SHOWN struct shown shown = LOG(
			w->dir, w->path, cases[i].args[0], cases[i].args[1]);

		assert_int_equal(shown.status, 125);
		assert_string_equal(shown.out, "");
		if (!strstr(shown.err, cases[i].says))
			fail_msg("%s: %s", cases[i].args[0], shown.err);
	}
	AUTO_SHOWN struct shown help = LOG(w->dir, "--help");
	assert_int_equal(help.status, 0);
	assert_non_null(strstr(help.out, "usage: sallyport log "));
}

/* Byte for byte, and several logs in the order given. */
static void test_json(void **state)
{
	struct world *w = *state;
	char input[80];

	put_samples(w->file);
	AUTO_FREE char *whole = slurp(w->path);
	AUTO_SHOWN struct shown all = LOG(w->dir, "--json", w->path);
	assert_int_equal(rows(&all), 12);
	assert_string_equal(all.out, whole);
	AUTO_SHOWN struct shown one =
		LOG(w->dir, "--json", "--kind=http", w->path);
	assert_int_equal(rows(&one), 1);
	assert_non_null(strstr(whole, one.out));

	snprintf(input, sizeof(input), "%s/other", w->dir);
	AUTO_FILE FILE *other = fopen(input, "w+");
	assert_non_null(other);
	put(other, event_of(EVENT_FLOW_OPEN, REASON_ECH));
	rewind(other);
	AUTO_SHOWN struct shown three = end_log(
		begin_log(w->dir,
			  (const char *const[]){ "--kind=http", "--reason=ech",
						 "--reason=port", "--kind=flow",
						 w->path, "-", w->dir, NULL },
			  fileno(other)),
		w->dir);
	assert_int_equal(rows(&three), 3);
	const char *ech = strstr(three.out, " ech ");
	const char *port = strstr(three.out, " port ");
	assert_true(port && ech && port < ech && strstr(ech, " port "));
}

/* --color=always is what a terminal gets; the text is the same. */
static void test_colour(void **state)
{
	struct world *w = *state;

	put_samples(w->file);
	AUTO_SHOWN struct shown plain = LOG(w->dir, w->path);
	AUTO_SHOWN struct shown never = LOG(w->dir, w->path, "--color=auto");
	AUTO_SHOWN struct shown always = LOG(w->dir, w->path, "--color=always");
	assert_null(strchr(plain.out, '\033'));
	assert_string_equal(plain.out, never.out);
	assert_non_null(strstr(always.out, "\033[31mrefused \033[0m"));
	assert_non_null(strstr(always.out, "\033[1;31mevent   \033[0m"));
}

/* --- which session ------------------------------------------------------- */

static void make_session(const char *home, const char *id, const char *name)
{
	static char line[RECORD_LINE_MAX + 1];
	struct audit_event event = { .kind = EVENT_SESSION_OPEN, .detail = id };
	char path[512];

	snprintf(path, sizeof(path), "%.200s/%s", home, id);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%.200s/%s/audit.jsonl", home, id);
	AUTO_FILE FILE *file = fopen(path, "w");
	assert_non_null(file);
	size_t len = format(&event, name, line);
	assert_int_equal(fwrite(line, 1, len, file), len);
}

static const char *const ids[][2] = {
	{ "20260401T000000Z-0000000001", "build" },
	{ "20260402T000000Z-0000000002", "build" },
	{ "20260403T000000Z-0000000003", "test" },
	{ "something-else", "build" },
};

static void remove_sessions(const char *home)
{
	char path[512];

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		snprintf(path, sizeof(path), "%.200s/%s/audit.jsonl", home,
			 ids[i][0]);
		unlink(path);
		*strrchr(path, '/') = '\0';
		rmdir(path);
	}
	rmdir(home);
}

/* Root's are in /var/log: whoever runs this is nobody from then on. */
static void test_sessions(void **state)
{
	static const struct {
		const char *arg, *want;
	} cases[] = {
		{ NULL, "-0000000003" },
		{ "build", "-0000000002" },
		{ "test", "-0000000003" },
		{ "20260401T000000Z-0000000001", "-0000000001" },
	};
	char dir[64] = "/tmp/sallyport-log-XXXXXX", home[80];

	(void)state;
	if (geteuid() == 0) {
		assert_int_equal(setgid(65534), 0);
		assert_int_equal(setuid(65534), 0);
	}
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(setenv("XDG_STATE_HOME", dir, 1), 0);
	AUTO_SHOWN struct shown none = LOG(dir, NULL);
	assert_int_equal(none.status, 125);
	snprintf(home, sizeof(home), "%s/sallyport", dir);
	assert_int_equal(mkdir(home, 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		make_session(home, ids[i][0], ids[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_SHOWN struct shown shown = LOG(dir, cases[i].arg);

		assert_int_equal(rows(&shown), 1);
		assert_non_null(strstr(shown.out, cases[i].want));
	}
	remove_sessions(home);
	unlink("out");
	unlink("err");
	rmdir(dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_filters),
		cmocka_unit_test(test_moments),
		TEST(test_wrong_words),
		TEST(test_json),
		TEST(test_colour),
		cmocka_unit_test(test_sessions), /* the last: see there */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
