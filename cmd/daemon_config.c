/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_config.c - a tree of YAML (policy/tree.h) into the one struct; every
 * mapping is first sorted into its known keys.
 */
#include "cmd/daemon_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cmd/daemon.h"
#include "cmd/policy_file.h"
#include "policy/policy.h"
#include "policy/tree.h"
#include "policy/values.h"
#include "policy/words.h"

#define CONFIG_TEXT_MAX (256u << 10)

struct reader {
	struct source source;
	struct daemon_config *config;
};

#define FAULT(r, node, ...) \
	source_fault(&(r)->source, (node)->line, (node)->column, __VA_ARGS__)

/* --- shapes -------------------------------------------------------------- */

static int unknown_key(const struct reader *r, const struct node *key,
		       const char *const names[], size_t n)
{
	const char *guess = word_guess(key->text, names, n);
	char shown[WORD_SHOWN_MAX], all[240];

	word_show(key->text, strlen(key->text), shown);
	if (guess)
		return FAULT(r, key, "unknown key %s, did you mean '%s'?",
			     shown, guess);
	return FAULT(r, key, "unknown key %s, the keys here are %s", shown,
		     word_join(names, n, all, sizeof(all)));
}

/* Puts the value of names[i] into ret_value[i], NULL where there is none. */
static int take_keys(const struct reader *r, const struct node *map,
		     const char *what, const char *const names[], size_t n,
		     const struct node *ret_value[])
{
	for (size_t i = 0; i < n; i++)
		ret_value[i] = NULL;
	if (!map)
		return 0;
	if (map->kind != NODE_MAP)
		return FAULT(r, map, "%s is a mapping (key: value), not %s",
			     what, node_type(map));
	for (const struct node *key = map->child; key; key = key->next->next) {
		size_t i = 0;

		if (key->kind != NODE_SCALAR)
			return FAULT(r, key, "a key is a word, not %s",
				     node_type(key));
		while (i < n && strcmp(key->text, names[i]) != 0)
			i++;
		if (i == n)
			return unknown_key(r, key, names, n);
		if (ret_value[i])
			return FAULT(r, key,
				     "'%s' is here twice (first in line %u), "
				     "keep one",
				     names[i], ret_value[i]->line);
		ret_value[i] = key->next;
	}
	return 0;
}

/* A text of at most @cap - 1 bytes; NULL @node: @buf stays as it is. */
static int take_text(const struct reader *r, const struct node *node,
		     const char *what, char *buf, size_t cap)
{
	if (!node)
		return 0;
	if (node->kind != NODE_SCALAR || !*node->text || node_is_null(node))
		return FAULT(r, node, "'%s' is a text, not %s", what,
			     node_type(node));
	if (strlen(node->text) >= cap)
		return FAULT(r, node, "'%s' is longer than %zu bytes", what,
			     cap - 1);
	memcpy(buf, node->text, strlen(node->text) + 1);
	return 0;
}

static int take_path(const struct reader *r, const struct node *node,
		     const char *what, char *buf)
{
	int ret = take_text(r, node, what, buf, PATH_MAX);

	if (ret == 0 && node && *buf != '/')
		return FAULT(r, node,
			     "'%s' is an absolute path, write /etc/...", what);
	return ret;
}

static int take_count(const struct reader *r, const struct node *node,
		      const char *what, unsigned max, unsigned *ret)
{
	if (!node || (node->kind == NODE_SCALAR && node->plain &&
		      value_count(node->text, max, ret)))
		return 0;
	return FAULT(r, node, "'%s' is a whole number from 1 to %u", what, max);
}

static int take_bool(const struct reader *r, const struct node *node,
		     const char *what, bool *ret)
{
	if (!node)
		return 0;
	if (node->kind == NODE_SCALAR && node->plain &&
	    (strcmp(node->text, "true") == 0 ||
	     strcmp(node->text, "false") == 0)) {
		*ret = *node->text == 't';
		return 0;
	}
	return FAULT(r, node, "'%s' is true or false", what);
}

static int take_time(const struct reader *r, const struct node *node,
		     const char *what, uint32_t *ret_s)
{
	const char *wrong = NULL;

	if (node)
		wrong = node->kind == NODE_SCALAR
				? value_duration(node->text, ret_s)
				: "it is a time: 24h";
	return wrong ? FAULT(r, node, "bad %s, %s", what, wrong) : 0;
}

static int take_size(const struct reader *r, const struct node *node,
		     const char *what, uint64_t *ret_bytes)
{
	const char *wrong = NULL;

	if (node)
		wrong = node->kind == NODE_SCALAR
				? value_size_from(node->text, 1,
						  "no policy has no bytes",
						  ret_bytes)
				: "it is a size: 256 MB";
	return wrong ? FAULT(r, node, "bad %s, %s", what, wrong) : 0;
}

/* --- policies ------------------------------------------------------------ */

