/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_record.c - one line of a log, with the proof that came with it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "audit/proof.h"
#include "audit/record.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/print.h"
#include "cmd/verify.h"

#define FILE_MAX ((size_t)(NOTE_MAX + 64 * 1024))

/* Dies if it can't be read, or is longer than any of those. */
static char *read_file(const char *path, size_t *ret_len)
{
	AUTO_FILE FILE *file = fopen(path, "re");
	char *data = malloc(FILE_MAX);

	if (!file || !data)
		die(EXIT_SALLYPORT, "%s: %s", path, strerror(errno));
	*ret_len = fread(data, 1, FILE_MAX, file);
	if (ferror(file))
		die(EXIT_SALLYPORT, "%s: %s", path, strerror(errno));
	if (*ret_len == FILE_MAX)
		die(EXIT_SALLYPORT, "%s: it is too long", path);
	return data;
}

static const char *why_not(int r)
{
	switch (-r) {
	case EBADMSG:
		return "this is no proof (C2SP tlog-proof)";
	case ENOMSG:
		return "this is not the record that the proof is about";
	case ENOKEY:
		return "the proof is signed with another key";
	case EKEYREJECTED:
		return "the signature of the proof is wrong";
	case EDOM:
		return "the proof does not show that this record is in the log";
	default:
		return strerror(-r);
	}
}

static void print_json(const struct verify_shown *shown, int r)
{
	char buf[1024];
	struct json j = json_of(buf, sizeof(buf));

	json_open(&j, NULL, '{');
	json_text(&j, "verdict", r < 0 ? "broken" : "holds");
	if (r < 0) {
		json_text(&j, "text", why_not(r));
	} else {
		json_text(&j, "session", shown->session);
		json_uint(&j, "record", shown->index);
		json_uint(&j, "records", shown->size);
	}
	json_close(&j, '}');
	printf("%.*s\n", (int)j.len, buf);
}

static void print(const struct verify_command *command,
		  const struct verify_shown *shown, int r)
{
	if (command->json) {
		print_json(shown, r);
		return;
	}
	if (r < 0) {
		print_text(stdout, TONE_BAD, "broken");
		print_text(stdout, TONE_PLAIN, ": %s\n", why_not(r));
		return;
	}
	print_text(stdout, TONE_GOOD, "holds");
	print_text(stdout, TONE_PLAIN,
		   ": record %llu of session %s, whose first %llu records %s "
		   "signed\n",
		   (unsigned long long)shown->index, shown->session,
		   (unsigned long long)shown->size, command->vkey.name);
}

static int verify_files(const struct verify_command *command)
{
	struct verify_shown shown = { .index = 0 };
	struct text record, proof;
	AUTO_FREE char *line = read_file(command->record, &record.len);
	AUTO_FREE char *file = read_file(command->with, &proof.len);
	int r;

	record.at = line;
	proof.at = file;
	if (record.len && line[record.len - 1] == '\n')
		record.len--;
	r = verify_shows(record, proof, &command->vkey, &shown);
	if (r == -ENOMEM)
		die(EXIT_SALLYPORT, "%s", strerror(ENOMEM));
	if (!command->quiet)
		print(command, &shown, r);
	return print_end(r < 0 ? VERIFY_EXIT_BROKEN : VERIFY_EXIT_HOLDS);
}

int verify_record(const struct verify_command *command)
{
	if (!command->has_vkey)
		die(EXIT_SALLYPORT,
		    "say whose log it is: --key VKEY, or signing.vkey in the "
		    "configuration directory");
	return verify_files(command);
}
