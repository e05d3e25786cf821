/* SPDX-License-Identifier: Apache-2.0
 *
 * signing.c - the key that a session signs with.
 *
 * Who names one means it, and nothing else is used then. Where none is named
 * there has to be one, if need be of this session alone.
 */
#include "cmd/signing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "audit/key.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/policy_file.h"
#include "cmd/session.h"
#include "cmd/signing_child.h"

static struct text text_of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

static int __attribute__((format(printf, 3, 4)))
fault(struct signing_error *err, int code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	return code;
}

/* --- names --------------------------------------------------------------- */

bool signing_dir(char *buf, size_t cap)
{
	const char *config = getenv("XDG_CONFIG_HOME");

	/* HOME may still be that of who called sudo. */
	if (session_root() && !(config && *config == '/'))
		return snprintf(buf, cap, "%s", SIGNING_DIR_ROOT) < (int)cap;
	return policy_config_dir(buf, cap);
}

static int check_ours(const char *dir)
{
	struct stat st;

	if (lstat(dir, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() ? 0 : -EACCES;
}

/* Made in no home but ours, and by no link that somebody else could turn. */
static int make_in_home(const char *dir)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	bool named = config && *config == '/';
	char base[PATH_MAX];
	struct stat st;
	char *slash;
	int r;

	if (stat(dir, &st) == 0)
		return 0;
	snprintf(base, sizeof(base), "%s", named ? config : getenv("HOME"));
	r = check_ours(base);
	slash = strrchr(base, '/');
	if (r == -ENOENT && named && slash > base) {
		*slash = '\0';
		r = check_ours(base);
	}
	return r < 0 ? r : session_mkdir(dir);
}

int signing_mkdir(void)
{
	char dir[PATH_MAX];

	if (!signing_dir(dir, sizeof(dir)))
		return -ENOENT;
	if (strcmp(dir, SIGNING_DIR_ROOT) != 0)
		return make_in_home(dir);
	/* Others verify with the public half. */
	return mkdir(dir, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

bool signing_public_path(const char *file, char *buf, size_t cap)
{
	size_t len = strlen(file);
	int n;

	if (len > 4 && strcmp(file + len - 4, ".key") == 0)
		len -= 4;
	n = snprintf(buf, cap, "%.*s.vkey", (int)len, file);
	return n >= 0 && (size_t)n < cap;
}

void signing_host(char *buf, size_t cap)
{
	char host[SIGNING_NAME_MAX + 1] = "";
	size_t n = 0;

	if (gethostname(host, sizeof(host) - 1) < 0)
		*host = '\0';
	for (const char *c = host; *c && n + 1 < cap; c++) {
		struct text one = { c, 1 };

		buf[n++] = '-';
		if (vkey_name_ok(one))
			buf[n - 1] = *c;
	}
	buf[n] = '\0';
	if (!n)
		snprintf(buf, cap, "sallyport");
}

/* --- making and showing -------------------------------------------------- */

static bool is_there(const struct place *place, const char *name)
{
	struct stat st;

	return fstatat(place->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int signing_make(const char *file, const char *name, struct vkey *ret_vkey,
		 struct signing_error *reterr)
{
	char host[SIGNING_NAME_MAX + 1];
	AUTO_PLACE place;
	int r = place_open(file, &place);

	signing_host(host, sizeof(host));
	if (!name)
		name = host;
	if (strlen(name) > SIGNING_NAME_MAX || !vkey_name_ok(text_of(name)))
		return fault(reterr, -EINVAL,
			     "a key is named by 1 to %d printable ASCII "
			     "characters without space and '+'",
			     SIGNING_NAME_MAX);
	if (r < 0)
		return fault(reterr, r, "%s: %s", file, strerror(-r));
	if (is_there(&place, place.key) || is_there(&place, place.vkey))
		return fault(reterr, -EEXIST,
			     "%s: there is a key, which is never "
			     "overwritten\nMove %s and %s away, or name "
			     "another file with --out FILE.",
			     file, place.key, place.vkey);
	r = child_make_key(&place, name, ret_vkey);
	if (r < 0)
		return fault(reterr, r, "%s: %s", file, strerror(-r));
	return 0;
}

/* A public file has one line, and it is one. */
static bool is_public(const char *file, struct vkey *ret)
{
	return key_read_public(AT_FDCWD, file, ret) == 0;
}

int signing_show(const char *file, struct vkey *ret_vkey,
		 struct signing_error *reterr)
{
	char name[SIGNING_NAME_MAX + 1];
	AUTO_PLACE place = { .dir = -1 };
	struct vkey beside, own;
	char why[128] = "";
	int r;

	if (is_public(file, ret_vkey))
		return 0;
	r = place_open(file, &place);
	if (r < 0)
		return fault(reterr, r, "%s: %s", file, strerror(-r));
	signing_host(name, sizeof(name));
	r = key_read_public(place.dir, place.vkey, &beside);
	if (r < 0 && r != -ENOENT)
		return fault(reterr, r, "%s: %s", place.vkey,
			     r == -EBADMSG ? "it is not a public key"
					   : strerror(-r));
	bool named = r == 0;
	r = child_read_key(&place, named ? beside.name : name, &own, why,
			   sizeof(why));
	if (r < 0)
		return fault(reterr, r, "%s: %s", file,
			     r == -ENOENT || !*why ? strerror(-r) : why);
	if (named && memcmp(&beside.public, &own.public, VKEY_LEN) != 0)
		return fault(reterr, -EBADMSG,
			     "%s and %s are not halves of one key\nMove %s "
			     "away to go by the private half.",
			     file, place.vkey, place.vkey);
	*ret_vkey = own;
	return 0;
}

/* --- for a session ------------------------------------------------------- */

static void open_ephemeral(const char *why, struct signing *ret)
{
	AUTO_FD int fd = memfd_create("signing", MFD_CLOEXEC);
	int r;

	signing_host(ret->name, sizeof(ret->name));
	r = fd < 0 || fchmod(fd, 0600) < 0
		    ? -errno
		    : child_make_ephemeral(fd, ret->name);
	if (r < 0)
		die(EXIT_SALLYPORT, "a key for this session: %s", strerror(-r));
	log_warn("%s: this session signs with a key of its own, which nobody "
		 "can know: `sallyport key new --out FILE` makes one to keep, "
		 "for --key FILE",
		 why);
	ret->ephemeral = true;
	ret->fd = steal_fd(&fd);
}

static void take_paths(const char *file, struct signing *ret)
{
	AUTO_FREE char *real = realpath(file, NULL);

	if (!real || strlen(real) >= sizeof(ret->path) ||
	    !signing_public_path(real, ret->vkey, sizeof(ret->vkey)))
		die(EXIT_SALLYPORT, "%s: the path is too long", file);
	snprintf(ret->path, sizeof(ret->path), "%s", real);
}

/* The name of the key in @place; false if no public half is there. */
static bool take_name(const char *file, const struct place *place,
		      struct signing *ret)
{
	struct vkey vkey;
	int r = key_read_public(place->dir, place->vkey, &vkey);

	signing_host(ret->name, sizeof(ret->name));
	if (r == -ENOENT)
		return false;
	if (r < 0)
		die(EXIT_SALLYPORT,
		    "%s, beside %s: %s\nMove it away, and `sallyport key show` "
		    "tells what was in it.",
		    place->vkey, file,
		    r == -EBADMSG ? "it is not a public key" : strerror(-r));
	if (strlen(vkey.name) > SIGNING_NAME_MAX)
		die(EXIT_SALLYPORT, "%s, beside %s: its name is too long",
		    place->vkey, file);
	snprintf(ret->name, sizeof(ret->name), "%s", vkey.name);
	return true;
}

/* 0; -ENOENT; dies of a key that must not be used. */
static int open_key(const char *file, const struct place *place,
		    struct signing *ret)
{
	AUTO_FD int fd = openat(place->dir, place->key,
				O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
					O_NOCTTY);
	const char *why = fd < 0 ? NULL : key_file_fault(fd);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		why = errno == ELOOP ? "it is a symbolic link"
				     : strerror(errno);
	if (why)
		die(EXIT_SALLYPORT,
		    "the signing key %s: %s\nMend that, or name another one "
		    "with --key FILE.",
		    file, why);
	ret->fd = steal_fd(&fd);
	take_paths(file, ret);
	return 0;
}

static void open_named(const char *file, struct signing *ret)
{
	AUTO_PLACE place;
	int r = place_open(file, &place);

	if (r == 0)
		r = open_key(file, &place, ret);
	if (r < 0)
		die(EXIT_SALLYPORT,
		    "--key %s: %s\n`sallyport key new --out FILE` makes one.",
		    file, strerror(-r));
	take_name(file, &place, ret);
}

/* Who can put another file there could make us sign with a key of his. */
static const char *dir_fault(int dir)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return strerror(errno);
	if (st.st_uid && st.st_uid != geteuid())
		return "it belongs to somebody else";
	if (st.st_mode & S_IWOTH)
		return "everybody may write to it";
	return NULL;
}

/* 0: there is one now; -errno: none can be stored. */
static int make_first(const char *file, const struct place *place, bool quiet)
{
	char host[SIGNING_NAME_MAX + 1];
	struct vkey made;
	int r;

	signing_host(host, sizeof(host));
	if (is_there(place, place->vkey) && !is_there(place, place->key))
		die(EXIT_SALLYPORT,
		    "%s is gone, but its public half %s is there\nBring it "
		    "back, or move the public half away to have a new key.",
		    file, place->vkey);
	r = child_make_key(place, host, &made);
	if (r == 0 && !quiet)
		log_warn("made a key that signs the logs: %s (`sallyport key "
			 "show` prints its public half)",
			 file);
	return r == -EEXIST || r == -ENOTUNIQ ? 0 : r;
}

static void open_own(const char *dir, bool quiet, struct signing *ret)
{
	char file[PATH_MAX + 16], why[PATH_MAX + 128];
	AUTO_PLACE place = { .dir = -1 };
	const char *wrong = NULL;
	int r = signing_mkdir();

	snprintf(file, sizeof(file), "%s/" SIGNING_KEY, dir);
	if (r == 0)
		r = place_open(file, &place);
	if (r == 0)
		wrong = dir_fault(place.dir);
	if (r == 0 && !wrong && open_key(file, &place, ret) == -ENOENT) {
		r = make_first(file, &place, quiet);
		if (r == 0)
			r = open_key(file, &place, ret);
	}
	if (r < 0 || wrong) {
		snprintf(why, sizeof(why), "%s: %s", dir,
			 wrong ? wrong : strerror(-r));
		open_ephemeral(why, ret);
		return;
	}
	/* Whoever made the key may not have come to that. */
	if (!take_name(file, &place, ret))
		child_make_public(&place, ret->name);
}

void signing_open(const char *file, bool quiet, struct signing *ret)
{
	char dir[PATH_MAX];

	*ret = (struct signing){ .fd = -1 };
	if (file)
		open_named(file, ret);
	else if (signing_dir(dir, sizeof(dir)))
		open_own(dir, quiet, ret);
	else
		open_ephemeral("there is no HOME", ret);
}

void signing_close(struct signing *signing)
{
	close_fd(&signing->fd);
}
