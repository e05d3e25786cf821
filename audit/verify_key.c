/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_key.c - whose log it is, and which key should have signed it.
 *
 * The log names its session three times: in its records, in the name of its key
 * and as the origin of its checkpoints. Two of them outvote the third.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "audit/verify_state.h"
#include "base/cleanup.h"

/* What is behind the last '/' of a name; NULL if that can be no session. */
static const char *session_of(const char *name)
{
	const char *slash = strrchr(name, '/');
	size_t len = slash ? strlen(slash + 1) : 0;

	return len && len < sizeof(((struct verify *)NULL)->session) ? slash + 1
								     : NULL;
}

/* The session that the first record is of; "" if it is none. */
static void peek_record(struct verify *v, char ret[64])
{
	struct verify_reader reader;
	struct verify_line line;
	struct text text, session;
	uint64_t number;
	int r = verify_reader_open(&reader, v->dirfd);

	*ret = '\0';
	if (!r)
		r = verify_read(&reader, &text);
	if (r == VERIFY_READ_LINE && !verify_line_parse(text, &line) &&
	    verify_line_uid(line.uid, &session, &number) &&
	    session.len < sizeof(v->session) &&
	    session.len == line.session.len &&
	    memcmp(session.at, line.session.at, session.len) == 0 &&
	    vkey_name_ok(session))
		snprintf(ret, 64, "%.*s", (int)session.len, session.at);
	verify_reader_close(&reader);
}

/* The key beside the log. */
static bool read_beside(struct verify *v, struct vkey *ret)
{
	AUTO_FD int fd = verify_open_file(v->dirfd, LOG_DIR_VKEY);
	char buf[VKEY_TEXT_MAX + 2];
	struct text text = { buf, 0 }, line;
	ssize_t n;

	if (fd < 0) {
		verify_say(v, VERIFY_UNREADABLE, LOG_DIR_VKEY, 0,
			   "the public key of the session: %s",
			   verify_open_why(fd));
		return false;
	}
	n = pread(fd, buf, sizeof(buf), 0);
	text.len = n < 0 ? 0 : (size_t)n;
	if (!text_line(&text, &line) || text.len || vkey_parse(line, ret)) {
		verify_say(v, VERIFY_UNREADABLE, LOG_DIR_VKEY, 1,
			   "there is no public key in it");
		return false;
	}
	return true;
}

static bool signs(const struct vkey *key, const char *note)
{
	struct checkpoint checkpoint;

	return !checkpoint_open((struct text){ note, strlen(note) }, key,
				&checkpoint);
}

/* Which session it is by majority; @named: that of the key, or NULL. */
static void find_session(struct verify *v, const char *record,
			 const char *named, const char *note)
{
	char origin[CHECKPOINT_ORIGIN_MAX + 1];
	const char *signed_as;

	snprintf(origin, sizeof(origin), "%.*s", (int)strcspn(note, "\n"),
		 note);
	signed_as = session_of(origin);
	if (!named)
		named = *record || !signed_as ? record : signed_as;
	else if (*record && strcmp(record, named) != 0 && signed_as &&
		 strcmp(record, signed_as) == 0) {
		verify_say(v, VERIFY_OTHER_SESSION, LOG_DIR_VKEY, 1,
			   "the key of another session, %.60s; this is %.60s",
			   named, record);
		named = record;
	}
	snprintf(v->session, sizeof(v->session), "%s", named);
}

/* @key under the name that it has for this session; @name: one that it has for
 * some session, or for none. */
static bool for_session(const struct verify *v, const struct vkey *key,
			const char *name, struct vkey *ret)
{
	char full[2 * VKEY_NAME_MAX];
	const char *session = session_of(name);
	size_t base = session ? (size_t)(session - 1 - name) : strlen(name);
	int len = snprintf(full, sizeof(full), "%.*s/%s", (int)base, name,
			   v->session);

	return vkey_make((struct text){ full, (size_t)len }, key->public,
			 ret) == 0;
}

static void say_wrong(struct verify *v, const struct vkey *beside)
{
	const struct vkey *given = v->options->key;

	verify_say(v, VERIFY_WRONG_KEY, LOG_DIR_VKEY, 1,
		   "signed with another key than the one that is known: "
		   "%.80s+%08" PRIx32 " is not %.80s+%08" PRIx32,
		   beside->name, beside->id, given->name, given->id);
}

static void use(struct verify *v, const struct vkey *key, bool known)
{
	v->key = *key;
	v->has_key = true;
	v->result->known_key = known;
	v->result->key = *key;
}

static void choose(struct verify *v, const struct vkey *beside,
		   const char *note)
{
	const struct vkey *given = v->options->key;
	struct vkey key;

	if (beside && given &&
	    memcmp(beside->public, given->public, VKEY_LEN) != 0) {
		say_wrong(v, beside);
		if (for_session(v, given, given->name, &key) &&
		    signs(&key, note))
			use(v, &key, true); /* only the file was replaced */
		else if (for_session(v, beside, beside->name, &key))
			use(v, &key, false);
		return;
	}
	if (!beside && !given)
		return;
	if (!for_session(v, beside ? beside : given,
			 beside ? beside->name : given->name, &key)) {
		verify_say(v, VERIFY_WRONG_KEY, LOG_DIR_VKEY, 1,
			   "%.120s is no key of session %s",
			   beside ? beside->name : given->name, v->session);
		return;
	}
	use(v, &key, given != NULL);
}

void verify_find_key(struct verify *v)
{
	char record[64], note[CHECKPOINT_NOTE_MAX] = "";
	struct vkey beside;
	bool has_beside = read_beside(v, &beside);

	verify_peek_note(v, note);
	peek_record(v, record);
	find_session(v, record, has_beside ? session_of(beside.name) : NULL,
		     note);
	snprintf(v->result->session, sizeof(v->result->session), "%s",
		 v->session);
	choose(v, has_beside ? &beside : NULL, note);
}
