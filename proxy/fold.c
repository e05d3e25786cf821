/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.c - see fold.h. A row lives as long as its second has had another event:
 * there are no more of them than sandboxes times reasons.
 */
#include "proxy/fold.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/queue.h>

struct row {
	struct fold *fold;
	struct event *timer;
	struct audit_event last; /* without strings; its count is ours */
	LIST_ENTRY(row) entry;
};

struct fold {
	struct event_base *base;
	const struct services *services;
	LIST_HEAD(, row) rows;
};

static void row_free(struct row *row)
{
	LIST_REMOVE(row, entry);
	if (row->timer)
		event_free(row->timer);
	free(row);
}

/* False if there is nothing to tell. */
static bool row_tell(struct row *row)
{
	const struct services *services = row->fold->services;

	if (!row->last.count)
		return false;
	row->last.flow = services->flow_id(services->ctx);
	services->record(services->ctx, &row->last, NULL);
	row->last.count = 0;
	return true;
}

static bool row_wait(struct row *row)
{
	const struct timeval second = { .tv_sec = 1 };

	return !event_add(row->timer, &second);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct row *row = arg;

	(void)fd;
	(void)what;
	if (!row_tell(row) || !row_wait(row))
		row_free(row);
}

static struct row *row_find(struct fold *fold, const struct audit_event *event)
{
	struct row *row;

	LIST_FOREACH (row, &fold->rows, entry)
		if (row->last.sandbox == event->sandbox &&
		    row->last.verdict.reason == event->verdict.reason)
			return row;
	return NULL;
}

static void row_add(struct fold *fold, const struct audit_event *event)
{
	struct row *row = calloc(1, sizeof(*row));

	if (!row)
		return;
	row->fold = fold;
	LIST_INSERT_HEAD(&fold->rows, row, entry);
	row->last.sandbox = event->sandbox;
	row->last.verdict.reason = event->verdict.reason;
	row->timer = evtimer_new(fold->base, on_second, row);
	if (!row->timer || !row_wait(row))
		row_free(row);
}

struct fold *fold_new(struct event_base *base, const struct services *services)
{
	struct fold *fold = calloc(1, sizeof(*fold));

	if (!fold)
		return NULL;
	LIST_INIT(&fold->rows);
	fold->base = base;
	fold->services = services;
	return fold;
}

void fold_record(struct fold *fold, const struct audit_event *event)
{
	struct row *row = row_find(fold, event);

	if (!row) {
		fold->services->record(fold->services->ctx, event, NULL);
		row_add(fold, event);
		return;
	}
	row->last = (struct audit_event){
		.kind = event->kind,
		.sandbox = event->sandbox,
		.verdict = { .reason = event->verdict.reason },
		.door = event->door,
		.src_ip = event->src_ip,
		.src_port = event->src_port,
		.count = row->last.count + 1,
		.detail = "more like the one before",
	};
}

void fold_end_sandbox(struct fold *fold, uint32_t sandbox)
{
	struct row *row = LIST_FIRST(&fold->rows), *next;

	for (; row; row = next) {
		next = LIST_NEXT(row, entry);
		if (row->last.sandbox != sandbox)
			continue;
		row_tell(row);
		row_free(row);
	}
}

void fold_free(struct fold *fold)
{
	if (!fold)
		return;
	while (!LIST_EMPTY(&fold->rows)) {
		row_tell(LIST_FIRST(&fold->rows));
		row_free(LIST_FIRST(&fold->rows));
	}
	free(fold);
}
