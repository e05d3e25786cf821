/* SPDX-License-Identifier: Apache-2.0
 *
 * report_guess.c - tables. What is known of a host comes from the list that
 * `check` warns by, what is known of a packet from the words of the gate.
 */
#include "cmd/report_guess.h"

#include <string.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "policy/hostname.h"
#include "policy/lint.h"

static const struct report_guess none,
	tunnel_guess = { "dns_tunnel",
			 "data in names: the shape of a DNS tunnel" };

/* Where a sandbox gets the credentials of the machine it runs on. */
static const char *const metadata_names[] = {
	"metadata.google.internal",
	"metadata.goog",
	"instance-data",
	"metadata.azure.internal",
};

static struct report_guess guess_address(const char *host)
{
	static const char *const inside[] = { "private", "loopback",
					      "link-local", "site-local",
					      "shared (carrier NAT)" };
	const char *special = NULL;
	struct ip ip;

	if (ip_parse(host, &ip))
		special = ip_special(&ip);
	if (special && strcmp(special, "metadata") == 0)
		return (struct report_guess){
			"metadata", "credentials of a cloud's metadata service"
		};
	for (size_t i = 0; special && i < ARRAY_SIZE(inside); i++)
		if (strcmp(special, inside[i]) == 0)
			return (struct report_guess){
				"internal", "a service of the inside"
			};
	return (struct report_guess){ "direct_ip",
				      "an address, to do without names" };
}

static struct report_guess guess_listed(const char *host)
{
	const struct lint_entry *entry = lint_lookup(host);

	if (entry && strcmp(entry->class, "doh") == 0)
		return (struct report_guess){
			"doh", "a resolver of its own, over HTTPS or TLS"
		};
	if (entry && strcmp(entry->class, "stranger-writable") == 0)
		return (struct report_guess){ "drop_site", entry->reason };
	return none;
}

static struct report_guess guess_reason(enum reason reason)
{
	switch (reason) {
	case REASON_NAME_MISMATCH:
		return (struct report_guess){
			"fronting", "one name outside, another inside: domain "
				    "fronting"
		};
	case REASON_ECH:
		return (struct report_guess){ "ech", "hides the host's name" };
	case REASON_FORBIDDEN_ADDRESS:
		return (struct report_guess){
			"rebinding", "a name that stands for an address of the "
				     "inside"
		};
	case REASON_RECORD_TYPE:
		return (struct report_guess){
			"record_type", "a record type that carries data"
		};
	case REASON_LIMIT_NAMES:
		return tunnel_guess;
	case REASON_SELF:
		return (struct report_guess){ "gateway", "the gateway itself" };
	case REASON_MALFORMED:
	case REASON_NO_NAME:
		return (struct report_guess){
			"evasion", "a message to confuse the gate, or a "
				   "careless client"
		};
	default:
		return none;
	}
}

struct report_guess report_guess_host(const char *host, enum reason reason,
				      bool tunnel, bool strange)
{
	struct report_guess guess;
	struct ip ip;

	if (!*host)
		return none;
	if (ip_parse(host, &ip))
		return guess_address(host);
	if (tunnel)
		return tunnel_guess;
	for (size_t i = 0; !strange && i < ARRAY_SIZE(metadata_names); i++)
		if (strcmp(host, metadata_names[i]) == 0)
			return guess_address("169.254.169.254");
	guess = guess_reason(reason);
	if (guess.word || strange)
		return guess;
	return guess_listed(strncmp(host, "*.", 2) == 0 ? host + 2 : host);
}

/* firewall/intent.c */
static const struct {
	const char *detail;
	struct report_guess guess;
} packets[] = {
	{ "DNS", { "dns", "another name server" } },
	{ "DNS over TLS", { "dot", "another name server, encrypted (DoT)" } },
	{ "DNS over QUIC", { "doq", "another name server, encrypted (DoQ)" } },
	{ "QUIC", { "quic", "HTTP/3: many clients try it first" } },
	{ "NTP", { "ntp", "the time; data can hide in it" } },
	{ "SMTP", { "smtp", "mail" } },
	{ "ICMP", { "icmp", "ping, or a tunnel through it" } },
	{ "IRC", { "irc", "chat; often a botnet's" } },
	{ "Tor", { "tor", "Tor" } },
	{ "STUN", { "stun", "a way around NAT (WebRTC)" } },
	{ "WireGuard", { "vpn", "a VPN" } },
	{ "VPN", { "vpn", "a VPN" } },
	{ "tunnel", { "tunnel", "packets within packets" } },
	{ "IPv6", { "ipv6", "IPv6, which has no way out here" } },
	{ "forged address", { "spoofing", "a forged sender" } },
	{ "spoofed source address", { "spoofing", "a forged sender" } },
	{ "multicast", { "local", "neighbours on a local network" } },
	{ "mDNS", { "local", "neighbours on a local network" } },
	{ "LLMNR", { "local", "neighbours on a local network" } },
	{ "SSDP", { "local", "neighbours on a local network" } },
	{ "NetBIOS", { "local", "neighbours on a local network" } },
	{ "DHCP", { "local", "neighbours on a local network" } },
	{ "many kinds of packet", { "scan", "a scan, or a flood" } },
};

struct report_guess report_guess_packet(const char *detail, const char *host)
{
	struct ip ip;

	for (size_t i = 0; i < ARRAY_SIZE(packets); i++)
		if (strcmp(detail, packets[i].detail) == 0)
			return packets[i].guess;
	if (ip_parse(host, &ip))
		return guess_address(host);
	return none;
}
