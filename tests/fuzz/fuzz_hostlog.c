/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of all sessions, of which one file is anybody's; the first byte says
 * which. Nothing is covered but the one record that was signed. `tree`, where
 * to go on from, is what was written, or nothing.
 */
#include "audit/hostlog_read.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const files[] = { HOSTLOG_RECORDS, HOSTLOG_CHECKPOINTS,
				     HOSTLOG_VKEY, HOSTLOG_TREE };
static char dir[] = "/dev/shm/sallyport-fuzz-XXXXXX";
static int dirfd = -1;
static size_t lines;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void put(const char *name, const void *data, size_t size)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

static void remove_all(void)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlinkat(dirfd, files[i], 0);
	rmdir(dir);
}

/* One record, as hostlog_append() wrote it. */
static const char vkey[] =
	"box.example/host+1ca3ca88+AepKbGPinFIKvvVQexMuxfmVR3auvr57kk"
	"Ie6mkURtIs\n";
static const char checkpoint[] =
	"box.example/host\n"
	"1\n"
	"KYnOZ5509dfXHyAV+6QMefbuxraRKIRXWb46dG4Qy0Y=\n"
	"\n"
	"— box.example/host HKPKiNe4X5C6G9cg98mZn+oO/tkw5yFO0Ld2MEbfV"
	"GNQ1mXFKXiwq4ayyT751/DIxVHJDHAojov1L4W3z7bOxRqehQI=\n";
static const char record[] =
	"{\"time\":1795348401910,\"class_uid\":6002,\"category_uid\":"
	"6,\"activity_id\":3,\"type_uid\":600203,\"severity_id\":1,\""
	"status_id\":1,\"message\":\"session 20261122T101500Z-0123456"
	"789 opened\",\"metadata\":{\"version\":\"1.8.0\",\"product\""
	":{\"name\":\"sallyport\",\"vendor_name\":\"sallyport\",\"ver"
	"sion\":\"0.1.0\"},\"sequence\":0,\"uid\":\"host/0\",\"correl"
	"ation_uid\":\"host\"},\"app\":{\"name\":\"sallyport\",\"vend"
	"or_name\":\"sallyport\",\"version\":\"0.1.0\"},\"policy\":{"
	"\"uid\":\"sha256:abababababababababababababababababababababa"
	"babababababababababab\"},\"unmapped\":{\"event\":\"session_o"
	"pened\",\"session\":\"20261122T101500Z-0123456789\",\"sandbo"
	"x\":\"run\",\"directory\":\"/var/log/s1\",\"vkey\":\"box.exa"
	"mple/s1+71859bdc+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtI"
	"s\"}}\n";

static void put_all(void)
{
	put(HOSTLOG_RECORDS, record, sizeof(record) - 1);
	put(HOSTLOG_CHECKPOINTS, checkpoint, sizeof(checkpoint) - 1);
	put(HOSTLOG_VKEY, vkey, sizeof(vkey) - 1);
	put(HOSTLOG_TREE, "", 0);
}

static void begin(void)
{
	if (dirfd >= 0)
		return;
	must(mkdtemp(dir) != NULL);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY);
	must(dirfd >= 0);
	atexit(remove_all);
	put_all();
}

static void on_line(void *arg, const struct hostlog_line *line)
{
	(void)arg;
	must(line->event > 0 && line->event < HOSTLOG_EVENT_COUNT &&
	     line->session);
	lines++;
}

/* @whole: nothing was touched. */
static void check_log(bool whole)
{
	static struct hostlog_read read;

	lines = 0;
	memset(&read, 0, sizeof(read));
	if (hostlog_read(dirfd, NULL, on_line, NULL, &read) < 0)
		return;
	must(memchr(read.problem, '\0', sizeof(read.problem)) != NULL);
	must(lines <= read.records && read.covered <= 1);
	must(read.covered <= read.records);
	if (whole)
		must(read.covered == 1 && !*read.problem);
}

static void check_tree(const uint8_t *data, size_t size)
{
	static struct hostlog_state state;
	static uint8_t again[HOSTLOG_STATE_LEN];

	if (hostlog_state_load(data, size, &state) < 0)
		return;
	hostlog_state_save(&state, again);
	must(size == sizeof(again) && !memcmp(data, again, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *name;

	if (!size)
		return 0;
	begin();
	name = files[*data % 4];
	put(name, data + 1, size - 1);
	check_log(false);
	if (*data % 4 == 3)
		check_tree(data + 1, size - 1);
	put_all();
	if (size % 64 == 1)
		check_log(true);
	return 0;
}
