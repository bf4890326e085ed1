/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * switch - forward frames between network interfaces as a bad switch does
 *
 *	switch SETTINGS INTERFACE...
 *
 * Settings are loss, double and reorder (percent of the frames), delay (ms) and seed, as
 * in loss=2,delay=50.  At SIGUSR1 a hole opens, as in a firewall that forgets
 * connections: with hole=1 all frames of TCP connections that began before are lost, with
 * hole=2 those that come from the second interface.  With open=1 it is there at once.  Of
 * connections that begin later these are lost:
 *
 *	answers=1	answers to SYN that come from the second interface
 *	answers=2	those that go to it, too
 *	replies=1	all that comes from it behind its answers to SYN
 *	replies=2	all that comes from it behind SYN, and behind its answers to SYN
 *	ports=N		SYN to other ports than 100 N to 100 N + 99
 *
 * At SIGTERM it prints what it has done.
 *
 * The kernel hands over frames of up to 64 KiB whose checksums are not computed yet.
 * The header of PACKET_VNET_HDR says so, and goes on with the frame.
 */
#include "../support/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 8, KNOWN = 32, FLOWS = 1024, HEADER = sizeof(struct virtio_net_hdr) };
enum { LONGEST = HEADER + 70000, ROOM = 64 << 20, BATCH = 64 };
#define MS UINT64_C(1000000)

struct frame {
	TAILQ_ENTRY(frame) next;
	uint64_t due;
	unsigned to; /* port */
	uint32_t len;
	unsigned char bytes[]; /* virtio_net_hdr, then the frame */
};

static struct {
	unsigned char address[ETH_ALEN];
	unsigned port;
} known[KNOWN];

enum setting {
	LOSS,
	DOUBLE,
	REORDER,
	DELAY,
	HOLE,
	ANSWERS,
	REPLIES,
	HUNDREDS,
	OPEN,
	SEED,
	SETTINGS
};
static unsigned setting[SETTINGS], nknown, nport;
static struct pollfd port[PORTS];
static TAILQ_HEAD(queue, frame) queue = TAILQ_HEAD_INITIALIZER(queue);
static size_t waiting; /* bytes in the queue */
static unsigned long came, lost, doubled, reordered;
static volatile sig_atomic_t over, hole;

/* A TCP connection that began when there was a hole. */
static struct flow {
	uint32_t address[2];
	uint16_t port[2];
} flows[FLOWS];
static unsigned nflow;
static unsigned long swallowed;

