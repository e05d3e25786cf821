/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin's files about a network ('n' first) or an endpoint. One that is
 * not understood is no network and no endpoint; what is understood is the same
 * after it was written by us.
 */
#include "cmd/docker.h"

#include "base/log.h"
#include "cmd/docker_impl.h"
#include "tests/cmd/docker_world.h"

#define ID "aaaaaaaaaaaa0001"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/dev/shm/sallyport-fuzz-XXXXXX";
static int dirfd = -1;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void clean(void)
{
	unlinkat(dirfd, "network-" ID ".json", 0);
	unlinkat(dirfd, "endpoint-" ID ".json", 0);
	unlinkat(dirfd, ".new", 0);
}

static void remove_all(void)
{
	clean();
	rmdir(dir);
}

static void begin(void)
{
	if (dirfd >= 0)
		return;
	world_begin();
	log_init("fuzz", LOG_LEVEL_ERROR);
	must(mkdtemp(dir) != NULL);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY);
	must(dirfd >= 0);
	atexit(remove_all);
}

static void put(const char *name, const uint8_t *data, size_t size)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

static struct docker *load(void)
{
	struct docker *docker = NULL;

	must(docker_new((struct daemon *)&world, dir, &docker) == 0);
	return docker;
}

static void check_network(struct docker *docker)
{
	const struct docker_network was = *docker->networks;
	const struct docker_network *is;

	must(!was.next && was.dns < DOCKER_DNS_COUNT);
	must(docker_save_network(&was, docker->dir) == 0);
	docker_free(docker);
	docker = load();
	is = docker->networks;
	must(is && is->publish == was.publish && is->dns == was.dns &&
	     ip_equal(&is->gateway, &was.gateway) &&
	     strcmp(is->policy, was.policy) == 0);
	docker_free(docker);
}

static void check_endpoint(struct docker *docker)
{
	struct docker_endpoint *is;
	size_t ports = docker->endpoints->ports;

	must(ports <= DOCKER_PORTS_MAX);
	must(docker_save_endpoint(docker->endpoints) == 0);
	docker_free(docker);
	docker = load();
	is = docker->endpoints;
	must(is && is->ports == ports && strcmp(is->id, ID) == 0);
	for (size_t i = 0; i < ports; i++)
		must(is->port[i].at.port && is->port[i].inside);
	docker_free(docker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct docker *docker;
	bool network;

	if (!size)
		return 0;
	begin();
	clean();
	network = *data == 'n';
	put(network ? "network-" ID ".json" : "endpoint-" ID ".json", data + 1,
	    size - 1);
	docker = load();
	must(network ? !docker->endpoints : !docker->networks);
	if (docker->networks)
		check_network(docker);
	else if (docker->endpoints)
		check_endpoint(docker);
	else
		docker_free(docker);
	return 0;
}
