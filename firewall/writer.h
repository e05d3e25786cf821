/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.h - the rules of a table, written one after another in the words that
 * the plans of our tables share. For firewall/ only.
 */
#ifndef FIREWALL_WRITER_H
#define FIREWALL_WRITER_H

#include <stdint.h>

#include "firewall/table.h"

/* Where an IPv4 header has its addresses. */
#define IP_SOURCE_AT 12
#define IP_DEST_AT   16
/* Where a header of TCP or UDP has the port that it goes to. */
#define TRANS_DEST_AT 2

struct writer {
	struct table *table;
	uint16_t nflog_group;
};

/* Begins the next rule. */
void writer_rule(struct writer *w, const char *chain);

/* Goes on with it: @meta (NFT_META_*), of one byte, is @value (NFT_CMP_EQ) or
 * not (NFT_CMP_NEQ). */
void writer_meta(struct writer *w, uint32_t meta, uint32_t op, uint8_t value);
/* The same of four bytes, in host byte order. */
void writer_meta32(struct writer *w, uint32_t meta, uint32_t op,
		   uint32_t value);
/* What follows is about an IPv4 header. */
void writer_ipv4(struct writer *w);
/* The network header has @data at @offset, or not; same for what is behind. */
void writer_network(struct writer *w, uint32_t offset, uint32_t op,
		    const void *data, uint32_t len);
void writer_transport(struct writer *w, uint32_t offset, uint32_t op,
		      const void *data, uint32_t len);
/* The port that TCP or UDP goes to. */
void writer_port(struct writer *w, uint8_t protocol, uint16_t port);
/* What REG_KEY holds, the address and the port it goes to are in @set. */
void writer_lookup_flow(struct writer *w, const char *set);

/* And ends it. */
void writer_accept(struct writer *w);
void writer_drop(struct writer *w);
void writer_goto(struct writer *w, const char *chain);
void writer_count(struct writer *w, const char *counter); /* and log */
void writer_count_drop(struct writer *w, const char *counter);

/* Reports to the group, under @prefix. */
void writer_log(struct writer *w, const char *prefix);

/* Three rules that refuse at once what comes to them: a connected UDP socket
 * gets ECONNREFUSED, TCP too; others EHOSTUNREACH. */
void writer_refusals(struct writer *w, const char *chain);

#endif
