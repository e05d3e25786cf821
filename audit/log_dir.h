/* SPDX-License-Identifier: Apache-2.0
 *
 * log_dir.h - what is where in the directory of a session's log.
 *
 *	audit.jsonl	      the records; the newest part of them, if the log
 *			      was rotated
 *	audit.jsonl.000001    earlier parts, from 1 on; one tree over all
 *	checkpoints	      signed tree heads, oldest first, each five lines
 *	session.vkey	      the public key that signs them, under the name
 *			      KEY/SESSION
 *	receipt.dsse.json     at the end, if it came to one
 *	earlier-000001/	      the same, of a session that had this place before
 */
#ifndef AUDIT_LOG_DIR_H
#define AUDIT_LOG_DIR_H

#define LOG_DIR_RECORDS	    "audit.jsonl"
#define LOG_DIR_PART	    "audit.jsonl.%06u"
#define LOG_DIR_PARTS_MAX   999999u
#define LOG_DIR_CHECKPOINTS "checkpoints"
#define LOG_DIR_VKEY	    "session.vkey"
#define LOG_DIR_RECEIPT	    "receipt.dsse.json"
/* While it is written. */
#define LOG_DIR_RECEIPT_NEW "receipt.dsse.json.new"
#define LOG_DIR_EARLIER	    "earlier-%06u"

/* Longest directory entry of these. */
#define LOG_DIR_NAME_MAX 32

#endif
