/* SPDX-License-Identifier: Apache-2.0
 *
 * dump.h - what the kernel holds, as lines of canon.h. For firewall/ only.
 */
#ifndef FIREWALL_DUMP_H
#define FIREWALL_DUMP_H

#include <stdbool.h>

struct canon;
struct nft;

#define DUMP_RETRIES 8

/* Adds table "inet @table" with its chains, sets, objects and rules, without
 * the sets' elements. @alone: any other table of the namespace has a line, too.
 * 0 or -errno; -EINTR if the rules changed meanwhile: begin again. */
int dump_table(struct nft *nft, const char *table, bool alone,
	       struct canon *canon);

#endif
