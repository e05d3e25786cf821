/* SPDX-License-Identifier: Apache-2.0
 *
 * message_case.h - messages and libldns.
 */
#ifndef TESTS_DNS_MESSAGE_CASE_H
#define TESTS_DNS_MESSAGE_CASE_H

#include <errno.h>
#include <ldns/ldns.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "dns/answer.h"

#define HEADER(flags, qd, an, ns, ar) \
	"\x12\x34" flags "\x00" qd "\x00" an "\x00" ns "\x00" ar

#define PLAIN HEADER("\x01\x00", "\x01", "\x00", "\x00", "\x00")

#define NAME_OK  \
	"\x02"   \
	"ok\x03" \
	"com\x00"

#define A_IN	 "\x00\x01\x00\x01"
#define BYTES(s) s, sizeof(s) - 1

/* --- replies, read by ldns ------------------------------------------------ */

static inline ldns_pkt *by_ldns(const void *data, size_t len)
{
	ldns_pkt *pkt = NULL;

	assert_int_equal(ldns_wire2pkt(&pkt, data, len), LDNS_STATUS_OK);
	return pkt;
}

static inline void assert_rr(ldns_rr_list *list, const char *expect)
{
	assert_int_equal(ldns_rr_list_rr_count(list), 1);
	AUTO_FREE char *text = ldns_rr2str(ldns_rr_list_rr(list, 0));
	assert_string_equal(text, expect);
}

#endif
