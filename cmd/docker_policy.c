/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_policy.c - which policy a container gets: one of the configuration, by
 * its name, or a file, by its absolute path. Who may talk to the engine is root
 * already, so that a path opens nothing to anybody. A file is read anew for
 * each container; one of the configuration when that is (SIGHUP).
 */
#include <errno.h>
#include <stdio.h>

#include "cmd/docker_impl.h"
#include "policy/policy.h"

/* So that `docker network create` says what is wrong, and not each container
 * later. */
static int read_file(const char *path, struct bundle *ret, char *reterr,
		     size_t cap)
{
	struct policy_error error = { .text = "out of memory" };
	struct policy *policy = NULL;
	int r = bundle_add_again(ret, path, &error);

	if (r == 0)
		r = policy_build(ret->data, ret->len, &policy, &error);
	if (r == 0) {
		policy_unref(policy);
		return 0;
	}
	bundle_free(ret);
	*ret = (struct bundle){ 0 };
	snprintf(reterr, cap, "%s", error.text);
	return -EINVAL;
}

int docker_policy(const struct docker *docker, const char *said,
		  struct bundle *own, const struct bundle **ret, char *reterr,
		  size_t cap)
{
	const struct daemon_config *config = daemon_config(docker->daemon);
	const struct daemon_policy *named;

	*own = (struct bundle){ 0 };
	if (*said == '/') {
		*ret = own;
		return read_file(said, own, reterr, cap);
	}
	if (!*said)
		said = config->default_policy;
	named = *said ? daemon_config_policy(config, said) : NULL;
	if (named) {
		*ret = &named->bundle;
		return 0;
	}
	if (*said)
		snprintf(
			reterr, cap,
			"there is no policy '%s': it is an absolute path, or a name under \"policies\" of " DAEMON_CONFIG,
			said);
	else
		snprintf(
			reterr, cap,
			"which policy? Say -o policy=/etc/sallyport/agent.yaml, or -o policy=NAME of " DAEMON_CONFIG
			", or set \"default_policy\" there");
	return -EINVAL;
}
