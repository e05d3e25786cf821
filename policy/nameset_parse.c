/* SPDX-License-Identifier: Apache-2.0
 *
 * nameset_parse.c - reads lists of names as they are found: several formats,
 * often mixed, and never quite clean.
 *
 * What is not understood is skipped and counted, never guessed at: a line that
 * meant less than we would make of it denies what nobody wanted denied.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "policy/hostname.h"
#include "policy/nameset_impl.h"

#define BOM	"\xef\xbb\xbf"
#define UTF_MAX (4 * HOST_MAX)

/* A piece of the text. */
struct span {
	const char *at;
	size_t len;
};

struct parser {
	struct names *names;
	struct nameset_report report;
	uint32_t line;
	int error;
};

/* What every system's hosts file has, and lists copy. */
static const char *const own_names[] = {
	"localhost",	  "localhost.localdomain", "local",
	"broadcasthost",  "ip6-localhost",	   "ip6-loopback",
	"ip6-localnet",	  "ip6-mcastprefix",	   "ip6-allnodes",
	"ip6-allrouters", "ip6-allhosts",
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool starts(struct span s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.len >= n && strncasecmp(s.at, prefix, n) == 0;
}

static bool equals(struct span s, const char *word)
{
	return s.len == strlen(word) && starts(s, word);
}

static struct span drop(struct span s, size_t n)
{
	return (struct span){ s.at + n, s.len - n };
}

/* Takes @s up to the first @end, or all of it. */
static struct span take_until(struct span *s, char end)
{
	const char *at = memchr(s->at, end, s->len);
	struct span part = { s->at, at ? (size_t)(at - s->at) : s->len };

	*s = drop(*s, part.len + (at ? 1 : 0));
	return part;
}

/* Takes the next word, empty at the end. */
static struct span take_word(struct span *s)
{
	struct span word;
	size_t n = 0;

	while (s->len && is_blank(*s->at))
		*s = drop(*s, 1);
	while (n < s->len && !is_blank(s->at[n]))
		n++;
	word = (struct span){ s->at, n };
	*s = drop(*s, n);
	return word;
}

static void skip(struct parser *p)
{
	if (!p->report.skipped)
		p->report.first_skipped_line = p->line;
	if (++p->report.skipped > NAMESET_NAMES_MAX)
		p->error = -EFBIG;
}

static bool is_ascii(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.at[i] >= 0x80)
			return false;
	return true;
}

static bool canonical(struct span s, char *ret_host)
{
	char text[UTF_MAX + 1];

	if (host_canonical(s.at, s.len, ret_host))
		return true;
	if (s.len > UTF_MAX || is_ascii(s) || memchr(s.at, '\0', s.len))
		return false;
	memcpy(text, s.at, s.len);
	text[s.len] = '\0';
	return host_from_policy(text, ret_host);
}

static void add(struct parser *p, const char *host, uint8_t kind)
{
	if (++p->report.names > NAMESET_NAMES_MAX)
		p->error = -EFBIG;
	else
		p->error = names_add(p->names, host, kind, p->line);
}

static void add_name(struct parser *p, struct span name, uint8_t kind)
{
	char host[HOST_MAX + 1];

	if (canonical(name, host))
		add(p, host, kind);
	else
		skip(p);
}

static void plain(struct parser *p, struct span word)
{
	char host[HOST_MAX + 1];

	if (starts(word, "*."))
		add_name(p, drop(word, 2), NAMESET_BELOW);
	else if (starts(word, "."))
		add_name(p, drop(word, 1), NAMESET_EXACT | NAMESET_BELOW);
	else if (canonical(word, host) && strchr(host, '.'))
		add(p, host, NAMESET_EXACT | NAMESET_BELOW);
	else
		skip(p); /* also a lone word, as "Forbidden" of an error page */
}

static void adblock(struct parser *p, struct span rule)
{
	struct span rest = drop(rule, 2);
	struct span name = take_until(&rest, '^');

	if (name.len + 2 == rule.len || (rest.len && *rest.at != '$')) {
		skip(p);
		return;
	}
	if (rest.len)
		rest = drop(rest, 1);
	while (rest.len) {
		struct span option = take_until(&rest, ',');

		if (!equals(option, "all") && !equals(option, "important")) {
			skip(p);
			return;
		}
	}
	add_name(p, name, NAMESET_EXACT | NAMESET_BELOW);
}

/* An address, also with a zone (fe80::1%lo0). */
static bool is_address(struct span s, struct ip *ret_ip)
{
	struct span part = take_until(&s, '%');
	char text[IP_TEXT_MAX];

	if (!part.len || part.len >= sizeof(text))
		return false;
	for (size_t i = 0; i < part.len; i++)
		if (!memchr("0123456789abcdefABCDEF:.", part.at[i], 24))
			return false;
	memcpy(text, part.at, part.len);
	text[part.len] = '\0';
	return ip_parse(text, ret_ip);
}

/* Unspecified or loopback: "there is nothing here", which is a denial. Any
 * other address is where somebody's host really is. */
static bool is_sink(const struct ip *ip)
{
	static const uint8_t zero[15];

	if (ip->len == 4)
		return ip->byte[0] == 127 || !ip_v4_value(ip);
	return memcmp(ip->byte, zero, 15) == 0 && ip->byte[15] <= 1;
}

static bool is_own(struct span name)
{
	struct ip ip;

	for (size_t i = 0; i < ARRAY_SIZE(own_names); i++)
		if (equals(name, own_names[i]))
			return true;
	return is_address(name, &ip); /* "0.0.0.0 0.0.0.0" is wide-spread */
}

static void hosts(struct parser *p, const struct ip *ip, struct span names)
{
	bool any = false;

	names = take_until(&names, '#');
	for (;;) {
		struct span name = take_word(&names);

		if (!name.len || p->error)
			break;
		any = true;
		if (is_own(name))
			continue;
		if (is_sink(ip))
			add_name(p, name, NAMESET_EXACT);
		else
			skip(p);
	}
	if (!any)
		skip(p); /* an address alone */
}

static void parse_line(struct parser *p, struct span line)
{
	struct span rest = line, word = take_word(&rest), more;
	struct ip ip;

	if (!word.len || *word.at == '#' || *word.at == '!' ||
	    starts(word, "[Adblock") || starts(word, "[AdGuard") ||
	    starts(word, "[uBlock"))
		return;
	if (is_address(word, &ip)) {
		hosts(p, &ip, rest);
		return;
	}
	more = take_word(&rest);
	if (more.len && *more.at != '#' && *more.at != '!')
		skip(p);
	else if (starts(word, "||"))
		adblock(p, word);
	else
		plain(p, word);
}

int nameset_parse(const char *text, size_t len, struct names *names,
		  struct nameset_report *ret_report)
{
	struct parser p = { .names = names };
	struct span rest = { text, len };

	if (len > NAMESET_TEXT_MAX)
		p.error = -EFBIG;
	else if (starts(rest, BOM))
		rest = drop(rest, strlen(BOM));
	while (rest.len && !p.error) {
		p.line++;
		parse_line(&p, take_until(&rest, '\n'));
	}
	if (!p.error && p.report.skipped && !p.report.names)
		p.error = -EINVAL;
	*ret_report = p.report;
	return p.error;
}
