/* SPDX-License-Identifier: Apache-2.0
 *
 * cost_record.c - records of a busy session: on the gate's side until their
 * acknowledgement was heard, and on the ledger's from its socket to lines that
 * are chained, hashed and written. The ledger takes TURN at once, as many as
 * make a checkpoint due; another thread signs that, which does not count.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "audit/client.h"
#include "base/cleanup.h"
#include "cmd/ledger_impl.h"
#include "tests/bench/mix.h"
#include "tests/cost/rig.h"

#define PACK 8 /* of a turn of the gate's loop */
#define TURN SEAL_RECORDS
#define OPS  12

struct line {
	struct event_base *base;
	struct audit_client *client;
	struct ledger *ledger;
	struct mix mix;
	bool of_ledger; /* its side is what counts */
	struct wait wait[TURN];
	unsigned waiting;
};

static struct line line;

static void on_accepted(struct wait *wait, int status)
{
	(void)wait;
	cost_check(status == 0, "a record was not accepted");
	line.waiting--;
}

static void gates_turn(void)
{
	if (!line.of_ledger)
		cost_on();
	event_base_loop(line.base, EVLOOP_NONBLOCK);
	if (!line.of_ledger)
		cost_off();
}

/* When it begins nobody signs, and a checkpoint may begin again: so there is
 * one each time, however fast that all is. */
static void ledgers_turn(void)
{
	int r = seal_wait(line.ledger->log.seal);

	cost_check(r == 0, "a checkpoint");
	usleep((SEAL_GAP_MS + 1) * 1000);
	if (line.of_ledger)
		cost_on();
	r = ledger_turn(line.ledger, NULL);
	if (line.of_ledger)
		cost_off();
	cost_check(r == TURN, "a turn of the ledger's");
}

static void submit(struct wait *wait)
{
	struct audit_event event = mix_next(&line.mix);

	wait->done = on_accepted;
	line.waiting++;
	if (!line.of_ledger)
		cost_on();
	audit_client_submit(line.client, &event, wait);
	if (!line.of_ledger)
		cost_off();
}

static void take_turns(void *arg, unsigned n)
{
	(void)arg;
	(void)n;
	for (size_t i = 0; i < TURN; i++) {
		submit(&line.wait[i]);
		if (i % PACK == PACK - 1)
			gates_turn();
	}
	ledgers_turn();
	gates_turn();
	cost_check(line.waiting == 0, "a record was not acknowledged");
}

void cost_record(void)
{
	struct cost cost = { "record-gate", take_turns, NULL, 1, OPS, TURN };
	int sock[2];

	line.base = event_base_new();
	line.ledger = rig_ledger_new();
	cost_check(line.base &&
			   socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				      sock) == 0,
		   "socketpair");
	ledger_add_link(line.ledger, sock[1], false);
	cost_check(audit_client_new(line.base, sock[0], NULL, NULL,
				    &line.client) == 0,
		   "a line to the ledger");
	cost_measure(&cost);
	line.of_ledger = true;
	cost.name = "record-ledger";
	cost_measure(&cost);
	audit_client_free(line.client);
	event_base_free(line.base);
	rig_ledger_free(line.ledger);
}
