/* SPDX-License-Identifier: Apache-2.0
 *
 * test_docker.c - the driver's calls: a container's life, and everything that
 * can be wrong with what an engine or its user says.
 */
#include "tests/cmd/docker_calls.h"

#include <arpa/inet.h>
#include <sys/socket.h>

/* --- the protocol -------------------------------------------------------- */

static void test_handshake(void **arg)
{
	(void)arg;
	docker_call(docker, "/Plugin.Activate", "", 0, answered, &last);
	assert_string_equal(last.text, "{\"Implements\":[\"NetworkDriver\"]}");
	assert_string_equal(
		ask("GetCapabilities", ""),
		"{\"Scope\":\"local\",\"ConnectivityScope\":\"local\"}");
	assert_ok("DiscoverNew", "{\"DiscoveryType\":1,\"DiscoveryData\":{}}");
	assert_ok("DiscoverDelete", "{}");
	send_call(&last, "GwAllocCheck", "{}");
	assert_int_equal(last.status, 404);
	assert_non_null(strstr(last.text, "\"Err\""));
}

static void test_malformed(void **arg)
{
	static const char *const calls[] = { "CreateNetwork",
					     "DeleteNetwork",
					     "CreateEndpoint",
					     "DeleteEndpoint",
					     "EndpointOperInfo",
					     "Join",
					     "Leave",
					     "DiscoverNew",
					     "ProgramExternalConnectivity",
					     "RevokeExternalConnectivity" };
	static const char *const bodies[] = { "",
					      "{",
					      "[]",
					      "null",
					      "\"x\"",
					      "{}x",
					      "{\"a\":1,\"a\":1}",
					      "{\"NetworkID\":\"\xff\"}",
					      "{\"NetworkID\":\"a\\u0000b\"}" };
	AUTO_FREE char *deep = malloc(DOCKER_BODY_MAX + 2);

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		for (size_t j = 0; j < ARRAY_SIZE(bodies); j++)
			assert_err(calls[i], bodies[j], "not a JSON object");
	assert_non_null(deep);
	memset(deep, '[', DOCKER_BODY_MAX + 1);
	deep[DOCKER_BODY_MAX + 1] = '\0';
	assert_err("Join", deep, "too long");
	deep[DOCKER_BODY_MAX] = '\0';
	assert_err("Join", deep, "not a JSON object");
}

static void test_ids(void **arg)
{
	static const char *const bad[] = {
		"{}",
		"{\"NetworkID\":7,\"EndpointID\":7}",
		"{\"NetworkID\":\"../../../etc/x\",\"EndpointID\":\"../../../etc/x\"}",
		"{\"NetworkID\":\"short\",\"EndpointID\":\"short\"}",
		"{\"NetworkID\":\"AAAAAAAAAAAAAAAA\",\"EndpointID\":\"AAAAAAAAAAAAAAAA\"}",
	};
	static const char *const calls[] = { "CreateNetwork",
					     "DeleteNetwork",
					     "CreateEndpoint",
					     "Join",
					     "Leave",
					     "DeleteEndpoint",
					     "EndpointOperInfo",
					     "ProgramExternalConnectivity" };

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		for (size_t j = 0; j < ARRAY_SIZE(calls); j++)
			assert_err(calls[j], bad[i], "no usable ");
	/* Of engines that forgot less, or more, than we. */
	assert_ok("DeleteNetwork", "{\"NetworkID\":\"" NET "\"}");
	assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
	assert_ok("Leave", endpoint_call(EP, ""));
	assert_err("Join", join_call(EP), "knows no endpoint");
	assert_err("EndpointOperInfo", endpoint_call(EP, ""), "no endpoint");
	assert_err("ProgramExternalConnectivity", endpoint_call(EP, ""),
		   "no endpoint");
	assert_err("CreateEndpoint", endpoint_call(EP, ADDRESS), "no network");
}

/* --- networks ------------------------------------------------------------ */

