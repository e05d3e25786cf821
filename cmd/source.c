/* SPDX-License-Identifier: Apache-2.0
 *
 * source.c - see source.h.
 */
#include "cmd/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"
#include "policy/policy.h"
#include "policy/presets.h"

#define STDIN_MAX                                                  \
	((size_t)11 << 20) /* a little more than a policy may have \
			    */

static int read_stdin(char **ret_text, size_t *ret_len)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0, cap = 0;

	do {
		if (len == cap) {
			char *grown;

			cap = cap ? cap * 2 : 65536;
			grown = realloc(text, cap);
			if (!grown)
				return -ENOMEM;
			text = grown;
		}
		len += fread(text + len, 1, cap - len, stdin);
	} while (!feof(stdin) && !ferror(stdin) && len <= STDIN_MAX);
	if (ferror(stdin))
		return -EIO;
	*ret_text = STEAL(text);
	*ret_len = len;
	return 0;
}

static int add_stdin(struct bundle *bundle, struct policy_error *reterr)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	int ret = read_stdin(&text, &len);

	if (ret == -EIO) {
		snprintf(reterr->text, sizeof(reterr->text),
			 "<stdin>: it can't be read");
		return -EINVAL;
	}
	return ret < 0 ? ret
		       : bundle_add_policy_text(bundle, "<stdin>", text, len,
						reterr);
}

static int add_preset(struct bundle *bundle, const char *name,
		      struct policy_error *reterr)
{
	const char *guess = preset_guess(name);

	if (preset_find(name) >= 0)
		return bundle_add(bundle, BUNDLE_ALLOW, "preset:", name,
				  strlen(name));
	snprintf(reterr->text, sizeof(reterr->text),
		 "no preset '%.100s'%s%s%s; `sallyport presets` lists them",
		 name, guess ? ", did you mean '" : "", guess ? guess : "",
		 guess ? "'?" : "");
	return -EINVAL;
}

int source_add(struct bundle *bundle, const char *what,
	       struct policy_error *reterr)
{
	if (strcmp(what, "-") == 0)
		return add_stdin(bundle, reterr);
	if (strncmp(what, "preset:", 7) == 0)
		return add_preset(bundle, what + 7, reterr);
	return bundle_add_policy(bundle, what, reterr);
}

int source_add_ceiling(struct bundle *bundle, const char *what,
		       struct policy_error *reterr)
{
	struct bundle ceiling = { 0 };
	int ret = source_add(&ceiling, what, reterr);

	if (ret == 0)
		ret = bundle_add_ceiling(bundle, &ceiling, what);
	bundle_free(&ceiling);
	return ret;
}

int source_load(const char *what, const char *ceiling,
		struct bundle *ret_bundle, struct policy **ret_policy,
		struct policy_error *reterr)
{
	struct bundle bundle = { 0 };
	int ret = source_add(&bundle, what, reterr);

	if (ret == 0 && ceiling)
		ret = source_add_ceiling(&bundle, ceiling, reterr);
	if (ret == 0)
		ret = policy_build(bundle.data, bundle.len, ret_policy, reterr);
	if (ret == 0 && ret_bundle)
		*ret_bundle = bundle;
	else
		bundle_free(&bundle);
	return ret;
}

static struct policy *must(int ret, struct policy *policy, const char *text)
{
	if (ret == -EINVAL)
		die(EXIT_SALLYPORT, "%s", text);
	if (ret < 0)
		die(EXIT_SALLYPORT, "%s", strerror(-ret));
	return policy;
}

struct policy *source_must_load(const char *what)
{
	struct policy_error error;
	struct policy *policy = NULL;
	int ret = source_load(what, NULL, NULL, &policy, &error);

	return must(ret, policy, error.text);
}

struct policy *source_must_build(const struct bundle *bundle)
{
	struct policy_error error;
	struct policy *policy = NULL;
	int ret = policy_build(bundle->data, bundle->len, &policy, &error);

	return must(ret, policy, error.text);
}
