/* SPDX-License-Identifier: Apache-2.0
 *
 * nft.h - the kernel's side of the rules: one batch in, acknowledgements out;
 * and dumps. For firewall/ only.
 */
#ifndef FIREWALL_NFT_H
#define FIREWALL_NFT_H

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

#include "firewall/ruleset.h" /* nft_open(), nft_close() */

/* The table, of family inet, whose elements and counters are meant: "sallyport"
 * unless another one was said. The name is kept, not copied. */
const char *nft_table(const struct nft *nft);
void nft_use_table(struct nft *nft, const char *table);

/* Starts a batch; what an earlier one held is forgotten. */
void nft_begin(struct nft *nft);

/* Adds a message to the batch, NFT_MSG_@type with NLM_F_* @flags (an
 * acknowledgement is always asked for), of family inet. The caller puts
 * attributes and then calls nft_end(). Without room: a scratch message, and
 * nft_commit() fails with -E2BIG. */
struct nlmsghdr *nft_start(struct nft *nft, uint16_t type, uint16_t flags);
void nft_end(struct nft *nft, struct nlmsghdr *nlh);

/* Sends the batch, all or nothing, and takes one acknowledgement for each
 * message. 0, or the first error. */
int nft_commit(struct nft *nft);

/* A request to list (NLM_F_DUMP) or get, of @family. Attributes may be added
 * before nft_read(), which hands each answer to @cb; that returns MNL_CB_OK, or
 * MNL_CB_ERROR with errno set. -EINTR: the rules changed meanwhile. */
struct nlmsghdr *nft_ask(struct nft *nft, uint16_t type, uint16_t flags,
			 uint8_t family);
int nft_read(struct nft *nft, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg);

/* The address of the socket among those of its namespace. 0 or -errno. */
int nft_port(struct nft *nft, uint32_t *ret_port);

/* Fills @tb, of @max + 1 elements, with the attributes of a message (after
 * nfgenmsg) or inside a nest; NULL where one is absent. -EBADMSG if malformed.
 */
int nft_attrs(const struct nlmsghdr *nlh, const struct nlattr **tb,
	      uint16_t max);
int nft_nested(const struct nlattr *nest, const struct nlattr **tb,
	       uint16_t max);

#endif
