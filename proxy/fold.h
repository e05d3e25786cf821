/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.h - refusals that a flood would repeat: of each sandbox and reason the
 * first is recorded at once, then at most one a second, which says how many it
 * stands for.
 */
#ifndef PROXY_FOLD_H
#define PROXY_FOLD_H

#include "policy/services.h"

struct event_base;
struct fold;

/* @services outlives it. NULL without memory. */
struct fold *fold_new(struct event_base *base, const struct services *services);
/* What is counted for later has sandbox, door, reason and source of the last
 * one, and no names. Never waits. */
void fold_record(struct fold *fold, const struct audit_event *event);
/* Records what is still counted of the sandbox with this id. */
void fold_end_sandbox(struct fold *fold, uint32_t sandbox);
/* The same for all of them. NULL is fine. */
void fold_free(struct fold *fold);

#endif
