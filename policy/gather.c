/* SPDX-License-Identifier: Apache-2.0
 *
 * gather.c - a policy file and all the files that it names, read into a bundle.
 *
 * Only what it takes to find names is looked at here; faults in the rest are
 * policy_build()'s to find, which sees the same bytes. A file is read once,
 * however often it is named, so circles end here by themselves.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/build.h"
#include "policy/part.h"
#include "policy/tree.h"

#define FILES_MAX     256
#define LIST_TEXT_MAX ((size_t)192 << 20)

struct gatherer {
	struct bundle *bundle;
	struct policy_error *err;
	unsigned depth, files;
	bool again; /* we are at work: nothing may keep us waiting */
};

static int read_all(int fd, size_t max, char **ret_text, size_t *ret_len)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0, cap = 0;

	for (;;) {
		if (len == cap) {
			/* One byte more than allowed shows that it is more. */
			cap = cap ? cap * 2 : 65536;
			if (cap > max + 1)
				cap = max + 1;
			char *grown = realloc(text, cap);
			if (!grown)
				return -ENOMEM;
			text = grown;
		}
		ssize_t n = read(fd, text + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
	}
	*ret_text = STEAL(text);
	*ret_len = len;
	return 0;
}

/* A directory or a device is no policy. A pipe may be one that a person names;
 * it may block for ever too, and what was read from one is gone. */
static int open_file(const char *path, bool regular)
{
	struct stat st;
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY |
					    (regular ? O_NONBLOCK : 0));

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISBLK(st.st_mode) || (regular && !S_ISREG(st.st_mode)))
		return -ENOTSUP;
	return steal_fd(&fd);
}

/* Where a fault in a file is: the file that names it, or the command line. */
struct place {
	const struct source *source;
	const struct node *node;
};

static int file_fault(struct gatherer *g, const struct place *place,
		      const char *path, const char *why)
{
	if (place)
		return source_fault(place->source, place->node->line,
				    place->node->column, "%.200s: %s", path,
				    why);
	snprintf(g->err->text, sizeof(g->err->text), "%.300s: %s", path, why);
	text_clean(g->err->text);
	return -EINVAL;
}

static bool is_gathered(const struct bundle *bundle, enum bundle_kind kind,
			const char *path)
{
	const struct draft draft = { .bundle = bundle->data,
				     .bundle_len = bundle->len };
	const char *text;
	size_t len;

	return draft_find_part(&draft, kind, path, &text, &len);
}

static int gather_file(struct gatherer *g, const struct place *place,
		       enum bundle_kind kind, const char *path);

static int gather_named(struct gatherer *g, const struct source *source,
			const struct node *node, enum bundle_kind kind)
{
	const struct place place = { source, node };
	char path[PATH_TEXT_MAX];

	if (node->kind != NODE_SCALAR ||
	    !path_join(source->origin, node->text, path, sizeof(path)) ||
	    is_gathered(g->bundle, kind, path))
		return 0; /* nothing to read; the loader says what is wrong */
	return gather_file(g, &place, kind, path);
}

static const struct node *value_of(const struct node *map, const char *key)
{
	if (map->kind != NODE_MAP)
		return NULL;
	for (const struct node *k = map->child; k; k = k->next->next)
		if (k->kind == NODE_SCALAR && strcmp(k->text, key) == 0)
			return k->next;
	return NULL;
}

static const struct node *first_of(const struct node *list)
{
	return list && list->kind == NODE_LIST ? list->child : NULL;
}

static int gather_names(struct gatherer *g, const struct source *source,
			const struct node *root)
{
	const struct node *c = first_of(value_of(root, "extends"));
	int ret = 0;

	for (; c && ret == 0; c = c->next)
		if (c->kind == NODE_SCALAR && path_is_file(c->text))
			ret = gather_named(g, source, c, BUNDLE_INCLUDED);
	c = first_of(value_of(root, "deny"));
	for (; c && ret == 0; c = c->next) {
		const struct node *file = value_of(c, "file");

		if (file)
			ret = gather_named(g, source, file, BUNDLE_LIST);
	}
	return ret;
}

/* What can't be parsed names nothing; policy_build() says why. */
static int gather_from(struct gatherer *g, const char *path, const char *text,
		       size_t len)
{
	struct policy_error ignored;
	const struct source quiet = { .origin = path, .err = &ignored };
	const struct source source = { .origin = path, .err = g->err };
	struct node *root = NULL;
	int ret;

	/* Most name nothing, and need no second reading. */
	if (!memmem(text, len, "extends", 7) && !memmem(text, len, "file", 4))
		return 0;
	ret = tree_parse(text, len, &quiet, &root);

	if (ret == -EINVAL || !root)
		return 0;
	if (ret < 0)
		return ret;
	ret = gather_names(g, &source, root);
	tree_free(root);
	return ret;
}

static int gather_text(struct gatherer *g, enum bundle_kind kind,
		       const char *path, const char *text, size_t len)
{
	int ret = bundle_add(g->bundle, kind, path, text, len);

	if (ret < 0 || kind == BUNDLE_LIST)
		return ret;
	g->depth++;
	/* Deeper than the loader goes it has no use for them. */
	if (g->depth <= DEPTH_OF_EXTENDS + 1)
		ret = gather_from(g, path, text, len);
	g->depth--;
	return ret;
}

static int read_file(const char *path, size_t max, bool regular,
		     char **ret_text, size_t *ret_len)
{
	AUTO_FD int fd = open_file(path, regular);

	return fd < 0 ? fd : read_all(fd, max, ret_text, ret_len);
}

static int gather_file(struct gatherer *g, const struct place *place,
		       enum bundle_kind kind, const char *path)
{
	size_t max = kind == BUNDLE_LIST ? LIST_TEXT_MAX : FILE_TEXT_MAX;
	AUTO_FREE char *text = NULL;
	char why[96];
	size_t len = 0;
	int ret;

	if (++g->files > FILES_MAX)
		return file_fault(g, place, path, "too many files are named");
	/* Who reads a policy of others did not name what it names. */
	ret = read_file(path, max, g->again || place, &text, &len);
	if (ret == -ENOTSUP)
		return file_fault(g, place, path,
				  "it is no regular file, copy it to one");
	if (ret < 0 && ret != -EFBIG)
		return ret == -ENOMEM
			       ? ret
			       : file_fault(g, place, path, strerror(-ret));
	if (ret == 0)
		ret = gather_text(g, kind, path, text, len);
	if (ret != -EFBIG)
		return ret;
	snprintf(why, sizeof(why), "it is larger than %zu KiB, %s", max >> 10,
		 kind == BUNDLE_LIST ? "split it"
				     : "use wildcards, or lists under 'deny'");
	return file_fault(g, place, path, why);
}

int bundle_add_policy(struct bundle *bundle, const char *path,
		      struct policy_error *reterr)
{
	struct gatherer g = { .bundle = bundle, .err = reterr };

	return gather_file(&g, NULL, BUNDLE_FILE, path);
}

int bundle_add_again(struct bundle *bundle, const char *path,
		     struct policy_error *reterr)
{
	struct gatherer g = { .bundle = bundle, .err = reterr, .again = true };

	return gather_file(&g, NULL, BUNDLE_FILE, path);
}

int bundle_add_policy_text(struct bundle *bundle, const char *origin,
			   const char *text, size_t len,
			   struct policy_error *reterr)
{
	struct gatherer g = { .bundle = bundle, .err = reterr };

	if (len > FILE_TEXT_MAX)
		return file_fault(&g, NULL, origin, "it is too large");
	return gather_text(&g, BUNDLE_FILE, origin, text, len);
}