static void test_network_options(void **arg)
{
	static const struct {
		const char *options, *more, *words;
	} bad[] = {
		{ "\"polcy\":\"agent\",\"x\":\"y\"", "", "'polcy', 'x'" },
		{ "\"policy\":\"nobody\"", "", "no policy 'nobody'" },
		{ "\"policy\":\"\"", "", "a policy's name or path" },
		{ "\"policy\":7", "", "not a text" },
		{ "\"policy\":\"/nonexistent/p.yaml\"", "",
		  "/nonexistent/p.yaml" },
		{ "\"publish\":\"yes\"", "", "true or false, not 'yes'" },
		{ "\"dns\":\"none\"", "", "require, tables or auto" },
		{ "\"a\\u001b[31m\":\"\"", "", "'a?[31m'" },
		{ "", ",\"com.docker.network.internal\":true", "--internal" },
	};
	const char *v6;

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_err("CreateNetwork",
			   network_call(bad[i].options, bad[i].more),
			   bad[i].words);
	v6 = "{\"NetworkID\":\"" NET "\",\"Options\":{"
	     "\"com.docker.network.enable_ipv6\":true}}";
	assert_err("CreateNetwork", v6, "--ipv6");
	/* The same name again is a new network, with another id. */
	have_network("\"policy\":\"agent\"");
	assert_err("CreateNetwork", network_call("", ""), "already");
	assert_ok("DeleteNetwork", "{\"NetworkID\":\"" NET "\"}");
	have_network(
		"\"policy\":\"strict\",\"publish\":\"true\",\"dns\":\"auto\"");
}

static void test_network_addresses(void **arg)
{
	static const struct {
		const char *data, *words;
	} bad[] = {
		{ "", "has none" },
		{ "{\"Pool\":\"0.0.0.0/0\",\"Gateway\":\"10.0.0.1/8\"}",
		  "0.0.0.0/0" },
		{ "{\"Pool\":\"10.0.0.0/31\",\"Gateway\":\"10.0.0.1/31\"}",
		  "one IPv4 subnet" },
		{ "{\"Pool\":\"fd00::/64\",\"Gateway\":\"fd00::1/64\"}",
		  "one IPv4 subnet" },
		{ "{\"Pool\":\"10.0.0.0/8\"}", "needs a gateway" },
		{ "{\"Pool\":\"10.0.0.0/8\",\"Gateway\":\"11.0.0.1/8\"}",
		  "needs a gateway" },
		{ "{\"Pool\":\"10.0.0.0/8\",\"Gateway\":\"10.0.0.1/33\"}",
		  "needs a gateway" },
		{ "{\"Pool\":\"198.18.5.0/24\",\"Gateway\":\"198.18.5.1/24\"}",
		  "overlaps" },
		{ "{\"Pool\":\"198.0.0.0/8\",\"Gateway\":\"198.0.0.1/8\"}",
		  "overlaps" },
		{ "{\"Pool\":\"10.0.0.0/24\",\"Gateway\":\"10.0.0.1/24\"},"
		  "{\"Pool\":\"10.0.1.0/24\",\"Gateway\":\"10.0.1.1/24\"}",
		  "one IPv4 subnet" },
	};
	char body[512];

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(body, sizeof(body),
			 "{\"NetworkID\":\"" NET "\",\"IPv4Data\":[%s]}",
			 bad[i].data);
		assert_err("CreateNetwork", body, bad[i].words);
	}
	world.config.default_policy[0] = '\0';
	assert_err("CreateNetwork", network_call("", ""), "which policy?");
}

/* --- a container --------------------------------------------------------- */

static void test_life(void **arg)
{
	struct ip ip;

	(void)arg;
	have_network("\"policy\":\"strict\"");
	send_call(&last, "CreateEndpoint", endpoint_call(EP, ADDRESS));
	assert_int_equal(last.count, 0); /* until the sandbox serves */
	world_turn();
	assert_string_equal(last.text, "{\"Interface\":{}}");
	assert_string_equal(world.spec.name, NAME);
	assert_string_equal(world.spec.ifname, "spbbbbbbbbbbbb");
	assert_string_equal(world.spec.policy_name, "strict");
	assert_int_equal(world.spec.link, KEEP_LINK_JOIN);
	assert_int_equal(world.spec.bits, 16);
	assert_true(world.spec.docker && ip_parse("172.30.0.2", &ip) &&
		    ip_equal(&ip, &world.spec.ip));
	assert_true(ip_parse("172.30.0.1", &ip) &&
		    ip_equal(&ip, &world.spec.gateway));

	/* An engine before v28: the namespace comes later. */
	assert_string_equal(
		ask("Join", join_call(EP)),
		"{\"InterfaceName\":{\"SrcName\":\"spbbbbbbbbbbbb\","
		"\"DstPrefix\":\"eth\"},\"Gateway\":\"172.30.0.1\","
		"\"DisableGatewayService\":true}");
	assert_int_equal(world.joined, 0);
	world_appear(0);
	world_turn();
	assert_int_equal(world.joined, 1);
	assert_ok("ProgramExternalConnectivity", endpoint_call(EP, ""));
	assert_non_null(
		strstr(ask("EndpointOperInfo", endpoint_call(EP, "")), NAME));
	assert_ok("RevokeExternalConnectivity", endpoint_call(EP, ""));

	send_call(&last, "Leave", endpoint_call(EP, ""));
	assert_int_equal(last.count, 0); /* until the receipt is there */
	world_turn();
	assert_string_equal(last.text, "{}");
	assert_int_equal(world_sandboxes(), 0);
	assert_err("Join", join_call(EP), "has ended");
	assert_ok("Leave", endpoint_call(EP, ""));
	assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
	assert_err("EndpointOperInfo", endpoint_call(EP, ""), "no endpoint");
}

