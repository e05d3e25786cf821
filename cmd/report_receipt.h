/* SPDX-License-Identifier: Apache-2.0
 *
 * report_receipt.h - look-ups in the receipt of a session, if it has a good
 * one.
 */
#ifndef CMD_REPORT_RECEIPT_H
#define CMD_REPORT_RECEIPT_H

#include <stdint.h>

struct json_t;
struct report_session;

/* NULL if there is none. @b may be NULL. */
const struct json_t *receipt_get(const struct report_session *session,
				 const char *a, const char *b);
/* "" if there is none. */
const char *receipt_text(const struct report_session *session, const char *a,
			 const char *b);
/* 0 if there is none. */
uint64_t receipt_number(const struct report_session *session, const char *a,
			const char *b);
/* Packets that the kernel counted, of all kinds. */
uint64_t receipt_counted(const struct report_session *session);

#endif