/* Reads the policy at @path, and finds out whether it is one. */
static int read_policy(const struct reader *r, const struct node *node,
		       const char *path, struct bundle *ret)
{
	const struct policy_choice choice = { .path = { path },
					      .paths = 1,
					      .again = true };
	struct policy_error why;
	struct policy *policy;
	int err = policy_read(&choice, ret, &why);

	if (err == 0)
		err = policy_build(ret->data, ret->len, &policy, &why);
	if (err == 0)
		policy_unref(policy);
	if (err != -EINVAL)
		return err;
	/* It says itself where it is wrong; here is who wanted it. */
	return FAULT(r, node, "%.400s", why.text);
}

static int add_policy(const struct reader *r, const struct node *key)
{
	struct daemon_config *config = r->config;
	struct daemon_policy *policy = &config->policy[config->policies];
	const struct node *value = key->next;
	int ret;

	if (key->kind != NODE_SCALAR)
		return FAULT(r, key, "a key is a word, not %s", node_type(key));
	if (!daemon_name_ok(key->text))
		return FAULT(r, key,
			     "a policy's name has small letters, digits, '-', "
			     "'_' and '.', at most %d",
			     DAEMON_NAME_MAX - 1);
	if (daemon_config_policy(config, key->text))
		return FAULT(r, key, "'%s' is here twice, keep one", key->text);
	ret = take_path(r, value, key->text, policy->path);
	if (ret < 0)
		return ret;
	memcpy(policy->name, key->text, strlen(key->text) + 1);
	/* Counted first: what was read is freed with the rest. */
	config->policies++;
	return read_policy(r, value, policy->path, &policy->bundle);
}

static int take_policies(const struct reader *r, const struct node *map)
{
	size_t n = 0;
	int ret = 0;

	if (!map)
		return 0;
	if (map->kind != NODE_MAP)
		return FAULT(r, map,
			     "'policies' is a mapping (NAME: PATH), not %s",
			     node_type(map));
	for (const struct node *key = map->child; key; key = key->next->next)
		if (++n > DAEMON_POLICIES_MAX)
			return FAULT(r, key, "more than %d policies",
				     DAEMON_POLICIES_MAX);
	r->config->policy = calloc(n ? n : 1, sizeof(*r->config->policy));
	if (!r->config->policy)
		return -ENOMEM;
	for (const struct node *key = map->child; key && ret == 0;
	     key = key->next->next)
		ret = add_policy(r, key);
	return ret;
}

static int take_default(const struct reader *r, const struct node *node)
{
	struct daemon_config *config = r->config;
	int ret = take_text(r, node, "default_policy", config->default_policy,
			    sizeof(config->default_policy));
	char shown[WORD_SHOWN_MAX];

	if (ret < 0 || !node ||
	    daemon_config_policy(config, config->default_policy))
		return ret;
	return FAULT(r, node, "%s is not one of 'policies'",
		     word_show(node->text, strlen(node->text), shown));
}

static int take_ceiling(const struct reader *r, const struct node *node)
{
	struct daemon_config *c = r->config;
	int ret = take_path(r, node, "ceiling", c->ceiling_path);

	if (ret == 0 && node)
		ret = read_policy(r, node, c->ceiling_path, &c->ceiling);
	if (ret == 0 && node && daemon_config_bounds(c) < 0)
		return FAULT(r, node, "its 'sandbox' is too long");
	return ret;
}

/* --- the rest ------------------------------------------------------------ */

static int take_limits(const struct reader *r, const struct node *map)
{
	enum { MAX, MAX_PER_USER, WALL, BYTES, SPARE, COUNT };
	static const char *const names[COUNT] = {
		"max_sandboxes", "max_sandboxes_per_user", "wall_clock",
		"policy_bytes_per_user", "spare_per_user"
	};
	struct daemon_config *config = r->config;
	const struct node *v[COUNT];
	int ret = take_keys(r, map, "limits", names, COUNT, v);

	if (ret < 0 ||
	    (ret = take_count(r, v[MAX], names[MAX], DAEMON_SANDBOXES_MAX,
			      &config->max_sandboxes)) ||
	    (ret = take_count(r, v[MAX_PER_USER], names[MAX_PER_USER],
			      DAEMON_SANDBOXES_MAX,
			      &config->max_sandboxes_per_user)) ||
	    (ret = take_count(r, v[SPARE], names[SPARE], DAEMON_SPARE_MAX,
			      &config->spare_per_user)) ||
	    (ret = take_time(r, v[WALL], names[WALL], &config->wall_clock_s)))
		return ret;
	return take_size(r, v[BYTES], names[BYTES],
			 &config->policy_bytes_per_user);
}

