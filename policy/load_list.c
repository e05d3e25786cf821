/* SPDX-License-Identifier: Apache-2.0
 *
 * load_list.c - files of denied names. They come out of the bundle too.
 */
#include "policy/load_impl.h"

int load_list(const struct loader *l, const struct node *node)
{
	return FAULT(l, node, "lists of names are not read yet");
}
