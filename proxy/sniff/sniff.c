/* SPDX-License-Identifier: Apache-2.0
 *
 * sniff.c - which protocol the first bytes belong to.
 *
 * Wrong guesses differ in cost. Taking some odd protocol for TLS or HTTP only
 * refuses it; taking TLS or HTTP for something else lets a name through that
 * nobody compared. So this follows what servers accept, not what clients send:
 *
 *	TLS	any record type with major version 3 (servers skip an empty
 *		record or a warning alert in front of the hello), and the SSLv2
 *		hello that OpenSSL still answers
 *	HTTP	empty lines in front, any method, any blank between the words
 */
#include "proxy/sniff/sniff.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/wire.h"

#define METHOD_LEAST	 2 /* characters that some server takes for a method */
#define REQUEST_LINE_MAX (16 * 1024) /* servers take no longer one */

static const char h2_preface[] = "PRI * HTTP/2";
#define H2_PREFACE_LEN (sizeof(h2_preface) - 1)

static const char *const methods[] = {
	"GET",	   "HEAD",  "POST",  "PUT",	"DELETE",
	"OPTIONS", "PATCH", "TRACE", "CONNECT",
};

static bool is_tchar(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* What some server splits words at: the RFC's blanks, and for Python's
 * str.split() also 0x1c-0x1f, NEL and NBSP. */
static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || (c >= '\v' && c <= '\r') ||
	       (c >= 0x1c && c <= 0x1f) || c == 0x85 || c == 0xa0;
}

static enum protocol sniff_tls(const uint8_t *data, size_t len)
{
	if (data[0] >= 0x14 && data[0] <= 0x18) {
		if (len < 2)
			return PROTOCOL_UNKNOWN;
		return data[1] == 3 ? PROTOCOL_TLS : PROTOCOL_OTHER;
	}
	/* SSLv2: length with the top bit set, CLIENT-HELLO, version 3.x */
	if ((len > 2 && data[2] != 1) || (len > 3 && data[3] != 3))
		return PROTOCOL_OTHER;
	return len > 3 ? PROTOCOL_TLS : PROTOCOL_UNKNOWN;
}

static bool has_version(const uint8_t *line, size_t len)
{
	static const char word[] = "HTTP/";
	const size_t n = sizeof(word) - 1;

	for (size_t i = 1; i + n <= len; i++)
		if (is_blank(line[i - 1]) &&
		    !strncasecmp((const char *)line + i, word, n))
			return true;
	return false;
}

static bool is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "/path", "*", or "scheme://": what a request can be about. */
static bool is_target(const uint8_t *at, size_t len)
{
	size_t n = 0;

	if (len && (at[0] == '/' || at[0] == '*'))
		return true;
	while (n < len &&
	       (is_letter(at[n]) || (n && is_tchar(at[n]) && at[n] != '~')))
		n++;
	return n && len - n >= 3 && !memcmp(at + n, "://", 3);
}

/* "GET /": also HTTP/0.9, which has no version, and however many blanks. */
static bool is_method_and_target(const uint8_t *line, size_t word, size_t len)
{
	size_t at = word;

	while (at < len && is_blank(line[at]))
		at++;
	if (!is_target(line + at, len - at))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strlen(methods[i]) == word &&
		    !memcmp(methods[i], line, word))
			return true;
	return false;
}

/* A control character ends the doubt only where no server could still see a
 * request: its first word does not begin like a method. */
static bool is_binary(const uint8_t *line, size_t word, size_t end)
{
	if (word >= METHOD_LEAST && is_letter(line[0]))
		return false;
	for (size_t i = word; i < end; i++)
		if ((line[i] < 0x20 && !is_blank(line[i])) || line[i] == 0x7f)
			return true;
	return false;
}

/* @line does not start with an empty line. */
static enum protocol sniff_line(const uint8_t *line, size_t len)
{
	size_t start = 0, end;
	const uint8_t *lf;
	size_t word;

	while (start < len && is_blank(line[start]))
		start++;
	line += start;
	len -= start;
	lf = memchr(line, '\n', len);
	end = lf ? (size_t)(lf - line) : len;

	for (word = 0; word < end && is_tchar(line[word]); word++)
		;
	if (word > REQUEST_LINE_MAX)
		return PROTOCOL_OTHER;
	if (word == end)
		return lf ? PROTOCOL_OTHER : PROTOCOL_UNKNOWN;
	if (!word || !is_blank(line[word]))
		return PROTOCOL_OTHER;
	if (!memcmp(line, h2_preface,
		    end < H2_PREFACE_LEN ? end : H2_PREFACE_LEN) &&
	    (end >= H2_PREFACE_LEN || !lf))
		return end < H2_PREFACE_LEN ? PROTOCOL_UNKNOWN : PROTOCOL_HTTP2;
	if (is_method_and_target(line, word, end) || has_version(line, end))
		return PROTOCOL_HTTP;
	if (lf || is_binary(line, word, end))
		return PROTOCOL_OTHER;
	return start + len > REQUEST_LINE_MAX ? PROTOCOL_HTTP
					      : PROTOCOL_UNKNOWN;
}

enum protocol sniff_protocol(const uint8_t *data, size_t len)
{
	size_t skip = 0;

	if (!len)
		return PROTOCOL_UNKNOWN;
	if (data[0] == 0x05)
		return PROTOCOL_SOCKS5;
	if ((data[0] >= 0x14 && data[0] <= 0x18) || (data[0] & 0x80)) {
		enum protocol tls = sniff_tls(data, len);

		/* 0x85 and 0xa0 are also blanks in front of a request. */
		if (tls != PROTOCOL_OTHER || !is_blank(data[0]))
			return tls;
	}

	/* Servers skip any number of empty lines, some also lines of blanks. */
	while (skip < len && (data[skip] == '\n' || is_blank(data[skip])))
		skip++;
	if (skip == len)
		return PROTOCOL_UNKNOWN;
	return sniff_line(data + skip, len - skip);
}

const char *protocol_word(enum protocol protocol)
{
	switch (protocol) {
	case PROTOCOL_TLS:
		return "tls";
	case PROTOCOL_HTTP:
		return "http";
	case PROTOCOL_HTTP2:
		return "http2";
	case PROTOCOL_SOCKS5:
	case PROTOCOL_OTHER:
	case PROTOCOL_UNKNOWN:
		break;
	}
	return "tcp";
}
