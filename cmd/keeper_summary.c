/* SPDX-License-Identifier: Apache-2.0
 *
 * keeper_summary.c - what `sallyport run` prints at its end is made here, where
 * the tally is, in both forms: members of the JSON that the daemon answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cmd/keeper.h"
#include "cmd/summary.h"
#include "cmd/warden_give.h"
#include "launch/child.h"

/* NULL: no memory. The caller frees it. */
static char *print(const struct tally *tally, const struct summary *summary,
		   bool json)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	summary_print(out, tally, summary, json);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	/* Without the end of its only line. */
	if (json && len)
		text[len - 1] = '\0';
	return text;
}

static void say(struct keeper *k, const char *members, size_t len)
{
	AUTO_FD int fd = warden_memfd("summary", members, len);

	if (fd >= 0 && !k->gone &&
	    msg_send(CHILD_SOCKET, MSG_KEEP_SUMMARY, NULL, fd) < 0)
		k->gone = true;
}

void keeper_say_summary(struct keeper *k, const struct tally *tally,
			const struct warden_end *end)
{
	const struct summary summary = { .policy = k->session.policy_text,
					 .log = k->session.log,
					 .dir = k->session.dir,
					 .daemon = k->start.name,
					 .boundary = true,
					 .held = end->held,
					 .receipt = end->receipt };
	AUTO_FREE char *json = print(tally, &summary, true);
	AUTO_FREE char *table = print(tally, &summary, false);
	const size_t cap =
		json && table ? strlen(json) + 6 * strlen(table) + 64 : 0;
	AUTO_FREE char *buf = malloc(cap);
	struct json j = json_of(buf, buf ? cap : 0);

	json_members(&j, "\"summary\":");
	j.comma = false;
	json_members(&j, json ? json : "null");
	json_text(&j, "summary_text", table ? table : "");
	if (!j.full)
		say(k, buf, j.len);
}
