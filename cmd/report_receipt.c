/* SPDX-License-Identifier: Apache-2.0
 *
 * report_receipt.c - see report_receipt.h.
 */
#include "cmd/report_receipt.h"

#include <jansson.h>

#include "cmd/report.h"

const struct json_t *receipt_get(const struct report_session *session,
				 const char *a, const char *b)
{
	const json_t *value = json_object_get(session->result.receipt, a);

	return b ? json_object_get(value, b) : value;
}

const char *receipt_text(const struct report_session *session, const char *a,
			 const char *b)
{
	const char *text = json_string_value(receipt_get(session, a, b));

	return text ? text : "";
}

static uint64_t number(const json_t *value)
{
	json_int_t n = json_integer_value(value);

	return n > 0 ? (uint64_t)n : 0;
}

uint64_t receipt_number(const struct report_session *session, const char *a,
			const char *b)
{
	return number(receipt_get(session, a, b));
}

uint64_t receipt_counted(const struct report_session *session)
{
	const json_t *counted = receipt_get(session, "packets", "counted");
	const char *key;
	json_t *value;
	uint64_t sum = 0;

	json_object_foreach((json_t *)counted, key, value) sum += number(value);
	return sum;
}