static void test_namespace_is_there(void **arg)
{
	(void)arg;
	make_file(key, "");
	have_endpoint("");
	world.lock_err = -EPERM;
	assert_err("Join", join_call(EP), "no tables");
	assert_int_equal(world.findings, 1);
	assert_int_equal(world.broken, 0);
	assert_string_equal(world.finding,
			    "its container was not started: no tables");
	assert_int_equal(world.joined, 0);
	world.lock_err = 0;
	assert_ok("Join", join_call(EP));
	assert_null(world.watches);
	assert_int_equal(world.locked, 1);
	assert_int_equal(world.joined, 1);
	assert_err("Join", join_call(EP), "already");
	assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
	assert_int_equal(world_sandboxes(), 0);
}

static void test_not_contained(void **arg)
{
	static const struct {
		int watch, joined;
		bool there;
		unsigned killed, findings;
	} cases[] = {
		{ -ETIMEDOUT, 0, false, 0, 0 }, /* nobody came */
		{ -EPERM, 0, true, 1, 1 },	/* it could not be locked */
		{ -EPERM, 0, false, 0, 1 },	/* and is over by now */
		{ 0, -EIO, true, 0, 0 }, /* its keeper can't, and says so */
	};

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_ok("DeleteNetwork", "{\"NetworkID\":\"" NET "\"}");
		unlink(key);
		have_endpoint("");
		assert_ok("Join", join_call(EP));
		if (cases[i].there)
			make_file(key, "");
		world.killed = world.findings = world.broken = 0;
		world.joined_err = cases[i].joined;
		world_appear(cases[i].watch);
		world_turn();
		assert_int_equal(world.killed, cases[i].killed);
		assert_int_equal(world.findings, cases[i].findings);
		assert_int_equal(world.broken, cases[i].findings);
		if (cases[i].findings)
			assert_non_null(strstr(world.finding, "as told"));
		assert_int_equal(world_sandboxes(), 0);
		assert_ok("Leave", endpoint_call(EP, ""));
		assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
	}
}

/* Its namespace has one gateway. */
static void test_two_networks(void **arg)
{
	(void)arg;
	have_container("");
	assert_ok("CreateEndpoint", endpoint_call(EP2, ADDRESS3));
	assert_err("Join", join_call(EP2), "one sallyport network");
	assert_ok("Leave", endpoint_call(EP, ""));
	assert_ok("Join", join_call(EP2));
}

static void test_join_refused(void **arg)
{
	(void)arg;
	have_endpoint("");
	assert_err("Join", endpoint_call(EP, ""), "no SandboxKey");
	assert_err("Join", endpoint_call(EP, "\"SandboxKey\":\"a/b\""),
		   "no SandboxKey");
	assert_err("Join", endpoint_call(EP, "\"SandboxKey\":7"),
		   "no SandboxKey");
	assert_err("Join",
		   "{\"NetworkID\":\"dddddddddddd\",\"EndpointID\":\"" EP
		   "\",\"SandboxKey\":\"/x\"}",
		   "no endpoint");
	world.sandboxes->state = SANDBOX_FAILED;
	snprintf(world.sandboxes->why, sizeof(world.sandboxes->why), "dead");
	assert_err("Join", join_call(EP), "dead");
	world_drop(world.sandboxes);
	assert_err("Join", join_call(EP), "has ended");
	assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
}

