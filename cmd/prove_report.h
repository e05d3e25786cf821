/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_report.h - what `prove` found in a session that was there already goes
 * to that session's log and receipt, as the word of whoever ran it.
 *
 * It goes by a socket that no sandbox sees: of the daemon, or of the session
 * itself (cmd/control.h). The kernel says who speaks, and only the session's
 * owner and root may. Such a request of control.h is
 *
 *	attacks
 *	duration_ms N
 *	WORD ID			of each
 */
#ifndef CMD_PROVE_REPORT_H
#define CMD_PROVE_REPORT_H

#include <stdbool.h>

#include "audit/attacks.h"

#define PROVE_REPORT_MAX 8192

/* Are they attacks of ours? Others would only take room in a receipt. */
bool prove_report_known(const struct attacks *attacks);

/* The request. False if there is no room. */
bool prove_report_format(const struct attacks *attacks,
			 char buf[PROVE_REPORT_MAX]);
/* The way back; false if @request is none. */
bool prove_report_parse(const char *request, struct attacks *ret);

#endif
