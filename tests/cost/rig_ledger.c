/* SPDX-License-Identifier: Apache-2.0
 *
 * rig_ledger.c - a ledger whose log is open, as cmd/ledger_start.c leaves it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "audit/key.h"
#include "base/cleanup.h"
#include "cmd/ledger_impl.h"
#include "tests/bench/mix.h"
#include "tests/cost/rig.h"

static int new_file(void)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/log-XXXXXX", cost_dir);
	fd = mkostemp(path, O_APPEND | O_CLOEXEC);
	cost_check(fd >= 0, path);
	return fd;
}

struct ledger *rig_ledger_new(void)
{
	const struct text name = { "cost.test", 9 };
	struct ledger *ledger = calloc(1, sizeof(*ledger));
	struct ledger_log *log;
	struct key *key;

	cost_check(ledger && key_generate(name, &key) == 0, "memory");
	for (size_t i = 0; i < LEDGER_LINKS_MAX; i++)
		ledger->link[i].fd = -1;
	ledger->open = true; /* as if by the warden's record */
	log = &ledger->log;
	for (size_t i = 0; i < LEDGER_FILE_COUNT; i++)
		log->file[i] = -1;
	log->context = mix_context(&log->frame);
	log->start.rotate_bytes = UINT64_C(1) << 30;
	cost_check(seal_new(key, new_file(), false, &log->seal) == 0 &&
			   writer_new(new_file(), &log->writer) == 0,
		   "a log");
	return ledger;
}

void rig_ledger_free(struct ledger *ledger)
{
	for (size_t i = 0; i < LEDGER_LINKS_MAX; i++)
		close_fd(&ledger->link[i].fd);
	ledger_log_free(&ledger->log);
	free(ledger);
}
