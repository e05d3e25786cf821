/* SPDX-License-Identifier: Apache-2.0
 *
 * pin.h - a namespace that stays though nobody is in it, under a name that
 * other programs can open: as `ip netns` does it, a bind mount on a file. Only
 * whoever shares our mount namespace sees it. The directories are nobody's but
 * root's.
 */
#ifndef LAUNCH_PIN_H
#define LAUNCH_PIN_H

/* Pins the namespace @ns (stays the caller's) at @path, absolute; directories
 * that are missing are made (0755). 0; -EEXIST if something is pinned there;
 * -errno. */
int pin_make(const char *path, int ns);

/* The namespace that is pinned at @path, or -errno: -ENOENT also where the file
 * is no namespace. */
int pin_open(const char *path);

/* Takes it away; who has it open still has it. 0, also if there is none, or
 * -errno. */
int pin_drop(const char *path);

#endif
