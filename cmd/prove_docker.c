/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_docker.c - attacks from a container: the engine makes one on the given
 * network, as it makes any, and runs the attacker in it.
 *
 * So the attacker has what the engine gives to a container's root: its
 * capabilities, its filter of system calls, its resolver. Nothing is pulled:
 * the image is this program and its libraries, imported, and removed again.
 *
 *	image	imported: program, libraries, the sheet with the task
 *	create	on the network; its first process only waits
 *	start	now the driver has an endpoint, and the daemon its sandbox
 *	exec	the attacker, until it has ended
 *	sheet	copied out of the container
 *	tell	the sandbox's session: it ends with the container
 *	remove	container and image, whatever happened
 *
 * Or, of a container that is there (--container), from its network only.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/log_dir.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/command.h"
#include "cmd/prove.h"
#include "cmd/prove_engine.h"
#include "cmd/session.h"
#include "cmd/warden.h"

#define STEP_MS 100

struct container {
	struct prove *prove;
	struct engine engine;
	struct image image;
	char id[80], image_id[80]; /* "": there is none */
	char gateway[IP_TEXT_MAX];
	char sandbox[64]; /* of the daemon */
	sigset_t held;
};

/* One at a time: it has to be gone when we are. */
static struct container container;

static void clean_up(void)
{
	struct container *c = &container;

	if (*c->id)
		engine_remove(&c->engine, "/containers/", c->id);
	if (*c->image_id)
		engine_remove(&c->engine, "/images/", c->image_id);
	*c->id = *c->image_id = '\0';
	image_free(&c->image);
}

/* They wait until what the engine is asked to make has a name by which it can
 * be removed; see rest(). */
static void hold_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGHUP);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGTERM);
	sigprocmask(SIG_BLOCK, ret, NULL);
}

/* Whoever is told to end does so here, and cleans up. */
static void rest(const sigset_t *held, int ms)
{
	const struct timespec step = { .tv_nsec = (long)ms * 1000000 };

	if (sigtimedwait(held, NULL, &step) > 0)
		exit(EXIT_SALLYPORT);
}

/* Dies where the answer is none. */
static json_t *get(const struct container *c, const char *path, const char *id,
		   const char *more)
{
	return engine_want(&c->engine, &(struct engine_call){ .method = "GET",
							      .path = path,
							      .id = id,
							      .more = more });
}

/* @body is taken. NULL and a sentence where the engine refuses. */
static json_t *post(const struct container *c, const char *path, const char *id,
		    const char *more, json_t *body, char *why, size_t cap)
{
	json_t *answer = engine_ask(&c->engine,
				    &(struct engine_call){ .method = "POST",
							   .path = path,
							   .id = id,
							   .more = more,
							   .body = body },
				    why, cap);

	json_decref(body);
	return answer;
}

static json_t *want_post(const struct container *c, const char *path,
			 const char *id, const char *more, json_t *body)
{
	char why[512];
	json_t *answer = post(c, path, id, more, body, why, sizeof(why));

	if (!answer)
		die(EXIT_SALLYPORT, "the engine: %s", why);
	return answer;
}

/* --- the network ---------------------------------------------------------- */

static void find_network(struct container *c)
{
	const char *name = c->prove->docker;
	json_t *network = get(c, "/networks/", name, NULL);
	const json_t *pool = json_array_get(
		json_object_get(json_object_get(network, "IPAM"), "Config"), 0);

	snprintf(c->gateway, sizeof(c->gateway), "%.*s",
		 (int)strcspn(client_text(pool, "Gateway"), "/"),
		 client_text(pool, "Gateway"));
	if (strncmp(client_text(network, "Driver"), "sallyport", 9) != 0)
		log_warn("the driver of network %s is %s, not sallyport", name,
			 client_text(network, "Driver"));
	json_decref(network);
}

/* --- the container -------------------------------------------------------- */

/* @dns: engines before 28 whose host has a resolver of its own want to be told
 * (sallyport-docker(7)). */
static json_t *make_body(const struct container *c, bool dns)
{
	json_t *body =
		json_pack("{s:s,s:o,s:{s:s},s:{s:s}}", "Image", c->image_id,
			  "Cmd", image_command(&c->image, PROVE_INSIDE_WAIT),
			  "HostConfig", "NetworkMode", c->prove->docker,
			  "Labels", "sallyport.prove", "1");

	if (body && dns && *c->gateway)
		json_object_set_new(json_object_get(body, "HostConfig"), "Dns",
				    json_pack("[s]", c->gateway));
	return body;
}

static int start(struct container *c, bool dns, char *why, size_t cap)
{
	json_t *made = post(c, "/containers/create", NULL, NULL,
			    make_body(c, dns), why, cap);
	int err;

	if (!made)
		return -EIO;
	snprintf(c->id, sizeof(c->id), "%s", client_text(made, "Id"));
	json_decref(made);
	made = post(c, "/containers/", c->id, "/start", NULL, why, cap);
	err = made ? 0 : -EIO;
	json_decref(made);
	if (err) {
		engine_remove(&c->engine, "/containers/", c->id);
		*c->id = '\0';
	}
	return err;
}

/* Its sandbox has the name of the endpoint. */
static void find_sandbox(struct container *c, const json_t *all)
{
	const json_t *networks = json_object_get(
		json_object_get(all, "NetworkSettings"), "Networks");
	const json_t *network = json_object_get(networks, c->prove->docker);

	snprintf(c->sandbox, sizeof(c->sandbox), "docker-%.12s",
		 client_text(network, "EndpointID"));
	if (!network)
		die(EXIT_SALLYPORT, "the container is not in network %s",
		    c->prove->docker);
}

