/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine may post: calls, one a line, "Join {...}", in any order, with
 * any body. A line that is "+" has the daemon answer, "!" the namespace appear,
 * "-" has a look at what is gone. Each call is answered once, and when all
 * endpoints are deleted, nothing of them is left.
 */
#include "cmd/docker.h"

#include <sched.h>

#include "base/log.h"
#include "cmd/docker_impl.h"
#include "tests/cmd/docker_world.h"

#define LINES_MAX 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/dev/shm/sallyport-fuzz-XXXXXX";
static struct docker *docker;
static unsigned asked, answered;

static void reply(void *arg, int status, const char *json, size_t len)
{
	unsigned *times = arg;

	if ((*times)++ || (status != 200 && status != 404) ||
	    strlen(json) != len || json[0] != '{')
		abort();
	answered++;
}

/* It is empty: what was made was deleted. */
static void remove_dir(void)
{
	char last[64];

	docker_free(docker);
	snprintf(last, sizeof(last), "%s/.new", dir);
	unlink(last);
	if (rmdir(dir) < 0)
		abort();
}

static void begin(void)
{
	if (docker)
		return;
	world_begin();
	log_init("fuzz", LOG_LEVEL_ERROR);
	/* Ports that are published are nobody's. */
	if ((unshare(CLONE_NEWNET) < 0 &&
	     unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) ||
	    !mkdtemp(dir) ||
	    docker_new((struct daemon *)&world, dir, &docker) ||
	    atexit(remove_dir))
		abort();
	docker_resolver(docker, "/dev/null");
}

static void call(const char *line, size_t len, unsigned *times)
{
	const char *body = memchr(line, ' ', len);
	char path[64];

	if (!body || body - line > 32)
		return;
	snprintf(path, sizeof(path), "/NetworkDriver.%.*s", (int)(body - line),
		 line);
	asked++;
	docker_call(docker, path, body, len - (size_t)(body - line), reply,
		    times);
}

static void line_of(const char *line, size_t len, unsigned *times)
{
	if (world.calls > WORLD_MAX / 2 || world.forward_count > WORLD_MAX / 2)
		return;
	if (len == 1 && *line == '+')
		world_turn();
	else if (len == 1 && *line == '!' && world.watches)
		world_appear(-ETIMEDOUT);
	else if (len == 1 && *line == '-')
		docker_collect(docker);
	else
		call(line, len, times);
}

static void forget(const char *what, const char *id)
{
	static unsigned times;
	char line[160];

	times = 0;
	snprintf(line, sizeof(line), "Delete%s {\"%sID\":\"%s\"}", what, what,
		 id);
	call(line, strlen(line), &times);
	world_turn();
	if (times != 1)
		abort();
}

static void clean_up(void)
{
	world_turn();
	while (docker->endpoints)
		forget("Endpoint", docker->endpoints->id);
	while (docker->networks)
		forget("Network", docker->networks->id);
	if (asked != answered || world.sandboxes || world.watches ||
	    world.calls || world.forward_count)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned times[LINES_MAX] = { 0 };
	const char *at = (const char *)data, *end = at + size;

	begin();
	asked = answered = 0;
	for (size_t i = 0; i < LINES_MAX && at < end; i++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		if (!stop)
			stop = end;
		line_of(at, (size_t)(stop - at), &times[i]);
		at = stop + 1;
	}
	clean_up();
	return 0;
}
