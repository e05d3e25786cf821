/* SPDX-License-Identifier: Apache-2.0
 *
 * signing_child.h - what is done with a private key, each in a child that ends
 * with it, so that our memory never holds one. For cmd/signing.c only.
 */
#ifndef CMD_SIGNING_CHILD_H
#define CMD_SIGNING_CHILD_H

#include <limits.h>
#include <stddef.h>

#include "audit/vkey.h"

/* A key's file and its public half, by their directory. */
struct place {
	int dir;
	char key[NAME_MAX + 1], vkey[NAME_MAX + 1];
};

/* 0 or -errno; to be closed after both. */
int place_open(const char *file, struct place *ret);
void place_close(struct place *place);
#define AUTO_PLACE __attribute__((cleanup(place_close))) struct place

/* Makes both files. 0; -EEXIST if there is a key; -ENOTUNIQ if there was only a
 * public half, of another; -errno. */
int child_make_key(const struct place *place, const char *name,
		   struct vkey *ret_vkey);
/* A new private half in @fd. 0 or -errno. */
int child_make_ephemeral(int fd, const char *name);
/* The public half of the private one. 0, or -errno and a sentence, or "". */
int child_read_key(const struct place *place, const char *name,
		   struct vkey *ret_vkey, char *reterr, size_t cap);
/* Makes the public half that is missing. 0 or -errno. */
int child_make_public(const struct place *place, const char *name);

#endif
