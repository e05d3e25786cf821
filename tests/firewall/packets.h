/* SPDX-License-Identifier: Apache-2.0
 *
 * packets.h - what packets meet in the gateway; run as root and as an ordinary
 * user.
 */
#ifndef TESTS_FIREWALL_PACKETS_H
#define TESTS_FIREWALL_PACKETS_H

/* Each runs its tests; the number of failures. */
int packets_run(void);
int packets_frames_run(void);
int packets_published_run(void);

#endif
