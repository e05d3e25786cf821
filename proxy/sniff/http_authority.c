/* SPDX-License-Identifier: Apache-2.0
 *
 * http_authority.c - names are judged by host_canonical(), as everywhere;
 * nothing is repaired. Paths are the one thing that is made canonical, since
 * ordinary clients do send "/./" (apt, for flat repositories), and rules are
 * about paths: each has one spelling from here on.
 */
#include "proxy/sniff/http_authority.h"

#include <string.h>

static bool parse_port(const char *at, size_t len, uint16_t *ret)
{
	unsigned v = 0;

	if (len == 0 || len > 5 || at[0] == '0')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (at[i] < '0' || at[i] > '9')
			return false;
		v = v * 10 + (unsigned)(at[i] - '0');
	}
	if (v > UINT16_MAX)
		return false;
	*ret = (uint16_t)v;
	return true;
}

static bool parse_ip(const char *at, size_t len, uint8_t family_len,
		     struct ip *ret)
{
	char text[IP_TEXT_MAX];
	struct ip ip;

	if (len >= sizeof(text) || memchr(at, '\0', len))
		return false;
	memcpy(text, at, len);
	text[len] = '\0';
	if (!ip_parse(text, &ip) || ip.len != family_len)
		return false;
	*ret = ip;
	return true;
}

/* Would inet_aton() or a browser take @at for an address? Its last label is
 * then a number. */
static bool numeric(const char *at, size_t len)
{
	size_t start;

	if (len && at[len - 1] == '.')
		len--;
	for (start = len; start > 0 && at[start - 1] != '.'; start--)
		;
	at += start;
	len -= start;
	if (len == 0)
		return false;
	if (len >= 2 && at[0] == '0' && (at[1] | 0x20) == 'x') {
		for (size_t i = 2; i < len; i++)
			if (!at[i] || !strchr("0123456789abcdefABCDEF", at[i]))
				return false;
		return true;
	}
	for (size_t i = 0; i < len; i++)
		if (at[i] < '0' || at[i] > '9')
			return false;
	return true;
}

static const char *parse_host(struct http_text text, struct http_authority *ret,
			      enum reason *reterr)
{
	if (text.len && text.at[0] == '[') {
		if (text.len > 2 && text.at[text.len - 1] == ']' &&
		    parse_ip(text.at + 1, text.len - 2, 16, &ret->address))
			return NULL;
		return "brackets without an IPv6 address";
	}
	if (parse_ip(text.at, text.len, 4, &ret->address))
		return NULL;
	if (host_canonical(text.at, text.len, ret->host))
		return NULL;
	if (memchr(text.at, '@', text.len))
		return "user information before the host";
	if (numeric(text.at, text.len)) {
		*reterr = REASON_LITERAL_ADDRESS;
		return "an address in an odd spelling";
	}
	return "no valid host name";
}

const char *http_authority_parse(struct http_text text,
				 struct http_authority *ret,
				 enum reason *reterr)
{
	const char *colon;

	*ret = (struct http_authority){ .port = 0 };
	*reterr = REASON_MALFORMED;
	if (text.len == 0)
		return "the host is empty";
	colon = memrchr(text.at, ':', text.len);
	if (colon && text.at[text.len - 1] != ']') {
		size_t n = (size_t)(colon - text.at);

		if (!parse_port(colon + 1, text.len - n - 1, &ret->port))
			return "no valid port";
		text.len = n;
	}
	return parse_host(text, ret, reterr);
}

/* How many dots the segment is made of (1 or 2), 0 for others, -1 for dots with
 * parameters, which some servers take for dots. */
static int dots(const char *at, size_t len)
{
	size_t count = 0;

	while (count < len && at[count] == '.')
		count++;
	if (count == 0 || count > 2)
		return 0;
	if (count == len)
		return (int)count;
	return at[count] == ';' ? -1 : 0;
}

static bool put(char *buf, size_t cap, size_t *len, const char *at, size_t n)
{
	if (n >= cap - *len)
		return false;
	memcpy(buf + *len, at, n);
	*len += n;
	buf[*len] = '\0';
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* RFC 3986 section 2.3. */
static bool unreserved(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || (c && strchr("-._~", c));
}

/* The escape at @at as it should have been written; its length, 0 if it is
 * none. */
static size_t escape(const char *at, size_t len, char ret[3])
{
	static const char upper[] = "0123456789ABCDEF";
	int high = len >= 3 ? hex_digit(at[1]) : -1;
	int low = len >= 3 ? hex_digit(at[2]) : -1;

	if (high < 0 || low < 0)
		return 0;
	ret[0] = (char)(high << 4 | low);
	if (unreserved(high << 4 | low))
		return 1;
	ret[0] = '%';
	ret[1] = upper[high];
	ret[2] = upper[low];
	return 3;
}

/* A '%' that escapes nothing is refused: with what is decoded behind it, it
 * could become an escape that nobody wrote. */
static const char *put_decoded(char *buf, size_t cap, size_t *len,
			       const char *at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char written[3] = { at[i] };
		size_t size = 1;

		if (at[i] == '%') {
			size = escape(at + i, n - i, written);
			if (!size)
				return "a '%' without two hex digits";
			i += 2;
		}
		if (!put(buf, cap, len, written, size))
			return "the path is too long";
	}
	return NULL;
}

static const char *put_segment(char *buf, size_t cap, size_t *len,
			       const char *at, size_t n, bool last)
{
	const size_t start = *len;
	const char *fault = put_decoded(buf, cap, len, at, n);
	int count = fault ? 0 : dots(buf + start, *len - start);

	if (fault)
		return fault;
	if (count < 0)
		return "dot segments with parameters";
	if (count == 0)
		return last || put(buf, cap, len, "/", 1)
			       ? NULL
			       : "the path is too long";
	*len = start;
	if (count == 2) {
		if (*len == 1)
			return "the path climbs above its root";
		(*len)--; /* the '/' it ends with */
		while (buf[*len - 1] != '/')
			(*len)--;
	}
	buf[*len] = '\0';
	return NULL;
}

const char *http_path_canonical(struct http_text path, char *buf, size_t cap)
{
	const char *query = memchr(path.at, '?', path.len);
	const char *at = path.at;
	const char *end = query ? query : path.at + path.len;
	size_t len = 0;

	if (path.len == 1 && path.at[0] == '*')
		return put(buf, cap, &len, "*", 1) ? NULL
						   : "the path is too long";
	if (!put(buf, cap, &len, "/", 1))
		return "the path is too long";
	if (at < end && *at == '/')
		at++;
	for (;;) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		const char *stop = slash ? slash : end;
		const char *text = put_segment(buf, cap, &len, at,
					       (size_t)(stop - at), !slash);
		if (text)
			return text;
		if (!slash)
			break;
		at = slash + 1;
	}
	if (!put(buf, cap, &len, end, (size_t)(path.at + path.len - end)))
		return "the path is too long";
	return NULL;
}