static void test_create_fails(void **arg)
{
	(void)arg;
	have_network("");
	world.create_err = -EIO;
	assert_err("CreateEndpoint", endpoint_call(EP, ADDRESS), "as told");
	world.create_err = 0;
	world.refuse_err = -ENOSPC;
	assert_err("CreateEndpoint", endpoint_call(EP, ADDRESS), "it is full");
	world.refuse_err = 0;
	assert_int_equal(world_sandboxes(), 0);
	assert_ok("CreateEndpoint", endpoint_call(EP, ADDRESS));
	assert_err("CreateEndpoint", endpoint_call(EP, ADDRESS), "already");
	assert_err("CreateEndpoint", endpoint_call(EP2, ADDRESS),
		   "has that address");
}

/* The engine gives up while the sandbox is being made. */
static void test_delete_early(void **arg)
{
	struct answer other, created, left, deleted;

	(void)arg;
	for (int err = -EIO; err <= 0; err += EIO) {
		assert_ok("DeleteNetwork", "{\"NetworkID\":\"" NET "\"}");
		have_network("");
		world.create_err = err;
		send_call(&other, "CreateEndpoint", endpoint_call(EP, ADDRESS));
		send_call(&last, "Join", join_call(EP));
		assert_non_null(strstr(last.text, "is not ready"));
		send_call(&created, "CreateEndpoint",
			  endpoint_call(EP2, ADDRESS3));
		assert_int_equal(created.count, 0);
		send_call(&left, "Leave", endpoint_call(EP2, ""));
		send_call(&deleted, "DeleteEndpoint", endpoint_call(EP2, ""));
		world_turn();
		assert_int_equal(!!strstr(other.text, "\"Err\""), !!err);
		assert_non_null(strstr(created.text, "\"Err\""));
		assert_string_equal(left.text, "{}");
		assert_string_equal(deleted.text, "{}");
		assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
		assert_int_equal(world_sandboxes(), 0);
	}
}

#define ADDRESS6                                        \
	"\"Interface\":{\"Address\":\"172.30.0.2/16\"," \
	"\"AddressIPv6\":\"fd00::2/64\"}"

static void test_addresses(void **arg)
{
	static const char *const bad[] = {
		"",
		"\"Interface\":null",
		"\"Interface\":{}",
		"\"Interface\":{\"Address\":\"172.30.0.2\"}",
		"\"Interface\":{\"Address\":\"172.31.0.2/16\"}",
		"\"Interface\":{\"Address\":\"172.30.0.1/16\"}",
		"\"Interface\":{\"Address\":\"fd00::2/64\"}",
		"\"Interface\":{\"Address\":7}",
		ADDRESS6,
	};

	(void)arg;
	have_network("");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_err("CreateEndpoint", endpoint_call(EP, bad[i]),
			   "no IPv4 address");
	assert_int_equal(world_sandboxes(), 0);
}

static void test_endpoint_options(void **arg)
{
	(void)arg;
	have_network("\"policy\":\"agent\"");
	assert_err("CreateEndpoint",
		   endpoint_call(EP, ADDRESS ",\"Options\":{\"polcy\":\"x\"}"),
		   "driver-opt 'polcy'");
	assert_err("CreateEndpoint",
		   endpoint_call(EP, ADDRESS ",\"Options\":{\"policy\":\"x\"}"),
		   "no policy 'x'");
	assert_err("CreateEndpoint",
		   endpoint_call(EP, ADDRESS ",\"Options\":{\"policy\":7}"),
		   "policy's name or path");
	assert_err(
		"CreateEndpoint",
		endpoint_call(EP, ADDRESS ",\"Options\":{\"policy\":\"/no\"}"),
		"/no");
	assert_ok("CreateEndpoint",
		  endpoint_call(EP, ADDRESS
				",\"Options\":{\"policy\":\"strict\","
				"\"com.docker.network.future\":{\"x\":1}},"
				"\"Later\":[]"));
	assert_string_equal(world.spec.policy_name, "strict");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_handshake),
		TEST(test_malformed),
		TEST(test_ids),
		TEST(test_network_options),
		TEST(test_network_addresses),
		TEST(test_life),
		TEST(test_namespace_is_there),
		TEST(test_not_contained),
		TEST(test_two_networks),
		TEST(test_join_refused),
		TEST(test_create_fails),
		TEST(test_delete_early),
		TEST(test_addresses),
		TEST(test_endpoint_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
