/* SPDX-License-Identifier: Apache-2.0
 *
 * origin.c - a question that nobody else can ask, and a rule that waits for it.
 *
 *	inet sallyport_origin	gone with our socket
 *	chain out (output, before all others; policy accept)
 *	  IPv4 not to 127/8, or IPv6; udp; our label in the question
 *					log, drop
 *
 * The kernel compares the label, of random letters; so whoever's packet is
 * reported has got the question from us. Dropped is an error of sendto(2): who
 * has more servers than one asks the next at once, and all of them are seen.
 */
#include "firewall/origin.h"

#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
/* these want stdio.h */
#include <stdio.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "firewall/nflog.h"
#include "firewall/nft.h"
#include "firewall/writer.h"

#define TABLE "sallyport_origin"
#define CHAIN "out"
/* Before connection tracking, and so before any translation. */
#define PRIORITY -400

#define NFLOG_FIRST  3192
#define NFLOG_GROUPS 64

#define WAIT_MS	  3000
#define SETTLE_MS 50 /* reports that are on their way when the answer comes */

#define DNS_PORT   53
#define DNS_HEADER 12
#define UDP_HEADER 8
#define LOOPBACK   127
#define LABEL	   16 /* a length and letters: as much as a register has */

struct probe {
	struct nft *nft;
	int log, ask;
	bool loaded; /* the table is ours */
	uint16_t group;
	uint8_t label[LABEL];
	struct endpoint *found;
	size_t cap, count;
};

static int netfilter(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

	return fd < 0 ? -errno : fd;
}

static int make_label(struct probe *p)
{
	uint8_t random[LABEL];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	p->label[0] = LABEL - 1;
	for (size_t i = 1; i < LABEL; i++)
		p->label[i] = (uint8_t)('a' + random[i] % 26);
	return 0;
}

/* --- the rule ------------------------------------------------------------ */

static void write_rule(struct writer *w, const struct probe *p, uint8_t family)
{
	const uint8_t own = LOOPBACK;

	writer_rule(w, CHAIN);
	writer_meta(w, NFT_META_NFPROTO, NFT_CMP_EQ, family);
	if (family == NFPROTO_IPV4)
		writer_network(w, IP_DEST_AT, NFT_CMP_NEQ, &own, sizeof(own));
	writer_meta(w, NFT_META_L4PROTO, NFT_CMP_EQ, IPPROTO_UDP);
	writer_transport(w, UDP_HEADER + DNS_HEADER, NFT_CMP_EQ, p->label,
			 LABEL);
	writer_log(w, "origin");
	writer_drop(w);
}

/* Not in place of another's, who may be asking as well. */
static int load(struct probe *p, uint32_t flags)
{
	static const struct table_hook hook = {
		.type = "filter",
		.hook = NF_INET_LOCAL_OUT,
		.priority = PRIORITY,
		.policy = NF_ACCEPT,
	};
	struct table table = { .name = TABLE,
			       .family = NFPROTO_INET,
			       .flags = flags };
	struct writer w = { .table = &table, .nflog_group = p->group };
	int err;

	table_chain(&table, CHAIN, &hook);
	write_rule(&w, p, NFPROTO_IPV4);
	write_rule(&w, p, NFPROTO_IPV6);
	err = table_made(&table);
	if (!err) {
		nft_begin(p->nft);
		table_create(p->nft, &table);
		err = nft_commit(p->nft);
	}
	table_free(&table);
	return err;
}

static void unload(struct probe *p)
{
	const struct table table = { .name = TABLE, .family = NFPROTO_INET };

	nft_begin(p->nft);
	table_delete(p->nft, &table);
	(void)nft_commit(p->nft);
}

static int open_rule(struct probe *p)
{
	int fd = netfilter(), err = -EBUSY;

	if (fd < 0)
		return fd;
	err = nft_open(fd, &p->nft);
	if (err)
		return err;
	p->log = netfilter();
	if (p->log < 0)
		return p->log;
	err = -EBUSY;
	for (unsigned i = 0; err == -EBUSY && i < NFLOG_GROUPS; i++) {
		p->group = (uint16_t)(NFLOG_FIRST + i);
		err = nflog_bind(p->log, p->group);
	}
	if (err)
		return err;
	err = load(p, NFT_TABLE_F_OWNER);
	/* Before Linux 5.12 no table has an owner. */
	if (err == -EOPNOTSUPP || err == -EINVAL)
		err = load(p, 0);
	p->loaded = err == 0;
	return err;
}

