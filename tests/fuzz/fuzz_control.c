/* SPDX-License-Identifier: Apache-2.0
 *
 * A request by the control socket. The first byte says of which kind, the rest
 * is its JSON. What is accepted keeps to its limits; what is not says why.
 */
#include "cmd/daemon_request.h"
#include "cmd/daemon_request_attacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
	if (!holds)
		abort();
}

static bool ends(const char *text, size_t cap)
{
	return memchr(text, '\0', cap) != NULL;
}
#define ENDS(array) ends(array, sizeof(array))

static void check(enum request_kind kind, const struct request *request)
{
	demand(ENDS(request->name) && ENDS(request->policy_name) &&
	       ENDS(request->policy_text));
	demand(ENDS(request->command) && request->ended <= ENDED_FAILED);
	demand(*request->command || kind != REQUEST_EXEC);
	demand(*request->name || kind != REQUEST_CREATE);
	demand(!request->has_bundle || !*request->policy_name);
	demand(request->bundle.len <= REQUEST_BUNDLE_MAX);
	demand(request->publishes <= DAEMON_PUBLISH_MAX);
	demand(kind != REQUEST_ATTACKS ||
	       (request->attacks.n && attacks_ok(&request->attacks)));
	demand(kind != REQUEST_PUBLISH || request->publishes == 1);
	for (size_t i = 0; i < request->publishes; i++)
		demand(request->publish[i].at.ip.len &&
		       request->publish[i].at.port &&
		       request->publish[i].inside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request_error why;
	struct request request;
	enum request_kind kind;
	int err;

	if (!size || *data > REQUEST_ATTACKS)
		return 0;
	kind = (enum request_kind) * data;
	err = request_parse(kind, (const char *)data + 1, size - 1, &request,
			    &why);
	if (err) {
		demand(err == -EINVAL || err == -EFBIG || err == -ENOMEM);
		demand(ENDS(why.error) && *why.error && ENDS(why.hint));
		return 0;
	}
	check(kind, &request);
	request_free(&request);
	return 0;
}
