/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_impl.h - what the files of the driver share; nobody else's.
 */
#ifndef CMD_DOCKER_IMPL_H
#define CMD_DOCKER_IMPL_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "cmd/daemon.h"
#include "cmd/daemon_config.h"
#include "cmd/docker.h"

struct docker_watch;

#define DOCKER_ID_MAX	     64
#define DOCKER_NETWORKS_MAX  256
#define DOCKER_ENDPOINTS_MAX 4096
#define DOCKER_PORTS_MAX     16
#define DOCKER_WAITERS_MAX   4
/* Engines join an endpoint at once; one that nobody joins is dropped. */
#define DOCKER_UNJOINED_S 300
#define DOCKER_IFNAME	  "eth" /* and the engine's number, mostly 0 */

/* Has the engine's own resolver to be pointed at us before it may start a
 * container? */
enum docker_dns {
	DOCKER_DNS_AUTO,    /* where the host's resolver is a loopback address,
			       which the engine asks itself, and the tables
			       can't be there first: before v28 */
	DOCKER_DNS_REQUIRE, /* always */
	DOCKER_DNS_TABLES,  /* no: what the tables catch is enough */
	DOCKER_DNS_COUNT
};
extern const char *const docker_dns_words[DOCKER_DNS_COUNT];

struct docker_network {
	char id[DOCKER_ID_MAX + 1];
	struct cidr pool;
	struct ip gateway;
	char policy[PATH_MAX]; /* a name of the configuration, or a path; "":
				  the configuration's default */
	bool publish;
	enum docker_dns dns; /* AUTO: as the configuration says */
	struct docker_network *next;
};

/* Who waits for an answer; .fn NULL: nobody. */
struct docker_reply {
	docker_reply_fn *fn;
	void *arg;
};

struct docker_port {
	struct endpoint at; /* of the host */
	uint16_t inside;
	bool open;
};

enum endpoint_phase {
	ENDPOINT_STARTING, /* the daemon makes the sandbox: CREATED or OVER */
	ENDPOINT_CREATED,  /* its link is under our name: JOINED, ENDING */
	ENDPOINT_JOINED,   /* it is in a container, or about to be: ENDING */
	ENDPOINT_ENDING,   /* the daemon removes the sandbox: OVER */
	ENDPOINT_OVER,	   /* there is none */
};

struct docker_endpoint {
	struct docker *docker; /* NULL: the driver is gone before the daemon */
	char id[DOCKER_ID_MAX + 1], network[DOCKER_ID_MAX + 1];
	char name[DAEMON_NAME_MAX]; /* of its sandbox */
	char link[16];		    /* its end of the link, until moved */
	char inside[16]; /* what the engine made of that name; "": not known */
	struct ip ip, gateway;
	uint8_t bits;
	char policy[PATH_MAX];
	enum endpoint_phase phase;
	int64_t since;	/* of the phase; CLOCK_MONOTONIC, s */
	bool doomed;	/* STARTING: to be ended as soon as it can be */
	bool forget;	/* the record goes as soon as it is OVER */
	unsigned calls; /* of the daemon's that have not come back to us */
	bool races;	/* past us, where its namespace is not there at Join */
	char key[PATH_MAX]; /* the container's namespace, from Join on */
	uint64_t key_inode; /* 0: it is not there yet */
	struct docker_watch *watch;

	struct docker_reply busy; /* CreateEndpoint or Program... */
	struct docker_reply ending[DOCKER_WAITERS_MAX];
	struct docker_port port[DOCKER_PORTS_MAX];
	size_t ports, opening; /* index of the one being opened */
	char session[64];      /* of the keeper that has them */
	bool retried;	       /* what is not open was tried once more */
	struct docker_endpoint *next;
};

struct docker {
	struct daemon *daemon;
	int dir; /* of the state */
	const char *resolv_conf;
	struct docker_network *networks;
	struct docker_endpoint *endpoints;
};

