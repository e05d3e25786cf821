/* SPDX-License-Identifier: Apache-2.0
 *
 * credentials.c - what in a home is nobody's business in a sandbox.
 *
 * What an agent works with stays: ~/.gitconfig, settings, caches, and its own
 * login. A whole directory is hidden where most of it is secret.
 */
#include "launch/credentials.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "launch/process.h"
#include "launch/view.h"

#define HOMES_MAX   64
#define ENTRIES_MAX 1000 /* of a directory, looked at for links */

/* Below a home; ".config/" also below $XDG_CONFIG_HOME. */
static const char *const listed[] = {
	/* keys, and what opens other machines */
	".ssh",
	".gnupg",
	".password-store",
	".netrc",
	"_netrc",
	".authinfo",
	".authinfo.gpg",
	".pgpass",
	".my.cnf",
	".mylogin.cnf",
	".vault-token",
	".age",
	".config/sops",
	".config/age",
	".local/share/keyrings",
	".local/share/kwalletd",
	/* clouds and clusters */
	".aws",
	".azure",
	".config/gcloud",
	".boto",
	".oci",
	".aliyun",
	".bluemix",
	".config/doctl",
	".config/hcloud",
	".config/scw",
	".fly",
	".s3cfg",
	".config/rclone",
	".kube",
	".config/helm/registry",
	".docker",
	".config/containers/auth.json",
	".terraform.d/credentials.tfrc.json",
	".terraformrc",
	".databrickscfg",
	".snowflake",
	".snowsql",
	/* forges and registries */
	".git-credentials",
	".config/git/credentials",
	".config/gh",
	".config/hub",
	".config/glab-cli",
	".config/github-copilot",
	".npmrc",
	".pypirc",
	".gem/credentials",
	".cargo/credentials",
	".cargo/credentials.toml",
	".m2/settings-security.xml",
	".composer/auth.json",
	".config/composer/auth.json",
	".config/huggingface/token",
	".cache/huggingface/token",
	".huggingface/token",
	/* password managers and messages */
	".config/op",
	".op",
	".config/Bitwarden",
	".config/Bitwarden CLI",
	".config/keepassxc",
	".config/Signal",
	".config/Slack",
	".config/discord",
	".thunderbird",
	/* browsers: cookies are logins */
	".mozilla",
	".config/google-chrome",
	".config/google-chrome-beta",
	".config/chromium",
	".config/BraveSoftware",
	".config/microsoft-edge",
	".config/vivaldi",
	".config/opera",
	".librewolf",
	"snap/firefox",
	"snap/chromium",
	".var/app/org.mozilla.firefox",
	".var/app/com.google.Chrome",
	".var/app/org.chromium.Chromium",
	/* what was typed */
	".bash_history",
	".zsh_history",
	".local/share/fish/fish_history",
	".psql_history",
	".mysql_history",
};

/* Where a variable says that these are elsewhere; lists have colons. */
static const char *const variables[] = {
	"AWS_SHARED_CREDENTIALS_FILE",
	"AWS_CONFIG_FILE",
	"AZURE_CONFIG_DIR",
	"CLOUDSDK_CONFIG",
	"GOOGLE_APPLICATION_CREDENTIALS",
	"KUBECONFIG",
	"DOCKER_CONFIG",
	"REGISTRY_AUTH_FILE",
	"GNUPGHOME",
	"NETRC",
	"GH_CONFIG_DIR",
	"NPM_CONFIG_USERCONFIG",
	"PGPASSFILE",
	"PASSWORD_STORE_DIR",
	"HISTFILE",
};

const char *credentials_path(size_t n)
{
	return n < ARRAY_SIZE(listed) ? listed[n] : NULL;
}

struct hiding {
	struct view *view;
	char *reterr;
	size_t cap;
	char home[8][PATH_MAX]; /* canonical: those that were gone through */
	size_t seen;
};

/* The bind at @path, or around the cwd in it, that our user asked for. */
static const struct view_bind *named(const struct view *view, const char *path,
				     bool around_cwd)
{
	for (size_t i = 0; i < view->binds; i++) {
		const struct view_bind *bind = &view->bind[i];

		if (bind->named &&
		    (around_cwd ? view_below(bind->path, path) &&
					  view_below(view->cwd, bind->path)
				: strcmp(bind->path, path) == 0))
			return bind;
	}
	return NULL;
}

/* A link that somebody left in a project is no way to name credentials: what is
 * shown of @real was written so, or as @path, which led to it. */
static const struct view_bind *misnamed(const struct view *view,
					const char *real, const char *path)
{
	for (size_t i = 0; i < view->binds; i++) {
		const struct view_bind *bind = &view->bind[i];

		if (bind->named && view_below(bind->path, real) &&
		    strcmp(bind->spelled, bind->path) != 0 &&
		    !view_below(bind->spelled, path))
			return bind;
	}
	return NULL;
}

