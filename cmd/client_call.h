/* SPDX-License-Identifier: Apache-2.0
 *
 * client_call.h - what the commands that talk to the daemon have in common.
 * Where something is not as it should be they die with a message
 * (EXIT_SALLYPORT), unless said otherwise.
 */
#ifndef CMD_CLIENT_CALL_H
#define CMD_CLIENT_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define CLIENT_SOCKET_ENV "SALLYPORT_SOCKET"

/* --socket (NULL: not given), else $SALLYPORT_SOCKET, else the usual one. */
const char *client_socket(const char *named);

struct client_call {
	const char *socket;
	const char *method;
	const char *name;   /* of a sandbox, checked; NULL: path is all */
	const char *path;   /* "/v1/sandboxes", or behind the name "/policy" */
	const json_t *body; /* NULL: none */
	bool patient; /* too many connections of this user: it waits a little */
};

/* The answer, a JSON object, for the caller to decref; and its status. Dies
 * where there is no daemon, or no answer that can be read. */
json_t *client_ask_json(const struct client_call *call, int *ret_status);

/* The same for answers of 200 and 201 alone: else dies with what the daemon
 * says. */
json_t *client_want(const struct client_call *call);

/* What a status that is no success has to say, on stderr. */
void client_complain(const char *name, const json_t *answer, int status);

/* As client_ask_json(), but where that dies: NULL, and a sentence. */
json_t *client_try_json(const struct client_call *call, int *ret_status,
			char *why, size_t cap);

/* Is there a daemon? Asks it who it is. */
bool client_there(const char *socket);
/* The same, and may this user have sandboxes? */
bool client_lets_in(const char *socket);

/* Members of an answer: "" and 0 where there is none of that type. */
const char *client_text(const json_t *object, const char *key);
uint64_t client_number(const json_t *object, const char *key);

/* JSON on stdout, as one line without what a terminal would obey. */
void client_print_json(const json_t *json);

/* @name is one that a sandbox can have. */
void client_check_name(const char *name);

#endif
