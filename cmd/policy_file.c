/* SPDX-License-Identifier: Apache-2.0
 *
 * policy_file.c - a policy that is not named is found only where nobody else
 * could have put it.
 *
 * One that is there and can't be used is an error: to go on without it would
 * drop what it denies.
 */
#include "cmd/policy_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/path_walk.h"
#include "cmd/policy_marks.h"
#include "cmd/session.h"

static int __attribute__((format(printf, 2, 3)))
fault(struct policy_error *err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	return -EINVAL;
}

/* --- looking for one ----------------------------------------------------- */

struct owners {
	const char *path;
	struct policy_error *err;
};

/* Root follows no way that another user could turn. */
static int check_step(void *arg, const struct path_step *step)
{
	const struct owners *owners = arg;
	const mode_t others = S_IWOTH | (step->st.st_gid ? S_IWGRP : 0);

	if (step->st.st_uid != 0)
		return fault(owners->err,
			     "%.150s: %.150s belongs to user %u, and root does "
			     "not follow theirs\nName it with --policy to use "
			     "it.",
			     owners->path, step->at, step->st.st_uid);
	if (S_ISLNK(step->st.st_mode) || !(step->st.st_mode & others) ||
	    (S_ISDIR(step->st.st_mode) && step->st.st_mode & S_ISVTX))
		return 0;
	return fault(owners->err,
		     "%.150s: others than root can write to %.150s\nName it "
		     "with --policy to use it.",
		     owners->path, step->at);
}

static int check_found(const char *path, struct policy_error *err)
{
	struct owners owners = { .path = path, .err = err };
	struct stat st;
	int ret;

	if (session_root()) {
		fault(err, "%.300s changes while it is looked at", path);
		ret = path_walk(path, check_step, &owners);
		return !ret || ret == -EINVAL
			       ? ret
			       : fault(err, "%.300s: %s", path, strerror(-ret));
	}
	if (stat(path, &st) < 0)
		return fault(err, "%.300s: %s", path, strerror(errno));
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return fault(err,
			     "%.200s belongs to user %u\nName it with --policy "
			     "to use it.",
			     path, st.st_uid);
	return 0;
}

bool policy_config_dir(char *buf, size_t cap)
{
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	int len;

	if (config && *config == '/')
		len = snprintf(buf, cap, "%s/sallyport", config);
	else if (home && *home == '/')
		len = snprintf(buf, cap, "%s/.config/sallyport", home);
	else
		return false;
	return len >= 0 && (size_t)len < cap;
}

/* Fills @buf with the path of one that is there, or "". */
static int look(char *buf, size_t cap, struct policy_error *err)
{
	const char *named = getenv("SALLYPORT_POLICY");
	size_t len;
	struct stat st;

	*buf = '\0';
	if (named && *named) {
		if (*named != '/')
			return fault(err,
				     "SALLYPORT_POLICY=%.200s: it must be an "
				     "absolute path",
				     named);
		if (strlen(named) >= cap)
			return fault(err, "SALLYPORT_POLICY is too long");
		memcpy(buf, named, strlen(named) + 1);
		return 0;
	}
	if (!policy_config_dir(buf, cap - sizeof("/policy.yaml")))
		return 0;
	len = strlen(buf);
	snprintf(buf + len, cap - len, "/policy.yaml");
	/* A link that leads nowhere is there, and an error. */
	if (lstat(buf, &st) == 0)
		return 0;
	if (errno != ENOENT && errno != ENOTDIR)
		return fault(err, "%.300s: %s", buf, strerror(errno));
	*buf = '\0';
	return 0;
}

int policy_choose(struct policy_choice *choice, struct policy_error *reterr)
{
	int ret;

	if (choice->paths)
		return 0;
	ret = look(choice->found, sizeof(choice->found), reterr);
	if (ret == 0 && *choice->found)
		ret = check_found(choice->found, reterr);
	if (ret == 0 && *choice->found)
		choice->path[choice->paths++] = choice->found;
	return ret;
}

