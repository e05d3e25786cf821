/* SPDX-License-Identifier: Apache-2.0
 *
 * event_memory.c - slots that are handed out when malloc() fails.
 *
 * They last for the requests that are under way then, which end with an error;
 * those that come meanwhile are refused (cmd/http_place.h). Who has used up all
 * of them ends, as a process in an orderly state: what it has made is pinned
 * and written down, and the next one goes on with it. What is longer than a
 * slot is a buffer, for which libevent does look. Pages that nobody needs cost
 * nothing.
 */
#include "cmd/event_memory.h"

#include <event2/event.h>
#include <malloc.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/command.h"

#define SLOT  4096
#define SLOTS 256

static alignas(max_align_t) uint8_t slot[SLOTS][SLOT];
static atomic_bool taken[SLOTS];

static bool is_slot(const void *at)
{
	const uintptr_t first = (uintptr_t)slot;

	return (uintptr_t)at >= first && (uintptr_t)at < first + sizeof(slot);
}

static void *take(size_t size)
{
	if (size > SLOT)
		return NULL;
	for (size_t i = 0; i < SLOTS; i++)
		if (!atomic_exchange(&taken[i], true))
			return slot[i];
	die(EXIT_SALLYPORT, "out of memory");
}

static void *allocate(size_t size)
{
	void *made = malloc(size);

	return made ? made : take(size);
}

static void release(void *old)
{
	if (is_slot(old))
		atomic_store(&taken[((uintptr_t)old - (uintptr_t)slot) / SLOT],
			     false);
	else
		free(old);
}

static void *resize(void *old, size_t size)
{
	void *made;
	size_t had;

	if (!old)
		return allocate(size);
	if (is_slot(old)) {
		if (size <= SLOT)
			return old;
		made = malloc(size);
		had = SLOT;
	} else {
		made = realloc(old, size);
		if (made || !size)
			return made;
		made = take(size);
		had = malloc_usable_size(old);
	}
	if (!made)
		return NULL;
	memcpy(made, old, had < size ? had : size);
	release(old);
	return made;
}

void event_memory_reserve(void)
{
	event_set_mem_functions(allocate, resize, release);
}
