/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_sessions.c - which logs there are below a directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/hostlog.h"
#include "audit/log_dir.h"
#include "audit/verify_read.h"
#include "base/cleanup.h"
#include "cmd/verify.h"

#define EARLIER "earlier-"

struct list {
	char **name;
	size_t count, cap;
};

static int add(struct list *list, const char *parent, const char *name)
{
	char **more;

	if (list->count == list->cap) {
		list->cap = list->cap ? 2 * list->cap : 64;
		more = realloc(list->name, list->cap * sizeof(*more));
		if (!more)
			return -ENOMEM;
		list->name = more;
	}
	if (asprintf(&list->name[list->count], "%s%s%s", parent,
		     *parent ? "/" : "", name) < 0)
		return -ENOMEM;
	list->count++;
	return 0;
}

/* Any of the files makes it one: the log may be what is missing. */
static bool has_log(const char *parent, const char *name)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%s", parent, name);
	AUTO_FD int dir =
		len < PATH_MAX ? open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
			       : -1;

	return dir >= 0 && verify_has_log(dir);
}

/* The log of all sessions is none of them; nor is a session one that only looks
 * like it. */
static bool is_host(const char *dir, const char *name)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return strncmp(name, HOSTLOG_DIR, strlen(HOSTLOG_DIR)) == 0 &&
	       len < PATH_MAX && verify_is_host(path);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int collect(struct list *list, const char *top, const char *below,
		   const char *prefix);

static int consider(struct list *list, const char *top, const char *below,
		    const char *dir, const char *name)
{
	char inner[PATH_MAX];
	int len, r;

	if (*name == '.' || is_host(dir, name) || !has_log(dir, name))
		return 0;
	r = add(list, below, name);
	len = snprintf(inner, sizeof(inner), "%s%s%s", below, *below ? "/" : "",
		       name);
	if (r < 0 || len >= PATH_MAX || *below)
		return r;
	return collect(list, top, inner, EARLIER);
}

/* Two levels: sessions, and what earlier ones left in their places. */
static int collect(struct list *list, const char *top, const char *below,
		   const char *prefix)
{
	struct dirent **entry = NULL;
	char dir[PATH_MAX];
	int n, r = 0;

	if (snprintf(dir, sizeof(dir), "%s%s%s", top, *below ? "/" : "",
		     below) >= PATH_MAX)
		return -ENAMETOOLONG;
	n = scandir(dir, &entry, NULL, by_name);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;

		if (!r && strncmp(name, prefix, strlen(prefix)) == 0)
			r = consider(list, top, below, dir, name);
		free(entry[i]);
	}
	free(entry);
	return r;
}

int verify_sessions(const char *dir, const char *prefix, char ***ret_names)
{
	struct list list = { .count = 0 };
	int r = collect(&list, dir, "", prefix);

	if (r < 0) {
		while (list.count)
			free(list.name[--list.count]);
		free(list.name);
		return r;
	}
	*ret_names = list.name;
	return (int)list.count;
}

/* 20261121T041652Z-3f9a0c11d2 */
static bool is_id(const char *name)
{
	static const char form[] = "00000000T000000Z-xxxxxxxxxx";

	if (strlen(name) != sizeof(form) - 1)
		return false;
	for (const char *at = form; *at; at++, name++) {
		if (*at == '0'	 ? *name < '0' || *name > '9'
		    : *at == 'x' ? !strchr("0123456789abcdef", *name)
				 : *name != *at)
			return false;
	}
	return true;
}

void verify_add_problem(struct verify_result *result, enum verify_fault fault,
			const char *file, const char *text)
{
	struct verify_problem *problem;

	result->verdict = VERIFY_BROKEN;
	if (result->problems++ >= VERIFY_PROBLEMS_MAX)
		return;
	problem = &result->problem[result->problems - 1];
	*problem = (struct verify_problem){ .fault = fault };
	snprintf(problem->file, sizeof(problem->file), "%s", file);
	snprintf(problem->text, sizeof(problem->text), "%s", text);
}

void verify_check_name(const char *dir, struct verify_result *result)
{
	AUTO_FREE char *real = realpath(dir, NULL);
	const char *slash = real ? strrchr(real, '/') : NULL;
	char text[160];

	if (!slash || !is_id(slash + 1) || !*result->session ||
	    strcmp(slash + 1, result->session) == 0)
		return;
	snprintf(text, sizeof(text),
		 "the directory of this session has session %s in it",
		 result->session);
	verify_add_problem(result, VERIFY_OTHER_SESSION, slash + 1, text);
}

bool verify_fits(const struct verify_result *result,
		 const struct verify_result *earlier)
{
	char buf[sizeof(result->earlier_checkpoint) + 8];
	struct json j = json_of(buf, sizeof(buf));
	const char *quoted = result->earlier_checkpoint;

	if (!result->quotes_earlier)
		return true;
	/* As a record has it. */
	json_bytes(&j, NULL, earlier->last_checkpoint,
		   strlen(earlier->last_checkpoint));
	return earlier->bytes == result->earlier_bytes && !j.full &&
	       (!*quoted || (j.len == strlen(quoted) + 2 &&
			     memcmp(buf + 1, quoted, j.len - 2) == 0));
}