static void die(const char *what)
{
	fprintf(stderr, "switch: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void on_term(int signal)
{
	(void)signal;
	over = 1;
}

static void on_usr1(int signal)
{
	(void)signal;
	hole = 1;
}

/* Return true as often as the setting says, and count these calls. */
static bool happens(enum setting what, unsigned long *count)
{
	bool yes = (unsigned)(random() % 100) < setting[what];
	*count += yes;
	return yes;
}

/* ---- the interfaces ---- */

static void open_port(const char *name)
{
	int on = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name)};
	struct packet_mreq all = {
		.mr_ifindex = at.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
	if (fd < 0 || !at.sll_ifindex || nport == PORTS ||
		setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) ||
		setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) ||
		setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) ||
		bind(fd, (struct sockaddr *)&at, sizeof at))
		die(name);
	port[nport++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* Return the port behind which an address is, or nport. */
static unsigned port_of(const unsigned char *address)
{
	for (unsigned i = 0; i < nknown; i++)
		if (memcmp(known[i].address, address, ETH_ALEN) == 0)
			return known[i].port;
	return nport;
}

static void learn(const unsigned char *address, unsigned from)
{
	if (nknown == KNOWN || port_of(address) != nport)
		return;
	memcpy(known[nknown].address, address, ETH_ALEN);
	known[nknown++].port = from;
}

/* ---- the queue ---- */

/* Enter a frame behind all that are due before it. */
static void enter(const unsigned char *bytes, uint32_t len, unsigned to, uint64_t due)
{
	struct frame *f = waiting + len > ROOM ? NULL : malloc(sizeof *f + len), *before;
	if (!f) {
		lost++;
		return;
	}
	memcpy(f->bytes, bytes, len);
	f->len = len;
	f->to = to;
	f->due = due;
	waiting += len;
	before = TAILQ_LAST(&queue, queue);
	while (before && before->due > due)
		before = TAILQ_PREV(before, queue, next);
	if (before)
		TAILQ_INSERT_AFTER(&queue, before, f, next);
	else
		TAILQ_INSERT_HEAD(&queue, f, next);
}

/* A reordered frame waits until those of the next 2 ms have overtaken it. */
static void forward(const unsigned char *bytes, uint32_t len, unsigned to)
{
	came++;
	if (happens(LOSS, &lost))
		return;
	uint64_t due = now_ns() + setting[DELAY] * MS;
	if (happens(REORDER, &reordered))
		due += 2 * MS;
	enter(bytes, len, to, due);
	if (happens(DOUBLE, &doubled))
		enter(bytes, len, to, due);
}

static void send_due(void)
{
	struct frame *f;
	while ((f = TAILQ_FIRST(&queue)) && f->due <= now_ns()) {
		if (write(port[f->to].fd, f->bytes, f->len) < 0)
			lost++;
		waiting -= f->len;
		TAILQ_REMOVE(&queue, f, next);
		free(f);
	}
}

/* ---- the hole ---- */

static bool is_known(const struct flow *f)
{
	for (unsigned i = 0; i < nflow; i++)
		if (memcmp(&flows[i], f, sizeof *f) == 0)
			return true;
	return false;
}

/* Return true if a frame of a later connection is lost; back: it goes to the caller. */
static bool is_filtered(
	const struct ethhdr *head, const struct tcphdr *tcp, bool back, unsigned from)
{
	bool second = from == 1, to_second = port_of(head->h_dest) == 1;
	if (tcp->syn && tcp->ack)
		return (setting[ANSWERS] && second) ||
		       (setting[ANSWERS] == 2 && to_second);
	if (tcp->syn)
		return setting[HUNDREDS] && ntohs(tcp->dest) / 100 != setting[HUNDREDS];
	return second && (setting[REPLIES] == 2 || (setting[REPLIES] == 1 && back));
}

/* Return true if the frame falls into the hole. */
static bool falls(const unsigned char *bytes, ssize_t len, unsigned from)
{
	const struct iphdr *ip = (const void *)(bytes + HEADER + ETH_HLEN);
	const struct ethhdr *head = (const void *)(bytes + HEADER);
	const struct tcphdr *tcp = (const void *)((const char *)ip + ip->ihl * 4);
	if (!hole || !setting[HOLE] || head->h_proto != htons(ETH_P_IP) ||
		len < HEADER + ETH_HLEN + 40 || ip->protocol != IPPROTO_TCP)
		return false;
	struct flow f = {{ip->saddr, ip->daddr}, {tcp->source, tcp->dest}};
	struct flow back = {{ip->daddr, ip->saddr}, {tcp->dest, tcp->source}};
	if (tcp->syn && !tcp->ack && !is_known(&f) && nflow < FLOWS)
		flows[nflow++] = f;
	bool yes = is_known(&f) || is_known(&back)
			   ? is_filtered(head, tcp, is_known(&back), from)
			   : setting[HOLE] == 1 || from == 1;
	swallowed += yes;
	return yes;
}

/* ---- the loop ---- */

/* Take one frame.  Return false if there is none. */
static bool take(unsigned from)
{
	static unsigned char bytes[LONGEST];
	ssize_t len = read(port[from].fd, bytes, sizeof bytes);
	if (len < HEADER + ETH_HLEN)
		return false;
	const struct ethhdr *head = (const struct ethhdr *)(void *)(bytes + HEADER);
	learn(head->h_source, from);
	if (falls(bytes, len, from))
		return true;
	unsigned to = port_of(head->h_dest);
	for (unsigned i = 0; i < nport; i++)
		if (i != from && (to == i || to == nport))
			forward(bytes, (uint32_t)len, i);
	return true;
}

static void turn(void)
{
	const struct frame *f = TAILQ_FIRST(&queue);
	uint64_t now = now_ns(), ns = f && f->due > now ? f->due - now : 0;
	struct timespec wait = {(time_t)(ns / (1000 * MS)), (long)(ns % (1000 * MS))};
	sigset_t none;
	sigemptyset(&none);
	if (ppoll(port, nport, f ? &wait : NULL, &none) > 0)
		for (unsigned i = 0; i < nport; i++)
			for (int n = 0; n < BATCH && take(i); n++)
				;
	send_due();
}

static void take_settings(char *text)
{
	char *const names[] = {"loss", "double", "reorder", "delay", "hole", "answers",
		"replies", "ports", "open", "seed", NULL};
	char *value;
	while (*text) {
		char *word = text;
		int which = getsubopt(&text, names, &value);
		if (which < 0 || !value) {
			fprintf(stderr,
				"switch: %s: expected loss, double, reorder, delay, "
				"hole, answers, replies, ports, open or seed, and a "
				"number, as in loss=2\n",
				word);
			exit(2);
		}
		setting[which] = (unsigned)strtoul(value, NULL, 10);
	}
	hole = setting[OPEN] != 0;
	srandom(setting[SEED]);
}

int main(int argc, char **argv)
{
	struct sigaction end = {.sa_handler = on_term}, opens = {.sa_handler = on_usr1};
	sigset_t term;
	if (argc < 4)
		return 2;
	take_settings(argv[1]);
	for (int i = 2; i < argc; i++)
		open_port(argv[i]);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigaddset(&term, SIGUSR1);
	sigprocmask(SIG_BLOCK, &term, NULL); /* ppoll() lets it in */
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGUSR1, &opens, NULL);
	while (!over)
		turn();
	printf("# switch: %lu frames: %lu lost, %lu doubled, %lu reordered, %lu "
	       "swallowed\n",
		came, lost, doubled, reordered, swallowed);
	return 0;
}
