/* SPDX-License-Identifier: Apache-2.0
 *
 * run_reload.h - `sallyport reload` reaches a `run` whose sandbox is the
 * daemon's: who still has the files reads them again, and the daemon puts them
 * in force.
 */
#ifndef CMD_RUN_RELOAD_H
#define CMD_RUN_RELOAD_H

struct event_base;
struct placed;

/* Listens in a directory of its own beside the user's sessions, and answers
 * from @base's loop on. Before the command could change a file. Where it can't
 * be done there is a warning. */
void run_reload_open(struct placed *placed, struct event_base *base);
void run_reload_close(void);

#endif
