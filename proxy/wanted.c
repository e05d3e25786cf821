/* SPDX-License-Identifier: Apache-2.0
 *
 * wanted.c - see wanted.h.
 */
#include "proxy/wanted.h"

enum wanted wanted_on(enum wanted wanted, uint16_t port)
{
	if (wanted == WANTED_DEFAULT && port == 443)
		return WANTED_TLS;
	if (wanted == WANTED_DEFAULT && port == 80)
		return WANTED_HTTP;
	return wanted;
}

enum wanted wanted_of(const struct verdict *verdict, uint16_t port)
{
	if (verdict_has_rule(verdict))
		return wanted_on(rule_wanted(verdict->rule), port);
	return wanted_on(WANTED_DEFAULT, port);
}

enum wanted wanted_ahead(const struct policy *policy,
			 const struct question *question)
{
	const struct verdict verdict = policy_decide(policy, question);

	return wanted_of(&verdict, question->port);
}
