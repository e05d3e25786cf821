/* SPDX-License-Identifier: Apache-2.0
 *
 * signing.h - the key that a session signs with: where it is, and a new one
 * where there is none.
 *
 * The warden never reads a private key: it opens the file and hands it to the
 * ledger. Keys are made in a child, which ends before anything else begins.
 */
#ifndef CMD_SIGNING_H
#define CMD_SIGNING_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "audit/vkey.h"

#define SIGNING_KEY  "signing.key"
#define SIGNING_VKEY "signing.vkey"
/* signing_dir() of root. */
#define SIGNING_DIR_ROOT "/etc/sallyport"

/* Sessions sign as NAME/SESSION, which must be a name too. */
#define SIGNING_NAME_MAX (VKEY_NAME_MAX - 64)

struct signing {
	int fd; /* of the private half, for reading */
	char name[SIGNING_NAME_MAX + 1];
	bool ephemeral;	     /* of this session alone; nothing is stored */
	char path[PATH_MAX]; /* canonical; "" if ephemeral */
	char vkey[PATH_MAX]; /* the public half beside it; may be missing */
};

/* Why it did not work, and what to do: sentences for people. */
struct signing_error {
	char text[2 * PATH_MAX + 512];
};

/* The directory of the key that is used where none is named: /etc/sallyport
 * for root (unless $XDG_CONFIG_HOME says otherwise), else the user's
 * configuration. False if there is no HOME. */
bool signing_dir(char *buf, size_t cap);
/* Makes it, if it is not there. 0 or -errno. */
int signing_mkdir(void);

/* Opens the key in @file, or (NULL) the one of signing_dir(), which is made if
 * it is not there, with a line about it unless @quiet; one of the session alone
 * where it can't be stored, with a warning. Dies with a message
 * (EXIT_SALLYPORT) of a key that must not be used. */
void signing_open(const char *file, bool quiet, struct signing *ret);
void signing_close(struct signing *signing);

/* Makes a key named @name (NULL: as the machine is) in @file, which may not be
 * there, nor its public half (signing_public_path()). 0 and that, or -errno. */
int signing_make(const char *file, const char *name, struct vkey *ret_vkey,
		 struct signing_error *reterr);

/* The public half of the key in @file, which may be either half. 0 or -errno.
 */
int signing_show(const char *file, struct vkey *ret_vkey,
		 struct signing_error *reterr);

/* "DIR/signing.key" has its public half in "DIR/signing.vkey"; any other name
 * that does not end in ".key" gets ".vkey" added. False if that is too long. */
bool signing_public_path(const char *file, char *buf, size_t cap);

/* The machine's name as a key may be named. */
void signing_host(char *buf, size_t cap);

#endif
