/* SPDX-License-Identifier: Apache-2.0
 *
 * idmap.h - a directory in which one user's files appear as another's.
 */
#ifndef LAUNCH_IDMAP_H
#define LAUNCH_IDMAP_H

/* A detached copy of the mounts at @path, with the ids of @userns (-1: as they
 * are). Real root only. Returns its fd, or -errno: -EINVAL where the file
 * system can't do it. */
int idmap_clone(const char *path, int userns);

/* Attaches it to the directory @place. 0 or -errno. */
int idmap_attach(int tree, const char *place);

#endif