static void find_log(struct container *c)
{
	const struct client_call call = { .socket = client_socket(
						  c->prove->socket),
					  .method = "GET",
					  .name = c->sandbox };
	char why[256] = "the daemon does not know it";
	int status = 0;
	json_t *s = client_try_json(&call, &status, why, sizeof(why));

	if (s && status == 200 && *client_text(s, "log"))
		snprintf(c->prove->log, sizeof(c->prove->log),
			 "%.*s/" LOG_DIR_RECORDS, PATH_MAX - 1,
			 client_text(s, "log"));
	else
		log_warn("sandbox %s of the container: %s", c->sandbox, why);
	if (!*c->prove->log)
		*c->sandbox = '\0';
	json_decref(s);
}

/* --- the attack ------------------------------------------------------------
 */

static bool is_running(struct container *c, const char *exec, int *ret_status)
{
	json_t *state = get(c, "/exec/", exec, "/json");
	bool running = json_is_true(json_object_get(state, "Running"));

	*ret_status =
		(int)json_integer_value(json_object_get(state, "ExitCode"));
	json_decref(state);
	return running;
}

/* Its exit status, or EXIT_SALLYPORT when it takes too long. */
static int attack(struct container *c)
{
	json_t *made = want_post(
		c, "/containers/", c->id, "/exec",
		json_pack("{s:o}", "Cmd",
			  image_command(&c->image, PROVE_INSIDE_SHEET)));
	char exec[80];
	int status = 0;

	snprintf(exec, sizeof(exec), "%s", client_text(made, "Id"));
	json_decref(made);
	json_decref(want_post(c, "/exec/", exec, "/start",
			      json_pack("{s:b}", "Detach", 1)));
	for (int ms = 0; ms < PROVE_ALL_MS; ms += STEP_MS) {
		if (!is_running(c, exec, &status))
			return status;
		rest(&c->held, STEP_MS);
	}
	return EXIT_SALLYPORT;
}

static void begin(struct container *c)
{
	char why[512], first[512];
	json_t *all;

	if (image_make(c->prove->sheet, &c->image))
		die(EXIT_SALLYPORT, "an image of this program: out of memory");
	engine_import(&c->engine, &c->image, c->image_id, sizeof(c->image_id));
	rest(&c->held, 0);
	if (start(c, false, first, sizeof(first)) &&
	    start(c, true, why, sizeof(why)))
		die(EXIT_SALLYPORT, "the engine starts no container: %s",
		    first);
	rest(&c->held, 0);
	all = get(c, "/containers/", c->id, "/json");
	find_sandbox(c, all);
	json_decref(all);
	find_log(c);
}

static void fill_gateway(const struct container *c, struct prove_task *task)
{
	if (ip_parse(c->gateway, &task->gateway))
		task->proxy = task->gateway;
	else
		task->gateway = prove_ip(PROVE_RESOLVER);
	task->proxy_port = GATEWAY_PROXY_PORT;
}

/* --- one that is there ------------------------------------------------------
 */

static int open_network(const char *name, const json_t *all)
{
	const json_int_t pid = json_integer_value(
		json_object_get(json_object_get(all, "State"), "Pid"));
	struct stat own, st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%lld/ns/net", (long long)pid);
	AUTO_FD int ns = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (ns < 0)
		die(EXIT_SALLYPORT, "container %s does not run here", name);
	if (fstat(ns, &st) < 0 || stat("/proc/self/ns/net", &own) < 0 ||
	    st.st_ino == own.st_ino)
		die(EXIT_SALLYPORT, "container %s has this machine's network",
		    name);
	return steal_fd(&ns);
}

/* As --netns does it: the engine starts nothing, and the container's own
 * processes and files are left alone. */
static int attack_running(struct container *c)
{
	struct prove *prove = c->prove;
	json_t *all = get(c, "/containers/", prove->container, "/json");
	AUTO_FD int ns = open_network(prove->container, all);
	int status, result;

	find_sandbox(c, all);
	json_decref(all);
	find_log(c);
	fill_gateway(c, prove_prepare(prove, true, true));
	status = prove_attack_in(prove, ns);
	result = prove_settle(prove);
	if (!status && *c->sandbox)
		prove_tell_daemon(prove, client_socket(prove->socket),
				  c->sandbox);
	return status ? EXIT_SALLYPORT : result;
}

int prove_docker(struct prove *prove)
{
	struct container *c = &container;
	struct prove_task *task;
	int status, result;

	c->prove = prove;
	c->engine.socket = prove->engine ? prove->engine : ENGINE_SOCKET;
	if (!session_root())
		die(EXIT_SALLYPORT, "--docker needs root");
	if (!engine_name(prove->docker) ||
	    (prove->container && !engine_name(prove->container)))
		die(EXIT_SALLYPORT,
		    "'%s' is no name of a network, or '%s' of "
		    "a container",
		    prove->docker, prove->container ? prove->container : "");
	find_network(c);
	if (prove->container)
		return attack_running(c);
	task = prove_prepare(prove, false, true);
	task->alone = true;
	fill_gateway(c, task);
	atexit(clean_up);
	hold_signals(&c->held);
	begin(c);
	status = attack(c);
	engine_copy_sheet(&c->engine, c->id, prove->sheet);
	result = prove_settle(prove);
	if (!status && *c->sandbox)
		prove_tell_daemon(prove, client_socket(prove->socket),
				  c->sandbox);
	clean_up();
	sigprocmask(SIG_UNBLOCK, &c->held, NULL);
	return status ? EXIT_SALLYPORT : result;
}
