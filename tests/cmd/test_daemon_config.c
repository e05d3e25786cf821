/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operator says, and where it is wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/daemon.h"
#include "cmd/daemon_config.h"

static char dir[] = "/tmp/sallyport-config-XXXXXX";

static const char *put(const char *name, const char *text, mode_t mode)
{
	static char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static int parse(const char *text, struct daemon_config **ret,
		 struct policy_error *why)
{
	return daemon_config_parse("d.yaml", text, strlen(text), ret, why);
}

static void test_usual(void **state)
{
	struct daemon_config *config;
	struct policy_error why;

	(void)state;
	assert_int_equal(parse("version: 1\n", &config, &why), 0);
	assert_int_equal(config->max_sandboxes, 1000);
	assert_int_equal(config->max_sandboxes_per_user, 64);
	assert_int_equal(config->spare_per_user, 0);
	assert_int_equal(config->wall_clock_s, 0);
	assert_int_equal(config->policy_bytes_per_user, 256000000);
	assert_false(config->docker);
	assert_string_equal(config->group, "sallyport");
	assert_int_equal(config->ceiling.len, 0);
	daemon_config_free(config);
	/* Nothing there says the same; but not where it was named. */
	assert_int_equal(
		daemon_config_read("/nonexistent.test", true, &config, &why),
		0);
	assert_int_equal(config->max_sandboxes, 1000);
	daemon_config_free(config);
	assert_int_equal(
		daemon_config_read("/nonexistent.test", false, &config, &why),
		-EINVAL);
	daemon_config_free(NULL);
}

static void test_all(void **state)
{
	struct daemon_config *config;
	struct policy_error why;
	char text[1024], policy[128], ceiling[128];

	(void)state;
	snprintf(policy, sizeof(policy), "%s",
		 put("p.yaml", "version: 1\nallow: [api.example.com]\n", 0644));
	snprintf(ceiling, sizeof(ceiling), "%s",
		 put("c.yaml", "version: 1\nallow: [github]\n", 0644));
	snprintf(text, sizeof(text),
		 "version: 1\npolicies: { agent: %s }\ndefault_policy: agent\n"
		 "ceiling: %s\nlimits:\n  max_sandboxes: 7\n"
		 "  max_sandboxes_per_user: 2\n  wall_clock: 2h\n"
		 "  policy_bytes_per_user: 3 MiB\n  spare_per_user: 16\n"
		 "docker: { enabled: true, socket: /run/x.sock, dns: tables }\n"
		 "group: users\n",
		 policy, ceiling);
	/* "github" is no host: a preset is extended. */
	assert_int_equal(parse(text, &config, &why), -EINVAL);
	assert_non_null(strstr(why.text, "c.yaml:2:9"));
	put("c.yaml", "version: 1\nextends: [github]\n", 0644);
	if (parse(text, &config, &why))
		fail_msg("%s", why.text);
	assert_int_equal(config->max_sandboxes, 7);
	assert_int_equal(config->max_sandboxes_per_user, 2);
	assert_int_equal(config->wall_clock_s, 7200);
	assert_int_equal(config->policy_bytes_per_user, 3 << 20);
	assert_int_equal(config->spare_per_user, 16);
	assert_true(config->docker);
	assert_string_equal(config->docker_socket, "/run/x.sock");
	assert_string_equal(config->docker_dns, "tables");
	assert_string_equal(config->group, "users");
	assert_true(config->ceiling.len > 0);
	assert_non_null(daemon_config_policy(config, "agent"));
	assert_true(daemon_config_policy(config, "agent")->bundle.len > 0);
	assert_null(daemon_config_policy(config, "agen"));
	daemon_config_free(config);
}

static void test_wrong(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "", "d.yaml:1:1: the configuration is empty" },
		{ "group: x\n", "d.yaml:1:1: 'version' is missing" },
		{ "version: 2\n", "d.yaml:1:10: 'version'" },
		{ "version: 1\nversion: 1\n", "d.yaml:2:1: 'version' is here" },
		{ "version: 1\nlimit: {}\n",
		  "d.yaml:2:1: unknown key 'limit', did you mean 'limits'?" },
		{ "version: 1\nlimits: { max_sandboxes: 0 }\n",
		  "d.yaml:2:26: 'max_sandboxes' is a whole number" },
		{ "version: 1\nlimits: { max_sandboxes: 10001 }\n",
		  "d.yaml:2:26: 'max_sandboxes'" },
		{ "version: 1\nlimits: { spare_per_user: 17 }\n",
		  "d.yaml:2:27: 'spare_per_user' is a whole number" },
		{ "version: 1\nlimits: { wall_clock: [] }\n",
		  "d.yaml:2:23: bad wall_clock" },
		{ "version: 1\nlimits: { wall_clock: 1y }\n",
		  "d.yaml:2:23: bad wall_clock" },
		{ "version: 1\nlimits: { policy_bytes_per_user: 0 }\n",
		  "d.yaml:2:34: bad policy_bytes_per_user" },
		{ "version: 1\nlimits: { policy_bytes_per_user: {} }\n",
		  "d.yaml:2:34: bad policy_bytes_per_user, it is a size" },
		{ "version: 1\nlimits: { policy_bytes_per_user: -1 }\n",
		  "d.yaml:2:34: bad policy_bytes_per_user" },
		{ "version: 1\ndocker: { enabled: yes }\n",
		  "d.yaml:2:20: 'enabled' is true or false" },
		{ "version: 1\ndocker: { dns: maybe }\n",
		  "d.yaml:2:16: 'dns' is one of" },
		{ "version: 1\ndocker: true\n", "d.yaml:2:9: docker is a map" },
		{ "version: 1\nceiling: c.yaml\n",
		  "d.yaml:2:10: 'ceiling' is an absolute path" },
		{ "version: 1\nceiling: /nonexistent.test\n",
		  "d.yaml:2:10: /nonexistent.test" },
		{ "version: 1\npolicies: { A: /x }\n",
		  "d.yaml:2:13: a policy's name" },
		{ "version: 1\npolicies: { a: x }\n",
		  "d.yaml:2:16: 'a' is an" },
		{ "version: 1\ndefault_policy: a\n",
		  "d.yaml:2:17: 'a' is not one of 'policies'" },
		{ "version: 1\ngroup: [x]\n", "d.yaml:2:8: 'group' is a text" },
		{ "version: 1\ngroup: &a x\n", "d.yaml:2:8: anchors" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct daemon_config *config;
		struct policy_error why;

		assert_int_equal(parse(rows[i].text, &config, &why), -EINVAL);
		if (strncmp(why.text, rows[i].says, strlen(rows[i].says)) != 0)
			fail_msg("%s: %s", rows[i].text, why.text);
	}
}

