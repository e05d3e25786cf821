/* SPDX-License-Identifier: Apache-2.0
 *
 * What a guard left written of itself: it keeps to its limits, or is refused.
 */
#include "cmd/guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}
#define MUST_END(array) must(memchr(array, '\0', sizeof(array)) != NULL)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct guard_state state;
	const struct guard_spec *spec = &state.spec;
	int r = guard_state_parse((const char *)data, size, &state);

	must(r == 0 || r == -EBADMSG);
	MUST_END(state.session);
	MUST_END(state.dir);
	MUST_END(state.policy);
	MUST_END(state.proxy);
	MUST_END(state.ruleset);
	must(spec->inbounds <= GUARD_INBOUND_MAX &&
	     spec->resolvers <= GUARD_RESOLVERS_MAX);
	for (size_t i = 0; r == 0 && i < spec->inbounds; i++)
		must(spec->inbound[i].port && spec->inbound[i].listener);
	for (size_t i = 0; r == 0 && i < spec->resolvers; i++)
		must(spec->resolver[i].len == 4 || spec->resolver[i].len == 16);
	return 0;
}
