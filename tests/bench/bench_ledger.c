/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_ledger.c - how many records a second the ledger takes on one core: from
 * the message to the line, hashed into the tree, digested and written to a file
 * on the disk, with signed checkpoints as often as they are by default.
 *
 * The bound is 200,000. Beside it stands what SHA-256 alone does here, for each
 * byte of the log is hashed twice: as part of its leaf and of its file.
 *
 * A second is one of that core, of all threads and in the kernel; how long it
 * took by the clock, with others on the same core, is told beside it. What
 * counts is the median, and a broken bound is measured again, later. An
 * argument is the number of records of a round; with one, there is no bound.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/key.h"
#include "base/cleanup.h"
#include "cmd/ledger_log.h"
#include "tests/bench/mix.h"
#include "tests/bench/timing.h"

#define ROUNDS	   9
#define TRIES	   5
#define PAUSE_S	   3
#define RECORDS	   200000
#define RECORDS_S  200000.0
#define TURN	   64 /* messages that the ledger takes at once */
#define MESSAGES   4800
#define SHA_ROUNDS 9
static struct message {
	size_t len;
	uint8_t data[512];
} messages[MESSAGES];

static bool encode_messages(void)
{
	static uint8_t data[RECORD_MESSAGE_MAX];
	struct mix mix = { 0 };

	for (size_t i = 0; i < MESSAGES; i++) {
		struct audit_event event = mix_next(&mix);
		size_t len = record_encode(&event, i + 1, data);

		if (len > sizeof(messages[i].data))
			return false;
		memcpy(messages[i].data, data, len);
		messages[i].len = len;
	}
	return true;
}

/* --- SHA-256, and the way to a line ----------------------------------------
 */

static void measure_sha(size_t size, size_t times)
{
	static uint8_t data[65536];
	struct merkle_hash hash;
	double rate[SHA_ROUNDS];

	for (size_t r = 0; r < SHA_ROUNDS; r++) {
		double start = cpu_s();

		for (size_t i = 0; i < times; i++) {
			merkle_leaf(data, size, &hash);
			data[0] = hash.byte[0];
		}
		rate[r] = (double)(size * times) / (cpu_s() - start);
	}
	printf("SHA-256 of %zu bytes: %.0f MB/s\n", size,
	       median(rate, SHA_ROUNDS) / 1e6);
}

/* Seconds that @n messages take on their way to lines. */
static double lines_round(size_t n, size_t *ret_bytes)
{
	static char line[RECORD_LINE_MAX], text[RECORD_MESSAGE_MAX];
	static const uint8_t prev[RECORD_HASH];
	struct record_frame frame;
	struct record_context context = mix_context(&frame);
	double start = cpu_s();

	context.prev = prev;
	*ret_bytes = 0;
	for (size_t i = 0; i < n; i++) {
		const struct message *m = &messages[i % MESSAGES];
		struct audit_event event;
		uint64_t seq;

		if (record_decode(m->data, m->len, &event, &seq, text) < 0)
			abort();
		*ret_bytes +=
			record_format(&event, i, &context, line, sizeof(line));
	}
	return cpu_s() - start;
}

static void measure_lines(size_t n)
{
	double took[ROUNDS], middle;
	size_t bytes;

	for (size_t r = 0; r < ROUNDS; r++)
		took[r] = lines_round(n, &bytes);
	middle = median(took, ROUNDS);
	printf("decoded and formatted: %.0f records/s, %.0f bytes each\n",
	       (double)n / middle, (double)bytes / (double)n);
}

/* --- the log ---------------------------------------------------------------
 */

static int open_file(const char *dir, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, O_RDWR | O_CREAT | O_APPEND | O_EXCL | O_CLOEXEC,
		    0600);
}

static void remove_file(const char *dir, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
}

