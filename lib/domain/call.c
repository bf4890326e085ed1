/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP to other hosts: the address of this host, sockets, and calls, which authenticate
 * both ends of a connection.
 */
#include "lib/domain/internal.h"
#include "shm/conf.h"
#include "shm/fault.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/park.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALL_BACKLOG 4096 /* as many as the kernel allows: all ranks may call at once */
#define CALL_REMEDY                                                                      \
	"set PTL3_FABRIC_NET to the interface, or to the network as in 10.1.0.0/16, "    \
	"that connects the hosts"

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* ---- conversions ---- */

static socklen_t tcp_sockaddr(const struct p3_card *card, union address *out)
{
	memset(out, 0, sizeof *out);
	out->any.sa_family = card->family;
	if (card->family == AF_INET6) {
		out->in6.sin6_port = htons(card->port);
		memcpy(&out->in6.sin6_addr, card->address, sizeof out->in6.sin6_addr);
		return sizeof out->in6;
	}
	out->in.sin_port = htons(card->port);
	memcpy(&out->in.sin_addr, card->address, sizeof out->in.sin_addr);
	return sizeof out->in;
}

void p3_tcp_take_address(struct p3_card *card, const struct sockaddr *from)
{
	union address a;
	memset(&a, 0, sizeof a);
	memset(card->address, 0, sizeof card->address);
	card->family = from->sa_family;
	if (from->sa_family == AF_INET6) {
		memcpy(&a.in6, from, sizeof a.in6);
		card->port = ntohs(a.in6.sin6_port);
		memcpy(card->address, &a.in6.sin6_addr, sizeof a.in6.sin6_addr);
	} else {
		memcpy(&a.in, from, sizeof a.in);
		card->port = ntohs(a.in.sin_port);
		memcpy(card->address, &a.in.sin_addr, sizeof a.in.sin_addr);
	}
}

void p3_tcp_print_address(const struct p3_card *card, char text[P3_TCP_TEXT])
{
	char port[8] = "";
	if (!inet_ntop(card->family, card->address, text, P3_TCP_TEXT - sizeof port))
		snprintf(text, P3_TCP_TEXT, "?");
	if (card->port)
		snprintf(port, sizeof port, ":%u", card->port);
	strcat(text, port);
}

bool p3_tcp_is_same_host(const struct p3_card *a, const struct p3_card *b)
{
	return a->family == b->family &&
	       memcmp(a->address, b->address, sizeof a->address) == 0;
}

/* ---- the choice of an address ---- */

static bool address_is_usable(const struct ifaddrs *i)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(void *)i->ifa_addr;
	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
		return false;
	return i->ifa_addr->sa_family == AF_INET ||
	       (i->ifa_addr->sa_family == AF_INET6 &&
		       !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr));
}

/* Return true if other hosts can use the address, as far as it shows that. */
static bool address_is_for_others(const struct p3_card *card)
{
	struct in6_addr in6;
	memcpy(&in6, card->address, sizeof in6);
	if (card->family == AF_INET)
		return card->address[0] != 127;
	return !IN6_IS_ADDR_LOOPBACK(&in6) && !IN6_IS_ADDR_LINKLOCAL(&in6);
}

static bool address_is_in(const struct ifaddrs *i, const struct p3_conf_net *net)
{
	struct p3_card at = {.magic = 0};
	uint32_t bytes = net->bits / 8, rest = net->bits % 8;
	if (net->interface[0])
		return strcmp(i->ifa_name, net->interface) == 0;
	p3_tcp_take_address(&at, i->ifa_addr);
	if (net->family)
		return at.family == net->family &&
		       memcmp(at.address, net->address, bytes) == 0 &&
		       (!rest ||
			       (at.address[bytes] ^ net->address[bytes]) >> (8 - rest) ==
				       0);
	return !(i->ifa_flags & IFF_LOOPBACK);
}

/* Add "eth0 10.1.0.1" to a text. */
static void address_list(const struct ifaddrs *i, char *text, size_t size)
{
	struct p3_card at = {.magic = 0};
	char address[P3_TCP_TEXT];
	size_t n = strlen(text);
	p3_tcp_take_address(&at, i->ifa_addr);
	at.port = 0;
	p3_tcp_print_address(&at, address);
	snprintf(text + n, size - n, "%s%s %s", n ? ", " : "", i->ifa_name, address);
}

/* Find the addresses in a network: the first one, preferably of IPv4, and the number of
 * the interfaces that have any. */
