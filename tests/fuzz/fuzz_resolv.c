/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine's resolv.conf: each server found is the one of a line that says
 * "nameserver", in their order, and no other.
 */
#include "cmd/upstream.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* The address that a line gives; .len 0: none. */
static struct ip address_of(const char *line)
{
	static const char word[] = "nameserver", blanks[] = " \t\r";
	char text[64] = { 0 };
	struct ip ip = { 0 };
	size_t len;

	line += strspn(line, blanks);
	if (strncmp(line, word, strlen(word)) != 0 ||
	    !strchr(blanks, line[strlen(word)]))
		return ip;
	line += strlen(word);
	line += strspn(line, blanks);
	len = strcspn(line, blanks);
	if (len < sizeof(text)) {
		memcpy(text, line, len);
		ip_parse(text, &ip);
	}
	return ip;
}

static void compare(char *text, size_t size, const struct msg_gate_servers *got)
{
	char *end = text + size;
	size_t n = 0;

	while (text < end && n < MSG_SERVERS_MAX) {
		char *lf = memchr(text, '\n', (size_t)(end - text));
		struct ip ip;

		if (lf)
			*lf = '\0';
		ip = address_of(text);
		if (ip.len) {
			must(n < got->count);
			must(ip_equal(&ip, &got->server[n++].ip));
		}
		text = lf ? lf + 1 : end;
	}
	must(n == got->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct msg_gate_servers got = { 0 };
	AUTO_FREE char *copy = calloc(1, size + 1);
	FILE *file;

	must(copy != NULL);
	if (!size)
		return 0;
	memcpy(copy, data, size);
	file = fmemopen(copy, size, "r");
	must(file != NULL);
	must(upstream_read(file, &got));
	fclose(file);
	must(got.count <= MSG_SERVERS_MAX);
	compare(copy, size, &got);
	return 0;
}