static int take_docker(const struct reader *r, const struct node *map)
{
	enum { ENABLED, SOCKET, DNS, COUNT };
	static const char *const names[COUNT] = { "enabled", "socket", "dns" };
	struct daemon_config *config = r->config;
	const struct node *v[COUNT];
	int ret = take_keys(r, map, "docker", names, COUNT, v);

	if (ret == 0)
		ret = take_bool(r, v[ENABLED], "enabled", &config->docker);
	if (ret == 0)
		ret = take_path(r, v[SOCKET], "socket", config->docker_socket);
	if (ret == 0)
		ret = take_text(r, v[DNS], "dns", config->docker_dns,
				sizeof(config->docker_dns));
	if (ret < 0 || !v[DNS] || strcmp(config->docker_dns, "require") == 0 ||
	    strcmp(config->docker_dns, "tables") == 0)
		return ret;
	return FAULT(r, v[DNS], "'dns' is one of require, tables");
}

static int take_root(const struct reader *r, const struct node *root)
{
	enum {
		VERSION,
		POLICIES,
		DEFAULT,
		CEILING,
		LIMITS,
		DOCKER,
		GROUP,
		COUNT
	};
	static const char *const names[COUNT] = { "version",	    "policies",
						  "default_policy", "ceiling",
						  "limits",	    "docker",
						  "group" };
	struct daemon_config *config = r->config;
	const struct node *v[COUNT];
	int ret = take_keys(r, root, "the configuration", names, COUNT, v);

	if (ret < 0)
		return ret;
	if (!v[VERSION])
		return FAULT(r, root,
			     "'version' is missing, add \"version: 1\"");
	if (v[VERSION]->kind != NODE_SCALAR || !v[VERSION]->plain ||
	    strcmp(v[VERSION]->text, "1") != 0)
		return FAULT(r, v[VERSION],
			     "'version' is the number 1, there is no other "
			     "yet");
	if ((ret = take_policies(r, v[POLICIES])) ||
	    (ret = take_default(r, v[DEFAULT])) ||
	    (ret = take_ceiling(r, v[CEILING])) ||
	    (ret = take_limits(r, v[LIMITS])) ||
	    (ret = take_docker(r, v[DOCKER])))
		return ret;
	return take_text(r, v[GROUP], "group", config->group,
			 sizeof(config->group));
}

static struct daemon_config *usual(void)
{
	struct daemon_config *config = calloc(1, sizeof(*config));

	if (!config)
		return NULL;
	config->max_sandboxes = 1000;
	config->max_sandboxes_per_user = 64;
	config->policy_bytes_per_user = 256000000;
	memcpy(config->group, "sallyport", sizeof("sallyport"));
	return config;
}

int daemon_config_parse(const char *origin, const char *text, size_t len,
			struct daemon_config **ret_config,
			struct policy_error *reterr)
{
	struct reader r = { .source = { .origin = origin, .err = reterr },
			    .config = usual() };
	struct node *root = NULL;
	int ret = r.config ? tree_parse(text, len, &r.source, &root) : -ENOMEM;

	if (ret == 0 && !root)
		ret = source_fault(&r.source, 1, 1,
				   "the configuration is empty, it starts with "
				   "\"version: 1\"");
	if (ret == 0)
		ret = take_root(&r, root);
	tree_free(root);
	if (ret < 0) {
		daemon_config_free(r.config);
		return ret;
	}
	*ret_config = r.config;
	return 0;
}

/* At most @cap bytes of a regular file. Its length, or -errno. */
static ssize_t read_file(const char *path, char *buf, size_t cap)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	size_t len = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_uid != 0 || st.st_mode & S_IWOTH)
		return -EPERM;
	while (len < cap && (n = read(fd, buf + len, cap - len)) != 0) {
		if (n < 0)
			return -errno;
		len += (size_t)n;
	}
	return len < cap ? (ssize_t)len : -EFBIG;
}

int daemon_config_read(const char *path, bool optional,
		       struct daemon_config **ret_config,
		       struct policy_error *reterr)
{
	AUTO_FREE char *text = malloc(CONFIG_TEXT_MAX);
	ssize_t len = text ? read_file(path, text, CONFIG_TEXT_MAX) : -ENOMEM;

	if (len == -ENOMEM)
		return -ENOMEM;
	if (len == -ENOENT && optional) {
		*ret_config = usual();
		return *ret_config ? 0 : -ENOMEM;
	}
	if (len < 0) {
		snprintf(reterr->text, sizeof(reterr->text), "%.300s: %s", path,
			 len == -EPERM ? "it must be root's, and nobody else "
					 "may write to it"
				       : strerror((int)-len));
		return -EINVAL;
	}
	return daemon_config_parse(path, text, (size_t)len, ret_config, reterr);
}

struct daemon_config *daemon_config_ref(struct daemon_config *config)
{
	config->others++;
	return config;
}

void daemon_config_free(struct daemon_config *config)
{
	if (!config || config->others--)
		return;
	for (size_t i = 0; i < config->policies; i++)
		bundle_free(&config->policy[i].bundle);
	free(config->policy);
	bundle_free(&config->ceiling);
	free(config);
}

const struct daemon_policy *
daemon_config_policy(const struct daemon_config *config, const char *name)
{
	for (size_t i = 0; i < config->policies; i++)
		if (strcmp(config->policy[i].name, name) == 0)
			return &config->policy[i];
	return NULL;
}
