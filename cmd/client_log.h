/* SPDX-License-Identifier: Apache-2.0
 *
 * client_log.h - logs of the daemon's sessions, which lie where their user can
 * read them but not look for them: beside his own sessions there is a directory
 * of links, by which `log`, `report`, `verify` and `learn` find them.
 */
#ifndef CMD_CLIENT_LOG_H
#define CMD_CLIENT_LOG_H

#include <jansson.h>

/* Below session_home(). */
#define CLIENT_LOG_DIR "daemon"

/* @s: a sandbox, or what became of it. Root needs none. */
void client_log_note(const json_t *s);

#endif
