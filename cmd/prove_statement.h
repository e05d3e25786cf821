/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_statement.h - the result of `sallyport prove` where no session of ours
 * has a receipt for it: a statement of its own, signed with the key of whoever
 * attacked (DSSE, in-toto; audit/statement.h).
 *
 * Subjects: "sallyport", the program that attacked and saw what it says, and
 * "policy", by its digest. The predicate:
 *
 *	product{name,version}, kernel
 *	place		{kind,name,boot}: "netns", "in-container" or "docker";
 *			as it was given; the kernel's boot id
 *	uid		who says so
 *	ended, duration_ms
 *	log		that was compared with it; absent: none
 *	attacks		as in a receipt, without reports
 *	key		{vkey,ephemeral}
 *
 * It has a type of its own: a receipt tells of a session, with its log.
 */
#ifndef CMD_PROVE_STATEMENT_H
#define CMD_PROVE_STATEMENT_H

#define PROVE_STATEMENT_TYPE "https://sallyport.example/attacks/v1"

struct prove;

/* Opens the file, a new one, before anything is attacked; and writes it. Both
 * die with a message. */
void prove_statement_open(struct prove *prove);
void prove_statement_write(struct prove *prove);

#endif
