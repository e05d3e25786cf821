/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_write.c - what was learned, as a policy that a person will read.
 *
 * Of the log only canonical host names, addresses and numbers get in; a path is
 * plain ASCII by then, and stays in a comment. So nothing can end a comment,
 * begin a rule, or speak to a terminal.
 */
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cmd/learn_plan.h"
#include "policy/reason.h"

#define SHOWN_MAX 1000 /* lines of what is no rule, of each kind */
#define NAMED_MAX 4    /* names in one comment */

static void print_time(FILE *out, uint64_t ms)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char text[32];

	if (ms / 1000 < UINT32_MAX && gmtime_r(&s, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		fputs(text, out);
	else
		fputs("an unknown time", out);
}

/* What YAML could take for a number or a word of its own is quoted. */
static void print_name(FILE *out, const char *name)
{
	bool plain = *name >= 'a' && *name <= 'z' && strchr(name, '.');

	fprintf(out, plain ? "%s" : "\"%s\"", name);
}

static void print_ports(FILE *out, const struct learn_host *host,
			bool (*want)(const struct learn_port *))
{
	bool comma = false;

	fputs(", ports: [", out);
	for (size_t i = 0; i < host->ports; i++) {
		if (!want(&host->port[i]))
			continue;
		fprintf(out, "%s%u", comma ? ", " : "", host->port[i].port);
		comma = true;
	}
	fputc(']', out);
}

static void print_special(FILE *out, const struct learn_host *host)
{
	char text[IP_TEXT_MAX];
	bool comma = false;

	for (size_t i = 0; i < host->ports; i++) {
		const struct learn_port *port = &host->port[i];

		for (size_t k = 0; learn_is_rule(port) && k < port->specials;
		     k++) {
			fprintf(out, "%s%s/%d", comma ? ", " : ", addresses: [",
				ip_format(&port->special[k], text),
				port->special[k].len * 8);
			comma = true;
		}
	}
	if (comma)
		fputc(']', out);
}

static void print_rule(FILE *out, const struct learn_host *host,
		       bool (*want)(const struct learn_port *))
{
	if (host->literal)
		fprintf(out, "- { address: \"%s\"", host->name);
	else
		fputs("- { host: ", out);
	if (!host->literal)
		print_name(out, host->name);
	print_ports(out, host, want);
	if (want == learn_is_rule)
		print_special(out, host);
	fputs(" }", out);
}

static void print_reasons(FILE *out, uint64_t bits)
{
	bool comma = false;

	for (int i = REASON_NOT_IN_POLICY; i < REASON_COUNT; i++) {
		if (!(bits >> i & 1))
			continue;
		fprintf(out, "%s%s", comma ? ", " : "",
			reason_word((enum reason)i));
		comma = true;
	}
}

static void print_count(FILE *out, uint64_t n, const char *what)
{
	fprintf(out, "%llu %s%s", (unsigned long long)n, what,
		n == 1 ? "" : "s");
}

static void print_http(FILE *out, const struct learn_port *port)
{
	const char *word;

	if (!port->methods)
		return;
	fputs(" (", out);
	for (unsigned i = 0; (word = learn_method_word(i)); i++)
		if (port->methods >> i & 1)
			fprintf(out, "%s ", word);
	fprintf(out, "%s%s)", *port->path ? port->path : "/",
		port->more_paths ? " and others" : "");
}

/* "443: 12 connections, TLS" */
static void print_port(FILE *out, const struct learn_port *port)
{
	fprintf(out, "%u: ", port->port);
	if (port->assumed)
		fputs("assumed, only the name was asked for", out);
	else
		print_count(out, (uint64_t)port->vetted + port->unvetted,
			    "connection");
	if (port->protocols & LEARN_TLS)
		fputs(", TLS", out);
	if (port->protocols & LEARN_HTTP)
		fputs(", HTTP", out);
	if (port->protocols == LEARN_OTHER)
		fputs(", neither TLS nor HTTP", out);
	/* Which these ports are for, unless the rule says otherwise. */
	if (port->protocols == LEARN_OTHER &&
	    (port->port == 443 || port->port == 80))
		fputs(" (that needs `protocol: any`)", out);
	print_http(out, port);
	if (port->observed >> REASON_NOT_IN_POLICY) {
		fputs(", observed: ", out);
		print_reasons(out, port->observed);
	}
	if (port->refusals) {
		fputs(", also refused: ", out);
		print_reasons(out, port->refusals);
	}
}

/* One line above each rule, and one more where it needs a second thought. */
static void print_evidence(FILE *out, const struct learn_host *host)
{
	const char *caution = host->literal ? NULL : learn_caution(host->name);
	bool first = true;

	fputs("  # ", out);
	for (size_t i = 0; i < host->ports; i++) {
		if (!learn_is_rule(&host->port[i]))
			continue;
		fputs(first ? "" : "; ", out);
		print_port(out, &host->port[i]);
		first = false;
	}
	fputs("; first ", out);
	print_time(out, host->first_ms);
	if (caution)
		fprintf(out, "\n  # careful: %s", caution);
	fputc('\n', out);
}

/* "a.example, b.example and 3 more" of those that @of covers. */
static void print_covered(FILE *out, const struct learn_table *table,
			  const char *preset, const char *parent, size_t n)
{
	size_t shown = 0;

	for (size_t i = 0; i < table->hosts && shown < NAMED_MAX; i++) {
		const struct learn_host *host = table->host[i];

		if (preset ? host->preset != preset
			   : !host->by_wildcard ||
				     strcmp(strchr(host->name, '.') + 1,
					    parent) != 0)
			continue;
		fprintf(out, "%s%s", shown++ ? ", " : "", host->name);
	}
	if (n > shown)
		fprintf(out, " and %zu more", n - shown);
	fputc('\n', out);
}

static void print_extends(FILE *out, const struct learn_table *table,
			  const struct learn_plan *plan)
{
	if (plan->presets)
		fputs("extends:\n", out);
	for (size_t i = 0; i < plan->presets; i++) {
		const struct learn_preset *p = &plan->preset[i];

		fprintf(out, "  # `sallyport presets %s` shows it; used for ",
			p->name);
		print_covered(out, table, p->name, NULL, p->covers);
		fprintf(out, "  - %s\n", p->name);
	}
}

static void print_allow(FILE *out, const struct learn_table *table,
			const struct learn_plan *plan)
{
	if (!plan->rules && !plan->wildcards) {
		fputs("allow: []\n", out);
		return;
	}
	fputs("allow:\n", out);
	for (size_t i = 0; i < plan->wildcards; i++) {
		const struct learn_wildcard *w = &plan->wildcard[i];

		fprintf(out, "  # %zu names: ", w->covers);
		print_covered(out, table, NULL, w->parent, w->covers);
		fprintf(out, "  - { host: \"*.%s\"", w->parent);
		print_ports(out, w->like, learn_is_rule);
		fputs(" }\n", out);
	}
	for (size_t i = 0; i < table->hosts; i++) {
		const struct learn_host *host = table->host[i];

		if (!learn_host_is_rule(host) || host->preset ||
		    host->by_wildcard)
			continue;
		print_evidence(out, host);
		fputs("  ", out);
		print_rule(out, host, learn_is_rule);
		fputc('\n', out);
	}
}

static bool is_refused(const struct learn_port *port)
{
	return port->fate == FATE_REFUSED;
}

static bool is_fate(const struct learn_host *host, enum learn_fate fate)
{
	for (size_t i = 0; i < host->ports; i++)
		if (host->port[i].fate == fate)
			return true;
	return !host->ports && host->fate == fate;
}

static void print_refused(FILE *out, const struct learn_host *host)
{
	uint64_t refusals = host->refusals, times = host->refused_lookups;

	for (size_t i = 0; i < host->ports; i++) {
		if (!is_refused(&host->port[i]))
			continue;
		refusals |= host->port[i].refusals;
		times += host->port[i].assumed ? 0 : host->port[i].refused;
	}
	fputs("  #", out);
	print_rule(out, host, is_refused);
	fputs(" # ", out);
	print_reasons(out, refusals);
	fputs(", ", out);
	print_count(out, times, "time");
	if (!host->literal && learn_caution(host->name))
		fprintf(out, "; careful: %s", learn_caution(host->name));
	fputc('\n', out);
}

static void print_never(FILE *out, const struct learn_host *host)
{
	if (!host->ports)
		fprintf(out, "#   %s: %s\n", host->name, host->why);
	for (size_t i = 0; i < host->ports; i++)
		if (host->port[i].fate == FATE_NEVER)
			fprintf(out, "#   %s port %u: %s\n", host->name,
				host->port[i].port, host->port[i].why);
}

static void print_plain(FILE *out, const struct learn_host *host,
			enum learn_fate fate)
{
	fprintf(out, "#   %s", host->name);
	for (size_t i = 0; i < host->ports; i++) {
		if (host->port[i].fate != fate)
			continue;
		fprintf(out, " port %u ", host->port[i].port);
		print_reasons(out, host->port[i].refusals);
	}
	fputc('\n', out);
}

static void print_section(FILE *out, const struct learn_table *table,
			  enum learn_fate fate)
{
	static const char *const titles[FATE_COUNT] = {
		[FATE_REFUSED] = "  # Refused. To allow one, take out its '#':",
		[FATE_UNREACHED] =
			"# Allowed, but no connection came about, so no rule:",
		[FATE_LOOKED_UP] = "# Only looked up, so no rule:",
		[FATE_NEVER] = "# Never a rule, and why:",
	};
	size_t n = 0;

	for (size_t i = 0; i < table->hosts; i++) {
		const struct learn_host *host = table->host[i];

		if (!is_fate(host, fate))
			continue;
		if (n++ == 0)
			fprintf(out, "%s\n", titles[fate]);
		if (n > SHOWN_MAX)
			continue;
		if (fate == FATE_REFUSED)
			print_refused(out, host);
		else if (fate == FATE_NEVER)
			print_never(out, host);
		else
			print_plain(out, host, fate);
	}
	if (n > SHOWN_MAX)
		fprintf(out, "# ... and %zu more\n", n - SHOWN_MAX);
}

static void print_head(FILE *out, const struct learn_table *table,
		       const struct learn_options *options)
{
	char buf[1024];
	struct json j = json_of(buf, sizeof(buf));

	fputs("# Learned by `sallyport learn` from ", out);
	print_count(out, table->records, "record");
	fputs(",\n# ", out);
	print_time(out, table->first_ms);
	fputs(" to ", out);
	print_time(out, table->last_ms);
	fputs(".\n# It allows what was allowed and reached. A log says what "
	      "programs did, not what\n# they should do: read this before you "
	      "use it.\nversion: 1\n",
	      out);
	json_bytes(&j, NULL, options->name, strlen(options->name));
	fprintf(out, "name: %.*s\n", (int)j.len, buf);
}

static void print_tail(FILE *out, const struct learn_table *table)
{
	if (table->strange) {
		fputs("# ", out);
		print_count(out, table->strange, "refusal");
		fputs(" of what is no host name.\n", out);
	}
	if (table->dropped) {
		fputs("# ", out);
		print_count(out, table->dropped, "record");
		fputs(" of names beyond the first ", out);
		fprintf(out, "%u: so no presets, no wildcards.\n",
			LEARN_NAMES_MAX);
	}
	if (table->bad) {
		fputs("# ", out);
		print_count(out, table->bad, "line");
		fputs(" of the logs were no records.\n", out);
	}
}

void learn_write(FILE *out, const struct learn_table *table,
		 const struct learn_plan *plan,
		 const struct learn_options *options)
{
	print_head(out, table, options);
	print_extends(out, table, plan);
	print_allow(out, table, plan);
	print_section(out, table, FATE_REFUSED);
	print_section(out, table, FATE_UNREACHED);
	print_section(out, table, FATE_LOOKED_UP);
	print_section(out, table, FATE_NEVER);
	print_tail(out, table);
}
