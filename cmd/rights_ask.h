/* SPDX-License-Identifier: Apache-2.0
 *
 * rights_ask.h - what a daemon and its builder say to each other: a request,
 * an answer, one at a time. For rights.c and builder.c only.
 */
#ifndef CMD_RIGHTS_ASK_H
#define CMD_RIGHTS_ASK_H

#include <stdint.h>

#include "base/addr.h"
#include "cmd/daemon.h"

enum rights_what {
	RIGHTS_KEEPER,	  /* 2 fds: its socket, its stderr */
	RIGHTS_NAMESPACE, /* .name, .uid, .gid */
	RIGHTS_KILL,	  /* .name */
	RIGHTS_DROP,	  /* .name */
	RIGHTS_LOCK,	  /* 1 fd: the namespace; .ip */
	RIGHTS_LINK,	  /* 1 fd: the namespace */
	RIGHTS_END,	  /* 1 fd: the namespace */
	RIGHTS_SPARE,	  /* .uid, .gid */
	RIGHTS_PIN,	  /* .name; 1 fd: the namespace */
	RIGHTS_COUNT
};

struct rights_request {
	uint32_t what; /* enum rights_what */
	uint32_t uid, gid;
	char name[DAEMON_NAME_MAX];
	struct ip ip;
};

struct rights_reply {
	int32_t status; /* 0 or -errno */
	int32_t pid;	/* RIGHTS_KEEPER, RIGHTS_KILL: its pidfd comes along;
			   RIGHTS_NAMESPACE, RIGHTS_SPARE: its socket, on which
			   it says an int and, if that is 0, gives the
			   namespace, and RIGHTS_SPARE the one above it */
	char text[512]; /* RIGHTS_LOCK: what is wrong; RIGHTS_LINK: its name */
};

#endif
