/* SPDX-License-Identifier: Apache-2.0
 *
 * bundle.h - everything that a policy is made of, as text in one buffer.
 *
 * The launcher reads files and options into a bundle; the gate, which has no
 * file system, gets the same bytes in a sealed memfd and builds the same policy
 * from them. Its SHA-256 is the policy's digest.
 */
#ifndef POLICY_BUNDLE_H
#define POLICY_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy;

enum bundle_kind {
	BUNDLE_FILE = 1, /* origin: path as given; text: YAML */
	BUNDLE_ALLOW,	 /* origin: "--allow"; text: HOST|HOST:PORT|PRESET */
	BUNDLE_DENY,
	BUNDLE_PERMIT,	 /* text: CIDR */
	BUNDLE_OBSERVE,	 /* no text: as if by `mode: observe` */
	BUNDLE_INCLUDED, /* YAML that a file extends; origin: its path */
	BUNDLE_LIST,	 /* names that a file denies; origin: its path */
	BUNDLE_CEILING,	 /* a whole bundle, above this one; origin: its path */
};

struct bundle {
	uint8_t *data;
	size_t len;
};

void bundle_free(struct bundle *bundle);

/* Appends one part; copies. Returns 0 or -errno (-EFBIG past 256 MiB). */
int bundle_add(struct bundle *bundle, enum bundle_kind kind, const char *origin,
	       const char *text, size_t len);

struct policy_error {
	char text[512]; /* "policy.yaml:3:5: unknown key 'alow', did you mean
			   'allow'?": what, and a hint */
};

/* Reads @path (at most 512 KiB) and what it extends and denies by list, and
 * adds it all. 0, or -EINVAL and @reterr (also for what can't be read), or
 * -ENOMEM.
 */
int bundle_add_policy(struct bundle *bundle, const char *path,
		      struct policy_error *reterr);

/* The same for a process at work: only regular files, so that it never waits.
 */
int bundle_add_again(struct bundle *bundle, const char *path,
		     struct policy_error *reterr);

/* The same for a text that is no file, of which errors say @origin; what it
 * names is relative to the working directory. */
int bundle_add_policy_text(struct bundle *bundle, const char *origin,
			   const char *text, size_t len,
			   struct policy_error *reterr);

/* Puts @bundle below @ceiling, which came from @origin: its policy allows then
 * only what both allow (policy/policy.h). 0, -EFBIG, -ENOMEM, or -EINVAL if
 * either has a ceiling, or @ceiling is damaged. */
int bundle_add_ceiling(struct bundle *bundle, const struct bundle *ceiling,
		       const char *origin);

/* May @bundle, which somebody sent, be built and added to? It has to be whole,
 * without a ceiling, and its origins words that can be shown. Whether it is a
 * policy is policy_build()'s to say. 0, or -EINVAL and @reterr. */
int bundle_check_sent(const struct bundle *bundle, struct policy_error *reterr);

/* The @i-th file that the bundle came from, for hiding it from a sandbox;
 * returns false past the end. @buf holds @cap bytes. */
bool bundle_file(const struct bundle *bundle, size_t i, char *buf, size_t cap);

/* Builds a policy. Returns 0 and a policy with one reference, or -EINVAL and
 * @reterr, or -ENOMEM. Without any part the policy denies everything. */
int policy_build(const void *data, size_t len, struct policy **ret_policy,
		 struct policy_error *reterr);

/* Presets in the binary. NULL past the end / if unknown. */
const char *preset_name(size_t i);
const char *preset_yaml(const char *name, size_t *ret_len);

#endif
