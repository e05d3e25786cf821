/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_spare.c - sandboxes that are made before they are asked for, so that
 * what makes a start slow is done while nobody waits.
 *
 *	wanted	  a user was made a sandbox, so he may come again
 *	making	  its namespace, his, by a process of its own
 *	preparing a keeper builds all that needs no name and no policy
 *	ready	  until he comes, or does not for a while
 *
 * One is made at a time, and when no sandbox that was asked for waits. A spare
 * one has no name that anybody could enter it by, nothing on the disk, and no
 * way out: its gate reads nothing before it knows a policy. It does not outlive
 * the daemon. Whatever goes wrong with one, it goes, and sandboxes are made as
 * if there were none.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/daemon_impl.h"
#include "cmd/gateway.h"
#include "cmd/rights.h"

/* Of all users: a spare one costs as much as one that is used. */
#define SPARES_MAX 64
/* Whoever was made one has things to do with it first. */
#define LATER_MS  100
#define FAILED_MS 1000
#define MAKE_S	  30
/* So long after his last one a user's are kept. */
#define KEEP_S 600

struct spare {
	struct spare *next;
	struct daemon *daemon;
	uid_t uid;
	gid_t gid;
	/* Makes the namespace; the socket is -1 while there is none. */
	pid_t maker;
	int maker_sock;
	struct event *made;
	int ns, user; /* the namespaces, or -1 */
	struct keeper *keeper;
	bool ready;
	struct event *limit; /* of its making, then of its waiting */
};

/* --- one ----------------------------------------------------------------- */

static void drop_maker(struct spare *spare)
{
	if (spare->made)
		event_free(spare->made);
	spare->made = NULL;
	/* It has said its word, is dead, or too slow, as its user may make it;
	 * a builder's is not ours to bury. */
	if (spare->maker_sock >= 0 &&
	    waitpid(spare->maker, NULL, WNOHANG) == 0) {
		kill(spare->maker, SIGKILL);
		waitpid(spare->maker, NULL, 0);
	}
	close_fd(&spare->maker_sock);
}

/* Out of the list and away; what it still has goes with it. */
static void drop(struct spare *spare)
{
	struct spares *spares = &spare->daemon->spares;
	struct spare **at = &spares->first;

	while (*at != spare)
		at = &(*at)->next;
	*at = spare->next;
	spares->count--;
	drop_maker(spare);
	keeper_free(spare->keeper);
	close_fd(&spare->ns);
	close_fd(&spare->user);
	event_free(spare->limit);
	free(spare);
}

static void arm(struct event *event, unsigned ms)
{
	const struct timeval after = {
		.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000
	};

	event_add(event, &after);
}

static bool is_begun(const struct spare *spare)
{
	return spare->maker_sock >= 0 || spare->keeper;
}

static void next_later(struct daemon *daemon, unsigned ms)
{
	if (!event_pending(daemon->spares.due, EV_TIMEOUT, NULL))
		arm(daemon->spares.due, ms);
}

/* There is one less to be made: what fails on and on does so as often as one
 * was wanted. */
static void failed(struct spare *spare, const char *why)
{
	struct daemon *daemon = spare->daemon;

	log_warn("a spare sandbox could not be made: %s", why);
	drop(spare);
	next_later(daemon, FAILED_MS);
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
	struct spare *spare = arg;

	(void)fd;
	(void)what;
	if (is_begun(spare) && !spare->ready)
		failed(spare, "it takes too long");
	else
		drop(spare);
}

/* --- preparing ----------------------------------------------------------- */

static void on_message(void *arg, const struct msg *msg)
{
	struct spare *spare = arg;

	if (msg->type != MSG_KEEP_PREPARED || spare->ready) {
		keeper_kill(spare->keeper);
		return;
	}
	spare->ready = true;
	arm(spare->limit, KEEP_S * 1000);
	next_later(spare->daemon, 0);
}

static void on_died(void *arg, const char *last)
{
	struct spare *spare = arg;

	spare->keeper = NULL;
	failed(spare, last);
}

static const struct keeper_calls calls = { .message = on_message,
					   .died = on_died };

static void prepare(struct spare *spare)
{
	int err = keeper_start(spare->daemon->base, "spare", &calls, spare,
			       &spare->keeper);

	if (!err)
		err = keeper_tell(spare->keeper, MSG_KEEP_PREPARE, NULL,
				  spare->ns);
	if (err)
		failed(spare, strerror(-err));
}

static void on_made(evutil_socket_t fd, short what, void *arg)
{
	struct spare *spare = arg;
	int err = rights_made(fd, &spare->ns, &spare->user);

	(void)what;
	if (err == -EAGAIN)
		return;
	drop_maker(spare);
	if (!err && (spare->user >= 0) != (spare->uid != 0))
		err = -EBADMSG;
	if (err)
		failed(spare, strerror(-err));
	else
		prepare(spare);
}

