/* SPDX-License-Identifier: Apache-2.0
 *
 * hostname.c - one pass over counted bytes; the first thing that is wrong ends
 * it. Nothing is written to the caller's buffer before the last byte was seen.
 */
#include "policy/hostname.h"

#include <errno.h>
#include <idn2.h>
#include <string.h>

#include "base/cleanup.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* inet_aton() and every browser read these as (the last part of) an IPv4
 * address, so no resolver may ever see them: digits only, or 0x and hex. */
static bool is_number(const char *label, size_t len)
{
	size_t i = 0;

	while (i < len && is_digit(label[i]))
		i++;
	if (i == len)
		return true;
	if (len < 2 || label[0] != '0' || label[1] != 'x')
		return false;
	for (i = 2; i < len && is_hex(label[i]); i++)
		;
	return i == len;
}

static const char *char_fault(char c)
{
	if (c == '\0')
		return "it contains a NUL";
	if ((unsigned char)c >= 0x80)
		return "it is not ASCII (an A-label, xn--..., is needed)";
	if ((unsigned char)c < 0x20 || c == 0x7f)
		return "it contains a control character";
	switch (c) {
	case '*':
		return "'*' is only valid as a leading \"*.\"";
	case '%':
		return "'%' is not valid in a host name";
	case '[':
	case ']':
		return "brackets are not valid in a host name";
	case ' ':
		return "it contains a space";
	case '/':
		return "write the name alone, without scheme or path";
	case ':':
		return "write the name alone, the port goes elsewhere";
	case '@':
		return "write the name alone, without a user";
	default:
		return "only letters, digits, '-' and '_' are valid in it";
	}
}

static const char *label_fault(const char *label, size_t len)
{
	if (!len)
		return "it has an empty label (two dots, or one at the start)";
	if (len > 63)
		return "a label is longer than 63 characters";
	if (label[0] == '-' || label[len - 1] == '-')
		return "a label starts or ends with '-'";
	return NULL;
}

/* NULL and the name, or what is wrong with it. */
static const char *canonicalise(const char *text, size_t len, char *ret_host)
{
	char host[HOST_MAX + 1];
	const char *fault;
	size_t start = 0;

	if (len && text[len - 1] == '.')
		len--;
	if (!len)
		return "it is empty";
	if (len > HOST_MAX)
		return "it is longer than 253 characters";
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c | 0x20);
		host[i] = c;
		if (c == '.') {
			fault = label_fault(host + start, i - start);
			if (fault)
				return fault;
			start = i + 1;
		} else if (!(c >= 'a' && c <= 'z') && !is_digit(c) &&
			   c != '-' && c != '_') {
			return char_fault(text[i]);
		}
	}
	fault = label_fault(host + start, len - start);
	if (fault)
		return fault;
	if (is_number(host + start, len - start))
		return "it is (a spelling of) an IP address, not a name";
	host[len] = '\0';
	memcpy(ret_host, host, len + 1);
	return NULL;
}

bool host_canonical(const char *text, size_t len, char *ret_host)
{
	return !canonicalise(text, len, ret_host);
}

static bool is_ascii(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] >= 0x80)
			return false;
	return true;
}

/* Strict IDNA2008: what UTS 46 would map (full-width letters, other dots, soft
 * hyphens, capitals beyond ASCII) is refused instead. */
const char *host_fault(const char *text, char *ret_host)
{
	char lower[4 * HOST_MAX + 1];
	size_t len = strlen(text);
	char *ascii = NULL;

	if (is_ascii(text, len))
		return canonicalise(text, len, ret_host);
	if (len >= sizeof(lower))
		return "it is longer than 253 characters";
	for (size_t i = 0; i <= len; i++) {
		char c = text[i];

		lower[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
	}
	if (idn2_lookup_u8((const uint8_t *)lower, (uint8_t **)&ascii,
			   IDN2_NFC_INPUT | IDN2_NO_TR46) != IDN2_OK)
		return "it is not a valid internationalised name (IDNA2008, "
		       "lower case)";
	const char *fault = canonicalise(ascii, strlen(ascii), ret_host);
	idn2_free(ascii);
	return fault;
}

bool host_from_policy(const char *text, char *ret_host)
{
	return !host_fault(text, ret_host);
}

bool host_below(const char *name, const char *apex)
{
	size_t n = strlen(name), a = strlen(apex);

	return a && n > a + 1 && name[n - a - 1] == '.' &&
	       memcmp(name + n - a, apex, a) == 0;
}
