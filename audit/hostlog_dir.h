/* SPDX-License-Identifier: Apache-2.0
 *
 * hostlog_dir.h - the directory of the log of all sessions, for who opens its
 * files and has no key.
 */
#ifndef AUDIT_HOSTLOG_DIR_H
#define AUDIT_HOSTLOG_DIR_H

#include "audit/hostlog.h"

#define HOSTLOG_DIR_MAX 16

/* The name of the directory: HOSTLOG_DIR, or (@apart) that of a key that is not
 * the usual one. Returns @ret_name, HOSTLOG_DIR_MAX bytes. */
char *hostlog_dir_name(const struct vkey *signer, bool apart, char *ret_name);

/* Opens the files in @name below @home, the directory of all sessions, and
 * makes them if there are none. @signer is the key of NAME. What is not as
 * the last append left it, or is signed by another key, is put aside first
 * (earlier-NNNNNN/), and the new log will say so in its first record.
 *
 * @ongoing: the session has begun before, maybe under a key that is not the
 * newest: a log that another key signs is left alone then.
 *
 * While somebody appends, the files are given out unseen: hostlog_append() sees
 * for itself.
 *
 * Returns 0 and files for hostlog_new(), the caller's; -ENOKEY if @ongoing and
 * another key signs; -EPERM if the directory is not ours alone; -EBUSY; what
 * open(2), rename(2), write(2) say. */
int hostlog_dir_open(int home, const char *name, const struct vkey *signer,
		     bool ongoing, struct hostlog_files *ret_files);

/* Reads the last whole checkpoint of a file of them into @ret_note,
 * CHECKPOINT_NOTE_MAX bytes, with a NUL at its end; "" if there is none. */
void hostlog_last_checkpoint(int fd, char *ret_note);

#endif
