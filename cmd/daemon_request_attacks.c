/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_request_attacks.c - a report of `sallyport prove`.
 */
#include "cmd/daemon_request_attacks.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "cmd/daemon_request.h"

static int __attribute__((format(printf, 2, 3)))
fault(struct request_error *err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(err->error, sizeof(err->error), format, ap);
	va_end(ap);
	text_clean(err->error);
	snprintf(err->hint, sizeof(err->hint),
		 "client and daemon are of one version?");
	return -EINVAL;
}

static int take_results(const json_t *results, struct attacks *ret,
			struct request_error *reterr)
{
	json_t *values = (json_t *)(uintptr_t)results, *value;
	const char *name;

	json_object_foreach(values, name, value)
	{
		if (!attacks_take(ret, name, json_string_value(value)))
			return fault(reterr,
				     "'%.40s' is no attack, or has no result",
				     name);
	}
	return ret->n ? 0 : fault(reterr, "'results' is missing");
}

int request_attacks(const json_t *root, struct attacks *ret,
		    struct request_error *reterr)
{
	const json_t *ms = json_object_get(root, "duration_ms");
	const json_t *results = json_object_get(root, "results");

	if (!json_is_object(root) ||
	    json_object_size(root) != (size_t) !!ms + (size_t) !!results)
		return fault(reterr, "the keys here are duration_ms, results");
	if (!json_is_integer(ms) || json_integer_value(ms) < 0 ||
	    json_integer_value(ms) > UINT32_MAX)
		return fault(reterr, "'duration_ms' is a number");
	ret->duration_ms = (uint32_t)json_integer_value(ms);
	return take_results(results, ret, reterr);
}
