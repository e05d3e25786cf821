/* SPDX-License-Identifier: Apache-2.0
 *
 * packets.h - what packets meet in the gateway; run as root and as an ordinary
 * user.
 */
#ifndef TESTS_FIREWALL_PACKETS_H
#define TESTS_FIREWALL_PACKETS_H

/* Runs all tests; the number of failures. */
int packets_run(void);

#endif
