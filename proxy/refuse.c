/* SPDX-License-Identifier: Apache-2.0
 *
 * refuse.c - a row of the reason table in HTTP's and in TLS's words.
 *
 * Host and detail may come from the sandbox: they are cut, and what could end
 * a line or steer a terminal is escaped. Only fixed words go into headers.
 */
#include "proxy/refuse.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define SHOWN_MAX 256

/* Phrases of the statuses that callers choose themselves. */
static const struct {
	uint16_t status;
	const char *phrase;
} phrases[] = {
	{ 400, "Bad Request" },
	{ 403, "Forbidden" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 411, "Length Required" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
};

static const char *phrase_of(uint16_t status)
{
	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return status < 500 ? "Bad Request" : "Bad Gateway";
}

static const char *shown(const char *text, char buf[SHOWN_MAX])
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (; *text && n + 8 < SHOWN_MAX; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c < 0x7f) {
			buf[n++] = (char)c;
			continue;
		}
		buf[n++] = '\\';
		buf[n++] = 'x';
		buf[n++] = hex[c >> 4];
		buf[n++] = hex[c & 15];
	}
	for (int dots = *text ? 3 : 0; dots; dots--)
		buf[n++] = '.';
	buf[n] = '\0';
	return buf;
}

/* What was refused and why; how to allow it. */
static void explain(const struct reason_info *info, enum reason reason,
		    const char *host, uint16_t port, const char *detail,
		    char *text, size_t cap)
{
	char host_text[SHOWN_MAX], detail_text[SHOWN_MAX];
	char authority[SHOWN_MAX + 10] = "request", hint[384] = "";
	const bool v6 = host && strchr(host, ':');

	if (host && *host) {
		shown(host, host_text);
		snprintf(authority, sizeof(authority), v6 ? "[%s]:%u" : "%s:%u",
			 host_text, port);
		if (!port)
			snprintf(authority, sizeof(authority), "%s", host_text);
	}
	reason_hint(reason, host && *host ? host_text : NULL, port, hint,
		    sizeof(hint));
	hint[strcspn(hint, "\r\n")] = '\0';
	snprintf(text, cap, "sallyport: %s refused: %s: %s%s%s%s\n%s\n",
		 authority, info->word, info->text, detail ? " (" : "",
		 detail ? shown(detail, detail_text) : "", detail ? ")" : "",
		 hint);
}

size_t refuse_http(enum reason reason, uint16_t status, const char *host,
		   uint16_t port, const char *detail, char buf[REFUSE_MAX])
{
	const struct reason_info *info = reason_info(reason);
	const char *phrase = phrase_of(status);
	char text[1280];
	int n;

	explain(info, reason, host, port, detail, text, sizeof(text));
	if (!status) {
		status = info->http_status ? info->http_status : 403;
		phrase = info->http_status ? info->http_phrase : "Forbidden";
	}
	n = snprintf(buf, REFUSE_MAX,
		     "HTTP/1.1 %u %s\r\n"
		     "Proxy-Status: sallyport; error=%s; details=\"%s\"\r\n"
		     "%s"
		     "X-Sallyport-Reason: %s\r\n"
		     "Content-Type: text/plain\r\n"
		     "Content-Length: %zu\r\n"
		     "Connection: close\r\n"
		     "\r\n"
		     "%s",
		     status, phrase, info->proxy_error, info->word,
		     status == 403 ? "X-Proxy-Error: blocked-by-allowlist\r\n"
				   : "",
		     info->word, strlen(text), text);
	if (n < 0)
		return 0;
	return (size_t)n < REFUSE_MAX ? (size_t)n : REFUSE_MAX - 1;
}

size_t refuse_tls(enum reason reason, uint8_t buf[7])
{
	enum { ALERT = 21, FATAL = 2 };
	const uint8_t record[7] = {
		ALERT, 3, 3, 0, 2, FATAL, reason_info(reason)->tls_alert
	};

	memcpy(buf, record, sizeof(record));
	return sizeof(record);
}
