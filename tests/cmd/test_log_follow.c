/* SPDX-License-Identifier: Apache-2.0
 *
 * `log` of a log that grows, and of one that is large.
 */
#include "tests/cmd/log_world.h"

#include <signal.h>

struct follower {
	pid_t pid;
	int out; /* what it shows */
	char text[1 << 16];
	size_t len;
};

static void follow(struct world *w, struct follower *f, const char *const *args)
{
	AUTO_FD int err = open_in(w->dir, "err");
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	f->pid = start_log(args, -1, ends[1], err);
	close(ends[1]);
	f->out = ends[0];
	f->len = 0;
}

/* Reads until @text was shown. */
static void expect(struct follower *f, const char *text)
{
	f->text[f->len] = '\0';
	while (!strstr(f->text, text)) {
		ssize_t n = read(f->out, f->text + f->len,
				 sizeof(f->text) - 1 - f->len);

		if (n <= 0)
			fail_msg("no %s in %s", text, f->text);
		f->len += (size_t)n;
		f->text[f->len] = '\0';
	}
}

/* Its status; nothing more may have been shown. */
static int ended(struct follower *f)
{
	int status;
	char more;

	assert_int_equal(read(f->out, &more, 1), 0);
	close(f->out);
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Not a fixed time: that it waits is seen by what it shows afterwards. */
static void put_in_pieces(FILE *file, const struct audit_event *event)
{
	static char line[RECORD_LINE_MAX + 1];
	size_t len = format(event, "run", line), step = len / 4;

	for (size_t at = 0; at < len; at += step) {
		size_t n = at + step < len ? step : len - at;

		assert_int_equal(fwrite(line + at, 1, n, file), n);
		fflush(file);
		usleep(150000);
	}
}

static void put_named(FILE *file, const char *host)
{
	struct audit_event event = event_of(EVENT_FLOW_OPEN, REASON_RULE);

	event.host = host;
	put(file, event);
	fflush(file);
}

static void test_follow(void **state)
{
	struct world *w = *state;
	struct audit_event event = event_of(EVENT_FLOW_OPEN, REASON_PATH);
	struct follower f;

	put_named(w->file, "one.example");
	put_named(w->file, "two.example");
	follow(w, &f,
	       (const char *const[]){ "-f", "--kind=flow", "--tail=1", w->dir,
				      NULL });
	expect(&f, "two.example:443");
	assert_null(strstr(f.text, "one.example"));
	/* Shorter than what was there: it is seen late as well. */
	put_named(w->file, "3.example");
	expect(&f, "3.example:443");
	event.host = "pieces.example";
	put_in_pieces(w->file, &event);
	expect(&f, " path           connect     pieces.example:443");
	/* The last record ends it, though it is not shown. */
	put(w->file, (struct audit_event){ .kind = EVENT_SESSION_CLOSE });
	fflush(w->file);
	assert_int_equal(ended(&f), 0);
	assert_null(strstr(f.text, "session"));
}

static void test_follow_replaced(void **state)
{
	struct world *w = *state;
	struct follower f;
	char old[96];

	put_named(w->file, "one.example");
	put(w->file, (struct audit_event){ .kind = EVENT_SESSION_CLOSE });
	fflush(w->file);
	follow(w, &f,
	       (const char *const[]){ "--follow=always", w->path, NULL });
	expect(&f, "event    end");
	/* Whoever begins anew keeps the old one; half a line is left of it. */
	fputs("{\"half", w->file);
	fflush(w->file);
	snprintf(old, sizeof(old), "%s.1", w->path);
	assert_int_equal(rename(w->path, old), 0);
	assert_non_null(freopen(w->path, "w", w->file));
	put_named(w->file, "two.example");
	expect(&f, "two.example:443");
	/* Emptied in place. */
	assert_int_equal(ftruncate(fileno(w->file), 0), 0);
	rewind(w->file);
	usleep(300000);
	/* Shorter than what was there: it is seen late as well. */
	put_named(w->file, "3.example");
	expect(&f, "3.example:443");
	kill(f.pid, SIGINT);
	assert_int_equal(ended(&f), 1);
	snprintf(old, sizeof(old), "%s/err", w->dir);
	AUTO_FREE char *err = slurp(old);
	assert_non_null(strstr(err, "line 3: not a record: cut off"));
}

/* Half a line is no fault as long as it may be written to its end. */
static void test_follow_interrupted(void **state)
{
	struct world *w = *state;
	struct follower f;

	put_named(w->file, "one.example");
	fputs("{\"time\":", w->file);
	fflush(w->file);
	follow(w, &f, (const char *const[]){ "-f", w->path, NULL });
	expect(&f, "one.example:443");
	kill(f.pid, SIGTERM);
	assert_int_equal(ended(&f), 0);
}

/* As with `| head -1`: it ends, silently, though nothing is to be written. */
static void test_reader_leaves(void **state)
{
	struct world *w = *state;
	struct follower f;
	char path[96];
	int status;

	put_named(w->file, "one.example");
	follow(w, &f, (const char *const[]){ "-f", w->path, NULL });
	expect(&f, "one.example:443");
	close(f.out);
	assert_int_equal(waitpid(f.pid, &status, 0), f.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (int i = 0; i < 5000; i++)
		put(w->file, event_of(EVENT_FLOW_OPEN, REASON_RULE));
	fflush(w->file);
	follow(w, &f, (const char *const[]){ w->path, NULL });
	expect(&f, "one.example:443");
	close(f.out);
	assert_int_equal(waitpid(f.pid, &status, 0), f.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	snprintf(path, sizeof(path), "%s/err", w->dir);
	AUTO_FREE char *err = slurp(path);
	assert_string_equal(err, "");
}

/* --- one that is large --------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#define LINES	30000
#define RSS_KIB (1 << 20) /* its quarantine */
#else
#define LINES	300000
#define RSS_KIB (32 << 10)
#endif

/* Through a pipe: nothing of it can be read twice. */
static pid_t write_lines(int fd)
{
	static char line[RECORD_LINE_MAX + 1];
	struct audit_event event = event_of(EVENT_FLOW_OPEN, REASON_RULE);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	AUTO_FILE FILE *file = fdopen(fd, "w");
	for (int i = 0; file && i < LINES; i++) {
		size_t len;

		event.flow = (uint64_t)i + 1;
		len = format(&event, "run", line);
		if (fwrite(line, 1, len, file) != len)
			_exit(1);
	}
	_exit(!file || fflush(file) != 0);
}

static void test_large(void **state)
{
	struct world *w = *state;
	char last[32];
	int ends[2], status;
	size_t rows = 0;
	pid_t writer, pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	writer = write_lines(ends[1]);
	close(ends[1]);
	pid = begin_log(w->dir,
			(const char *const[]){ "--tail", "20000", "-", NULL },
			ends[0]);
	close(ends[0]);
	AUTO_SHOWN struct shown shown = end_log(pid, w->dir);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(status, 0);
	assert_int_equal(shown.status, 0);
	assert_string_equal(shown.err, "");
	for (const char *s = shown.out; (s = strchr(s, '\n')); s++)
		rows++;
	assert_int_equal(rows, 20000);
	snprintf(last, sizeof(last), "; flow %d\n", LINES);
	assert_string_equal(shown.out + strlen(shown.out) - strlen(last), last);
	assert_in_range(shown.rss_kib, 1, RSS_KIB);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_follow),
		TEST(test_follow_replaced),
		TEST(test_follow_interrupted),
		TEST(test_reader_leaves),
		TEST(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