static uint32_t address_find(const struct ifaddrs *all, const struct p3_conf_net *net,
	struct p3_card *card, char *others, size_t size)
{
	const char *seen = "";
	uint32_t n = 0;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!address_is_usable(i))
			continue;
		address_list(i, others, size);
		if (!address_is_in(i, net))
			continue;
		if (!n || (card->family == AF_INET6 && i->ifa_addr->sa_family == AF_INET))
			p3_tcp_take_address(card, i->ifa_addr);
		n += strcmp(seen, i->ifa_name) != 0;
		seen = i->ifa_name;
	}
	card->port = 0;
	return n;
}

/* Find this host's address on the route to another one.  Connecting a datagram socket
 * sends nothing. */
static bool address_find_route(const char *host, struct p3_card *card)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_ADDRCONFIG},
			*to;
	union address self;
	socklen_t len = sizeof self;
	bool ok = false;
	const char *user_end = host ? strrchr(host, '@') : NULL;
	if (!host || getaddrinfo(user_end ? user_end + 1 : host, "9", &hints, &to))
		return false;
	for (struct addrinfo *a = to; a && !ok; a = a->ai_next) {
		int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		ok = fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0 &&
		     getsockname(fd, &self.any, &len) == 0;
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(to);
	if (ok)
		p3_tcp_take_address(card, &self.any);
	card->port = 0;
	return ok && address_is_for_others(card);
}

/* Find the address, as text, among those of this host. */
static bool address_find_own(
	const struct ifaddrs *all, const char *address, struct p3_card *card)
{
	struct p3_conf_net net = {.interface = ""};
	char others[1] = "";
	if (!address)
		return false;
	net.family = strchr(address, ':') ? AF_INET6 : AF_INET;
	net.bits = net.family == AF_INET ? 32 : 128;
	return inet_pton(net.family, address, net.address) == 1 &&
	       address_find(all, &net, card, others, sizeof others) &&
	       address_is_for_others(card);
}

int p3_tcp_choose_address(
	const char *other_host, const char *own_address, struct p3_card *card)
{
	struct p3_conf_net net;
	struct ifaddrs *all;
	char others[300] = "";
	const char *text = p3_conf_text(P3_CONF_FABRIC_NET);
	(void)p3_conf_net(text, &net);
	bool any = !net.interface[0] && !net.family;
	if (any && address_find_route(other_host, card))
		return 0;
	if (getifaddrs(&all))
		return -errno;
	bool own = any && address_find_own(all, own_address, card);
	uint32_t n = own ? 1 : address_find(all, &net, card, others, sizeof others);
	freeifaddrs(all);
	if (n == 1 || (n && !any))
		return 0;
	if (any)
		p3_error("the network to the other hosts is unknown: the name of a host, "
			 "%s, has no address here, and this host has %s; " CALL_REMEDY,
			other_host ? other_host : "?", others[0] ? others : "none");
	else
		p3_error("PTL3_FABRIC_NET is '%s'; this host has %s; " CALL_REMEDY, text,
			others[0] ? others : "no interface");
	return -EADDRNOTAVAIL;
}

uint64_t p3_tcp_network(void)
{
	struct stat net;
	char boot[40] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, boot, sizeof boot - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (n <= 0 || stat("/proc/self/ns/net", &net))
		return 0;
	uint64_t sum = net.st_ino << 32 ^ net.st_dev; /* FNV-1a */
	for (ssize_t i = 0; i < n; i++)
		sum = (sum ^ (unsigned char)boot[i]) * UINT64_C(0x100000001b3);
	return sum;
}

void p3_tcp_say_same_address(uint32_t rank, const struct p3_card *card)
{
	char at[P3_TCP_TEXT];
	struct p3_card host = *card;
	const char *text = p3_conf_text(P3_CONF_FABRIC_NET);
	host.port = 0;
	p3_tcp_print_address(&host, at);
	p3_error("PTL3_FABRIC_NET is '%s', and rank %u on another host has the address "
		 "%s of this host; " CALL_REMEDY,
		text ? text : "auto", rank, at);
}

/* ---- sockets ---- */

static int tcp_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof value) ? -errno : 0;
}

/* Let the kernel notice that the other host is silent. */
static int tcp_watch(int fd, uint32_t timeout_s)
{
	int rc = tcp_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (rc || !timeout_s)
		return rc;
	rc = tcp_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	rc = rc ? rc : tcp_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	rc = rc ? rc : tcp_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	return rc ? rc
		  : tcp_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)timeout_s * 1000);
}

void p3_tcp_keep(int fd)
{
	(void)tcp_set(fd, IPPROTO_TCP, TCP_KEEPCNT, 127); /* the kernel's most */
	(void)tcp_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
}