static void make(struct spare *spare)
{
	int err = rights_spare(spare->uid, spare->gid, &spare->maker,
			       &spare->maker_sock);

	if (!err) {
		spare->made = event_new(spare->daemon->base, spare->maker_sock,
					EV_READ | EV_PERSIST, on_made, spare);
		if (!spare->made || event_add(spare->made, NULL))
			err = -ENOMEM;
	}
	if (err)
		failed(spare, strerror(-err));
	else
		arm(spare->limit, MAKE_S * 1000);
}

/* --- all of them --------------------------------------------------------- */

/* Somebody waits, or one is being made. */
static bool is_busy(const struct daemon *daemon)
{
	for (struct daemon_sandbox *s = daemon->first; s; s = s->next)
		if (box_of(s)->queued || box_of(s)->starting ||
		    box_is_making(box_of(s)))
			return true;
	for (struct spare *s = daemon->spares.first; s; s = s->next)
		if (is_begun(s) && !s->ready)
			return true;
	return false;
}

static void on_due(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	struct spare *spare = daemon->spares.first;

	(void)fd;
	(void)what;
	while (spare && is_begun(spare))
		spare = spare->next;
	if (!spare || daemon->stopping)
		return;
	if (is_busy(daemon))
		next_later(daemon, LATER_MS);
	else
		make(spare);
}

static bool add(struct daemon *daemon, uid_t uid, gid_t gid)
{
	struct spares *spares = &daemon->spares;
	struct spare *spare;

	if (!spares->due)
		spares->due = evtimer_new(daemon->base, on_due, daemon);
	spare = spares->due ? calloc(1, sizeof(*spare)) : NULL;
	if (!spare)
		return false;
	*spare = (struct spare){ .next = spares->first,
				 .daemon = daemon,
				 .uid = uid,
				 .gid = gid,
				 .maker_sock = -1,
				 .ns = -1,
				 .user = -1 };
	spare->limit = evtimer_new(daemon->base, on_limit, spare);
	if (!spare->limit) {
		free(spare);
		return false;
	}
	spares->first = spare;
	spares->count++;
	arm(spare->limit, KEEP_S * 1000);
	return true;
}

/* Could it be in @spare, if that were ready? An engine's has a link that is
 * made when it is known where to. */
static bool fits(const struct spare *spare, const struct daemon_spec *spec)
{
	return !spec->docker && spec->link == KEEP_LINK_OWN &&
	       spare->uid == spec->uid && spare->gid == spec->gid;
}

void daemon_want_spares(struct daemon *daemon, const struct box *box)
{
	const struct daemon_spec *spec = &box->sandbox.spec;
	unsigned have = 0;

	if (spec->docker || spec->link != KEEP_LINK_OWN)
		return;
	for (struct spare *s = daemon->spares.first, *next; s; s = next) {
		next = s->next;
		/* He has another group now. */
		if (s->uid == spec->uid && !fits(s, spec)) {
			drop(s);
			continue;
		}
		have += fits(s, spec);
		if (fits(s, spec) && (s->ready || !is_begun(s)))
			arm(s->limit, KEEP_S * 1000);
	}
	while (have < daemon->config->spare_per_user &&
	       daemon->spares.count < SPARES_MAX &&
	       add(daemon, spec->uid, spec->gid))
		have++;
	if (daemon->spares.first)
		next_later(daemon, LATER_MS);
}

size_t daemon_spares_ready(const struct daemon *daemon)
{
	size_t n = 0;

	for (const struct spare *s = daemon->spares.first; s; s = s->next)
		n += s->ready;
	return n;
}

void daemon_drop_spares(struct daemon *daemon)
{
	while (daemon->spares.first)
		drop(daemon->spares.first);
	if (daemon->spares.due)
		event_free(daemon->spares.due);
	daemon->spares.due = NULL;
}

/* --- one that is asked for ----------------------------------------------- */

/* As rights_namespace() does it: what was there before is somebody else's. */
static int name_it(const struct spare *spare, const struct box *box)
{
	const char *run = box->daemon->options.run;
	const char *name = box->sandbox.spec.name;
	int err = rights_pin(run, name, spare->ns);

	if (err || spare->user < 0)
		return err;
	err = rights_pin(run, name, spare->user);
	if (err)
		daemon_drop_pins(box->daemon, name);
	return err;
}

bool box_take_spare(struct box *box)
{
	struct spare *spare = box->daemon->spares.first;

	while (spare && !(spare->ready && fits(spare, &box->sandbox.spec)))
		spare = spare->next;
	/* What is wrong with the name is told by who makes it anew. */
	if (!spare || name_it(spare, box))
		return false;
	box->ns = steal_fd(&spare->ns);
	box->keeper = STEAL(spare->keeper);
	box->spare = SPARE_WAITS;
	keeper_hand_over(box->keeper, box->sandbox.spec.name, &box_keeper_calls,
			 box);
	drop(spare);
	return true;
}