/* --- reading ------------------------------------------------------------- */

static bool replaceable(const struct stat *dir)
{
	return S_ISDIR(dir->st_mode) && dir->st_mode & S_IWOTH &&
	       !(dir->st_mode & S_ISVTX);
}

static int check_modes(const char *path, struct policy_error *err)
{
	AUTO_FREE char *real = realpath(path, NULL);
	char *slash = real ? strrchr(real, '/') : NULL;
	struct stat st, dir;

	/* A pipe is as good as who made it. */
	if (!slash || stat(real, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (st.st_mode & S_IWOTH)
		return fault(err,
			     "%.300s: everybody may write to it\nTry `chmod "
			     "o-w`.",
			     path);
	/* A group of one's own, as many systems make them, is no other. */
	if (st.st_mode & S_IWGRP && st.st_gid != st.st_uid)
		log_warn("%s: its group may write to it", path);
	slash[slash == real] = '\0';
	if (stat(real, &dir) == 0 && replaceable(&dir))
		return fault(err,
			     "%.300s: everybody may replace it, as its "
			     "directory is writable\nTry `chmod o-w`.",
			     path);
	return 0;
}

int policy_check_marks(const struct bundle *bundle, struct policy_error *err)
{
	char path[PATH_MAX], home[PATH_MAX];
	int ret = 0;

	if (!session_home(home, sizeof(home)))
		return 0;
	for (size_t i = 0;
	     ret == 0 && bundle_file(bundle, i, path, sizeof(path)); i++)
		ret = policy_marks_check(home, path, err);
	return ret;
}

static int check_files(const struct bundle *bundle, struct policy_error *err)
{
	char path[PATH_MAX];
	int ret = 0;

	for (size_t i = 0;
	     ret == 0 && bundle_file(bundle, i, path, sizeof(path)); i++)
		ret = check_modes(path, err);
	return ret;
}

/* Bundles are parts in a row. */
static int add_words(struct bundle *bundle, const struct bundle *words)
{
	uint8_t *grown;

	if (!words->len)
		return 0;
	grown = realloc(bundle->data, bundle->len + words->len);
	if (!grown)
		return -ENOMEM;
	memcpy(grown + bundle->len, words->data, words->len);
	bundle->data = grown;
	bundle->len += words->len;
	return 0;
}

int policy_read(const struct policy_choice *choice, struct bundle *ret_bundle,
		struct policy_error *reterr)
{
	__attribute__((cleanup(bundle_free))) struct bundle bundle = { 0 };
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < choice->paths; i++)
		ret = choice->again ? bundle_add_again(&bundle, choice->path[i],
						       reterr)
				    : bundle_add_policy(
					      &bundle, choice->path[i], reterr);
	if (ret == 0)
		ret = check_files(&bundle, reterr);
	if (ret == 0 && !choice->again)
		ret = policy_check_marks(&bundle, reterr);
	if (ret == 0)
		ret = add_words(&bundle, &choice->words);
	if (ret == 0) {
		*ret_bundle = bundle;
		bundle = (struct bundle){ 0 };
	}
	return ret;
}

void policy_choice_free(struct policy_choice *choice)
{
	bundle_free(&choice->words);
}

void policy_describe(const struct policy_choice *choice,
		     const struct bundle *bundle, char *buf, size_t cap)
{
	char path[PATH_MAX];
	size_t len = 0, i;

	*buf = '\0';
	for (i = 0; bundle_file(bundle, i, path, sizeof(path)); i++) {
		/* Room for a last word. */
		if (len + strlen(path) + 32 > cap) {
			snprintf(buf + len, cap - len, "%s...", i ? ", " : "");
			return;
		}
		len += (size_t)snprintf(buf + len, cap - len, "%s%s",
					i ? ", " : "", path);
	}
	if (choice->words.len)
		snprintf(buf + len, cap - len, "%soptions", i ? ", " : "");
	else if (!i)
		snprintf(buf, cap, "none");
}
