/* SPDX-License-Identifier: Apache-2.0
 *
 * cost_dns.c - a question by UDP: for a name whose addresses are known already,
 * for one that is refused, for one that has to be asked for upstream, and the
 * same one again at once.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/cost/rig.h"

#define OPS   200
#define DOOR  "127.0.0.1"
#define APART 1100000 /* us: more than a second */

static const char yaml[] =
	"version: 1\n"
	"limits: {names: 4000, names_per_wildcard: 4000, "
	"dns_per_second: 100000}\n"
	"allow:\n"
	"  - {host: '*.cost.test', ports: [443], addresses: [127.0.0.0/8]}\n";

struct asker {
	struct rig *rig;
	int fd;
	const char *form;
	unsigned rcode;
};

static void ask(void *arg, unsigned i)
{
	const struct asker *asker = arg;
	char name[64];
	struct ip ip;

	snprintf(name, sizeof(name), asker->form, 100 + i);
	cost_check(rig_ask(asker->rig, asker->fd, name, &ip) == asker->rcode &&
			   (ip.len == 4) == (asker->rcode == 0),
		   name);
}

/* What was asked a moment ago. Always the same: each name has a record at the
 * end of its second, and how many of those come meanwhile is the clock's. */
static void ask_again(void *arg, unsigned i)
{
	(void)i;
	cost_pause(true);
	ask(arg, 0);
	cost_pause(false);
	ask(arg, 0);
}

static void measure(const char *name, struct asker *asker, const char *form,
		    unsigned rcode, void (*how)(void *arg, unsigned i))
{
	const struct cost cost = { name, how, asker, 0, OPS, 1 };

	asker->form = form;
	asker->rcode = rcode;
	cost_measure(&cost);
	rig_settle(asker->rig);
}

void cost_dns(void)
{
	const struct ip door = rig_ip(DOOR);
	struct asker asker = { .rig = rig_new(yaml) };

	rig_serve_dns(asker.rig, DOOR);
	asker.fd = rig_connect(SOCK_DGRAM, &door, 53);
	asker.form = "name%u.cost.test";
	for (unsigned i = 0; i < OPS; i++)
		ask(&asker, i);
	asker.form = "no%u.elsewhere.test";
	asker.rcode = 3;
	for (unsigned i = 0; i < OPS; i++)
		ask(&asker, i);
	/* What is asked again within a second may cost less. */
	usleep(APART);
	measure("dns-cached", &asker, "name%u.cost.test", 0, ask);
	measure("dns-denied", &asker, "no%u.elsewhere.test", 3, ask);
	measure("dns-repeated", &asker, "name%u.cost.test", 0, ask_again);
	measure("dns-forwarded", &asker, "new%u.cost.test", 0, ask);
	close_fd(&asker.fd);
	rig_free(asker.rig);
}
