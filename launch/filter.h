/* SPDX-License-Identifier: Apache-2.0
 *
 * filter.h - the seccomp programs of the gate and the ledger.
 */
#ifndef LAUNCH_FILTER_H
#define LAUNCH_FILTER_H

#include "launch/isolate.h"

/* Installs the role's filter for good. 0 or -errno. */
int filter_apply(enum isolate_role role);

#endif
