/* SPDX-License-Identifier: Apache-2.0
 *
 * idmap.h - a directory in which one user's files appear as another's.
 */
#ifndef LAUNCH_IDMAP_H
#define LAUNCH_IDMAP_H

/* A detached copy of the mounts at @fd, of our mount namespace, with the ids of
 * @userns (-1: as they are; else real root only). Returns its fd, or -errno:
 * -EINVAL where the file system can't do it. */
int idmap_clone_fd(int fd, int userns);

/* Attaches it to @place, a directory or a file as it is. 0 or -errno. */
int idmap_attach(int tree, const char *place);

#endif
