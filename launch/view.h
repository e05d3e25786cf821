/* SPDX-License-Identifier: Apache-2.0
 *
 * view.h - which files a sandboxed command sees, as arguments for bubblewrap.
 *
 *	plan	with the caller's rights: what is where, what must not be seen
 *	place	in an own mount namespace: what can be mounted beforehand; as
 *		root, for a uid that owns nothing, the working directory with
 *		its owner's files shown as that uid's
 *	write	as the sandbox's uid, which shows what it can reach at all
 */
#ifndef LAUNCH_VIEW_H
#define LAUNCH_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "launch/process.h"

#define VIEW_INIT "/run/.sallyport/init"

enum view_cwd {
	VIEW_CWD_WRITABLE,
	VIEW_CWD_READONLY, /* a system directory */
	VIEW_CWD_PRIVATE,  /* shown as an empty, private one: /tmp, HOME */
	VIEW_CWD_NONE,	   /* not there inside: the command starts in / */
};

struct view_mask {
	char *path;
	bool dir, pinned;
	bool staged; /* view_place() mounted it already */
};

#define VIEW_TREES 8
#define VIEW_FDS   8
#define VIEW_MASKS 500 /* each one costs a mount */

struct view {
	const struct process_spec *spec;
	enum view_cwd kind;
	char *cwd;    /* canonical */
	char *source; /* where it is bound from */
	char *dev;    /* a finished /dev, or NULL */
	uid_t owner;  /* of the cwd */
	gid_t group;
	int userns; /* maps uid 0 to the sandbox's, if it was needed; or -1 */
	char *tree[VIEW_TREES]; /* private, empty: /dev /proc /tmp /run ... */
	size_t trees;
	char *home;		/* canonical; also a tree if private */
	struct view_mask *mask; /* sorted */
	size_t masks;
	char *resolv, *passwd, *groups; /* canonical paths in /etc, or NULL */
	char note[200];			/* for people, or empty */
	FILE *out;			/* arguments, each ended by NUL */
	int fd[VIEW_FDS]; /* what bubblewrap must inherit for them */
	size_t fds;
};

/* 0, or -errno and a sentence in @reterr. view_free() in any case. */
int view_plan(struct view *view, const struct process_spec *spec, char *reterr,
	      size_t cap);

/* Leaves the process in an own mount namespace, if it can, in which
 * view->source is reachable. 0, or -errno and a sentence. */
int view_place(struct view *view, char *reterr, size_t cap);

/* The arguments up to the command, for bwrap --args: returns a memfd, which is
 * the first of view->fd. Or -errno and a sentence. */
int view_write(struct view *view, char *reterr, size_t cap);

void view_free(struct view *view);

/* Is @path @dir or below it? Both canonical. */
bool view_below(const char *path, const char *dir);
/* Is @path below the writable working directory; below a private tree? */
bool view_below_cwd(const struct view *view, const char *path);
bool view_in_tree(const struct view *view, const char *path);

/* Is @path in a directory like /usr? */
bool view_is_system(const char *path);

/* Takes @path, also when it fails. */
int view_add_mask(struct view *view, char *path, bool dir);

/* Masks over this host's unix sockets; sorts and bounds all masks. 0, or
 * -errno and a sentence. */
int view_sockets(struct view *view, char *reterr, size_t cap);

/* Programs ask who they are: the files in /etc with one line more. NULL where
 * there is nothing to change. */
struct view_names {
	char *passwd, *groups;
	size_t passwd_len, groups_len;
};

/* 0 or -errno; view_names_free() in any case. */
int view_names(const struct view *view, struct view_names *ret);
void view_names_free(struct view_names *names);

#endif
