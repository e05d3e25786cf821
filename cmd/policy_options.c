/* SPDX-License-Identifier: Apache-2.0
 *
 * policy_options.c - the options that say which policy is meant.
 */
#include "cmd/policy_options.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "cmd/command.h"

const char policy_options_help[] =
	"  --allow WHAT      allow HOST, HOST:PORT, '*.HOST', ADDRESS[:PORT], or "
	"a preset\n"
	"                    (see `sallyport presets`); HOST alone: ports 443 "
	"and 80\n"
	"  --deny WHAT       deny HOST, HOST:PORT or '*.HOST'; wins over --allow\n"
	"  --permit CIDR     names may resolve to this private range\n"
	"  --policy FILE     a YAML policy; may be given again, and with the "
	"above: they\n"
	"                    add up. Without one: $SALLYPORT_POLICY, or else\n"
	"                    $XDG_CONFIG_HOME/sallyport/policy.yaml "
	"(~/.config/...)\n"
	"  --observe         enforce nothing of the policy, but record what it "
	"would\n"
	"                    refuse\n";

static void add_part(struct policy_choice *choice, enum bundle_kind kind,
		     const char *origin, const char *text)
{
	int err = bundle_add(&choice->words, kind, origin, text, strlen(text));

	if (err)
		die(EXIT_SALLYPORT, "%s %s: %s", origin, text, strerror(-err));
	if (kind == BUNDLE_ALLOW || kind == BUNDLE_OBSERVE)
		choice->allows = true;
}

bool policy_option(struct policy_choice *choice, int code, const char *arg)
{
	switch (code) {
	case POLICY_OPTION_ALLOW:
		add_part(choice, BUNDLE_ALLOW, "--allow", arg);
		return true;
	case POLICY_OPTION_DENY:
		add_part(choice, BUNDLE_DENY, "--deny", arg);
		return true;
	case POLICY_OPTION_PERMIT:
		add_part(choice, BUNDLE_PERMIT, "--permit", arg);
		return true;
	case POLICY_OPTION_OBSERVE:
		add_part(choice, BUNDLE_OBSERVE, "--observe", "");
		return true;
	case POLICY_OPTION_POLICY:
		if (choice->paths == POLICY_PATHS_MAX)
			die(EXIT_SALLYPORT, "too many --policy options");
		choice->path[choice->paths++] = arg;
		return true;
	default:
		return false;
	}
}

void policy_options_read(struct policy_choice *choice,
			 struct bundle *ret_bundle)
{
	struct policy_error error;
	int err = policy_choose(choice, &error);

	if (!err)
		err = policy_read(choice, ret_bundle, &error);
	if (err == -EINVAL)
		die(EXIT_SALLYPORT, "%s", error.text);
	if (err)
		die(EXIT_SALLYPORT, "policy: %s", strerror(-err));
}
