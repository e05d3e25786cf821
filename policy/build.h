/* SPDX-License-Identifier: Apache-2.0
 *
 * build.h - a policy under construction: inside policy/ only. policy_build() of
 * bundle.h is the door.
 */
#ifndef POLICY_BUILD_H
#define POLICY_BUILD_H

#include "policy/bundle.h"
#include "policy/rule.h"
#include "policy/target.h"

#define PATH_TEXT_MAX	 4096
#define LOADS_MAX	 256 /* files and presets, counted each time */
#define DEPTH_OF_EXTENDS 8

/* What a file says beside its rules. Numbers are 0 where nothing is said. */
struct settings {
	enum said is_public, observes, answers_real;
	struct limits limits;
	enum said sign_every, durable; /* log: */
	uint64_t rotate_bytes;
	uint32_t rotate_s;
	struct cell_said cell; /* sandbox:, without its lists */
	char name[65];
	bool upstream_given, upstream_system;
	unsigned upstream_line, upstream_column;
	struct ip upstream[UPSTREAM_MAX];
	uint16_t upstream_port[UPSTREAM_MAX];
	size_t upstream_count;
};

/* @to becomes the stricter of both, for files side by side. Name servers are
 * those of the one that names some; false if both name different ones. */
bool settings_add(struct settings *to, const struct settings *more);
/* What @to does not say comes from its parents. */
void settings_inherit(struct settings *to, const struct settings *parents);
/* With defaults for what nobody said. */
void settings_apply(const struct settings *settings, struct policy *policy);

struct draft {
	struct policy *policy;
	struct policy_error *err;
	const void *bundle; /* files that others extend are found in it */
	size_t bundle_len;
	uint64_t presets_loaded;       /* a bit for each */
	char *loaded[LOADS_MAX];       /* files */
	const char *listed[LOADS_MAX]; /* lists of names; rules own them */
	size_t files, loads, lists;
	unsigned budgets;
	bool any_file, observe;
	bool is_ceiling;
	struct policy *ceiling; /* NULL: none yet */
	char *ceiling_origin;
	struct settings settings; /* of all files side by side */
};

struct loader;

/* A new rule for @target; the draft owns it. Ports are those of the target, or
 * 443 and 80, or (deny) all. 0, -ENOMEM, or -EFBIG past RULES_MAX. */
int draft_add_rule(struct draft *draft, const struct target *target, bool deny,
		   const char *text, const char *origin,
		   struct rule **ret_rule);

/* Replaces the ports of @rule by copies. 0 or -ENOMEM. */
int rule_set_ports(struct rule *rule, const struct port_range *range, size_t n);
int rule_set_addresses(struct rule *rule, const struct cidr *cidr, size_t n);

/* Adds the preset number @i, once; @parent extends it, or is NULL. */
int draft_add_preset(struct draft *draft, const struct loader *parent,
		     size_t i);

/* The part of the bundle that came from @origin; false if there is none. */
bool draft_find_part(const struct draft *draft, enum bundle_kind kind,
		     const char *origin, const char **ret_text,
		     size_t *ret_len);

/* Adds the rules of a YAML text: load.c. @parent: who extends it, or NULL.
 * @known: its rules are there already, only its settings are wanted. 0, -EINVAL
 * and draft->err, or -ENOMEM. */
int load_yaml(struct draft *draft, const struct loader *parent, bool known,
	      const char *origin, const char *text, size_t len,
	      struct settings *ret_settings);

/* "dir/policy.yaml" and "./base.yaml" are "dir/base.yaml": without "." and
 * "..", by the text alone. @buf holds @cap bytes; false if that is too few, or
 * @name climbs above the root. */
bool path_join(const char *origin, const char *name, char *buf, size_t cap);
/* Is it a file rather than a preset? It has a '/' or ends in .yaml or .yml. */
bool path_is_file(const char *text);

#endif
