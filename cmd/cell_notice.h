/* SPDX-License-Identifier: Apache-2.0
 *
 * cell_notice.h - a policy may bound its command itself (policy/cell.h), which
 * not every program has one of: a bound that nobody keeps must not look kept.
 */
#ifndef CMD_CELL_NOTICE_H
#define CMD_CELL_NOTICE_H

struct bundle;

/* Warns if the policy that @bundle makes bounds a command, as there is none
 * @where: "in the container". */
void cell_notice(const struct bundle *bundle, const char *where);

#endif
