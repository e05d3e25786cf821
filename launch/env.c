/* SPDX-License-Identifier: Apache-2.0
 *
 * env.c - the environment of a sandboxed command.
 *
 * What leads to a service of our user (agents, the desktop, docker) or changes
 * what bubblewrap itself loads is not inherited. The caller's proxy settings
 * are replaced by ours, in both cases: curl reads only the lower one, others
 * only the upper one. ALL_PROXY is http:// like the rest, because common SDKs
 * refuse socks5h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "launch/process.h"

#define OURS_MAX 32

/* A '*' at the end: any name that begins so. */
static const char *const dropped[] = {
	"LD_*",		 "GLIBC_TUNABLES",  "BASH_ENV",	      "ENV",
	"SSH_AUTH_SOCK", "SSH_AGENT_PID",   "SSH_CONNECTION", "SSH_CLIENT",
	"SSH_TTY",	 "GPG_AGENT_INFO",  "DBUS_*",	      "XDG_RUNTIME_DIR",
	"DISPLAY",	 "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY",
	"DOCKER_HOST",	 "CONTAINER_HOST",  "PULSE_SERVER",   "NOTIFY_SOCKET",
	"LISTEN_*",	 "SALLYPORT_*",	    "ASAN_OPTIONS",   "UBSAN_OPTIONS",
	"VSCODE_IPC_*",	 "VSCODE_GIT_*",    "TMUX",	      "TMUX_PANE",
	"INVOCATION_ID", "JOURNAL_STREAM",
};

static const char *const replaced[] = {
	"http_proxy",
	"https_proxy",
	"all_proxy",
	"ftp_proxy",
	"no_proxy",
	"grpc_proxy",
	"no_grpc_proxy",
	"rsync_proxy",
	"node_use_env_proxy",
	"cloudsdk_proxy_type",
	"cloudsdk_proxy_address",
	"cloudsdk_proxy_port",
	"npm_config_proxy",
	"npm_config_https_proxy",
	"npm_config_noproxy",
	"socks_proxy",
	"socks5_proxy",
};

static bool matches(const char *pattern, const char *name, size_t len)
{
	size_t n = strlen(pattern);

	if (n > 0 && pattern[n - 1] == '*')
		return len >= n - 1 && strncmp(pattern, name, n - 1) == 0;
	return len == n && strncmp(pattern, name, n) == 0;
}

static bool inherited(const char *entry, bool home)
{
	size_t len = strcspn(entry, "=");

	if (entry[len] != '=' || len == 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
		if (matches(dropped[i], entry, len))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(replaced); i++)
		if (strlen(replaced[i]) == len &&
		    strncasecmp(replaced[i], entry, len) == 0)
			return false;
	return !(home && len == 4 && strncmp(entry, "HOME", 4) == 0);
}

struct builder {
	char **env;
	size_t n;
	bool bad;
};

__attribute__((format(printf, 2, 3))) static void put(struct builder *b,
						      const char *fmt, ...)
{
	va_list ap;
	char *entry = NULL;

	if (b->bad)
		return;
	va_start(ap, fmt);
	if (vasprintf(&entry, fmt, ap) < 0)
		entry = NULL;
	va_end(ap);
	if (!entry) {
		b->bad = true;
		return;
	}
	b->env[b->n++] = entry;
}

/* @upper names it in capitals; the same in small letters too. */
static void put_both(struct builder *b, const char *upper, const char *value)
{
	char lower[32];
	size_t i = 0;

	for (; upper[i] && i < sizeof(lower) - 1; i++)
		lower[i] = (char)(upper[i] >= 'A' && upper[i] <= 'Z'
					  ? upper[i] - 'A' + 'a'
					  : upper[i]);
	lower[i] = '\0';
	put(b, "%s=%s", upper, value);
	put(b, "%s=%s", lower, value);
}

/* HOST:PORT out of http://HOST:PORT, with or without a slash at its end. */
static void put_proxy(struct builder *b, const char *url)
{
	static const char *const names[] = { "HTTP_PROXY", "HTTPS_PROXY",
					     "ALL_PROXY", "FTP_PROXY",
					     "GRPC_PROXY" };
	const char *host = strstr(url, "://");
	size_t len;
	const char *colon;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		put_both(b, names[i], url);
	put_both(b, "NO_PROXY", "localhost,127.0.0.1,::1");
	put(b, "NODE_USE_ENV_PROXY=1");

	host = host ? host + 3 : url;
	len = strcspn(host, "/");
	colon = memrchr(host, ':', len);
	put(b, "RSYNC_PROXY=%.*s", (int)len, host);
	if (!colon)
		return;
	put(b, "CLOUDSDK_PROXY_TYPE=http");
	put(b, "CLOUDSDK_PROXY_ADDRESS=%.*s", (int)(colon - host), host);
	put(b, "CLOUDSDK_PROXY_PORT=%.*s", (int)(host + len - colon - 1),
	    colon + 1);
}

char **process_env(char *const *from, const char *proxy_url, const char *home)
{
	struct builder b = { 0 };
	size_t n = 0;

	while (from[n])
		n++;
	b.env = calloc(n + OURS_MAX + 1, sizeof(*b.env));
	if (!b.env)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (inherited(from[i], home != NULL))
			put(&b, "%s", from[i]);
	if (home)
		put(&b, "HOME=%s", home);
	if (proxy_url)
		put_proxy(&b, proxy_url);
	if (b.bad) {
		process_env_free(b.env);
		return NULL;
	}
	return b.env;
}

void process_env_free(char **env)
{
	for (char **e = env; e && *e; e++)
		free(*e);
	free(env);
}

/* 0 if it can be executed, 126 if it is there, 127 if not. */
static int probe(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == EACCES ? 126 : 127;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : 126;
}

int process_lookup(const char *argv0, const char *path)
{
	int best = 127;

	if (!*argv0)
		return 127;
	if (strchr(argv0, '/'))
		return probe(argv0);
	if (!path)
		path = "/bin:/usr/bin";
	for (;;) {
		size_t len = strcspn(path, ":");
		AUTO_FREE char *file = NULL;
		int r;

		if (asprintf(&file, "%.*s%s%s", (int)len, path, len ? "/" : "",
			     argv0) < 0) {
			file = NULL;
			return best;
		}
		r = probe(file);
		if (r == 0)
			return 0;
		if (r == 126)
			best = 126;
		if (path[len] == '\0')
			return best;
		path += len + 1;
	}
}
