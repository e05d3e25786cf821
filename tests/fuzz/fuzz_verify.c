/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a log, which are anybody's. The first byte says which one: a
 * line, checkpoints, a receipt, or a whole log.
 *
 * A line that is taken for a record is JSON to jansson too, which reads the
 * same from it. No log of which nobody signed a byte holds, and the first thing
 * that is wrong with it has a name.
 */
#include "audit/verify.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/log_dir.h"
#include "audit/verify_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/fuzz_verify.XXXXXX";

static void must(bool holds)
{
	if (!holds)
		abort();
}

static const json_t *get(const json_t *line, const char *a, const char *b)
{
	const json_t *value = json_object_get(line, a);

	return b ? json_object_get(value, b) : value;
}

/* Ours is as written, jansson's without escapes: those without are the same. */
static void same_text(struct text ours, const json_t *theirs)
{
	if (!ours.at) {
		must(!json_is_string(theirs));
		return;
	}
	must(json_is_string(theirs));
	if (!memchr(ours.at, '\\', ours.len))
		must(json_string_length(theirs) == ours.len &&
		     !memcmp(json_string_value(theirs), ours.at, ours.len));
}

static void same_number(uint64_t ours, const json_t *theirs)
{
	must(json_is_integer(theirs) &&
	     (uint64_t)json_integer_value(theirs) == ours);
}

static void check_line(const char *data, size_t size)
{
	struct verify_line line;
	json_t *json;

	if (verify_line_parse((struct text){ data, size }, &line))
		return;
	must(!memchr(data, '\n', size) && !memchr(data, '\0', size));
	json = json_loadb(data, size, JSON_REJECT_DUPLICATES, NULL);
	must(json_is_object(json));
	same_number(line.sequence, get(json, "metadata", "sequence"));
	same_number(line.time_ms, get(json, "time", NULL));
	same_text(line.uid, get(json, "metadata", "uid"));
	same_text(line.session, get(json, "metadata", "correlation_uid"));
	same_text(line.event, get(json, "unmapped", "event"));
	same_text(line.prev, get(json, "unmapped", "prev"));
	same_text(line.ruleset, get(json, "unmapped", "ruleset"));
	same_text(line.policy, get(json, "policy", "uid"));
	json_decref(json);
}

static void put(const char *name, const void *data, size_t size)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

static void check_log(void)
{
	static const struct verify_options options;
	struct verify_result result;
	int r = verify_log(dir, &options, &result);

	must(r == 0);
	must(result.verdict != VERIFY_HOLDS && !result.known_key);
	must((result.verdict == VERIFY_BROKEN) == (result.problems > 0));
	must(result.covered <= result.records);
	for (size_t i = 0; i < result.problems && i < VERIFY_PROBLEMS_MAX; i++)
		must(result.problem[i].fault != VERIFY_FINE &&
		     *result.problem[i].text && *result.problem[i].file);
	verify_free(&result);
}

static void remove_all(void)
{
	static const char *const names[] = { LOG_DIR_RECORDS, LOG_DIR_RECEIPT,
					     LOG_DIR_CHECKPOINTS,
					     LOG_DIR_VKEY };
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

static const char vkey[] = "box.example/20261121T120000Z-0123456789+90053485+"
			   "AfrYYscASz3tadpPwjU/4Hn1M6rZBU4kxQxSbx78YgHC\n";

static void begin(void)
{
	if (dir[sizeof(dir) - 2] != 'X')
		return;
	must(mkdtemp(dir));
	atexit(remove_all);
	put(LOG_DIR_RECORDS, "", 0);
	put(LOG_DIR_CHECKPOINTS, "", 0);
	put(LOG_DIR_RECEIPT, "", 0);
	put(LOG_DIR_VKEY, vkey, sizeof(vkey) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = { LOG_DIR_RECORDS,
					     LOG_DIR_CHECKPOINTS,
					     LOG_DIR_RECEIPT, LOG_DIR_VKEY };
	const char *name;

	if (!size)
		return 0;
	if (*data == 'L') {
		check_line((const char *)data + 1, size - 1);
		return 0;
	}
	begin();
	name = files[*data % 4];
	put(name, data + 1, size - 1);
	check_log();
	if (strcmp(name, LOG_DIR_VKEY) == 0)
		put(name, vkey, sizeof(vkey) - 1);
	else
		put(name, "", 0);
	return 0;
}
