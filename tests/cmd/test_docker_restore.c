/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver after somebody was killed: what it finds on the disk, what it
 * takes up again, and what it notices by itself.
 */
#include "tests/cmd/docker_calls.h"

#include <arpa/inet.h>
#include <dirent.h>

#include "cmd/docker_impl.h"

static void restart(void)
{
	docker_free(docker);
	world_turn(); /* what was asked for comes to nobody */
	open_driver();
	docker_restore(docker);
	world_turn();
}

static size_t files(void)
{
	char state[80];
	size_t n = 0;
	DIR *list;

	snprintf(state, sizeof(state), "%s/state", dir);
	list = opendir(state);
	assert_non_null(list);
	while (readdir(list))
		n++;
	closedir(list);
	return n - 2; /* . and .. */
}

static void test_network_stays(void **arg)
{
	(void)arg;
	have_network("\"policy\":\"strict\",\"publish\":\"true\","
		     "\"dns\":\"require\"");
	assert_int_equal(files(), 1);
	restart();
	assert_err("CreateNetwork", network_call("", ""), "already");
	assert_err("CreateEndpoint", endpoint_call(EP, ADDRESS), "--dns");
	assert_true(docker->networks->publish);
	assert_string_equal(docker->networks->policy, "strict");
	assert_ok("DeleteNetwork", "{\"NetworkID\":\"" NET "\"}");
	assert_int_equal(files(), 0);
	restart();
	have_network("");
}

static void test_container_stays(void **arg)
{
	(void)arg;
	have_container("");
	assert_int_equal(files(), 2);
	restart();
	assert_int_equal(world_sandboxes(), 1);
	/* Its link is made anew by the name that it has inside. */
	assert_string_equal(world.sandboxes->spec.ifname, "eth0");
	assert_err("Join", join_call(EP), "already");
	assert_err("CreateEndpoint", endpoint_call(EP2, ADDRESS),
		   "has that address");
	assert_ok("Leave", endpoint_call(EP, ""));
	assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
	assert_int_equal(world_sandboxes(), 0);
	assert_int_equal(files(), 1);
}

static void test_name_inside_stays(void **arg)
{
	(void)arg;
	have_container("");
	snprintf(docker->endpoints->inside, sizeof(docker->endpoints->inside),
		 "eth1");
	assert_int_equal(docker_save_endpoint(docker->endpoints), 0);
	restart();
	assert_string_equal(world.sandboxes->spec.ifname, "eth1");
}

static void test_container_gone(void **arg)
{
	(void)arg;
	have_container("");
	unlink(key);
	restart();
	assert_int_equal(world_sandboxes(), 0);
	assert_int_equal(files(), 1);
	assert_ok("Leave", endpoint_call(EP, ""));
}

/* Another one is at the same path now. */
static void test_another_namespace(void **arg)
{
	char other[80];

	(void)arg;
	have_container("");
	snprintf(other, sizeof(other), "%s/other", dir);
	make_file(other, "");
	assert_int_equal(rename(other, key), 0);
	restart();
	assert_int_equal(world_sandboxes(), 0);
}

static void test_never_joined(void **arg)
{
	(void)arg;
	have_endpoint("");
	restart();
	assert_int_equal(world_sandboxes(), 0);
	assert_ok("CreateEndpoint", endpoint_call(EP, ADDRESS));
}

/* Killed between Join and the namespace: its link went, and no one watches. */
static void test_half_joined(void **arg)
{
	(void)arg;
	have_endpoint("");
	assert_ok("Join", join_call(EP));
	make_file(key, "");
	restart();
	assert_int_equal(world_sandboxes(), 0);
	assert_int_equal(world.locked, 1);
	assert_int_equal(world.killed, 0);
	assert_int_equal(files(), 1);
	unlink(key);
	assert_ok("CreateEndpoint", endpoint_call(EP, ADDRESS));
	assert_ok("Join", join_call(EP));
	make_file(key, "");
	world.lock_err = -EPERM;
	restart();
	assert_int_equal(world.killed, 1);
}

/* The daemon ends, and with it every keeper: that is no end of a container. */
static void test_stop(void **arg)
{
	(void)arg;
	have_endpoint("");
	assert_ok("Join", join_call(EP));
	world.joined_err = -ECHILD;
	world_appear(0);
	world.stopping = true;
	world_turn();
	world.stopping = false;
	restart();
	assert_int_equal(world_sandboxes(), 1);
	assert_int_equal(files(), 2);
}

