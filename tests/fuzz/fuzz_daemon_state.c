/* SPDX-License-Identifier: Apache-2.0
 *
 * A sandbox's state.json, whatever is in it. What is read from it is what is
 * read again after it was written by us.
 */
#include "cmd/daemon_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/dev/shm/sallyport-fuzz-XXXXXX";
static struct daemon lord = { .state_dir = -1 };

static void must(bool holds)
{
	if (!holds)
		abort();
}
#define MUST_END(array) must(memchr(array, '\0', sizeof(array)) != NULL)

static void remove_all(void)
{
	unlinkat(lord.state_dir, "box/state.json.new", 0);
	unlinkat(lord.state_dir, "box/state.json", 0);
	unlinkat(lord.state_dir, "box", AT_REMOVEDIR);
	rmdir(dir);
}

static void begin(void)
{
	if (lord.state_dir >= 0)
		return;
	must(mkdtemp(dir) != NULL);
	lord.state_dir = open(dir, O_RDONLY | O_DIRECTORY);
	must(lord.state_dir >= 0);
	must(mkdirat(lord.state_dir, "box", 0700) == 0);
	atexit(remove_all);
}

static void put(const uint8_t *data, size_t size)
{
	int fd = openat(lord.state_dir, "box/state.json",
			O_WRONLY | O_CREAT | O_TRUNC, 0600);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

static void check(const struct daemon_sandbox *s)
{
	MUST_END(s->spec.ifname);
	MUST_END(s->spec.command);
	MUST_END(s->spec.policy_text);
	MUST_END(s->spec.policy_name);
	MUST_END(s->netns);
	MUST_END(s->userns);
	must(strcmp(s->spec.name, "box") == 0 && s->spec.bits <= 32);
	must(s->spec.ends_s >= 0 && s->made_s >= 0 && s->spec.holder >= 0);
	must(s->publishes <= DAEMON_PUBLISH_MAX);
	for (size_t i = 0; i < s->publishes; i++)
		must(s->publish[i].at.ip.len == 4 ||
		     s->publish[i].at.ip.len == 16);
}

/* What is not ASCII, our requests clean before it gets here. */
static bool is_plain(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] > '~' ||
		    (data[i] == 'u' && i && data[i - 1] == '\\'))
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct daemon_sandbox s, again;

	begin();
	put(data, size);
	memset(&s, 0, sizeof(s));
	memset(&again, 0, sizeof(again));
	if (state_load(&lord, "box", &s) < 0)
		return 0;
	check(&s);
	if (!is_plain(data, size))
		return 0;
	must(state_save(&lord, &s, false) == 0);
	must(state_load(&lord, "box", &again) == 0);
	/* The plugin opens its own again. */
	if (s.spec.docker)
		again.publishes = s.publishes,
		memcpy(again.publish, s.publish, sizeof(s.publish));
	must(memcmp(&s.spec, &again.spec, sizeof(s.spec)) == 0);
	must(s.made_s == again.made_s && s.publishes == again.publishes &&
	     strcmp(s.netns, again.netns) == 0 &&
	     strcmp(s.userns, again.userns) == 0);
	for (size_t i = 0; i < s.publishes; i++)
		must(s.publish[i].at.port == again.publish[i].at.port &&
		     s.publish[i].inside == again.publish[i].inside);
	return 0;
}