/* It says what root does: so it is root's. */
static void test_whose(void **state)
{
	struct daemon_config *config;
	struct policy_error why;
	const char *path = put("d.yaml", "version: 1\n", 0646);

	(void)state;
	if (geteuid() == 0) {
		assert_int_equal(daemon_config_read(path, true, &config, &why),
				 -EINVAL);
		assert_non_null(strstr(why.text, "root's"));
		path = put("d.yaml", "version: 1\n", 0644);
		assert_int_equal(daemon_config_read(path, true, &config, &why),
				 0);
		daemon_config_free(config);
		assert_int_equal(chown(path, 33, 33), 0);
	}
	assert_int_equal(daemon_config_read(path, true, &config, &why),
			 -EINVAL);
	assert_non_null(strstr(why.text, "root's"));
	assert_int_equal(daemon_config_read(dir, true, &config, &why), -EINVAL);
}

static void test_names(void **state)
{
	char name[80] = "";

	(void)state;
	assert_true(daemon_name_ok("a"));
	assert_true(daemon_name_ok("9a_.-b"));
	assert_false(daemon_name_ok(""));
	assert_false(daemon_name_ok(".a"));
	assert_false(daemon_name_ok("-a"));
	assert_false(daemon_name_ok("_a"));
	assert_false(daemon_name_ok("aB"));
	assert_false(daemon_name_ok("a/b"));
	assert_false(daemon_name_ok("a b"));
	assert_false(daemon_name_ok("\xc3\xa4"));
	memset(name, 'a', DAEMON_NAME_MAX - 1);
	assert_true(daemon_name_ok(name));
	name[DAEMON_NAME_MAX - 1] = 'a';
	assert_false(daemon_name_ok(name));
}

static int make(void **state)
{
	(void)state;
	return mkdtemp(dir) ? chmod(dir, 0755) : -1;
}

static int drop(void **state)
{
	static const char *const names[] = { "p.yaml", "c.yaml", "d.yaml" };
	char path[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usual), cmocka_unit_test(test_all),
		cmocka_unit_test(test_wrong), cmocka_unit_test(test_whose),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, make, drop);
}
