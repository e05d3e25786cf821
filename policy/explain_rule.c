/* SPDX-License-Identifier: Apache-2.0
 *
 * explain_rule.c - see explain_rule.h.
 */
#include "policy/explain_rule.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "policy/rule.h"

struct text {
	char *buf;
	size_t cap, len;
};

static void put(struct text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *format, ...)
{
	va_list ap;
	int n;

	if (t->len >= t->cap)
		return;
	va_start(ap, format);
	n = vsnprintf(t->buf + t->len, t->cap - t->len, format, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n;
}

char *ports_format(const struct port_range *range, size_t n, char *buf,
		   size_t cap)
{
	struct text t = { buf, cap, 0 };

	if (!n)
		put(&t, "any port");
	for (size_t i = 0; i < n; i++) {
		put(&t, "%s%u", i ? ", " : "", range[i].first);
		if (range[i].last != range[i].first)
			put(&t, "-%u", range[i].last);
	}
	return buf;
}

char *size_format(uint64_t bytes, char *buf, size_t cap)
{
	static const struct {
		uint64_t bytes;
		const char *word;
	} units[] = {
		{ UINT64_C(1) << 40, "TiB" }, { UINT64_C(1000000000000), "TB" },
		{ 1 << 30, "GiB" },	      { 1000000000, "GB" },
		{ 1 << 20, "MiB" },	      { 1000000, "MB" },
		{ 1 << 10, "KiB" },	      { 1000, "kB" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!bytes || bytes % units[i].bytes)
			continue;
		snprintf(buf, cap, "%llu %s",
			 (unsigned long long)(bytes / units[i].bytes),
			 units[i].word);
		return buf;
	}
	snprintf(buf, cap, "%llu B", (unsigned long long)bytes);
	return buf;
}

char *time_format(int64_t time_s, char *buf, size_t cap)
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(buf, cap, "%FT%TZ", &tm))
		snprintf(buf, cap, "%lld", (long long)time_s);
	return buf;
}

static const char *gap(const struct text *t)
{
	return t->len ? "; " : "";
}

static void put_texts(struct text *t, const struct texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		put(t, "%s%s", i ? ", " : gap(t), texts->at[i]);
}

static void put_types(struct text *t, unsigned types)
{
	static const char *const word[] = { "TXT", "MX", "SRV" };
	bool any = false;

	for (unsigned i = 0; i < ARRAY_SIZE(word); i++) {
		if (!(types & 1u << i))
			continue;
		put(t, "%s%s", any ? ", " : gap(t), word[i]);
		any = true;
	}
	if (any)
		put(t, " records too");
}

static void put_connect(struct text *t, const struct endpoint *to)
{
	char ip[IP_TEXT_MAX];

	put(t,
	    to->ip.len == 16 ? "%sconnects to [%s]:%u" : "%sconnects to %s:%u",
	    gap(t), ip_format(&to->ip, ip), to->port);
}

static void put_budgets(struct text *t, const struct rule *rule)
{
	static const char *const word[] = {
		[UP] = "upload", [DOWN] = "download"
	};
	char size[40];

	for (int i = UP; i <= DOWN; i++)
		if (rule->budget[i])
			put(t, "%sat most %s of %s", gap(t),
			    size_format(rule->budget[i], size, sizeof(size)),
			    word[i]);
}

char *rule_describe(const struct rule *rule, char *buf, size_t cap)
{
	static const char *const wanted[] = { [WANTED_TLS] = "TLS",
					      [WANTED_HTTP] = "plain HTTP",
					      [WANTED_ANY] = "any protocol" };
	struct text t = { buf, cap, 0 };
	char cidr[CIDR_TEXT_MAX], when[40];

	buf[0] = '\0';
	if (rule->wanted != WANTED_DEFAULT)
		put(&t, "%s", wanted[rule->wanted]);
	if (rule->ech != ECH_DEFAULT)
		put(&t, "%sencrypted ClientHello %s", gap(&t),
		    rule->ech == ECH_ALLOW ? "allowed" : "refused");
	put_texts(&t, &rule->methods);
	put_texts(&t, &rule->paths);
	if (!rule->deny && rule->doors != DOORS_ALL)
		put(&t, "%s%s", gap(&t),
		    rule->doors == DOORS_PROXY ? "by the proxy only"
					       : "directly only");
	for (size_t i = 0; i < rule->address_count; i++)
		put(&t, "%s%s", i ? ", " : gap(&t),
		    cidr_format(&rule->addresses[i], cidr));
	if (rule->address_count)
		put(&t, " permitted");
	if (rule_connect(rule))
		put_connect(&t, rule_connect(rule));
	put_types(&t, rule->dns_types);
	put_budgets(&t, rule);
	if (rule->expires_s)
		put(&t, "%suntil %s", gap(&t),
		    time_format(rule->expires_s, when, sizeof(when)));
	return buf;
}