/* Read what the kernel knows of a connection; zeros if it is none. */
static struct tcp_info tcp_info_of(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof info;
	memset(&info, 0, sizeof info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		memset(&info, 0, sizeof info);
	return info;
}

uint32_t p3_tcp_silence_ms(int fd)
{
	return tcp_info_of(fd).tcpi_last_ack_recv;
}

bool p3_tcp_is_confirmed(int fd)
{
	return !tcp_info_of(fd).tcpi_unacked;
}

static int tcp_socket(const struct p3_card *card)
{
	int fd = p3_fd_high(
		socket(card->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	return fd < 0 ? -errno : fd;
}

/* Close fd if rc is an error.  Return rc, else fd. */
static int tcp_keep(int fd, int rc)
{
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

int p3_tcp_listen(struct p3_card *card)
{
	union address at;
	char text[P3_TCP_TEXT];
	socklen_t len = tcp_sockaddr(card, &at);
	int fd = tcp_socket(card), rc = fd < 0 ? fd : 0;
	if (!rc && (bind(fd, &at.any, len) || listen(fd, CALL_BACKLOG) ||
			   getsockname(fd, &at.any, &len)))
		rc = tcp_keep(fd, -errno);
	if (!rc) {
		p3_tcp_take_address(card, &at.any);
		return fd;
	}
	p3_tcp_print_address(card, text);
	p3_error("this host cannot listen at %s: %s; " CALL_REMEDY, text, strerror(-rc));
	return rc;
}

int p3_tcp_dial(
	const struct p3_card *self, const struct p3_card *other, uint32_t timeout_s)
{
	union address from, to;
	struct p3_card any_port = *self;
	any_port.port = 0;
	socklen_t from_len = tcp_sockaddr(&any_port, &from);
	socklen_t to_len = tcp_sockaddr(other, &to);
	int fd = tcp_socket(self);
	if (fd < 0)
		return fd;
	/* The port is chosen at connect, for the pair of addresses. */
	(void)tcp_set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	int rc = tcp_watch(fd, timeout_s);
	if (!rc && bind(fd, &from.any, from_len))
		rc = -errno;
	if (!rc && connect(fd, &to.any, to_len) && errno != EINPROGRESS)
		rc = -errno;
	return tcp_keep(fd, rc);
}

int p3_tcp_accept(int fd, uint32_t timeout_s, struct p3_card *from_out)
{
	union address from;
	socklen_t len = sizeof from;
	int got = p3_fd_high(accept4(fd, &from.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK));
	if (got < 0)
		return -errno;
	p3_tcp_take_address(from_out, &from.any);
	return tcp_keep(got, tcp_watch(got, timeout_s));
}

/* ---- calls ---- */

#define MAGIC 0x33504403u /* the low byte is the version */
#define NONE  0xffffffffu

enum op { HELLO = 1, ANSWER, PROOF };

/* The bytes whose keyed hash is a proof or a key. */
struct label {
	uint64_t what; /* of the words below */
	uint32_t from, to;
	unsigned char nonce[2][16];
};

enum what { PROOF_OF_CALLED = 1, PROOF_OF_CALLER, KEY_OF_CALLER, KEY_OF_CALLED };

static int call_fd(const struct p3_call *c)
{
	return (int)p3_get(&c->fd);
}

static struct p3_mac_key call_hash(const struct p3_call *c, enum what what)
{
	struct label l = {.what = what, .from = c->from, .to = c->to};
	memcpy(l.nonce, c->nonce, sizeof l.nonce);
	return p3_mac_hash(c->secret, &l, sizeof l);
}

/* Send a greeting: a new socket has room for it. */
static int call_greet(struct p3_call *c, enum op op, const unsigned char *nonce,
	struct p3_mac_key proof)
{
	struct p3_greeting g = {
		.magic = MAGIC, .op = op, .from = c->from, .to = c->to, .proof = proof};
	if (nonce)
		memcpy(g.nonce, nonce, sizeof g.nonce);
	ssize_t n = send(call_fd(c), &g, sizeof g, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == (ssize_t)sizeof g ? 0 : n < 0 && errno != EAGAIN ? -errno : -EPIPE;
}

/* Read until the next greeting is whole.  Return 0 if it is one of this kind for this
 * pair of ranks, -EAGAIN, or another -errno. */
static int call_take_greeting(struct p3_call *c, enum op op)
{
	const struct p3_greeting *g = &c->in;
	while (c->got < sizeof c->in) {
		ssize_t n = recv(call_fd(c), (char *)&c->in + c->got,
			sizeof c->in - c->got, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		c->got += (uint32_t)n;
	}
	c->got = 0;
	if (op == HELLO)
		c->from = g->from;
	return g->magic == MAGIC && g->op == op && g->from == c->from && g->to == c->to
		       ? 0
		       : -EACCES;
}

/* Return 0 if the greeting proves that the other end knows the secret. */
static int call_check(const struct p3_call *c, enum what what)
{
	struct p3_mac_key right = call_hash(c, what);
	return p3_mac_equal(&right, &c->in.proof) ? 0 : -EACCES;
}

/* Send HELLO as soon as the socket is connected. */
static int call_finish_dialing(struct p3_call *c)
{
	struct pollfd on = {.fd = call_fd(c), .events = POLLOUT};
	int why = 0;
	socklen_t len = sizeof why;
	if (poll(&on, 1, 0) <= 0)
		return -EAGAIN;
	if (getsockopt(on.fd, SOL_SOCKET, SO_ERROR, &why, &len) || why)
		return why ? -why : -EPIPE;
	c->state = P3_CALL_CALLING;
	int rc = call_greet(c, HELLO, c->nonce[0], (struct p3_mac_key){{0}});
	FAULT_POINT("remote.hello_sent");
	return rc ? rc : -EAGAIN;
}

int p3_call_go_on(struct p3_call *c)
{
	int rc = -EPIPE;
	if (c->state == P3_CALL_DIALING)
		return call_finish_dialing(c);
	if (c->state == P3_CALL_CALLED) {
		rc = call_take_greeting(c, HELLO);
		if (rc)
			return rc;
		memcpy(c->nonce[0], c->in.nonce, sizeof c->nonce[0]);
		c->state = P3_CALL_ANSWERED;
		rc = call_greet(c, ANSWER, c->nonce[1], call_hash(c, PROOF_OF_CALLED));
		FAULT_POINT("remote.answer_sent");
		if (rc)
			return rc;
	}
	if (c->state == P3_CALL_ANSWERED) {
		rc = call_take_greeting(c, PROOF);
		rc = rc ? rc : call_check(c, PROOF_OF_CALLER);
	} else if (c->state == P3_CALL_CALLING) {
		rc = call_take_greeting(c, ANSWER);
		if (rc)
			return rc;
		memcpy(c->nonce[1], c->in.nonce, sizeof c->nonce[1]);
		rc = call_check(c, PROOF_OF_CALLED);
		rc = rc ? rc : call_greet(c, PROOF, NULL, call_hash(c, PROOF_OF_CALLER));
		FAULT_POINT("remote.proof_sent");
	}
	if (!rc)
		c->state = P3_CALL_OPEN;
	return rc;
}

/* ---- lives ---- */

void p3_call_init(struct p3_call *c)
{
	*c = (struct p3_call){.from = NONE, .to = NONE};
	p3_set(&c->fd, NONE);
}

static void call_start(struct p3_call *c, int fd, const struct p3_mac_key *secret,
	enum p3_call_state state)
{
	p3_call_init(c);
	c->state = state;
	c->calls = state == P3_CALL_DIALING;
	c->secret = secret;
	c->since_ns = p3_now_ns();
	c->file = p3_fd_file(fd);
	p3_set(&c->fd, (uint32_t)fd);
	/* getrandom() of 16 bytes never returns less.  It fails only while the kernel has
	 * no entropy: then the other end's nonce makes the pair of nonces new. */
	if (getrandom(c->nonce[!c->calls], sizeof c->nonce[0], 0) < 0)
		memcpy(c->nonce[!c->calls], &c->since_ns, sizeof c->since_ns);
}

void p3_call_dial(struct p3_call *c, int fd, const struct p3_mac_key *secret,
	uint32_t self, uint32_t other)
{
	call_start(c, fd, secret, P3_CALL_DIALING);
	c->from = self;
	c->to = other;
}

void p3_call_accept(
	struct p3_call *c, int fd, const struct p3_mac_key *secret, uint32_t self)
{
	call_start(c, fd, secret, P3_CALL_CALLED);
	c->to = self;
}

struct p3_connection p3_call_connection(const struct p3_call *c)
{
	struct p3_connection it = {.fd = call_fd(c), .file = c->file};
	it.key[!c->calls] = call_hash(c, KEY_OF_CALLER);
	it.key[c->calls] = call_hash(c, KEY_OF_CALLED);
	return it;
}

struct p3_connection p3_call_take(struct p3_call *c)
{
	struct p3_connection it = p3_call_connection(c);
	p3_call_init(c);
	return it;
}

bool p3_call_is_lost(const struct p3_call *c)
{
	return c->state != P3_CALL_NONE && !p3_fd_is(call_fd(c), c->file);
}

void p3_call_close(struct p3_call *c)
{
	if (c->state != P3_CALL_NONE)
		p3_fd_close_own(call_fd(c), c->file);
	p3_call_init(c);
}
