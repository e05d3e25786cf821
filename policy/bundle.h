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

#include <stddef.h>
#include <stdint.h>

struct policy;

enum bundle_kind {
	BUNDLE_FILE = 1, /* origin: path as given; text: YAML */
	BUNDLE_ALLOW,	 /* origin: "--allow"; text: HOST|HOST:PORT|PRESET */
	BUNDLE_DENY,
	BUNDLE_PERMIT, /* text: CIDR */
};

struct bundle {
	uint8_t *data;
	size_t len;
};

void bundle_free(struct bundle *bundle);

/* Appends one part; copies. Returns 0 or -errno (-EFBIG past 64 MiB). */
int bundle_add(struct bundle *bundle, enum bundle_kind kind, const char *origin,
	       const char *text, size_t len);

/* Reads @path and adds it (at most 10 MiB, else -EFBIG). 0 or -errno. */
int bundle_add_file(struct bundle *bundle, const char *path);

struct policy_error {
	char text[512]; /* "policy.yaml:3:5: unknown key 'alow', did you mean
			   'allow'?": what, and a hint */
};

/* Builds a policy. Returns 0 and a policy with one reference, or -EINVAL and
 * @reterr, or -ENOMEM. Without any part the policy denies everything. */
int policy_build(const void *data, size_t len, struct policy **ret_policy,
		 struct policy_error *reterr);

/* Presets in the binary. NULL past the end / if unknown. */
const char *preset_name(size_t i);
const char *preset_yaml(const char *name, size_t *ret_len);

#endif
