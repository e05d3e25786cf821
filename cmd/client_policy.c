/* SPDX-License-Identifier: Apache-2.0
 *
 * client_policy.c - a bundle as base64, and HOME/made/NAME: the paths of its
 * files, canonical, each ended by a NUL.
 */
#include "cmd/client_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "audit/text.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/command.h"
#include "cmd/policy_options.h"
#include "cmd/session.h"

/* Of a change that another one is in the way of. */
#define STATUS_CONFLICT 409
#define RETRY_MS	200
#define RETRIES		50

#define NOTES	 "made"
#define MADE_MAX ((size_t)1 << 20)

static void put_text(json_t *body, const char *key, const char *text)
{
	if (json_object_set_new(body, key, json_string(text)))
		die(EXIT_SALLYPORT, "out of memory, or no UTF-8: %s", text);
}

static void put_bundle(json_t *body, const struct bundle *bundle)
{
	struct out out = { .cap = (bundle->len + 2) / 3 * 4 + 1 };
	AUTO_FREE char *text = malloc(out.cap);
	size_t len;

	out.buf = text;
	if (!text)
		die(EXIT_SALLYPORT, "out of memory");
	out_base64(&out, bundle->data, bundle->len);
	if (out_end(&out, &len) ||
	    json_object_set_new(body, "bundle", json_stringn(text, len)))
		die(EXIT_SALLYPORT, "out of memory");
}

/* The text is cut at any byte, and paths may be no UTF-8. */
static void put_description(json_t *body, const struct client_policy *policy)
{
	char text[512];

	policy_describe(&policy->choice, &policy->bundle, text, sizeof(text));
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
	put_text(body, "policy_text", text);
}

bool client_policy_put(struct client_policy *policy, json_t *body)
{
	struct policy_choice *choice = &policy->choice;

	if (policy->name) {
		if (choice->paths || choice->words.len)
			die(EXIT_SALLYPORT,
			    "--policy-name is all of a policy: nothing can be "
			    "added to it");
		put_text(body, "policy_name", policy->name);
		return true;
	}
	policy_options_read(choice, &policy->bundle);
	if (!policy->bundle.len)
		return false;
	client_policy_put_read(policy, body);
	return true;
}

void client_policy_put_read(const struct client_policy *policy, json_t *body)
{
	put_bundle(body, &policy->bundle);
	put_description(body, policy);
}

void client_policy_free(struct client_policy *policy)
{
	policy_choice_free(&policy->choice);
	bundle_free(&policy->bundle);
}

json_t *client_policy_send(const char *socket, const char *name,
			   const json_t *body, int *ret_status)
{
	const struct timespec pause = { .tv_nsec = RETRY_MS * 1000000 };
	const struct client_call call = { .socket = socket,
					  .method = "PUT",
					  .name = name,
					  .path = "/policy",
					  .body = body };
	json_t *answer = client_ask_json(&call, ret_status);

	for (int i = 0; *ret_status == STATUS_CONFLICT && i < RETRIES; i++) {
		json_decref(answer);
		nanosleep(&pause, NULL);
		answer = client_ask_json(&call, ret_status);
	}
	return answer;
}

/* --- the files ----------------------------------------------------------- */

static int note_path(const char *name, char *buf, size_t cap)
{
	char home[PATH_MAX];
	int len;

	if (!session_home(home, sizeof(home)))
		return -ENOENT;
	len = snprintf(buf, cap, "%s/" NOTES "/%s", home, name);
	return len < 0 || (size_t)len >= cap ? -ENAMETOOLONG : 0;
}

static int write_note(const char *path, const struct bundle *bundle)
{
	AUTO_FD int fd = open(
		path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		0600);
	char file[PATH_MAX];

	if (fd < 0)
		return -errno;
	for (size_t i = 0; bundle_file(bundle, i, file, sizeof(file)); i++) {
		AUTO_FREE char *real = realpath(file, NULL);
		size_t len = real ? strlen(real) + 1 : 0;

		if (real && write(fd, real, len) != (ssize_t)len)
			return -EIO;
	}
	return 0;
}

void client_policy_remember(const struct client_policy *policy,
			    const char *name)
{
	char path[PATH_MAX], file[PATH_MAX], *slash;
	int err;

	client_policy_forget(name);
	if (!bundle_file(&policy->bundle, 0, file, sizeof(file)))
		return;
	err = note_path(name, path, sizeof(path));
	if (!err) {
		slash = strrchr(path, '/');
		*slash = '\0';
		err = session_mkdir(path);
		*slash = '/';
	}
	if (!err)
		err = write_note(path, &policy->bundle);
	if (err)
		log_warn("`sallyport exec %s` will not know that it has to "
			 "keep %s from its command: %s",
			 name, file, strerror(-err));
}

int client_policy_recall(const char *name, struct bundle *ret_bundle)
{
	AUTO_FREE char *text = malloc(MADE_MAX);
	char path[PATH_MAX];
	int err = note_path(name, path, sizeof(path));
	ssize_t n;

	if (err || !text)
		return err ? err : -ENOMEM;
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	n = read(fd, text, MADE_MAX);
	if (n < 0)
		return -errno;
	for (const char *at = text, *end; !err && n; at = end + 1) {
		end = memchr(at, '\0', (size_t)n);
		if (!end)
			return -EBADMSG;
		err = bundle_add(ret_bundle, BUNDLE_FILE, at, "", 0);
		n -= end - at + 1;
	}
	return err;
}

void client_policy_forget(const char *name)
{
	char path[PATH_MAX];

	if (!note_path(name, path, sizeof(path)))
		unlink(path);
}
