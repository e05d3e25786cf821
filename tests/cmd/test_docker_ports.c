/* SPDX-License-Identifier: Apache-2.0
 *
 * test_docker_ports.c - a container's names and ports, and that nothing of one
 * that is gone is kept.
 */
#include "tests/cmd/docker_calls.h"

#include <arpa/inet.h>
#include <sys/socket.h>

/* --- names --------------------------------------------------------------- */

#define DNS(list)                \
	ADDRESS ",\"Options\":{" \
		"\"com.docker.network.endpoint.dnsservers\":" list "}"

static void test_names(void **arg)
{
	static const char *const bad[] = {
		ADDRESS,
		DNS("[]"),
		DNS("null"),
		DNS("[7]"),
		DNS("[\"127.0.0.53\"]"),
		DNS("[\"172.30.0.1\",\"192.0.2.1\"]"),
		DNS("\"172.30.0.1\""),
	};

	(void)arg;
	make_file(resolv, "# stub\n\n nameserver\t127.0.0.53\n");
	have_network("");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_ok("CreateEndpoint", endpoint_call(EP, bad[i]));
		/* An engine before v28: its container would not wait. */
		assert_err("Join", join_call(EP),
			   "docker run --dns 172.30.0.1");
		assert_null(world.watches);
		/* From v28 on: the tables come first. */
		make_file(key, "");
		assert_ok("Join", join_call(EP));
		assert_int_equal(world.locked, i + 1);
		assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
		unlink(key);
	}
	assert_ok("CreateEndpoint", endpoint_call(EP, DNS("[\"172.30.0.1\"]")));
	assert_ok("Join", join_call(EP));
	assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
	/* A server elsewhere is asked from inside, and so caught. */
	make_file(resolv, "nameserver 203.0.113.53\n");
	assert_ok("CreateEndpoint", endpoint_call(EP, ADDRESS));
	assert_ok("Join", join_call(EP));
	assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
	snprintf(world.config.docker_dns, sizeof(world.config.docker_dns),
		 "require");
	assert_err("CreateEndpoint", endpoint_call(EP, ADDRESS), "--dns");
	make_file(resolv, "nameserver ::1\n");
	snprintf(world.config.docker_dns, sizeof(world.config.docker_dns),
		 "tables");
	assert_ok("CreateEndpoint", endpoint_call(EP, ADDRESS));
}

static void test_names_of_a_network(void **arg)
{
	(void)arg;
	snprintf(world.config.docker_dns, sizeof(world.config.docker_dns),
		 "require");
	have_endpoint("\"dns\":\"tables\"");
	assert_ok("DeleteNetwork", "{\"NetworkID\":\"" NET "\"}");
	world.config.docker_dns[0] = '\0';
	have_network("\"dns\":\"require\"");
	assert_err("CreateEndpoint", endpoint_call(EP, ADDRESS), "--dns");
}

/* --- ports --------------------------------------------------------------- */

/* A port of the host that is free. */
static unsigned free_port(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	AUTO_FD int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	return ntohs(sin.sin_port);
}

static const char *portmap(const char *ip, unsigned host, unsigned end,
			   unsigned proto)
{
	static char more[512];

	snprintf(more, sizeof(more),
		 ADDRESS
		 ",\"Options\":{\"com.docker.network.portmap\":["
		 "{\"Proto\":%u,\"IP\":\"\",\"Port\":80,\"HostIP\":\"%s\","
		 "\"HostPort\":%u,\"HostPortEnd\":%u}]}",
		 proto, ip, host, end);
	return more;
}

static void test_ports_refused(void **arg)
{
	const unsigned port = free_port();

	(void)arg;
	have_network("");
	assert_err("CreateEndpoint",
		   endpoint_call(EP, portmap("", port, port, 6)),
		   "-o publish=true");
	assert_ok("DeleteNetwork", "{\"NetworkID\":\"" NET "\"}");
	have_network("\"publish\":\"true\"");
	assert_err("CreateEndpoint",
		   endpoint_call(EP, portmap("", port, port, 17)), "TCP only");
	assert_err("CreateEndpoint", endpoint_call(EP, portmap("", 0, 0, 6)),
		   "-p 8080:80");
	assert_err("CreateEndpoint",
		   endpoint_call(EP, portmap("", port, port + 1, 6)),
		   "-p 8080:80");
	assert_err("CreateEndpoint",
		   endpoint_call(EP, portmap("", 70000, 70000, 6)),
		   "a port that is none");
	assert_err("CreateEndpoint",
		   endpoint_call(EP, portmap("all", port, port, 6)), "'all'");
	assert_err("CreateEndpoint",
		   endpoint_call(EP,
				 ADDRESS ",\"Options\":{"
					 "\"com.docker.network.portmap\":{}}"),
		   "no list");
	assert_int_equal(world_sandboxes(), 0);
}

static void test_ports(void **arg)
{
	const unsigned port = free_port();

	(void)arg;
	make_file(key, "");
	have_network("\"publish\":\"true\"");
	assert_ok("CreateEndpoint",
		  endpoint_call(EP, portmap("", port, port, 6)));
	assert_ok("Join", join_call(EP));
	assert_ok("ProgramExternalConnectivity", endpoint_call(EP, ""));
	assert_int_equal(world.forward_count, 1);
	/* Another network had the default route meanwhile. */
	assert_ok("RevokeExternalConnectivity", endpoint_call(EP, ""));
	assert_ok("ProgramExternalConnectivity",
		  endpoint_call(EP, portmap("", port, port, 6)));
	assert_int_equal(world.forward_count, 1);
	/* Somebody listens there. */
	assert_ok("CreateEndpoint", endpoint_call(EP2, ADDRESS3));
	key[strlen(key) - 1]++;
	assert_ok("Join", join_call(EP2));
	assert_err("ProgramExternalConnectivity",
		   endpoint_call(EP2, portmap("", port, port, 6)),
		   "not published: Address already in use");
	/* The gate can't. */
	world_close_forwards();
	world.forward_err = -EOPNOTSUPP;
	assert_err("ProgramExternalConnectivity",
		   endpoint_call(EP2, portmap("", port, port, 6)), "as told");
	assert_ok("Leave", endpoint_call(EP2, ""));
	assert_err("ProgramExternalConnectivity", endpoint_call(EP2, ""),
		   "ended");
}

/* --- again and again ----------------------------------------------------- */

static int lowest_free(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

static void test_cycles(void **arg)
{
	char file[128];
	int before;

	(void)arg;
	have_network("");
	before = lowest_free();
	for (int i = 0; i < 500; i++) {
		if (i & 1)
			make_file(key, "");
		else
			unlink(key);
		assert_ok("CreateEndpoint", endpoint_call(EP, ADDRESS));
		assert_ok("Join", join_call(EP));
		if (!(i & 1) && i % 4)
			world_appear(0);
		if (i % 3)
			assert_ok("Leave", endpoint_call(EP, ""));
		assert_ok("DeleteEndpoint", endpoint_call(EP, ""));
		assert_int_equal(world_sandboxes(), 0);
		assert_null(world.watches);
	}
	assert_int_equal(lowest_free(), before);
	snprintf(file, sizeof(file), "%s/state/endpoint-" EP ".json", dir);
	assert_int_equal(access(file, F_OK), -1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_names),	  TEST(test_names_of_a_network),
		TEST(test_ports_refused), TEST(test_ports),
		TEST(test_cycles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
