/* SPDX-License-Identifier: Apache-2.0
 *
 * `log` of a log in parts, and while it is rotated.
 */
#include "tests/cmd/log_world.h"

#include <inttypes.h>
#include <signal.h>

#define LINES  20000
#define PART   400 /* lines */
#define LATE   5   /* lines that come after the rename, as the ledger's do */
#define PARTS  64
#define JSON_1 "\"connection_info\":{\"uid\":\""

static void part_path(const struct world *w, unsigned number, char buf[96])
{
	snprintf(buf, 96, "%s.%06u", w->path, number);
}

static void put_flow(FILE *file, uint64_t flow)
{
	struct audit_event event = event_of(EVENT_FLOW_OPEN, REASON_RULE);

	event.flow = flow;
	put(file, event);
}

/* The newest part gets @number; what was in it stays open as the old one. */
static FILE *rotate(struct world *w, unsigned number)
{
	char path[96];
	FILE *old = w->file;

	fflush(old);
	part_path(w, number, path);
	assert_int_equal(rename(w->path, path), 0);
	w->file = fopen(w->path, "wx");
	assert_non_null(w->file);
	return old;
}

static int remove_parts(void **state)
{
	struct world *w = *state;
	char path[96];

	for (unsigned i = 1; i <= PARTS; i++) {
		part_path(w, i, path);
		unlink(path);
	}
	return teardown(state);
}

/* Flows @from to @to, each once, in their order, and nothing else. */
static void expect_flows(const char *text, uint64_t from, uint64_t to)
{
	const char *end = text + strlen(text), *next;
	uint64_t expected = from;

	for (const char *at = text; at < end; at = next + 1) {
		const char *uid;

		next = memchr(at, '\n', (size_t)(end - at));
		assert_non_null(next);
		uid = memmem(at, (size_t)(next - at), JSON_1, strlen(JSON_1));
		assert_non_null(uid);
		assert_int_equal(strtoull(uid + strlen(JSON_1), NULL, 10),
				 expected);
		expected++;
	}
	assert_int_equal(expected, to + 1);
}

/* Until whoever follows has shown it. */
static void await_flow(const struct world *w, uint64_t flow)
{
	char out[96], want[64];
	bool found = false;

	snprintf(out, sizeof(out), "%s/out", w->dir);
	snprintf(want, sizeof(want), JSON_1 "%" PRIu64 "\"", flow);
	for (int i = 0; i < 3000 && !found; i++) {
		AUTO_FREE char *text = slurp(out);

		found = strstr(text, want);
		usleep(found ? 0 : 10000);
	}
	assert_true(found);
}

static void make_three(struct world *w)
{
	for (unsigned i = 1; i <= 9; i++) {
		put_flow(w->file, i);
		if (i % 3 == 0 && i < 9)
			fclose(rotate(w, i / 3));
	}
	fflush(w->file);
}

static void test_all(void **state)
{
	struct world *w = *state;
	char second[96];

	make_three(w);
	AUTO_SHOWN struct shown all = LOG(w->dir, "--json", w->dir);
	assert_int_equal(all.status, 0);
	assert_string_equal(all.err, "");
	expect_flows(all.out, 1, 9);
	/* The last rows, wherever they are. */
	AUTO_SHOWN struct shown tail =
		LOG(w->dir, "--json", "--tail=5", w->dir);
	expect_flows(tail.out, 5, 9);
	/* A file is that file. */
	AUTO_SHOWN struct shown newest = LOG(w->dir, "--json", w->path);
	expect_flows(newest.out, 7, 9);
	part_path(w, 2, second);
	AUTO_SHOWN struct shown one = LOG(w->dir, "--json", second);
	expect_flows(one.out, 4, 6);
}

/* Lines are told by the file that they are in. */
static void test_faults(void **state)
{
	struct world *w = *state;
	char path[96], want[256];

	put_flow(w->file, 1);
	fputs("rubbish\n", w->file);
	fclose(rotate(w, 1));
	put_flow(w->file, 2);
	put_flow(w->file, 3);
	fputs("{\"half", w->file);
	fclose(rotate(w, 2));
	put_flow(w->file, 4);
	fputs("{}\n", w->file);
	fflush(w->file);
	AUTO_SHOWN struct shown shown = LOG(w->dir, "--json", w->dir);
	assert_int_equal(shown.status, 1);
	expect_flows(shown.out, 1, 4);
	part_path(w, 1, path);
	snprintf(want, sizeof(want), "%s: line 2: not a record: not JSON\n",
		 path);
	assert_non_null(strstr(shown.err, want));
	part_path(w, 2, path);
	snprintf(want, sizeof(want), "%s: line 3: not a record: cut off\n",
		 path);
	assert_non_null(strstr(shown.err, want));
	snprintf(want, sizeof(want),
		 "%s: line 2: not a record: not as sallyport writes it\n",
		 w->path);
	assert_non_null(strstr(shown.err, want));
	/* What is missing is not passed over. */
	assert_int_equal(unlink(w->path), 0);
	AUTO_SHOWN struct shown less = LOG(w->dir, "--json", w->dir);
	assert_int_equal(less.status, EXIT_SALLYPORT);
	expect_flows(less.out, 1, 3);
	snprintf(want, sizeof(want), "%s: No such file", w->path);
	assert_non_null(strstr(less.err, want));
}

