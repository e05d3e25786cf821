/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_case.h - asks a filter with fake services, and says in words what came
 * back.
 */
#ifndef TESTS_DNS_FILTER_CASE_H
#define TESTS_DNS_FILTER_CASE_H

#include <event2/event.h>
#include <ldns/ldns.h>

#include "dns/filter.h"
#include "fake_services.h"

static struct event_base *base;
static struct fake fake;
static struct filter *filter;
static unsigned replies;
static uint8_t reply[DNS_REPLY_TCP_MAX];
static size_t reply_len;
static struct ip asked_at;	   /* unless it is none: 8.8.8.8 */
static uint32_t asks = 0x0a400002; /* the client's address */

static inline void on_reply(void *ctx, const struct dns_peer *peer,
			    const void *data, size_t len)
{
	(void)ctx;
	(void)peer;
	replies++;
	reply_len = len;
	if (len)
		memcpy(reply, data, len);
	fake_log(&fake, "reply");
}

static inline int case_setup(const char *yaml)
{
	fake_init(&fake, yaml);
	replies = 0;
	reply_len = 0;
	return filter_new(base, &fake.services, on_reply, NULL, &filter);
}

static inline int teardown(void **state)
{
	(void)state;
	filter_free(filter);
	filter_free(NULL);
	fake_free(&fake);
	return 0;
}

static inline void send_raw(const void *data, size_t len, void *conn)
{
	struct dns_peer peer = { .ifindex = 3,
				 .src = ip_v4(asks),
				 .dst = asked_at.len ? asked_at
						     : ip_v4(0x08080808),
				 .src_port = 4000,
				 .dst_port = 53,
				 .conn = conn };

	fake.log[0] = '\0';
	reply_len = 0;
	filter_query(filter, &peer, data, len);
}

static inline void ask(const char *name, uint16_t type, void *conn)
{
	ldns_pkt *pkt = ldns_pkt_query_new(ldns_dname_new_frm_str(name),
					   (ldns_rr_type)type, LDNS_RR_CLASS_IN,
					   LDNS_RD);
	AUTO_FREE uint8_t *wire = NULL;
	size_t len;

	ldns_pkt_set_edns_udp_size(pkt, 1232);
	assert_int_equal(ldns_pkt2wire(&wire, pkt, &len), LDNS_STATUS_OK);
	ldns_pkt_free(pkt);
	send_raw(wire, len, conn);
}

/* "NOERROR 198.18.0.1", "NXDOMAIN ede 15 not_in_policy", ... */
static inline void describe_reply(char *buf, size_t cap)
{
	ldns_pkt *pkt = NULL;
	int at;

	if (!reply_len) {
		snprintf(buf, cap, "none");
		return;
	}
	assert_int_equal(ldns_wire2pkt(&pkt, reply, reply_len), 0);
	ldns_lookup_table *rcode =
		ldns_lookup_by_id(ldns_rcodes, (int)ldns_pkt_get_rcode(pkt));
	at = snprintf(buf, cap, "%s%s", rcode->name,
		      ldns_pkt_tc(pkt) ? " TC" : "");
	for (size_t i = 0; i < ldns_pkt_ancount(pkt); i++) {
		ldns_rr *rr = ldns_rr_list_rr(ldns_pkt_answer(pkt), i);
		bool all = ldns_rr_get_type(rr) != LDNS_RR_TYPE_HINFO;

		assert_true(ldns_rr_ttl(rr) <= 60);
		for (size_t j = 0; j < (all ? ldns_rr_rd_count(rr) : 1); j++) {
			AUTO_FREE char *text = ldns_rdf2str(ldns_rr_rdf(rr, j));

			at += snprintf(buf + at, cap - (size_t)at, " %s", text);
		}
	}
	ldns_rdf *opt = ldns_pkt_edns_data(pkt);
	if (opt && ldns_rdf_size(opt) >= 6) {
		const uint8_t *d = ldns_rdf_data(opt);
		const uint8_t *end = memchr(d + 6, ':', ldns_rdf_size(opt) - 6);
		int word =
			end ? (int)(end - d) - 6 : (int)ldns_rdf_size(opt) - 6;

		at += snprintf(buf + at, cap - (size_t)at, " ede %u %.*s", d[5],
			       word, (const char *)d + 6);
	}
	bool negative =
		!ldns_pkt_ancount(pkt) && !ldns_pkt_tc(pkt) &&
		(ldns_pkt_get_rcode(pkt) == 0 || ldns_pkt_get_rcode(pkt) == 3);
	assert_int_equal(ldns_pkt_nscount(pkt), negative);
	ldns_pkt_free(pkt);
}

#define QUERY(rest) "query " rest "\nreply\n"

#endif
