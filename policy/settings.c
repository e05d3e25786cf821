/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.c - what files say beside their rules, put together.
 *
 * A child speaks for its parents. Files side by side are as strict as the
 * strictest: what one of them limits, another one can't lift. `default: public`
 * and `mode: observe` are kept only where all of them say so; load.c sees to it
 * that they are not inherited.
 */
#include <string.h>

#include "policy/build.h"

static const struct limits default_limits = {
	.connections = 256,
	.connections_per_second = 1000,
	.names = 4000,
	.names_per_wildcard = 64,
	.dns_per_second = 200,
};

#define ROTATE_BYTES 1000000000 /* a part that tools can still open */

static void stricter(unsigned *to, unsigned more)
{
	if (more && (!*to || more < *to))
		*to = more;
}

static void all_say(enum said *to, enum said more)
{
	if (*to == SAID_YES && more != SAID_YES)
		*to = SAID_NO;
}

/* Evidence is not lost by another file that wants less of it. */
static void one_says(enum said *to, enum said more)
{
	if (more == SAID_YES || *to == SAID_NOTHING)
		*to = more;
}

static void add_log(struct settings *to, const struct settings *more)
{
	one_says(&to->sign_every, more->sign_every);
	one_says(&to->durable, more->durable);
	if (more->rotate_bytes &&
	    (!to->rotate_bytes || more->rotate_bytes < to->rotate_bytes))
		to->rotate_bytes = more->rotate_bytes;
	stricter(&to->rotate_s, more->rotate_s);
}

static void copy_upstream(struct settings *to, const struct settings *from)
{
	to->upstream_given = from->upstream_given;
	to->upstream_system = from->upstream_system;
	memcpy(to->upstream, from->upstream, sizeof(to->upstream));
	memcpy(to->upstream_port, from->upstream_port,
	       sizeof(to->upstream_port));
	to->upstream_count = from->upstream_count;
}

/* Two ways may lead to one file. */
static bool same_upstream(const struct settings *a, const struct settings *b)
{
	size_t n = a->upstream_count;

	if (n != b->upstream_count || a->upstream_system != b->upstream_system)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!ip_equal(&a->upstream[i], &b->upstream[i]) ||
		    a->upstream_port[i] != b->upstream_port[i])
			return false;
	return true;
}

bool settings_add(struct settings *to, const struct settings *more)
{
	all_say(&to->is_public, more->is_public);
	all_say(&to->observes, more->observes);
	all_say(&to->answers_real, more->answers_real);
	stricter(&to->limits.connections, more->limits.connections);
	stricter(&to->limits.connections_per_second,
		 more->limits.connections_per_second);
	stricter(&to->limits.names, more->limits.names);
	stricter(&to->limits.names_per_wildcard,
		 more->limits.names_per_wildcard);
	stricter(&to->limits.dns_per_second, more->limits.dns_per_second);
	for (size_t i = 0; i < 2; i++) {
		uint64_t bytes = more->limits.budget[i];

		if (bytes &&
		    (!to->limits.budget[i] || bytes < to->limits.budget[i]))
			to->limits.budget[i] = bytes;
	}
	add_log(to, more);
	cell_stricter(&to->cell, &more->cell);
	if (!*to->name)
		memcpy(to->name, more->name, sizeof(to->name));
	if (to->upstream_given && more->upstream_given)
		return same_upstream(to, more);
	if (more->upstream_given)
		copy_upstream(to, more);
	return true;
}

static void default_to(unsigned *to, unsigned otherwise)
{
	if (!*to)
		*to = otherwise;
}

static void inherit_limits(struct limits *to, const struct limits *from)
{
	default_to(&to->connections, from->connections);
	default_to(&to->connections_per_second, from->connections_per_second);
	default_to(&to->names, from->names);
	default_to(&to->names_per_wildcard, from->names_per_wildcard);
	default_to(&to->dns_per_second, from->dns_per_second);
	for (size_t i = 0; i < 2; i++)
		if (!to->budget[i])
			to->budget[i] = from->budget[i];
}

static void inherit_log(struct settings *to, const struct settings *from)
{
	if (to->sign_every == SAID_NOTHING)
		to->sign_every = from->sign_every;
	if (to->durable == SAID_NOTHING)
		to->durable = from->durable;
	if (!to->rotate_bytes)
		to->rotate_bytes = from->rotate_bytes;
	if (!to->rotate_s)
		to->rotate_s = from->rotate_s;
}

void settings_inherit(struct settings *to, const struct settings *parents)
{
	inherit_limits(&to->limits, &parents->limits);
	inherit_log(to, parents);
	/* The bounds of a command are no preference: a child lifts none. */
	cell_stricter(&to->cell, &parents->cell);
	if (to->answers_real == SAID_NOTHING)
		to->answers_real = parents->answers_real;
	if (!*to->name)
		memcpy(to->name, parents->name, sizeof(to->name));
	if (!to->upstream_given)
		copy_upstream(to, parents);
}

void settings_apply(const struct settings *settings, struct policy *policy)
{
	policy->limits = settings->limits;
	inherit_limits(&policy->limits, &default_limits);
	policy->is_public = settings->is_public == SAID_YES;
	policy->observes = settings->observes == SAID_YES;
	policy->answers_real = settings->answers_real == SAID_YES;
	policy->log = (struct log_settings){
		.sign_every = settings->sign_every == SAID_YES,
		.durable = settings->durable == SAID_YES,
		.rotate_bytes = settings->rotate_bytes ? settings->rotate_bytes
						       : ROTATE_BYTES,
		.rotate_s = settings->rotate_s,
	};
	policy->cell.said = settings->cell;
	policy->upstream_system =
		!settings->upstream_given || settings->upstream_system;
	memcpy(policy->upstream, settings->upstream, sizeof(policy->upstream));
	memcpy(policy->upstream_port, settings->upstream_port,
	       sizeof(policy->upstream_port));
	policy->upstream_count = settings->upstream_count;
}