/* docker.c: answers. Each is the last use of @reply. */
void docker_ok(struct docker_reply *reply);
void docker_answer(struct docker_reply *reply, json_t *object); /* taken */
void docker_refuse(struct docker_reply *reply, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The text at @key of @object, or NULL. */
const char *docker_text(const json_t *object, const char *key);
/* The id at @key; NULL, and @reply used, if it is none. */
const char *docker_id(const json_t *call, const char *key,
		      struct docker_reply *reply);
int64_t docker_now(void);

/* docker_options.c: why -p is refused. */
extern const char docker_no_publish[];
/* 0, or -EINVAL and @reterr. */
int docker_network_options(const json_t *call, struct docker_network *network,
			   char *reterr, size_t cap);
/* How the engine's resolver is pointed at @gateway, for people. */
void docker_dns_hint(const struct ip *gateway, char *buf, size_t cap);
/* Those of one endpoint: its policy, what it publishes. */
int docker_endpoint_options(const struct docker *docker, const json_t *options,
			    const struct docker_network *network,
			    struct docker_endpoint *endpoint, char *reterr,
			    size_t cap);
/* docker_policy.c: the policy that is @said, a name of the configuration or a
 * path. What *@ret points to is the configuration's, or in @own, which the
 * caller frees either way. 0, or -EINVAL and @reterr. */
int docker_policy(const struct docker *docker, const char *said,
		  struct bundle *own, const struct bundle **ret, char *reterr,
		  size_t cap);

/* The calls. */
typedef void docker_call_fn(struct docker *docker, const json_t *call,
			    struct docker_reply *reply);
docker_call_fn docker_create_network, docker_delete_network;
docker_call_fn docker_create_endpoint, docker_delete_endpoint, docker_oper_info;
docker_call_fn docker_join, docker_leave, docker_program;

/* docker_network.c */
struct docker_network *docker_network_find(const struct docker *docker,
					   const char *id);

/* docker_endpoint.c */
struct docker_endpoint *docker_endpoint_find(const struct docker *docker,
					     const char *id);
/* The one that a call is about; NULL, and @reply used, if there is none. */
struct docker_endpoint *docker_endpoint_of(const struct docker *docker,
					   const json_t *call,
					   struct docker_reply *reply);
/* Of no network yet, and in no list. NULL: no memory. */
struct docker_endpoint *docker_endpoint_new(struct docker *docker,
					    const char *id);
void docker_endpoint_add(struct docker_endpoint *endpoint);
void docker_endpoint_free(struct docker_endpoint *endpoint);
void docker_endpoint_phase(struct docker_endpoint *endpoint,
			   enum endpoint_phase phase);
struct daemon_sandbox *docker_sandbox(const struct docker_endpoint *endpoint);
/* Its sandbox, in the daemon's words. */
void docker_endpoint_spec(const struct docker_endpoint *endpoint,
			  struct daemon_spec *ret);
/* Ends the sandbox; @reply, which may be NULL, hears when that is done.
 * @forget: the endpoint's record goes then, too. @endpoint may be gone. */
void docker_endpoint_end(struct docker_endpoint *endpoint, bool forget,
			 enum ended_by ended, struct docker_reply *reply);
/* To be asked first when a call of the daemon's comes back to us. True: there
 * is nothing to be done; the endpoint was given up meanwhile, and may be gone,
 * or the daemon ends. */
bool docker_endpoint_back(struct docker_endpoint *endpoint);

/* docker_ports.c */
int docker_ports_parse(const json_t *portmap, struct docker_endpoint *endpoint,
		       char *reterr, size_t cap);
/* Opens those that are not; endpoint->busy gets the answer. */
void docker_ports_open(struct docker_endpoint *endpoint);
/* The same where its keeper is not the one that has them. */
void docker_ports_check(struct docker_endpoint *endpoint);

/* docker_join.c: is the container's namespace the one it was at Join? */
bool docker_key_alive(const struct docker_endpoint *endpoint);
/* Its namespace could not be locked: who is in it is killed. What became of
 * that, for people; logged. */
const char *docker_not_contained(const struct docker_endpoint *endpoint,
				 const char *why);
/* A keeper that has to make the link anew calls it as the engine did. */
void docker_name_link(const struct docker_endpoint *endpoint);

/* docker_state.c. 0 or -errno, logged. */
int docker_state_open(const char *dir, int *ret_fd); /* not logged */
int docker_save_network(const struct docker_network *network, int dir);
int docker_save_endpoint(const struct docker_endpoint *endpoint);
void docker_unsave_network(const struct docker *docker, const char *id);
void docker_unsave_endpoint(const struct docker_endpoint *endpoint);
/* Fills the lists of @docker. */
void docker_load(struct docker *docker);

#endif
