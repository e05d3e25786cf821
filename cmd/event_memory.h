/* SPDX-License-Identifier: Apache-2.0
 *
 * event_memory.h - memory for libevent when there is none.
 *
 * Its HTTP server takes for granted that small things can be had: without them
 * it follows null pointers. So a process that serves HTTP keeps some aside.
 */
#ifndef CMD_EVENT_MEMORY_H
#define CMD_EVENT_MEMORY_H

/* Before anything of libevent is made; for the whole process, and for good. */
void event_memory_reserve(void);

#endif
