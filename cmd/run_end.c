/* SPDX-License-Identifier: Apache-2.0
 *
 * run_end.c - see run_end.h.
 */
#include "cmd/run_end.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/client_call.h"
#include "cmd/client_policy.h"
#include "cmd/command.h"
#include "cmd/placed.h"
#include "cmd/run_reload.h"
#include "cmd/summary.h"

#define STATUS_NOT_FOUND 404

/* An end takes half a second; who hits the keys twice means the command. */
#define PATIENCE_MS 3000

struct last_word {
	bool said;
	uint8_t status, ended; /* enum ended_by */
};

static const char *const ended_words[] = {
	[ENDED_EXIT] = "exit",
	[ENDED_TIMEOUT] = "timeout",
	[ENDED_SIGNAL] = "signal",
};

/* NULL: nobody knows what came of it, and there was a word about it. */
static json_t *tell(const struct placed *placed, const struct last_word *word)
{
	json_t *body = json_pack("{s:i, s:s}", "status", word->status, "ended",
				 ended_words[word->ended]),
	       *answer;
	char why[256] = "out of memory";
	int got = 0;

	answer = body ? client_try_json(
				&(struct client_call){ .socket = placed->socket,
						       .method = "POST",
						       .name = placed->name,
						       .path = "/end",
						       .body = body,
						       .patient = true },
				&got, why, sizeof(why))
		      : NULL;
	json_decref(body);
	if (answer && got == 200)
		return answer;
	if (!answer)
		log_err("%s ends without a word of the daemon: %s",
			placed->name, why);
	else if (got == STATUS_NOT_FOUND)
		log_err("%s was ended before its command was", placed->name);
	else
		client_complain(placed->name, answer, got);
	json_decref(answer);
	return NULL;
}

/* Printable ASCII, and lines. */
static void put_text(const char *text)
{
	for (; *text; text++)
		fputc((*text >= 0x20 && *text < 0x7f) || *text == '\n' ? *text
								       : '?',
		      stderr);
}

static bool put_json(const json_t *answer)
{
	AUTO_FREE char *text = json_dumps(json_object_get(answer, "summary"),
					  JSON_COMPACT | JSON_ENSURE_ASCII);

	if (text)
		fprintf(stderr, "%s\n", text);
	return text;
}

static void print(const struct placed *placed, const json_t *answer)
{
	const struct options *o = &placed->options;
	const char *table = client_text(answer, "summary_text");
	const char *dir = placed->session.dir;
	char log[PATH_MAX + 16];
	const struct summary unknown = {
		.log = log, .dir = dir, .daemon = placed->name, .boundary = true
	};

	if (o->quiet || (o->json && put_json(answer)))
		return;
	if (*table && !o->json) {
		put_text(table);
		return;
	}
	snprintf(log, sizeof(log), "%s/" LOG_DIR_RECORDS, dir);
	summary_print(stderr, NULL, &unknown, o->json);
}

/* --- the process --------------------------------------------------------- */

static struct last_word heard;

static void on_word(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	if (recv(fd, &heard, sizeof(heard), 0) != sizeof(heard) ||
	    heard.ended >= ARRAY_SIZE(ended_words))
		heard.said = false;
	event_base_loopbreak(arg);
}

/* Until then `sallyport reload` finds us. */
static void listen_until(int sock, struct placed *placed)
{
	struct event_base *base = event_base_new();
	struct event *word =
		base ? event_new(base, sock, EV_READ, on_word, base) : NULL;

	if (!word || event_add(word, NULL))
		return;
	run_reload_open(placed, base);
	event_base_dispatch(base);
	run_reload_close();
}

static _Noreturn void stand_by(int sock, struct placed *placed)
{
	uint8_t whole = 0;
	json_t *answer;

	listen_until(sock, placed);
	client_policy_forget(placed->name);
	/* Without a word they are gone, and the daemon sees that, too. */
	if (!heard.said)
		_exit(0);
	answer = tell(placed, &heard);
	print(placed, answer);
	whole = json_is_true(json_object_get(answer, "whole"));
	json_decref(answer);
	(void)!send(sock, &whole, sizeof(whole), MSG_NOSIGNAL);
	_exit(0);
}

void run_end_prepare(struct run_end *end, struct placed *placed)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die(EXIT_SALLYPORT, "socketpair: %s", strerror(errno));
	/* Signals wait for the command: command_catch() blocked them here. */
	end->pid = fork();
	if (end->pid < 0)
		die(EXIT_SALLYPORT, "fork: %s", strerror(errno));
	if (!end->pid) {
		close(pair[0]);
		stand_by(pair[1], placed);
	}
	close(pair[1]);
	end->sock = pair[0];
}

/* The other process has the word, and waits for the daemon whatever becomes of
 * us: one that does not answer holds nobody. */
static void await_answer(int sock, const struct placed *placed)
{
	struct pollfd answer = { .fd = sock, .events = POLLIN };

	if (poll(&answer, 1, PATIENCE_MS) == 0) {
		/* First: who reads this may hit the keys at once. */
		command_uncatch(&placed->command);
		log_warn("the daemon does not answer yet; an interrupt leaves "
			 "without its word on the end");
	}
}

bool run_end_now(struct run_end *end, const struct placed *placed, int status)
{
	const struct last_word word = {
		.said = true,
		.status = (uint8_t)status,
		.ended = placed->command.timed_out ? ENDED_TIMEOUT
			 : placed->command.signal  ? ENDED_SIGNAL
						   : ENDED_EXIT,
	};
	ssize_t sent = send(end->sock, &word, sizeof(word), MSG_NOSIGNAL);
	uint8_t whole = 0;

	await_answer(end->sock, placed);
	if (sent != sizeof(word) ||
	    recv(end->sock, &whole, sizeof(whole), 0) != sizeof(whole))
		log_err("what the daemon says of the end is lost");
	close_fd(&end->sock);
	waitpid(end->pid, NULL, 0);
	return whole;
}