/* @real: canonical, of @path. */
static int hide(const struct hiding *h, const char *real, const char *path)
{
	struct view *view = h->view;
	const struct view_bind *wrong = misnamed(view, real, path);
	struct stat st;

	if (wrong) {
		snprintf(h->reterr, h->cap,
			 "%s leads to %s, which holds credentials\nIf the "
			 "command is to have them, name that.",
			 wrong->spelled, wrong->path);
		return -EINVAL;
	}
	if (lstat(real, &st) < 0 || named(view, real, false))
		return 0;
	if (S_ISDIR(st.st_mode) && view_below(view->cwd, real) &&
	    !named(view, real, true)) {
		snprintf(h->reterr, h->cap,
			 "the working directory %s is in %s, which is hidden: "
			 "it holds credentials\nIf the command is to have "
			 "them: --rw %s",
			 view->cwd, real, view->cwd);
		return -EINVAL;
	}
	return view_add_mask(view, strdup(real), S_ISDIR(st.st_mode));
}

/* May what a link in there leads to be hidden for its sake? */
static bool is_own(const struct view *view, const char *real)
{
	return !view_is_system(real) && !view_below(view->cwd, real) &&
	       !(view->home && view_below(view->home, real)) &&
	       strchr(real + 1, '/');
}

/* Dotfiles are often links into a directory that is kept elsewhere. */
static int hide_links(const struct hiding *h, const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	int r = 0;

	for (int i = 0; d && r == 0 && i < ENTRIES_MAX && (entry = readdir(d));
	     i++) {
		AUTO_FREE char *path = NULL;
		AUTO_FREE char *real = NULL;

		if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
			continue;
		if (asprintf(&path, "%s/%s", dir, entry->d_name) < 0) {
			path = NULL;
			r = -ENOMEM;
			break;
		}
		real = realpath(path, NULL);
		if (real && !view_below(real, dir) && is_own(h->view, real))
			r = hide(h, real, path);
	}
	if (d)
		closedir(d);
	return r;
}

static int hide_path(const struct hiding *h, const char *path)
{
	AUTO_FREE char *real = NULL;
	struct stat st;
	int r;

	/* What is not there can't be seen; that is most of the list, and a
	 * call a directory on the way would be a start's longest part. */
	if (stat(path, &st) == 0)
		real = realpath(path, NULL);
	if (!real || stat(real, &st) < 0)
		return 0;
	r = hide(h, real, path);
	if (r == 0 && S_ISDIR(st.st_mode) && !named(h->view, real, false))
		r = hide_links(h, real);
	return r;
}

static int hide_below(const struct hiding *h, const char *home, const char *rel)
{
	AUTO_FREE char *path = NULL;

	if (asprintf(&path, "%s/%s", home, rel) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return hide_path(h, path);
}

/* Once, though HOME, the password file and /home may all name it. */
static bool is_new(struct hiding *h, const char *home)
{
	char real[PATH_MAX];

	if (!realpath(home, real))
		return false;
	for (size_t i = 0; i < h->seen; i++)
		if (strcmp(h->home[i], real) == 0)
			return false;
	if (h->seen < ARRAY_SIZE(h->home))
		memcpy(h->home[h->seen++], real, sizeof(real));
	return true;
}

static int hide_home(struct hiding *h, const char *home)
{
	int r = 0;

	if (!is_new(h, home))
		return 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(listed); i++)
		r = hide_below(h, home, listed[i]);
	return r;
}

static int hide_config(const struct hiding *h)
{
	static const char config[] = ".config/";
	const char *dir = getenv("XDG_CONFIG_HOME");
	int r = 0;

	for (size_t i = 0;
	     dir && *dir == '/' && r == 0 && i < ARRAY_SIZE(listed); i++)
		if (strncmp(listed[i], config, strlen(config)) == 0)
			r = hide_below(h, dir, listed[i] + strlen(config));
	return r;
}

static int hide_variables(const struct hiding *h)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(variables); i++) {
		const char *value = getenv(variables[i]);
		AUTO_FREE char *copy = value ? strdup(value) : NULL;
		char *rest = copy, *path;

		while (r == 0 && rest && (path = strsep(&rest, ":")))
			if (*path && strcmp(path, "/dev/null") != 0)
				r = hide_path(h, path);
	}
	return r;
}

/* Root sees everybody's. */
static int hide_homes(struct hiding *h)
{
	DIR *d = opendir("/home");
	const struct dirent *entry;
	int n = 0, r = hide_home(h, "/root");

	while (d && r == 0 && n++ < HOMES_MAX && (entry = readdir(d))) {
		AUTO_FREE char *home = NULL;

		if (entry->d_name[0] == '.')
			continue;
		if (asprintf(&home, "/home/%s", entry->d_name) < 0) {
			home = NULL;
			r = -ENOMEM;
		} else {
			r = hide_home(h, home);
		}
	}
	if (d)
		closedir(d);
	return r;
}

int credentials_hide(struct view *view, char *reterr, size_t cap)
{
	struct hiding h = { .view = view, .reterr = reterr, .cap = cap };
	/* Who is nobody's user has no home, and asking for one takes long. */
	const struct passwd *pw =
		view->spec->synthetic ? NULL : getpwuid(view->spec->uid);
	const char *home = getenv("HOME");
	int r = 0;

	if (home && *home == '/')
		r = hide_home(&h, home);
	if (r == 0 && view->home)
		r = hide_home(&h, view->home);
	if (r == 0 && pw && pw->pw_dir && *pw->pw_dir == '/')
		r = hide_home(&h, pw->pw_dir);
	if (r == 0 && view->spec->as_root)
		r = hide_homes(&h);
	if (r == 0)
		r = hide_config(&h);
	return r < 0 ? r : hide_variables(&h);
}
