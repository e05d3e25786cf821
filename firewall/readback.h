/* SPDX-License-Identifier: Apache-2.0
 *
 * readback.h - what the kernel holds of one table, as lines. For firewall/
 * only.
 */
#ifndef FIREWALL_READBACK_H
#define FIREWALL_READBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct canon;
struct nft;

/* So often is it worth while to begin again. */
#define READBACK_RETRIES 8

/* Adds the table itself, its chains, sets without elements, objects and rules.
 * @alone: any other table is a line too. A table that is not there adds
 * nothing. 0, -EINTR if the rules changed meanwhile, or -errno. */
int readback_table(struct nft *nft, struct canon *canon, uint8_t family,
		   const char *table, bool alone);

/* Adds what the kernel has; -EINTR: the rules changed meanwhile. */
typedef int readback_fn(void *arg, struct nft *nft, struct canon *canon);
/* Calls @fn, again with an empty @canon where the rules changed meanwhile. 0,
 * -EAGAIN where they do without end, or -errno. */
int readback(struct nft *nft, struct canon *canon, readback_fn *fn, void *arg);

/* Sorts both. 0 if equal, else -EBADMSG and which line differs. */
int readback_compare(struct canon *want, struct canon *found, char *reterr,
		     size_t cap);

#endif
