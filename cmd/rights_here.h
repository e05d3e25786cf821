/* SPDX-License-Identifier: Apache-2.0
 *
 * rights_here.h - the things of rights.h, done by this process.
 */
#ifndef CMD_RIGHTS_HERE_H
#define CMD_RIGHTS_HERE_H

#include "cmd/rights.h"

int here_keeper(int sock, int errors, pid_t *ret_pid, int *ret_pidfd);
int here_namespace(const char *run, const char *name, uid_t uid, gid_t gid,
		   pid_t *ret_pid, int *ret_sock);
int here_spare(uid_t uid, gid_t gid, pid_t *ret_pid, int *ret_sock);
int here_pin(const char *run, const char *name, int ns);
int here_kill(const char *run, const char *name, pid_t *ret_pid,
	      int *ret_pidfd);
int here_drop(const char *run, const char *name);
int here_lock(int ns, const struct ip *gateway, char *reterr, size_t cap);
int here_end(int ns);
int here_link(int ns, char (*ret_name)[16]);

#endif