/* As the ledger opens it: a new tree, a key, a thread that signs. */
static int open_log(struct ledger_log *log, const char *dir)
{
	const struct text name = { "bench.test", 10 };
	struct key *key;
	int r = key_generate(name, &key);

	memset(log, 0, sizeof(*log));
	for (size_t i = 0; i < LEDGER_FILE_COUNT; i++)
		log->file[i] = -1;
	log->context = mix_context(&log->frame);
	log->start.rotate_bytes = UINT64_C(1) << 30;
	if (r == 0)
		r = seal_new(key, open_file(dir, "checkpoints"), false,
			     &log->seal);
	if (r == 0)
		r = writer_new(open_file(dir, "audit.jsonl"), &log->writer);
	return r == 0 ? seal_start(log->seal) : r;
}

/* 0 or -errno. */
static int write_records(struct ledger_log *log, size_t n)
{
	static char text[RECORD_MESSAGE_MAX];
	int timeout_ms, r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const struct message *m = &messages[i % MESSAGES];
		struct audit_event event;
		uint64_t seq;

		r = record_decode(m->data, m->len, &event, &seq, text);
		if (r == 0)
			r = ledger_log_write(log, &event);
		if (r == 0 && i % TURN == TURN - 1)
			r = ledger_log_turn(log, &timeout_ms);
	}
	return r < 0 ? r : ledger_log_settle(log);
}

struct spent {
	double wall, cpu, checkpoints;
};

static double count_checkpoints(const char *dir)
{
	char path[128];
	AUTO_FREE char *line = NULL;
	size_t cap = 0, lines = 0;

	snprintf(path, sizeof(path), "%s/checkpoints", dir);
	AUTO_FILE FILE *file = fopen(path, "r");
	while (file && getline(&line, &cap, file) > 0)
		lines++;
	return (double)lines / 5;
}

static bool log_round(const char *dir, size_t n, struct spent *ret)
{
	static struct ledger_log log;
	double wall, cpu;
	bool ok = open_log(&log, dir) == 0;

	wall = now_s();
	cpu = cpu_s();
	ok = ok && write_records(&log, n) == 0;
	ret->wall = now_s() - wall;
	ret->cpu = cpu_s() - cpu;
	ok = ok && writer_lines(log.writer) == n &&
	     writer_tree(log.writer)->size == n;
	ret->checkpoints = count_checkpoints(dir);
	ledger_log_free(&log);
	remove_file(dir, "audit.jsonl");
	remove_file(dir, "checkpoints");
	return ok;
}

/* Records a second; 0 after an error. */
static double measure_log(const char *dir, size_t n)
{
	double wall[ROUNDS], cpu[ROUNDS], rate;
	struct spent spent;

	for (size_t r = 0; r < ROUNDS; r++) {
		if (!log_round(dir, n, &spent)) {
			printf("the log could not be written\n");
			return 0;
		}
		wall[r] = spent.wall;
		cpu[r] = spent.cpu;
	}
	rate = (double)n / median(cpu, ROUNDS);
	printf("hashed and written: %.0f records/s of a core, %.2f us each; "
	       "%.0f/s by the clock; %.0f checkpoints a round\n",
	       rate, 1e6 / rate, (double)n / median(wall, ROUNDS),
	       spent.checkpoints);
	return rate;
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : RECORDS;
	char dir[] = "/tmp/sallyport-bench-XXXXXX";
	double rate = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!n || !encode_messages() || !mkdtemp(dir) || !pin_to(0))
		return 1;
	measure_sha(800, 100000);
	measure_sha(65536, 1000);
	measure_lines(n);
	for (int i = 0; i < TRIES && rate < RECORDS_S; i++) {
		if (i)
			sleep(PAUSE_S);
		rate = measure_log(dir, n);
		if (argc > 1)
			break;
	}
	rmdir(dir);
	if (argc > 1)
		return rate > 0 ? 0 : 1;
	printf("%s\n",
	       rate >= RECORDS_S ? "the bound holds" : "the bound is broken");
	return rate >= RECORDS_S ? 0 : 1;
}