static void test_sandbox_is_others(void **arg)
{
	struct daemon_spec spec = { .name = "mine" };

	(void)arg;
	world_sandbox(&spec);
	restart();
	assert_int_equal(world_sandboxes(), 1);
}

static void test_bad_files(void **arg)
{
	static const char *const bad[] = { "",	   "{", "[]",
					   "null", "7", "{\"version\":1}" };
	char path[160];

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(path, sizeof(path), "%s/state/endpoint-" EP ".json",
			 dir);
		make_file(path, bad[i]);
		snprintf(path, sizeof(path), "%s/state/network-" NET ".json",
			 dir);
		make_file(path, bad[i]);
		restart();
		assert_null(docker->networks);
		assert_null(docker->endpoints);
		/* What a network was is not thrown away. */
		assert_int_equal(files(), 1);
	}
	have_network("");
}

/* --- what it notices ----------------------------------------------------- */

static void test_engine_killed(void **arg)
{
	(void)arg;
	have_container("");
	docker_collect(docker);
	world_turn();
	assert_int_equal(world_sandboxes(), 1);
	unlink(key);
	docker_call(docker, "/Plugin.Activate", "", 0, answered, &last);
	world_turn();
	assert_int_equal(world_sandboxes(), 0);
	assert_null(docker->endpoints);
	assert_int_equal(files(), 1);
}

static void test_not_joined_for_long(void **arg)
{
	(void)arg;
	have_endpoint("");
	docker->endpoints->since -= DOCKER_UNJOINED_S - 10;
	docker_collect(docker);
	assert_int_equal(world_sandboxes(), 1);
	docker->endpoints->since -= 20;
	docker_collect(docker);
	world_turn();
	assert_int_equal(world_sandboxes(), 0);
	assert_null(docker->endpoints);
}

static void test_never_deleted(void **arg)
{
	(void)arg;
	have_container("");
	assert_ok("Leave", endpoint_call(EP, ""));
	docker_collect(docker);
	assert_non_null(docker->endpoints);
	docker->endpoints->since -= 3600;
	/* As long as the container is there it may be joined by nobody. */
	docker_collect(docker);
	assert_non_null(docker->endpoints);
	unlink(key);
	docker_collect(docker);
	assert_null(docker->endpoints);
}

static void test_ports_come_back(void **arg)
{
	static const char map[] =
		ADDRESS ",\"Options\":{\"com.docker.network.portmap\":["
			"{\"Proto\":6,\"Port\":80,\"HostIP\":\"127.0.0.81\","
			"\"HostPort\":8081}]}";

	(void)arg;
	make_file(key, "");
	have_network("\"publish\":\"true\"");
	assert_ok("CreateEndpoint", endpoint_call(EP, map));
	assert_ok("Join", join_call(EP));
	assert_ok("ProgramExternalConnectivity", endpoint_call(EP, ""));
	world_turn();
	docker_collect(docker);
	world_turn();
	assert_int_equal(world.forward_count, 1);
	/* Another keeper; and another daemon, whose keepers are not ready. */
	world_close_forwards();
	snprintf(world.sandboxes->facts.session,
		 sizeof(world.sandboxes->facts.session), "another");
	docker_collect(docker);
	assert_int_equal(world.forward_count, 0); /* the daemon's turn */
	docker_collect(docker);
	world_turn();
	assert_int_equal(world.forward_count, 1);
	world_close_forwards();
	world.sandboxes->state = SANDBOX_STARTING;
	restart();
	docker_collect(docker);
	docker_collect(docker);
	assert_int_equal(world.forward_count, 0);
	world.sandboxes->state = SANDBOX_READY;
	docker_collect(docker);
	docker_collect(docker);
	world_turn();
	assert_int_equal(world.forward_count, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_network_stays),     TEST(test_container_stays),
		TEST(test_name_inside_stays), TEST(test_container_gone),
		TEST(test_another_namespace), TEST(test_never_joined),
		TEST(test_half_joined),	      TEST(test_stop),
		TEST(test_sandbox_is_others), TEST(test_bad_files),
		TEST(test_engine_killed),     TEST(test_not_joined_for_long),
		TEST(test_never_deleted),     TEST(test_ports_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
