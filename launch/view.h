/* SPDX-License-Identifier: Apache-2.0
 *
 * view.h - which files a sandboxed command sees, as arguments for bubblewrap.
 *
 * The system is read-only; the working directory, and what is named, is as it
 * is outside; in the home changes are the sandbox's alone; /dev, /proc, /tmp,
 * /run are private; hidden are what a later
 * session trusts, host sockets, and credentials (credentials.h). With
 * spec->host_files everything is as outside for this uid, but for /dev, /proc,
 * /run, and what is hidden stays so, less the credentials.
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
	bool dir;
	bool staged; /* view_place() mounted it already */
};

/* A file or directory that is shown as it is outside. */
struct view_bind {
	char *path;   /* canonical; outside and inside */
	char *source; /* where it is bound from */
	int fd;	      /* O_PATH, of what was judged; or -1 */
	bool rw, dir;
	bool named;	     /* by our user, as --rw or --ro */
	bool overlay;	     /* what is changed there is the sandbox's alone */
	const char *spelled; /* then: as it was written */
	uid_t owner;
	gid_t group;
};

#define VIEW_TREES 8
#define VIEW_BINDS 64
#define VIEW_FDS   8
#define VIEW_MASKS 500 /* each one costs a mount */

struct view {
	const struct process_spec *spec;
	enum view_cwd kind;
	char *cwd;			   /* canonical */
	char *dev;			   /* a finished /dev, or NULL */
	struct view_bind bind[VIEW_BINDS]; /* the cwd too, if writable */
	size_t binds;
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

/* For a process in a mount namespace of its own, of which nothing comes back to
 * another one: mounts there what can be, so that view->source is reachable. 0,
 * or -errno and a sentence. */
int view_place(struct view *view, char *reterr, size_t cap);

/* Writes arguments up to NULL into view->out; errors stick to the stream. */
void view_put(struct view *view, const char *arg, ...);
/* Everything that is mounted, outer things first. 0, or -errno and a sentence.
 */
int view_layers(struct view *view, char *reterr, size_t cap);

/* The arguments up to the command, for bwrap --args: returns a memfd, which is
 * the first of view->fd. Or -errno and a sentence. */
int view_write(struct view *view, char *reterr, size_t cap);

void view_free(struct view *view);

/* Is @path @dir or below it? Both canonical. */
bool view_below(const char *path, const char *dir);
/* The innermost bind that shows @path; NULL if none does, or a private tree
 * lies between. */
const struct view_bind *view_bind_of(const struct view *view, const char *path);
/* Does nothing of the outside show at @path, because a private tree is there?
 */
bool view_in_tree(const struct view *view, const char *path);

/* The user's paths: the binds, and masks for what is to be hidden. After all
 * masks that no user can lift. 0, or -errno and a sentence. */
int view_paths(struct view *view, char *reterr, size_t cap);
/* Shows @path, which is canonical. 0, or -errno and a sentence. */
int view_add_bind(struct view *view, const char *path, bool rw, char *reterr,
		  size_t cap);
/* Is @path what the descriptor leads to: no part of it was replaced? */
bool view_leads_to(int fd, const char *path);
/* Hides @path. 0, -ENOENT if it is not there, or -errno and a sentence. */
int view_hide(struct view *view, const char *path, char *reterr, size_t cap);

/* Shows our user's home, which @owner is to own, as an overlay where it is part
 * of nothing else; last, as what is hidden in it stays so. 0, or -errno and a
 * sentence. */
int view_plan_home(struct view *view, uid_t owner, char *reterr, size_t cap);
/* Mounts it at @place, which is not there yet; @fd: O_PATH, of the home. 0 or
 * -errno. */
int view_place_home(const struct view_bind *home, int fd, const char *place);

/* A mask over each other place where a mount shows what one hides already. 0,
 * or -errno and a sentence. */
int view_aliases(struct view *view, char *reterr, size_t cap);

/* Does a mask over @dir hide @path: no bind in between shows it again? */
bool view_covers(const struct view *view, const char *dir, const char *path);

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