/* --- the question -------------------------------------------------------- */

/* "LABEL.invalid A": a name that there is not, says RFC 6761. */
static size_t write_question(const struct probe *p, uint8_t *to)
{
	static const uint8_t header[DNS_HEADER] = { 0, 0, 1, 0, 0, 1 };
	static const uint8_t tail[] = "\7invalid\0\0\1\0"; /* and a 1 */
	uint8_t *at = to;

	memcpy(at, header, sizeof(header));
	memcpy(at, p->label + 1, 2); /* its id: nothing hangs on it */
	at += sizeof(header);
	memcpy(at, p->label, LABEL);
	at += LABEL;
	memcpy(at, tail, sizeof(tail) - 1);
	at += sizeof(tail) - 1;
	*at++ = 1;
	return (size_t)(at - to);
}

static int socket_of(uid_t uid)
{
	int err = sock_make_as(uid);
	int fd = err ? -1
		     : socket(AF_INET,
			      SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!err && fd < 0)
		err = -errno;
	(void)sock_make_as(geteuid());
	return err ? err : fd;
}

static int ask(struct probe *p, const struct ip *resolver, uid_t uid)
{
	uint8_t question[DNS_HEADER + LABEL + 32];
	const size_t len = write_question(p, question);
	union sockaddr_any sa;
	const socklen_t sa_len = ip_to_sockaddr(resolver, DNS_PORT, &sa);

	p->ask = socket_of(uid);
	if (p->ask < 0)
		return p->ask;
	if (connect(p->ask, &sa.sa, sa_len) < 0 ||
	    send(p->ask, question, len, 0) < 0)
		return -errno;
	return 0;
}

/* --- who asks it --------------------------------------------------------- */

static void take(void *arg, const struct nflog_packet *packet)
{
	const struct endpoint at = { .ip = packet->dst,
				     .port = packet->dst_port };
	struct probe *p = arg;

	if (!at.ip.len || !at.port || p->count == p->cap)
		return;
	for (size_t i = 0; i < p->count; i++)
		if (ip_equal(&p->found[i].ip, &at.ip) &&
		    p->found[i].port == at.port)
			return;
	p->found[p->count++] = at;
}

static void take_reports(struct probe *p)
{
	uint8_t buf[8192] __attribute__((aligned(8)));
	ssize_t n;

	while ((n = recv(p->log, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		(void)nflog_parse(buf, (size_t)n, take, p);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int await(struct probe *p)
{
	int64_t end = now_ms() + WAIT_MS, left;
	bool answered = false;
	char drop[512];

	while ((left = end - now_ms()) > 0) {
		struct pollfd fds[] = {
			{ .fd = p->log, .events = POLLIN },
			{ .fd = answered ? -1 : p->ask, .events = POLLIN },
		};

		if (poll(fds, ARRAY_SIZE(fds), (int)left) < 0 && errno != EINTR)
			return -errno;
		if (fds[0].revents)
			take_reports(p);
		if (!fds[1].revents)
			continue;
		/* An answer, or the word that nobody is there. */
		(void)recv(p->ask, drop, sizeof(drop), 0);
		answered = true;
		end = now_ms() + SETTLE_MS;
	}
	return answered || p->count ? 0 : -ETIMEDOUT;
}

int origin_find(const struct ip *resolver, uid_t uid, struct endpoint *ret,
		size_t cap, size_t *ret_count)
{
	struct probe p = { .log = -1, .ask = -1, .found = ret, .cap = cap };
	int err;

	*ret_count = 0;
	if ((err = make_label(&p)) || (err = open_rule(&p)) ||
	    (err = ask(&p, resolver, uid)) || (err = await(&p)))
		p.count = 0;
	if (p.loaded)
		unload(&p);
	nft_close(p.nft);
	close_fd(&p.log);
	close_fd(&p.ask);
	*ret_count = p.count;
	return err;
}