/* --- while it is rotated ------------------------------------------------- */

static void put_now(FILE *file, uint64_t flow)
{
	put_flow(file, flow);
	assert_int_equal(fflush(file), 0);
}

/* As the ledger: lines go to the old file until it has got the new one. */
static void write_load(struct world *w, uint64_t from)
{
	unsigned number = 0;
	uint64_t flow = from;

	while (flow <= LINES) {
		FILE *old;

		for (int i = 0; i < PART && flow <= LINES; i++)
			put_now(w->file, flow++);
		if (flow > LINES)
			break;
		old = rotate(w, ++number);
		for (int i = 0; i < LATE && flow <= LINES; i++) {
			put_now(old, flow++);
			if (number % 8 == 0)
				usleep(30000);
		}
		fclose(old);
		/* Sometimes several parts between two looks, sometimes not. */
		if (number % 4 == 0)
			usleep(120000);
	}
	put(w->file, (struct audit_event){ .kind = EVENT_SESSION_CLOSE });
	fflush(w->file);
}

static void follow_load(struct world *w, const char *what)
{
	static const char *const filter = "--kind=flow";
	pid_t pid;

	put_now(w->file, 1);
	pid = begin_log(
		w->dir,
		(const char *const[]){ "-f", "--json", filter, what, NULL },
		-1);
	usleep(200000);
	write_load(w, 2);
	AUTO_SHOWN struct shown shown = end_log(pid, w->dir);
	assert_int_equal(shown.status, 0);
	assert_string_equal(shown.err, "");
	expect_flows(shown.out, 1, LINES);
}

static void test_follow_directory(void **state)
{
	struct world *w = *state;

	follow_load(w, w->dir);
}

static void test_follow_file(void **state)
{
	struct world *w = *state;

	follow_load(w, w->path);
}

/* Not followed, while somebody writes: a beginning without a gap. */
static void test_read_meanwhile(void **state)
{
	struct world *w = *state;
	pid_t writer = fork();
	int status, rounds = 0;

	assert_true(writer >= 0);
	if (writer == 0) {
		write_load(w, 1);
		_exit(0);
	}
	while (waitpid(writer, &status, WNOHANG) == 0) {
		AUTO_SHOWN struct shown shown =
			LOG(w->dir, "--json", "--kind=flow", w->dir);
		uint64_t n = 0;

		for (const char *s = shown.out; *s; s++)
			n += *s == '\n';
		/* Its last line may be on the way. */
		if (shown.status)
			assert_non_null(strstr(shown.err, "cut off"));
		expect_flows(shown.out, 1, n);
		rounds++;
	}
	assert_int_equal(status, 0);
	/* Each began while it was written; a slow one reads what comes
	 * meanwhile, maybe to the end. */
	assert_in_range(rounds, 1, 100000);
}

/* The next session in the same place: its first part is not the one that comes
 * after ours. */
static void test_another_log(void **state)
{
	struct world *w = *state;
	char old[96], first[96];
	pid_t pid;

	put_now(w->file, 1);
	fclose(rotate(w, 1));
	put_now(w->file, 2);
	pid = begin_log(w->dir,
			(const char *const[]){ "--follow=always", "--json",
					       w->dir, NULL },
			-1);
	await_flow(w, 2);
	part_path(w, 1, first);
	assert_int_equal(unlink(first), 0);
	snprintf(old, sizeof(old), "%s.1", w->path);
	assert_int_equal(rename(w->path, old), 0);
	put_now(w->file, 3);
	assert_non_null(freopen(w->path, "wx", w->file));
	put_now(w->file, 4);
	fclose(rotate(w, 1));
	put_now(w->file, 5);
	fclose(rotate(w, 2));
	put_now(w->file, 6);
	await_flow(w, 6);
	kill(pid, SIGTERM);
	AUTO_SHOWN struct shown shown = end_log(pid, w->dir);
	assert_int_equal(shown.status, 0);
	assert_string_equal(shown.err, "");
	expect_flows(shown.out, 1, 6);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, remove_parts)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all),
		TEST(test_faults),
		TEST(test_follow_directory),
		TEST(test_follow_file),
		TEST(test_read_meanwhile),
		TEST(test_another_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
