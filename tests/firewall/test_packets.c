/* SPDX-License-Identifier: Apache-2.0
 *
 * test_packets.c - as root.
 */
#include "packets.h"

int main(void)
{
	return packets_run() + packets_frames_run() + packets_published_run();
}
