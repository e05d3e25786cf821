/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_calls.h - calls as an engine makes them, and what came back.
 */
#ifndef TESTS_CMD_DOCKER_CALLS_H
#define TESTS_CMD_DOCKER_CALLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/cmd/docker_world.h"
#include "tests/scratch.h"

#define NET	 "aaaaaaaaaaaa0001"
#define EP	 "bbbbbbbbbbbb0001"
#define EP2	 "cccccccccccc0002"
#define NAME	 "docker-bbbbbbbbbbbb"
#define ADDRESS	 "\"Interface\":{\"Address\":\"172.30.0.2/16\"}"
#define ADDRESS3 "\"Interface\":{\"Address\":\"172.30.0.3/16\"}"

static struct docker *docker;
static char dir[64], resolv[80], key[80];

struct answer {
	unsigned count;
	int status;
	char text[2048];
};
static struct answer last;

static inline void answered(void *arg, int status, const char *json, size_t len)
{
	struct answer *answer = arg;

	assert_true(len < sizeof(answer->text));
	answer->count++;
	answer->status = status;
	memcpy(answer->text, json, len);
	answer->text[len] = '\0';
}

static inline void send_call(struct answer *ret, const char *call,
			     const char *body)
{
	char path[64];

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "/NetworkDriver.%s", call);
	docker_call(docker, path, body, strlen(body), answered, ret);
}

/* The answer, after all that it waits for. */
static inline const char *ask(const char *call, const char *body)
{
	send_call(&last, call, body);
	world_turn();
	assert_int_equal(last.count, 1);
	assert_int_equal(last.status, 200);
	return last.text;
}

static inline void assert_ok(const char *call, const char *body)
{
	const char *text = ask(call, body);

	if (strstr(text, "\"Err\""))
		fail_msg("%s %s: %s", call, body, text);
}

static inline void assert_err(const char *call, const char *body,
			      const char *words)
{
	const char *text = ask(call, body);

	if (strncmp(text, "{\"Err\":\"", 8) != 0 || !strstr(text, words))
		fail_msg("%s %s: %s, not: %s", call, body, text, words);
}

static inline const char *network_call(const char *options, const char *more)
{
	static char body[2048];

	snprintf(
		body, sizeof(body),
		"{\"NetworkID\":\"" NET "\",\"Options\":{"
		"\"com.docker.network.enable_ipv6\":false,"
		"\"com.docker.network.generic\":{%s}%s},\"IPv4Data\":["
		"{\"AddressSpace\":\"LocalDefault\",\"Pool\":\"172.30.0.0/16\","
		"\"Gateway\":\"172.30.0.1/16\"}],\"IPv6Data\":[]}",
		options, more);
	return body;
}

static inline const char *endpoint_call(const char *id, const char *more)
{
	static char body[2048];

	snprintf(body, sizeof(body),
		 "{\"NetworkID\":\"" NET "\",\"EndpointID\":\"%s\"%s%s}", id,
		 *more ? "," : "", more);
	return body;
}

static inline const char *join_call(const char *id)
{
	char more[160];

	snprintf(more, sizeof(more), "\"SandboxKey\":\"%s\",\"Options\":{}",
		 key);
	return endpoint_call(id, more);
}

static inline void make_file(const char *path, const char *text)
{
	AUTO_FILE FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
}

static inline void open_driver(void)
{
	char state[80];

	snprintf(state, sizeof(state), "%s/state", dir);
	assert_int_equal(docker_new((struct daemon *)&world, state, &docker),
			 0);
	docker_resolver(docker, resolv);
}

static inline int set_up(void **arg)
{
	(void)arg;
	world_begin();
	assert_int_equal(scratch_make(dir, sizeof(dir)), 0);
	snprintf(resolv, sizeof(resolv), "%s/resolv.conf", dir);
	snprintf(key, sizeof(key), "%s/key", dir);
	make_file(resolv, "search lab.test\nnameserver 203.0.113.53\n");
	open_driver();
	return 0;
}

static inline int tear_down(void **arg)
{
	(void)arg;
	docker_free(docker);
	world_end();
	return scratch_remove(dir);
}

/* A network; with an endpoint; with a container on it. */
static inline void have_network(const char *options)
{
	assert_ok("CreateNetwork", network_call(options, ""));
}

static inline void have_endpoint(const char *options)
{
	have_network(options);
	assert_string_equal(ask("CreateEndpoint", endpoint_call(EP, ADDRESS)),
			    "{\"Interface\":{}}");
}

static inline void have_container(const char *options)
{
	have_endpoint(options);
	assert_ok("Join", join_call(EP));
	if (world.watches)
		world_appear(0);
	world_turn();
	assert_int_equal(world.joined, 1);
}

#endif
