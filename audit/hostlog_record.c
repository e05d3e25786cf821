/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_record.c - the lines of the log of all sessions: OCSF 1.8, class 6002
 * (application lifecycle), as those of a session's own log.
 */
#include "audit/hostlog_record.h"

#include <stdio.h>
#include <string.h>

#include "audit/base64.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/text.h"

#define PRODUCT	  "sallyport"
#define LIFECYCLE 6002
enum { ACTIVITY_START = 3, ACTIVITY_STOP = 4 };
enum { SEVERITY_INFO = 1 };
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };

static const struct {
	const char *word, *what;
	unsigned activity, status;
} events[HOSTLOG_EVENT_COUNT] = {
	[HOSTLOG_OPENED] = { "session_opened", "opened", ACTIVITY_START,
			     STATUS_SUCCESS },
	[HOSTLOG_RECEIPT] = { "session_receipt", "ended", ACTIVITY_STOP,
			      STATUS_SUCCESS },
	[HOSTLOG_ENDED] = { "session_ended", "ended without a receipt",
			    ACTIVITY_STOP, STATUS_FAILURE },
};

const char *hostlog_word(enum hostlog_event event)
{
	if (event <= 0 || event >= HOSTLOG_EVENT_COUNT)
		return "unknown";
	return events[event].word;
}

static void put_product(struct json *j, const char *key)
{
	json_open(j, key, '{');
	json_text(j, "name", PRODUCT);
	json_text(j, "vendor_name", PRODUCT);
	json_text(j, "version", SALLYPORT_VERSION);
	json_close(j, '}');
}

static void put_text(struct json *j, const char *key, const char *s, size_t max)
{
	if (s && *s)
		json_bytes(j, key, s, strnlen(s, max));
}

static void put_digest(struct json *j, const char *key, const char *hex)
{
	char text[80];

	if (!hex || !*hex)
		return;
	snprintf(text, sizeof(text), "sha256:%.64s", hex);
	json_text(j, key, text);
}

static void put_hash(struct json *j, const char *key, const uint8_t *hash)
{
	char hex[2 * MERKLE_HASH + 1];

	put_digest(j, key, hex_format(hash, MERKLE_HASH, hex));
}

static void put_head(struct json *j, const struct hostlog_entry *entry,
		     uint64_t sequence, uint64_t time_ms)
{
	unsigned activity = events[entry->event].activity;
	char buf[160];

	json_uint(j, "time", time_ms);
	json_uint(j, "class_uid", LIFECYCLE);
	json_uint(j, "category_uid", LIFECYCLE / 1000);
	json_uint(j, "activity_id", activity);
	json_uint(j, "type_uid", LIFECYCLE * 100 + activity);
	json_uint(j, "severity_id", SEVERITY_INFO);
	json_uint(j, "status_id", events[entry->event].status);
	snprintf(buf, sizeof(buf), "session %.80s %s", entry->session,
		 events[entry->event].what);
	json_text(j, "message", buf);
	json_open(j, "metadata", '{');
	json_text(j, "version", "1.8.0");
	put_product(j, "product");
	json_uint(j, "sequence", sequence);
	snprintf(buf, sizeof(buf), HOSTLOG_SESSION "/%llu",
		 (unsigned long long)sequence);
	json_text(j, "uid", buf);
	json_text(j, "correlation_uid", HOSTLOG_SESSION);
	json_close(j, '}');
	put_product(j, "app");
}

/* Escapes would make it another path. */
static void put_directory(struct json *j, const char *directory)
{
	size_t len = directory ? strlen(directory) : 0;
	bool bad = len >= HOSTLOG_DIRECTORY_MAX;

	for (size_t i = 0; i < len && !bad;)
		i += text_next(directory + i, &bad);
	if (!bad)
		json_text(j, "directory", directory);
}

static void put_opening(struct json *j, const struct hostlog_entry *entry)
{
	char vkey[VKEY_TEXT_MAX];

	put_text(j, "sandbox", entry->sandbox_name, 128);
	put_directory(j, entry->directory);
	if (!entry->vkey)
		return;
	vkey_format(entry->vkey, vkey);
	json_text(j, "vkey", vkey);
}

static void put_end(struct json *j, const struct hostlog_entry *entry)
{
	char root[BASE64_LEN(MERKLE_HASH)];

	if (entry->receipt)
		put_hash(j, "receipt", entry->receipt);
	json_uint(j, "records", entry->records);
	base64_encode(entry->root.byte, MERKLE_HASH, root);
	json_bytes(j, "root", root, sizeof(root));
}

static void put_earlier(struct json *j, const struct hostlog_earlier *earlier)
{
	if (!*earlier->directory)
		return;
	json_open(j, "earlier", '{');
	json_text(j, "directory", earlier->directory);
	json_uint(j, "records", earlier->records);
	json_uint(j, "bytes", earlier->bytes);
	put_hash(j, "digest", earlier->sha256);
	json_text(j, "checkpoint", earlier->checkpoint);
	json_close(j, '}');
}

size_t hostlog_record(const struct hostlog_entry *entry,
		      const struct hostlog_state *state, uint64_t time_ms,
		      char *ret_line)
{
	struct json j = json_of(ret_line, HOSTLOG_LINE_MAX);
	char hex[2 * MERKLE_HASH + 1];

	json_open(&j, NULL, '{');
	put_head(&j, entry, state->tree.size, time_ms);
	if (entry->event == HOSTLOG_OPENED) {
		json_open(&j, "policy", '{');
		put_digest(&j, "uid", entry->policy_digest);
		json_close(&j, '}');
	}
	json_open(&j, "unmapped", '{');
	json_text(&j, "event", hostlog_word(entry->event));
	put_text(&j, "session", entry->session, 80);
	if (entry->event == HOSTLOG_OPENED)
		put_opening(&j, entry);
	else
		put_end(&j, entry);
	if (state->tree.size)
		json_text(&j, "prev",
			  hex_format(state->prev.byte, MERKLE_HASH, hex));
	else
		put_earlier(&j, &state->earlier);
	json_close(&j, '}');
	json_close(&j, '}');
	return j.full ? 0 : j.len;
}
