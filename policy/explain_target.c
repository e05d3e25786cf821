/* SPDX-License-Identifier: Apache-2.0
 *
 * explain_target.c - a target from text.
 *
 * What is written is taken as a strict client takes it, or not at all: a
 * spelling that some programs read as an address, or a name before an '@', is
 * malformed here because it is malformed at every door.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "policy/explain.h"

#define TEXT_MAX 8192

static const struct scheme {
	const char *word;
	uint16_t port;
	enum spoken spoken;
} schemes[] = {
	{ "https", 443, SPOKEN_TLS },
	{ "http", 80, SPOKEN_HTTP },
	{ "wss", 443, SPOKEN_TLS },
	{ "ws", 80, SPOKEN_HTTP },
	{ "ssh", 22, SPOKEN_OTHER },
	{ "git+ssh", 22, SPOKEN_OTHER },
	{ "sftp", 22, SPOKEN_OTHER },
	{ "git", 9418, SPOKEN_OTHER },
	{ "ftp", 21, SPOKEN_OTHER },
	{ "smtp", 25, SPOKEN_OTHER },
	{ "smtps", 465, SPOKEN_TLS },
	{ "imap", 143, SPOKEN_OTHER },
	{ "imaps", 993, SPOKEN_TLS },
	{ "ldap", 389, SPOKEN_OTHER },
	{ "ldaps", 636, SPOKEN_TLS },
	{ "postgres", 5432, SPOKEN_OTHER },
	{ "postgresql", 5432, SPOKEN_OTHER },
	{ "mysql", 3306, SPOKEN_OTHER },
	{ "redis", 6379, SPOKEN_OTHER },
	{ "rediss", 6379, SPOKEN_TLS },
	{ "mongodb", 27017, SPOKEN_OTHER },
	{ "amqp", 5672, SPOKEN_OTHER },
	{ "amqps", 5671, SPOKEN_TLS },
	{ "nats", 4222, SPOKEN_OTHER },
};

static const struct scheme *find_scheme(const char *text, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (strlen(schemes[i].word) == len &&
		    strncasecmp(schemes[i].word, text, len) == 0)
			return &schemes[i];
	return NULL;
}

static bool parse_port(const char *text, uint16_t *ret_port)
{
	unsigned value = 0;

	if (!*text || *text == '0' || strlen(text) > 5)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (unsigned)(*text - '0');
	}
	*ret_port = (uint16_t)value;
	return value <= 65535;
}

static void set_port(struct inquiry *to, uint16_t port)
{
	to->port[0] = port;
	to->ports = 1;
}

/* "[::1]:443" */
static const char *parse_bracketed(char *text, struct inquiry *to)
{
	char *end = strchr(text, ']');
	uint16_t port;

	if (!end)
		return "a ']' is missing";
	*end++ = '\0';
	if (!strchr(text, ':') || !ip_parse(text + 1, &to->address))
		return "between brackets is no IPv6 address";
	if (!*end)
		return NULL;
	if (*end != ':' || !parse_port(end + 1, &port))
		return "after the ']' comes \":PORT\", 1 to 65535";
	set_port(to, port);
	return NULL;
}

/* HOST, HOST:PORT or an address. What is wrong with it is a fault at every
 * door. */
static const char *parse_authority(char *text, struct inquiry *to)
{
	char *colon = strrchr(text, ':');
	uint16_t port;

	if (text[0] == '[')
		return parse_bracketed(text, to);
	if (ip_parse(text, &to->address))
		return NULL;
	if (colon && strchr(text, ':') != colon)
		return "it is no IPv6 address (with a port, write "
		       "[ADDR]:PORT)";
	if (colon) {
		if (!parse_port(colon + 1, &port))
			return "the port is no number from 1 to 65535";
		*colon = '\0';
		set_port(to, port);
	}
	if (ip_parse(text, &to->address))
		return NULL;
	const char *fault = host_fault(text, to->host);

	to->is_spelling = fault && strstr(fault, "spelling of");
	return fault;
}

static const char *parse_url(char *text, const char *mark, struct inquiry *to)
{
	const struct scheme *scheme = find_scheme(text, (size_t)(mark - text));
	char *authority = text + (mark - text) + 3, *user;
	char *end = authority + strcspn(authority, "/?#");
	size_t len = strcspn(end, "#");

	if (len > EXPLAIN_PATH_MAX - 1)
		return "its path is longer than 2,048 bytes";
	snprintf(to->path, sizeof(to->path), "%s%.*s", *end == '/' ? "" : "/",
		 (int)len, end);
	*end = '\0';
	user = strrchr(authority, '@');
	if (user && scheme && scheme->spoken == SPOKEN_OTHER)
		authority = user + 1;
	else if (user)
		to->fault = "what stands before the '@' is a user, not a host: "
			    "write the URL without it";
	else if (strchr(authority, '\\'))
		to->fault = "a '\\' is no part of a URL";
	if (!to->fault)
		to->fault = parse_authority(authority, to);
	if (scheme) {
		to->spoken = scheme->spoken;
		to->websocket = scheme->word[0] == 'w';
	}
	if (!to->ports && scheme)
		set_port(to, scheme->port);
	else if (!to->ports && !to->fault)
		return "its scheme has no port that is known here, write one";
	return NULL;
}

static bool is_scheme(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '+' &&
		    text[i] != '-' && text[i] != '.')
			return false;
	return len && isalpha((unsigned char)text[0]);
}

const char *inquiry_parse(const char *text, struct inquiry *ret)
{
	struct inquiry inquiry = { .method = ret->method, .now_s = ret->now_s };
	char buf[TEXT_MAX];
	const char *why = NULL, *mark;
	size_t len = strlen(text);

	if (!len)
		return "it is empty";
	if (len >= sizeof(buf))
		return "it is too long";
	memcpy(buf, text, len + 1);
	mark = strstr(buf, "://");
	if (mark && is_scheme(buf, (size_t)(mark - buf)))
		why = parse_url(buf, mark, &inquiry);
	else if (strchr(buf, '/'))
		why = "with a path, write a URL: https://HOST/PATH";
	else if (strncmp(buf, "*.", 2) == 0)
		why = "ask for one name, like www.example.com";
	else
		inquiry.fault = parse_authority(buf, &inquiry);
	if (why)
		return why;
	if (!inquiry.ports) {
		inquiry.port[0] = 443;
		inquiry.port[1] = 80;
		inquiry.ports = 2;
	}
	if (inquiry.fault) {
		inquiry.host[0] = '\0';
		inquiry.address = (struct ip){ 0 };
	}
	*ret = inquiry;
	return NULL;
}
