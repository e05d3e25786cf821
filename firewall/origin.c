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

#include <libnftnl/chain.h>
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "base/cleanup.h"
#include "base/sock.h"
#include "firewall/expr.h"
#include "firewall/nflog.h"
#include "firewall/nft.h"

#define TABLE "sallyport_origin"
#define CHAIN "out"
/* Before connection tracking, and so before any translation. */
#define PRIORITY -400

#define NFLOG_FIRST  3192
#define NFLOG_GROUPS 64
#define SNAPLEN	     128

#define WAIT_MS	  3000
#define SETTLE_MS 50 /* reports that are on their way when the answer comes */

#define DNS_PORT   53
#define DNS_HEADER 12
#define IP_DEST_AT 16
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

static void put_table(struct probe *p, bool owner)
{
	struct nlmsghdr *nlh =
		nft_start(p->nft, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, TABLE);
	if (owner)
		mnl_attr_put_u32(nlh, NFTA_TABLE_FLAGS,
				 htonl(NFT_TABLE_F_OWNER));
	nft_end(p->nft, nlh);
}

static void drop_table(struct probe *p)
{
	struct nlmsghdr *nlh;

	nft_begin(p->nft);
	nlh = nft_start(p->nft, NFT_MSG_DELTABLE, 0);
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, TABLE);
	nft_end(p->nft, nlh);
	(void)nft_commit(p->nft);
}

static int put_chain(struct probe *p)
{
	struct nftnl_chain *c = nftnl_chain_alloc();
	int err = c ? 0 : -ENOMEM;

	if (err)
		return err;
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, NFPROTO_INET);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, NF_INET_LOCAL_OUT);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, PRIORITY);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, NF_ACCEPT);
	if (nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, TABLE) < 0 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, CHAIN) < 0 ||
	    nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, "filter") < 0) {
		err = -ENOMEM;
	} else {
		struct nlmsghdr *nlh =
			nft_start(p->nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE);

		nftnl_chain_nlmsg_build_payload(nlh, c);
		nft_end(p->nft, nlh);
	}
	nftnl_chain_free(c);
	return err;
}

static void write_rule(struct expr_list *l, const struct probe *p,
		       uint8_t family)
{
	const uint8_t udp = IPPROTO_UDP, own = LOOPBACK;

	expr_meta_load(l, NFT_META_NFPROTO, REG_KEY);
	expr_cmp(l, NFT_CMP_EQ, &family, sizeof(family));
	if (family == NFPROTO_IPV4) {
		expr_payload(l, NFT_PAYLOAD_NETWORK_HEADER, IP_DEST_AT, 1,
			     REG_KEY);
		expr_cmp(l, NFT_CMP_NEQ, &own, sizeof(own));
	}
	expr_meta_load(l, NFT_META_L4PROTO, REG_KEY);
	expr_cmp(l, NFT_CMP_EQ, &udp, sizeof(udp));
	expr_payload(l, NFT_PAYLOAD_TRANSPORT_HEADER, UDP_HEADER + DNS_HEADER,
		     LABEL, REG_KEY);
	expr_cmp(l, NFT_CMP_EQ, p->label, LABEL);
	expr_log(l, "origin", p->group, SNAPLEN);
	expr_verdict(l, NF_DROP, NULL);
}

static int put_rule(struct probe *p, uint8_t family)
{
	struct expr_list l = { .rule = nftnl_rule_alloc() };

	if (!l.rule)
		return -ENOMEM;
	nftnl_rule_set_u32(l.rule, NFTNL_RULE_FAMILY, NFPROTO_INET);
	if (nftnl_rule_set_str(l.rule, NFTNL_RULE_TABLE, TABLE) < 0 ||
	    nftnl_rule_set_str(l.rule, NFTNL_RULE_CHAIN, CHAIN) < 0)
		l.failed = true;
	write_rule(&l, p, family);
	if (!l.failed) {
		struct nlmsghdr *nlh = nft_start(p->nft, NFT_MSG_NEWRULE,
						 NLM_F_CREATE | NLM_F_APPEND);

		nftnl_rule_nlmsg_build_payload(nlh, l.rule);
		nft_end(p->nft, nlh);
	}
	nftnl_rule_free(l.rule);
	return l.failed ? -ENOMEM : 0;
}

static int load(struct probe *p, bool owner)
{
	int err;

	nft_begin(p->nft);
	put_table(p, owner);
	if ((err = put_chain(p)) || (err = put_rule(p, NFPROTO_IPV4)) ||
	    (err = put_rule(p, NFPROTO_IPV6)))
		return err;
	return nft_commit(p->nft);
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
	err = load(p, true);
	/* Before Linux 5.12 no table has an owner. */
	if (err == -EOPNOTSUPP || err == -EINVAL)
		err = load(p, false);
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
		drop_table(&p);
	nft_close(p.nft);
	close_fd(&p.log);
	close_fd(&p.ask);
	*ret_count = p.count;
	return err;
}
