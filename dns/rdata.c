/* SPDX-License-Identifier: Apache-2.0
 *
 * rdata.c - RFC 1035 section 3.3.9 and 3.3.14, RFC 2782.
 *
 * Nothing is passed on as it came but the strings of a TXT record, whose
 * lengths were checked: names are read, judged and written anew.
 */
#include "dns/rdata.h"

bool rdata_known(uint16_t type)
{
	return type == DNS_TXT || type == DNS_MX || type == DNS_SRV;
}

/* One or more strings, each with its length before it. */
static enum rdata_parse parse_txt(struct wire rdata, struct rdata *ret_rdata)
{
	const struct wire all = rdata;

	do
		wire_take(&rdata, wire_u8(&rdata));
	while (wire_ok(&rdata) && rdata.left);
	if (!wire_ok(&rdata))
		return RDATA_BAD;
	if (all.left > sizeof(ret_rdata->data))
		return RDATA_ODD;
	ret_rdata->len = (uint16_t)all.left;
	memcpy(ret_rdata->data, all.at, all.left);
	return RDATA_OK;
}

/* @fixed bytes of numbers, and a name. */
static enum rdata_parse parse_target(struct wire rdata, size_t fixed,
				     const struct wire *message,
				     struct rdata *ret_rdata)
{
	struct wirebuf b = wirebuf_of(ret_rdata->data, sizeof(ret_rdata->data));
	const uint8_t *numbers = wire_take(&rdata, fixed);
	char host[HOST_MAX + 1];
	struct name name;

	if (!numbers || !name_read(&rdata, message, &name) || rdata.left)
		return RDATA_BAD;
	/* Written from the host's name, so that both are the same for sure. */
	if (name.wire[0]) {
		if (!name_to_host(&name, host))
			return RDATA_ODD;
		name_from_host(host, &name);
	}
	wirebuf_put(&b, numbers, fixed);
	wirebuf_put(&b, name.wire, name.len);
	ret_rdata->len = (uint16_t)b.len;
	return RDATA_OK;
}

enum rdata_parse rdata_parse(uint16_t type, struct wire rdata,
			     const struct wire *message,
			     struct rdata *ret_rdata)
{
	switch (type) {
	case DNS_TXT:
		return parse_txt(rdata, ret_rdata);
	case DNS_MX:
		return parse_target(rdata, 2, message, ret_rdata);
	case DNS_SRV:
		return parse_target(rdata, 6, message, ret_rdata);
	default:
		return RDATA_BAD;
	}
}
