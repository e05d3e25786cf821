/* SPDX-License-Identifier: Apache-2.0
 *
 * session.c - the name of a session, its policy and the place of its log.
 */
#include "cmd/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/log_reader.h"
#include "launch/isolate.h"

struct policy *session_build(const struct bundle *bundle)
{
	struct policy_error error;
	struct policy *policy;
	int err = policy_build(bundle->data, bundle->len, &policy, &error);

	if (err == -EINVAL)
		die(EXIT_SALLYPORT, "%s", error.text);
	if (err)
		die(EXIT_SALLYPORT, "policy: %s", strerror(-err));
	return policy;
}

static void build_policy(const struct options *options, struct session *s)
{
	s->policy = options->built ? policy_ref(options->built)
				   : session_build(&options->bundle);
	policy_describe(&options->policy, &options->bundle, s->policy_text,
			sizeof(s->policy_text));
}

static void say_policy(const struct options *options, const struct session *s)
{
	char dir[PATH_MAX];

	if (policy_observes(s->policy))
		log_warn("observing: what the policy refuses is let through "
			 "and recorded; only private addresses, limits and "
			 "broken protocols are refused");
	if (options->quiet || options->policy.paths || options->policy.allows)
		return;
	if (!policy_config_dir(dir, sizeof(dir)))
		snprintf(dir, sizeof(dir), "~/.config/sallyport");
	log_warn("no policy: everything is refused; write %s/policy.yaml, or "
		 "use --allow",
		 dir);
}

static void make_id(struct session *s)
{
	time_t now = time(NULL);
	uint64_t random;
	struct tm tm;
	char stamp[32];

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		die(EXIT_SALLYPORT, "no random numbers");
	gmtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(s->id, sizeof(s->id), "%s-%010llx", stamp,
		 (unsigned long long)(random & 0xffffffffffull));
}

int session_mkdir(const char *path)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

bool session_root(void)
{
	unsigned long inside, outside, count;

	if (geteuid() != 0)
		return false;
	AUTO_FILE FILE *map = fopen("/proc/self/uid_map", "re");
	while (map &&
	       fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3) {
		if (inside <= ISOLATE_UID_GATE &&
		    ISOLATE_UID_GATE + 100000 - inside <= count)
			return true;
	}
	return false;
}

/* A path of up to two parts; dies when too long. */
static void join(char *buf, size_t cap, const char *a, const char *b)
{
	int len = snprintf(buf, cap, "%s/%s", a, b);

	if (len < 0 || (size_t)len >= cap)
		die(EXIT_SALLYPORT, "the path %s/%s is too long", a, b);
}

bool session_home(char *buf, size_t cap)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (session_root())
		snprintf(buf, cap, "%s", SESSION_HOME_ROOT);
	else if (state && *state == '/')
		join(buf, cap, state, "sallyport");
	else if (home && *home == '/')
		join(buf, cap, home, ".local/state/sallyport");
	else
		return false;
	return true;
}

/* A log that its user can't read is one all the same. */
static void let_read(const struct options *options, struct session *s)
{
	int err = options->log_reader ? log_reader_pass(s->home) : 0;

	if (!err)
		err = session_log_share(&s->files, options->log_reader);
	if (err)
		log_warn("%s: user %u can't be let read it: %s", s->dir,
			 options->log_reader, strerror(-err));
}

static void open_log(const struct options *options, struct session *s)
{
	char why[PATH_MAX + 256];
	int err;

	session_home(s->home, sizeof(s->home));
	if (options->log_dir && !*options->log_dir)
		die(EXIT_SALLYPORT, "--log needs a directory");
	if (options->log_dir)
		snprintf(s->dir, sizeof(s->dir), "%s", options->log_dir);
	else if (*s->home)
		join(s->dir, sizeof(s->dir), s->home, s->id);
	else
		die(EXIT_SALLYPORT, "there is no HOME: say where the log goes "
				    "with --log DIR");
	err = session_mkdir(s->dir);
	if (err)
		die(EXIT_SALLYPORT,
		    "%s: %s\nSay where the log goes with "
		    "--log DIR.",
		    s->dir, strerror(-err));
	/* Absolute, as the sandbox must be kept from it. */
	AUTO_FREE char *real = realpath(s->dir, NULL);
	if (real)
		snprintf(s->dir, sizeof(s->dir), "%s", real);
	join(s->log, sizeof(s->log), s->dir, LOG_DIR_RECORDS);
	if (session_log_open(s->dir, policy_log(s->policy)->durable, &s->files,
			     why, sizeof(why)))
		die(EXIT_SALLYPORT,
		    "%s\nSay where the log goes with --log DIR.", why);
	let_read(options, s);
	if (s->files.has_earlier && !options->quiet)
		log_warn("%s: an earlier log is there, and is kept in %s",
			 s->dir, s->files.kept);
}

void session_policy(const struct options *options, struct session *session)
{
	build_policy(options, session);
	say_policy(options, session);
}

void session_open(const struct options *options, struct session *ret)
{
	*ret = (struct session){ .signing = { .fd = -1 } };
	session_policy(options, ret);
	make_id(ret);
	snprintf(ret->name, sizeof(ret->name), "%s",
		 options->name ? options->name : ret->id);
	signing_open(options->key, options->quiet, &ret->signing);
	open_log(options, ret);
}

void session_close(struct session *session)
{
	policy_unref(session->policy);
	signing_close(&session->signing);
	session_log_close(&session->files);
}
