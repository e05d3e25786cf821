/* SPDX-License-Identifier: Apache-2.0
 *
 * learn_json.c - what was learned, for programs: every host with its fate, and
 * the policy itself as text.
 */
#include <errno.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "cmd/learn_plan.h"
#include "policy/reason.h"

static const char *const fates[FATE_COUNT] = {
	[FATE_RULE] = "rule",		[FATE_INCLUDED] = "included",
	[FATE_REFUSED] = "refused",	[FATE_UNREACHED] = "unreached",
	[FATE_LOOKED_UP] = "looked_up", [FATE_NEVER] = "never",
};

static json_t *json_reasons(uint64_t bits)
{
	json_t *list = json_array();

	for (int i = REASON_NOT_IN_POLICY; i < REASON_COUNT; i++)
		if (bits >> i & 1)
			json_array_append_new(
				list, json_string(reason_word((enum reason)i)));
	return list;
}

static json_t *json_port(const struct learn_port *port)
{
	return json_pack("{s:i, s:s, s:s*, s:I, s:I, s:o, s:o}", "port",
			 (int)port->port, "fate", fates[port->fate], "why",
			 port->why, "connections",
			 (json_int_t)port->vetted + port->unvetted, "refused",
			 (json_int_t)port->refused, "reasons",
			 json_reasons(port->refusals), "observed",
			 json_reasons(port->observed));
}

static json_t *json_host(const struct learn_host *host)
{
	json_t *ports = json_array(), *object;

	for (size_t i = 0; i < host->ports; i++)
		json_array_append_new(ports, json_port(&host->port[i]));
	object = json_pack("{s:s, s:I, s:s*, s:o}",
			   host->literal ? "address" : "host", host->name,
			   "lookups",
			   (json_int_t)host->lookups + host->refused_lookups,
			   "preset", host->preset, "ports", ports);
	if (!host->ports) {
		json_object_set_new(object, "fate",
				    json_string(fates[host->fate]));
		if (host->why)
			json_object_set_new(object, "why",
					    json_string(host->why));
	}
	if (host->by_wildcard)
		json_object_set_new(object, "wildcard", json_true());
	return object;
}

static json_t *json_plan(const struct learn_table *table,
			 const struct learn_plan *plan, const char *yaml)
{
	json_t *presets = json_array(), *wildcards = json_array();
	json_t *hosts = json_array();

	for (size_t i = 0; i < plan->presets; i++)
		json_array_append_new(presets,
				      json_string(plan->preset[i].name));
	for (size_t i = 0; i < plan->wildcards; i++)
		json_array_append_new(
			wildcards,
			json_sprintf("*.%s", plan->wildcard[i].parent));
	for (size_t i = 0; i < table->hosts; i++)
		json_array_append_new(hosts, json_host(table->host[i]));
	return json_pack(
		"{s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:s}", "records",
		(json_int_t)table->records, "bad_lines", (json_int_t)table->bad,
		"strange_names", (json_int_t)table->strange, "dropped",
		(json_int_t)table->dropped, "presets", presets, "wildcards",
		wildcards, "rules", (json_int_t)plan->rules, "hosts", hosts,
		"policy", yaml);
}

int learn_write_json(FILE *out, const struct learn_table *table,
		     const struct learn_plan *plan, const char *yaml)
{
	json_t *json = json_plan(table, plan, yaml);
	int r = json ? json_dumpf(json, out, JSON_COMPACT | JSON_ENSURE_ASCII)
		     : -1;

	json_decref(json);
	if (r < 0)
		return -ENOMEM;
	fputc('\n', out);
	return 0;
}
