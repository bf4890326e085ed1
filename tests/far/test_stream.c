/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams (nic/streams.h) and the endpoint over them among bad peers and broken
 * connections: all ends in one thread.  A bad peer is a bare socket.
 */
#include "nic/cases.h"

#include "nic/far/records.h"
#include "support/hold.h"
#include "support/patience.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES   10u
#define BUFFERS 24u
#define READS   8u
#define PART    49152u /* bytes of a read */
#define PT      3
#define BITS    1
#define RINGS   20u

static const struct p3_endpoint_ops *const ops = &p3_endpoint_stream;

/* An endpoint, and what has come to it. */
struct end {
	uint32_t node;
	struct p3_endpoint *ep;
	int fd[NODES]; /* of its connections; -1: none */
	int broken[NODES];
	struct p3_far_buffer *in[BUFFERS], *out[BUFFERS];
	unsigned posted, frames, sent, failed, good, bad;
	unsigned from[NODES]; /* frames by sender */
	uint32_t rounds[64];  /* of packets */
	unsigned packets;
};

static struct end node, peer; /* of the indexes 0 and 1 */

/* ---- ends ---- */

static struct p3_far_buffer *buffer(bool receives)
{
	struct p3_far_buffer *b = aligned_alloc(64, sizeof *b);
	memset(b, 0, sizeof *b);
	b->op.kind = receives ? P3_FAR_RECEIVE : P3_FAR_SEND;
	return b;
}

/* A NIC starts. */
static void end_start(struct end *x)
{
	const struct p3_far_conf conf = {.streams = x->ep};
	struct p3_endpoint *ep;
	assert_int_equal(ops->open(&conf, x->node, NODES, &ep), 0);
	assert_ptr_equal(ep, x->ep);
}

static void end_open(struct end *x, uint32_t index)
{
	memset(x, 0, sizeof *x);
	x->node = index;
	x->ep = p3_streams_new(NODES);
	assert_non_null(x->ep);
	for (unsigned i = 0; i < NODES; i++)
		x->fd[i] = -1;
	for (unsigned i = 0; i < BUFFERS; i++) {
		x->in[i] = buffer(true);
		x->out[i] = buffer(false);
	}
	end_start(x);
}

static void end_post(struct end *x, unsigned n)
{
	for (; n; n--)
		assert_int_equal(ops->post(x->ep, x->in[x->posted++]), 0);
}

static void end_close(struct end *x)
{
	ops->close(x->ep);
	for (unsigned i = 0; i < NODES; i++)
		if (x->fd[i] >= 0)
			close(x->fd[i]);
	p3_streams_free(x->ep);
	for (unsigned i = 0; i < BUFFERS; i++) {
		free(x->in[i]);
		free(x->out[i]);
	}
}

static void take_news(struct end *x)
{
	struct p3_stream_news news;
	while (p3_streams_next(x->ep, &news)) {
		if (!news.broken) {
			x->rounds[x->packets++ % 64] = news.packet.msg.round;
			continue;
		}
		close(x->fd[news.rank]);
		x->fd[news.rank] = -1;
		x->broken[news.rank] = news.broken;
	}
}

static void end_poll(struct end *x)
{
	struct p3_far_event ev[16];
	uint32_t n = ops->poll(x->ep, ev, 16);
	for (uint32_t i = 0; i < n; i++) {
		struct p3_far_buffer *b = p3_item(ev[i].op, struct p3_far_buffer, op);
		unsigned *const ended[3][2] = {[P3_FAR_READ] = {&x->good, &x->bad},
			[P3_FAR_SEND] = {&x->sent, &x->failed},
			[P3_FAR_RECEIVE] = {&x->frames, NULL}};
		assert_non_null(ended[ev[i].op->kind][ev[i].failed]);
		++*ended[ev[i].op->kind][ev[i].failed];
		if (ev[i].op->kind != P3_FAR_RECEIVE)
			continue;
		x->from[b->frame.medium]++;
		assert_int_equal(ops->post(x->ep, b), 0);
	}
	take_news(x);
}

/* Poll until the condition holds. */
#define POLL_UNTIL(condition)                                                            \
	do {                                                                             \
		struct patience late = patience_begin();                                 \
		while (!(condition)) {                                                   \
			assert_false(patience_is_over(&late));                           \
			end_poll(&node);                                                 \
			end_poll(&peer);                                                 \
		}                                                                        \
	} while (0)

static void end_give(
	struct end *x, uint32_t other, int fd, unsigned char out, unsigned char in)
{
	struct p3_connection c = {.fd = fd,
		.file = p3_fd_file(fd),
		.key = {{.bytes = {out}}, {.bytes = {in}}}};
	x->fd[other] = fd;
	x->broken[other] = 0;
	p3_stream_give(x->ep, other, &c);
}

static void new_pair(int fds[2])
{
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
		0);
}

static void connect_both(void)
{
	int fds[2];
	new_pair(fds);
	end_give(&node, 1, fds[0], 1, 2);
	end_give(&peer, 0, fds[1], 2, 1);
}

/* Give the node a connection whose other end is a bare socket, and return that. */
static int connect_bare(uint32_t other)
{
	int fds[2];
	new_pair(fds);
	end_give(&node, other, fds[0], 1, 2);
	return fds[1];
}

static void both_open(void)
{
	end_open(&node, 0);
	end_open(&peer, 1);
	end_post(&node, BUFFERS);
	end_post(&peer, BUFFERS);
	connect_both();
}

static void both_close(void)
{
	end_close(&peer);
	end_close(&node);
}

/* Open both ends for a case, without connection and buffers. */
static int open_apart(void **state)
{
	(void)state;
	end_open(&node, 0);
	end_open(&peer, 1);
	return 0;
}

static int open_joined(void **state)
{
	(void)state;
	both_open();
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	both_close();
	return 0;
}

static void end_send(struct end *x, uint32_t to, unsigned i, uint32_t len)
{
	int rc;
	do
		rc = ops->send(x->ep, to, x->out[i], len);
	while (rc == -EIO); /* of a connection that broke before */
	assert_int_equal(rc, 0);
}

static void expect_frame(void)
{
	unsigned before = node.frames;
	struct patience late = patience_begin();
	while (ops->send(peer.ep, 0, peer.out[0], 128)) {
		assert_false(patience_is_over(&late));
		end_poll(&peer);
	}
	POLL_UNTIL(node.frames > before);
	POLL_UNTIL(peer.sent + peer.failed > 0);
	peer.sent = 0;
}

static void say(int fd, const void *what, size_t len)
{
	assert_int_equal(send(fd, what, len, MSG_NOSIGNAL), len);
}

/* Give a record its tag, as a peer with the right keys. */
static void seal(struct p3_mac *mac, struct p3_record_head *head, size_t len)
{
	head->tag = p3_mac_seal(mac, mac->number++, &head->is, len - sizeof head->tag);
}

static struct p3_mac mac_of_peer(void)
{
	struct p3_mac mac;
	p3_mac_begin(&mac, &(struct p3_mac_key){.bytes = {2}});
	return mac;
}

static int post(struct end *x, uint32_t to, uint32_t round)
{
	struct p3_job_msg m = {
		.magic = P3_JOB_MAGIC, .op = P3_JOB_BARRIER, .round = round};
	unsigned char name[P3_FAR_NAME] = "a name";
	return p3_stream_post(x->ep, to, &m, name, sizeof name);
}

/* ---- records ---- */

struct record {
	struct p3_record_head head;
	uint64_t body[5];
};

/* Records of a bad peer; each breaks its connection, and the next one works. */
static const uint64_t bad[] = {0, 9ull << 32, UINT64_MAX, 1ull << 32, 1ull << 32 | 63,
	1ull << 32 | (P3_FAR_BYTES + 1), 1ull << 32 | UINT32_MAX, 2ull << 32 | 23,
	2ull << 32 | 25, 3ull << 32, 3ull << 32 | 1, 4ull << 32, 4ull << 32 | 8,
	5ull << 32, 5ull << 32 | sizeof(struct p3_packet) | 1};

CASE_IN(wrong_records_break_the_connection, open_joined, close_both)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int fd = connect_bare(2);
		struct p3_mac mac = mac_of_peer();
		struct record r = {.head.is = bad[i]};
		uint32_t kind = (uint32_t)(bad[i] >> 32), len = (uint32_t)bad[i];
		/* over the bytes that would count */
		seal(&mac, &r.head,
			kind == 1 && len > 24 && len <= 64 ? len
			: kind == 2 ? sizeof(struct p3_record_asked)
				    : sizeof r.head);
		say(fd, &r, sizeof r);
		POLL_UNTIL(node.broken[2]);
		assert_int_equal(node.broken[2], -EPROTO);
		close(fd);
		expect_frame();
	}
}

/* A peer asks for reads of unknown keys, which fail, and for more than it may. */
CASE_IN(questions_have_a_limit, open_joined, close_both)
{
	struct p3_mac mac = mac_of_peer();
	struct p3_record_asked ask = {{.is = 2ull << 32 | 24}, {1, 0, 1}};
	struct p3_record_asked many[P3_RECORD_READS + 1];
	struct p3_control_record told;
	char came[64];
	int fd = connect_bare(2);
	POLL_UNTIL(recv(fd, &told, sizeof told, 0) == sizeof told); /* TAKEN */
	for (unsigned i = 0; i < 100; i++) {
		seal(&mac, &ask.head, sizeof ask);
		say(fd, &ask, sizeof ask);
		ssize_t n;
		POLL_UNTIL((n = recv(fd, came, sizeof came, 0)) >= 0);
		assert_int_equal(n, sizeof ask.head);
	}
	for (unsigned i = 0; i <= P3_RECORD_READS; i++) {
		many[i] = ask;
		seal(&mac, &many[i].head, sizeof many[i]);
	}
	say(fd, many, sizeof many);
	POLL_UNTIL(node.broken[2]);
	assert_int_equal(node.broken[2], -EPROTO);
	close(fd);
}

static void fill(char *bytes, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i * 31 + i / 251 + seed);
}

/* Ask for all parts of the region, each into its place. */
static void read_parts(struct p3_far_read *read, char *place, uint64_t key)
{
	for (unsigned i = 0; i < READS; i++) {
		int rc;
		read[i] = (struct p3_far_read){.op.kind = P3_FAR_READ,
			.to = place + i * PART,
			.len = PART,
			.from = i * PART,
			.key = key};
		POLL_UNTIL((rc = ops->read(peer.ep, 0, &read[i])) == 0);
	}
	ops->push(peer.ep);
}

/* Frames wait behind a full socket, also more than one call sends, and questions come:
 * all bytes get to their places. */
CASE(frames_and_reads_keep_apart)
{
	static char offered[READS * PART], place[READS * PART];
	struct p3_far_region r;
	struct p3_far_read read[READS];
	fill(offered, sizeof offered, 3);
	for (unsigned frames = 4; frames <= 20; frames++) {
		both_open();
		memset(place, 0, sizeof place);
		assert_int_equal(ops->offer(node.ep, offered, sizeof offered, &r), 0);
		assert_int_equal(post(&peer, 0, 1), 0);
		POLL_UNTIL(node.packets);
		for (unsigned i = 0; i < frames; i++)
			end_send(&node, 1, i, i < 4 ? P3_FAR_BYTES : 128);
		ops->push(node.ep);
		read_parts(read, place, r.key);
		for (unsigned i = 0; i < 200; i++)
			end_poll(&node); /* takes the questions */
		POLL_UNTIL(peer.good + peer.bad == READS && peer.frames == frames);
		assert_int_equal(peer.bad, 0);
		assert_memory_equal(place, offered, sizeof offered);
		assert_int_equal(node.sent, frames);
		ops->recall(node.ep, &r);
		both_close();
	}
}

/* The program has unmapped what it offered: that read fails, and the connection stays. */
CASE_IN(unmapped_bytes_fail_their_read, open_joined, close_both)
{
	static char place[64];
	struct p3_far_region r;
	struct p3_far_read read = {.op.kind = P3_FAR_READ, .to = place, .len = 64};
	assert_int_equal(ops->offer(node.ep, (void *)(uintptr_t)4096, 64, &r), 0);
	read.key = r.key;
	int rc;
	POLL_UNTIL((rc = ops->read(peer.ep, 0, &read)) == 0);
	POLL_UNTIL(peer.bad == 1);
	expect_frame();
	assert_int_equal(node.broken[1], 0);
	ops->recall(node.ep, &r);
}

/* Right frames without end. */
struct flood {
	struct p3_mac mac;
	struct record frames[256];
	size_t end, sent; /* bytes of them */
};

/* Send what is left of the last frames, or up to n more. */
static void flood_send(struct flood *f, int fd, unsigned n)
{
	for (unsigned i = 0; f->end == f->sent && i < n; i++) {
		f->frames[i] = (struct record){.head.is = 1ull << 32 | 64};
		seal(&f->mac, &f->frames[i].head, sizeof f->frames[i]);
	}
	if (f->end == f->sent) {
		f->end = n * sizeof f->frames[0];
		f->sent = 0;
	}
	ssize_t k = send(fd, (char *)f->frames + f->sent, f->end - f->sent, MSG_NOSIGNAL);
	f->sent += k > 0 ? (size_t)k : 0;
}

/* A peer that sends frames without end does not keep the others from their turn. */
CASE_IN(a_flood_starves_nobody, open_joined, close_both)
{
	static struct flood flood[NODES];
	int fd[NODES];
	for (uint32_t i = 2; i < NODES - 1; i++) {
		fd[i] = connect_bare(i);
		flood[i].mac = mac_of_peer();
	}
	for (uint32_t i = 2; i < NODES - 1; i++) {
		flood_send(&flood[i], fd[i], 1); /* it becomes hot */
		POLL_UNTIL(node.from[i] == 1);
	}
	const uint32_t quiet = NODES - 2;
	for (uint32_t turn = 2; turn < quiet; turn++) {
		unsigned before = node.from[quiet];
		flood_send(&flood[quiet], fd[quiet], 1);
		struct patience late = patience_begin();
		while (node.from[quiet] == before) {
			assert_false(patience_is_over(&late));
			flood_send(&flood[turn], fd[turn], 256);
			end_poll(&node);
		}
	}
	for (uint32_t i = 2; i < NODES - 1; i++)
		close(fd[i]);
}

/* ---- packets ---- */

/* Over connections that break at any byte each packet comes once and in order. */
CASE_IN(packets_outlive_connections, open_apart, close_both)
{
	uint32_t said = 0, taken = 0;
	for (unsigned life = 0; life < 300; life++) {
		connect_both();
		int cut = life % 2 ? node.fd[1] : peer.fd[0];
		for (unsigned i = 0; i < life % 7; i++) {
			said += post(&peer, 0, said) == 0;
			for (unsigned k = 0; k < life % 3; k++)
				end_poll(life % 5 ? &peer : &node);
			end_poll(&peer);
		}
		(void)shutdown(cut, life % 11 ? SHUT_RDWR : SHUT_WR);
		POLL_UNTIL(node.broken[1] && peer.broken[0]);
		for (; taken < node.packets; taken++)
			assert_int_equal(node.rounds[taken % 64], taken);
	}
	connect_both();
	POLL_UNTIL(node.packets == said);
	for (; taken < node.packets; taken++)
		assert_int_equal(node.rounds[taken % 64], taken);
	assert_true(said > 100);
}

/* No more are kept than there is room for, and an acknowledgement makes room. */
CASE_IN(packets_that_are_not_taken_are_few, open_apart, close_both)
{
	uint32_t said = 0;
	while (post(&peer, 0, said) == 0)
		said++;
	assert_int_equal(said, P3_STREAM_KEPT);
	assert_true(p3_stream_owes(peer.ep, 0));
	connect_both();
	POLL_UNTIL(node.packets == said);
	POLL_UNTIL(post(&peer, 0, said) == 0);
	POLL_UNTIL(node.packets == said + 1);
}

/* A LEAVE is acknowledged at once: its sender waits for that. */
CASE_IN(a_leave_is_acknowledged, open_joined, close_both)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC, .op = P3_JOB_LEAVE};
	assert_int_equal(p3_stream_post(peer.ep, 0, &m, NULL, 0), 0);
	POLL_UNTIL(!p3_stream_owes(peer.ep, 0));
}

/* Frames wait behind packets, and long ones do not go before them. */
CASE_IN(packets_go_first, open_apart, close_both)
{
	end_post(&node, BUFFERS);
	connect_both();
	assert_int_equal(post(&peer, 0, 6), 0);
	POLL_UNTIL(node.packets == 1);
	for (unsigned i = 0; i < 16; i++)
		end_send(&peer, 0, i, P3_FAR_BYTES); /* more than the socket takes */
	ops->push(peer.ep);
	assert_int_equal(post(&peer, 0, 7), 0);
	end_poll(&peer);
	struct patience late = patience_begin();
	while (node.packets == 1) {
		assert_false(patience_is_over(&late));
		end_poll(&peer);
		end_poll(&node);
	}
	assert_true(node.frames < 16);
	POLL_UNTIL(node.frames == 16);
}

/* A packet goes before frames that have their tags already, and all of them get new
 * ones. */
CASE_IN(a_packet_goes_before_sealed_frames, open_joined, close_both)
{
	const int small = 4096;
	expect_frame();
	assert_int_equal(
		setsockopt(peer.fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
	unsigned before = node.frames;
	for (unsigned i = 0; i < BUFFERS; i++)
		end_send(&peer, 0, i, 2048);
	ops->push(peer.ep); /* not all go */
	assert_int_equal(post(&peer, 0, 1), 0);
	POLL_UNTIL(node.packets == 1 && node.frames == before + BUFFERS);
	assert_int_equal(node.broken[1], 0);
}

/* Half a frame has the only buffer, and the next one waits: the half one's connection is
 * broken. */
CASE_IN(half_frames_hold_no_buffer_for_ever, open_apart, close_both)
{
	static struct flood whole;
	struct p3_mac half = mac_of_peer();
	whole = (struct flood){.mac = mac_of_peer()};
	end_post(&node, 1);
	int fds[] = {connect_bare(2), connect_bare(3)};
	struct record r = {.head.is = 1ull << 32 | 64};
	seal(&half, &r.head, sizeof r);
	say(fds[0], &r, 40);
	for (unsigned i = 0; i < 200; i++)
		end_poll(&node);
	flood_send(&whole, fds[1], 1);
	POLL_UNTIL(node.broken[2] && node.frames == 1);
	assert_int_equal(node.from[3], 1);
	close(fds[0]);
	close(fds[1]);
}

/* Streams beside a provider take no frames. */
CASE_IN(streams_without_frames_refuse_them, open_apart, close_both)
{
	static struct flood one;
	one = (struct flood){.mac = mac_of_peer()};
	ops->close(node.ep);
	int fd = connect_bare(2);
	flood_send(&one, fd, 1);
	POLL_UNTIL(node.broken[2]);
	assert_int_equal(node.broken[2], -EPROTO);
	close(fd);
}

/* Take what the peer says first on a new connection, and return it. */
static struct p3_control_record first_record(int fd)
{
	struct p3_control_record r;
	POLL_UNTIL(recv(fd, &r, sizeof r, MSG_PEEK) == sizeof r);
	assert_int_equal(recv(fd, &r, sizeof r, 0), sizeof r);
	return r;
}

/* Connect the peer with a bare socket, fds[1], and return what the peer says first. */
static struct p3_control_record record_of_peer(int fds[2])
{
	new_pair(fds);
	end_give(&peer, 0, fds[0], 2, 1);
	return first_record(fds[1]);
}

/* ---- tags ---- */

/* Each kind of record: its word, and its bytes, and those that the tag is for. */
static const struct {
	uint64_t is;
	uint32_t len, sealed;
} kinds[] = {{1ull << 32 | 64, 64, 64}, {2ull << 32 | 24, 48, 48},
	{3ull << 32 | 8, 32, 24}, {4ull << 32, 24, 24}};

/* Let the node ask a bare peer for 8 bytes, and send a record.  Return how often it had
 * an effect. */
static unsigned effects_of(const struct record *r, uint32_t len, int *broken_out)
{
	static uint64_t place;
	struct p3_far_read read = {
		.op.kind = P3_FAR_READ, .to = &place, .len = 8, .key = 1};
	unsigned over = node.good + node.bad, came = 0, asked;
	int fd = connect_bare(2);
	POLL_UNTIL(ops->read(node.ep, 2, &read) == 0);
	ops->push(node.ep);
	asked = sizeof(struct p3_control_record) + sizeof(struct p3_record_asked);
	while (came < asked) { /* TAKEN, and the question */
		char bytes[1024];
		ssize_t n = -1;
		POLL_UNTIL((n = recv(fd, bytes, asked - came, 0)) > 0);
		came += (unsigned)n;
	}
	say(fd, r, len);
	(void)shutdown(fd, SHUT_WR);
	POLL_UNTIL(node.broken[2] && node.good + node.bad == over + 1);
	*broken_out = node.broken[2];
	close(fd);
	return node.good + node.frames;
}

/* Bits all over a record count, but those of the bytes of a read; and so do its number,
 * and the key of its connection. */
static void expect_no_other_tag(size_t kind)
{
	struct record right = {.head.is = kinds[kind].is, .body = {1, 0, 8}};
	struct p3_mac mac = mac_of_peer(), other;
	uint32_t len = kinds[kind].len, sealed = kinds[kind].sealed;
	unsigned was = node.good + node.frames;
	int broken;
	seal(&mac, &right.head, sealed);
	unsigned is = effects_of(&right, len, &broken);
	assert_int_equal(broken, -EPIPE);
	assert_int_equal(is - was, kinds[kind].is >> 32 & 1);
	for (uint32_t bit = 0; bit < 8 * sealed; bit += 5) {
		struct record r = right;
		((unsigned char *)&r)[bit / 8] ^= (unsigned char)(1u << bit % 8);
		if ((uint32_t)r.head.is != (uint32_t)right.head.is)
			continue; /* it is shorter or longer */
		assert_int_equal(effects_of(&r, len, &broken), is);
		assert_int_equal(broken, -EPROTO);
	}
	p3_mac_begin(&other, &(struct p3_mac_key){.bytes = {1}}); /* the node's */
	for (unsigned i = 0; i < 2; i++) { /* and the next number */
		struct record r = right;
		seal(i ? &mac : &other, &r.head, sealed);
		assert_int_equal(effects_of(&r, len, &broken), is);
		assert_int_equal(broken, -EPROTO);
	}
}

CASE(wrong_tags_break_the_connection)
{
	for (int aes = 0; aes < 2; aes++) { /* AES is last, if this CPU has it */
		p3_mac_use(aes);
		both_open();
		for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
			expect_no_other_tag(k);
		both_close();
	}
}

/* The tags of no bytes with number 0 and a key of zeros, as other programs make them. */
CASE(tags_are_those_of_the_standards)
{
	static const unsigned char right[2][16] = {
		{0x4e, 0xb9, 0x72, 0xc9, 0xa8, 0xfb, 0x3a, 0x1b, 0x38, 0x2b, 0xb4, 0xd3,
			0x6f, 0x5f, 0xfa, 0xd1},
		{0x53, 0x0f, 0x8a, 0xfb, 0xc7, 0x45, 0x36, 0xb9, 0xa9, 0x63, 0xb4, 0xf1,
			0xc4, 0xcb, 0x73, 0x8b}};
	for (int aes = 0; aes <= p3_mac_has_aes(); aes++) {
		struct p3_mac mac;
		p3_mac_use(aes);
		p3_mac_begin(&mac, &(struct p3_mac_key){{0}});
		struct p3_mac_tag tag = p3_mac_seal(&mac, 0, NULL, 0);
		assert_memory_equal(&tag, right[aes], sizeof tag);
	}
}

/* Each byte of a packet counts, and so do its number and its direction. */
CASE_IN(a_changed_packet_breaks_the_connection, open_apart, close_both)
{
	int fds[2];
	for (size_t at = 0; at < sizeof(struct p3_control_record); at++) {
		struct p3_control_record r = record_of_peer(fds);
		((char *)&r)[at] ^= 0x10;
		int fd = connect_bare(1);
		say(fd, &r, sizeof r);
		POLL_UNTIL(node.broken[1]);
		assert_int_equal(node.broken[1], -EPROTO);
		close(fd);
		close(fds[1]);
		POLL_UNTIL(peer.broken[0]);
	}
}

CASE_IN(a_repeated_packet_breaks_the_connection, open_apart, close_both)
{
	int fds[2];
	for (unsigned back = 0; back < 2; back++) {
		struct p3_control_record r = record_of_peer(fds);
		if (back) { /* to its sender */
			say(fds[1], &r, sizeof r);
			POLL_UNTIL(peer.broken[0]);
			assert_int_equal(peer.broken[0], -EPROTO);
		} else {
			int fd = connect_bare(1);
			say(fd, &r, sizeof r);
			say(fd, &r, sizeof r);
			POLL_UNTIL(node.broken[1]);
			assert_int_equal(node.broken[1], -EPROTO);
			close(fd);
		}
		close(fds[1]);
		POLL_UNTIL(peer.broken[0]);
	}
}

/* A peer with the right keys acknowledges packets that were not sent. */
CASE_IN(a_wrong_count_breaks_the_connection, open_apart, close_both)
{
	struct p3_mac mac = mac_of_peer();
	struct p3_control_record r = {
		.head.is = p3_record_word(P3_RECORD_CONTROL, sizeof r.packet),
		.packet = {
			.msg = {.magic = P3_JOB_MAGIC, .op = P3_JOB_TAKEN}, .taken = 1}};
	seal(&mac, &r.head, sizeof r);
	int fd = connect_bare(1);
	say(fd, &r, sizeof r);
	POLL_UNTIL(node.broken[1]);
	assert_int_equal(node.broken[1], -EPROTO);
	close(fd);
}

/* A domain's thread that takes no news holds up packets, and none is lost. */
CASE_IN(packets_wait_for_the_domains_thread, open_apart, close_both)
{
	struct p3_far_event ev[16];
	uint32_t said = 0;
	connect_both();
	for (unsigned i = 0; i < 20000; i++) {
		said += post(&peer, 0, said) == 0;
		end_poll(&peer);
		(void)ops->poll(node.ep, ev, 16);
	}
	assert_true(said > 60 && said < 20000);
	POLL_UNTIL(node.packets == said);
}

/* When a look is over, all that had come before is among the news. */
CASE_IN(a_look_brings_all_that_has_come, open_joined, close_both)
{
	expect_frame();
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(post(&peer, 0, i), 0);
		end_poll(&peer);
		end_send(&peer, 0, 1, P3_FAR_BYTES);
		ops->push(peer.ep);
		uint32_t look = p3_streams_look(node.ep);
		struct patience late = patience_begin();
		struct p3_far_event ev;
		while (!p3_streams_have_looked(node.ep, look)) {
			assert_false(patience_is_over(&late));
			if (!ops->poll(node.ep, &ev, 1))
				continue;
			assert_false(ev.failed);
			if (ev.op->kind == P3_FAR_RECEIVE)
				assert_int_equal(
					ops->post(node.ep,
						p3_item(ev.op, struct p3_far_buffer, op)),
					0);
		}
		take_news(&node);
		assert_int_equal(node.packets, i + 1);
		POLL_UNTIL(peer.sent);
		peer.sent = 0;
	}
}

/* A packet as a peer with the right keys says it to the node. */
static struct p3_control_record right_record(enum p3_job_op op, uint64_t number)
{
	struct p3_mac mac = mac_of_peer();
	struct p3_control_record r = {
		.head.is = p3_record_word(P3_RECORD_CONTROL, sizeof r.packet),
		.packet = {.msg = {.magic = P3_JOB_MAGIC, .op = op}}};
	mac.number = number;
	seal(&mac, &r.head, sizeof r);
	return r;
}

/* The peer has said something and ended, so that sending fails: what it said counts. */
CASE_IN(last_packets_count_though_sending_fails, open_joined, close_both)
{
	struct p3_control_record first = right_record(P3_JOB_TAKEN, 0);
	struct p3_control_record last = right_record(P3_JOB_LEAVE, 1);
	int fd = connect_bare(2);
	say(fd, &first, sizeof first);
	for (unsigned i = 0; i < 200; i++)
		end_poll(&node); /* says TAKEN, which the peer does not read */
	say(fd, &last, sizeof last);
	assert_int_equal(post(&node, 2, 1), 0);
	close(fd);
	POLL_UNTIL(node.broken[2]);
	assert_int_equal(node.packets, 1);
}

/* A packet that is posted just before the NIC stops goes out. */
CASE_IN(the_last_packet_goes_before_the_nic, open_joined, close_both)
{
	expect_frame();
	assert_int_equal(post(&node, 1, 5), 0);
	ops->close(node.ep);
	POLL_UNTIL(peer.packets == 1);
	end_start(&node);
}

/* Half packets of all peers, a full inbox, and then the other halves, and all ends. */
CASE_IN(the_inbox_has_room_for_what_has_begun, open_joined, close_both)
{
	struct p3_control_record first = right_record(P3_JOB_TAKEN, 0);
	struct p3_control_record second = right_record(P3_JOB_BARRIER, 1);
	struct p3_far_event ev[16];
	int fd[NODES];
	uint32_t said = 0;
	for (uint32_t i = 2; i < NODES; i++) {
		fd[i] = connect_bare(i);
		say(fd[i], &first, sizeof first);
		say(fd[i], &second, 100);
	}
	for (unsigned i = 0; i < 5000; i++) {
		said += post(&peer, 0, said) == 0;
		end_poll(&peer);
		(void)ops->poll(node.ep, ev, 16);
	}
	for (uint32_t i = 2; i < NODES; i++) {
		say(fd[i], (char *)&second + 100, sizeof second - 100);
		close(fd[i]);
	}
	for (unsigned i = 0; i < 5000; i++)
		(void)ops->poll(node.ep, ev, 16);
	POLL_UNTIL(node.packets == said + NODES - 2);
	for (uint32_t i = 2; i < NODES; i++)
		POLL_UNTIL(node.broken[i]);
}

/* Hot connections that fill each batch do not keep packets of others from their turn. */
CASE_IN(a_flood_delays_no_packet, open_joined, close_both)
{
	static struct flood flood;
	struct p3_control_record first = right_record(P3_JOB_TAKEN, 0);
	struct p3_control_record second = right_record(P3_JOB_BARRIER, 1);
	flood.mac = mac_of_peer();
	int hot = connect_bare(2), cold = connect_bare(3);
	say(cold, &first, sizeof first);
	for (unsigned i = 0; i < 1000; i++) {
		flood_send(&flood, hot, 64);
		end_poll(&node);
	}
	say(cold, &second, sizeof second);
	unsigned polls = 0;
	for (; !node.packets; polls++) {
		flood_send(&flood, hot, 64);
		end_poll(&node);
		assert_true(polls < 1000);
	}
	close(hot);
	close(cold);
}

/* ---- lives of NICs ---- */

/* A NIC stops, and another one starts: the connection stays, and packets wait. */
CASE_IN(a_connection_outlives_its_nic, open_joined, close_both)
{
	expect_frame();
	ops->close(node.ep);
	take_news(&node);
	assert_int_equal(node.broken[1], 0);
	assert_int_equal(post(&peer, 0, 9), 0);
	end_poll(&peer);
	end_start(&node);
	node.posted = 0;
	end_post(&node, BUFFERS);
	POLL_UNTIL(node.packets == 1);
	expect_frame();
	assert_int_equal(node.broken[1], 0);
}

/* It stops in the middle of a frame, in or out, or of a read: that breaks the connection,
 * and the next NIC gets nothing of it. */
CASE(half_a_record_goes_with_its_nic)
{
	static char place[64];
	struct p3_far_read read = {
		.op.kind = P3_FAR_READ, .to = place, .len = 64, .key = 1};
	const struct record half = {.head.is = 1ull << 32 | 4096};
	for (unsigned how = 0; how < 3; how++) {
		both_open();
		expect_frame();
		int fd = connect_bare(2);
		(void)first_record(fd);
		if (how == 0)
			say(fd, &half, sizeof half);
		for (unsigned i = 0; how == 1 && i < 16; i++)
			end_send(&node, 2, i, P3_FAR_BYTES); /* more than it takes */
		if (how == 2)
			assert_int_equal(ops->read(node.ep, 2, &read), 0);
		for (unsigned i = 0; i < 200; i++)
			end_poll(&node);
		ops->close(node.ep);
		take_news(&node);
		assert_int_equal(node.broken[2], -ECONNABORTED);
		assert_int_equal(node.broken[1], 0);
		close(fd);
		node.sent = 0;
		end_start(&node);
		node.posted = 0;
		end_post(&node, BUFFERS);
		expect_frame();
		assert_int_equal(node.sent + node.failed + node.bad, 0);
		both_close();
	}
}

/* ---- sleeping ---- */

/* A frame or packet of a peer, and a packet to post, make the descriptor readable. */
CASE_IN(news_wake_a_sleeper, open_joined, close_both)
{
	expect_frame();
	for (unsigned how = 0; how < 3; how++) {
		struct pollfd on = {.events = POLLIN};
		struct patience late = patience_begin();
		on.fd = ops->news(node.ep);
		while (ops->arm(node.ep) || poll(&on, 1, 0) > 0) {
			assert_false(patience_is_over(&late));
			end_poll(&node);
		}
		if (how == 0)
			end_send(&peer, 0, 0, 128);
		else if (how == 1)
			assert_int_equal(post(&peer, 0, 1), 0);
		else
			assert_int_equal(post(&node, 1, 1), 0);
		end_poll(&peer);
		assert_int_equal(poll(&on, 1, -1), 1);
		POLL_UNTIL(how == 2 ? peer.packets != 0
				    : node.frames > 1 && node.packets == how);
		peer.sent = peer.failed = 0;
	}
}

static p3_a32 no_watches; /* the user has as many as the kernel allows */

int epoll_ctl(int set, int op, int fd, struct epoll_event *ev)
{
	int rc = (int)syscall(SYS_epoll_ctl, set, op, fd, ev);
	if (rc || !p3_get(&no_watches) || op != EPOLL_CTL_ADD)
		return rc;
	(void)syscall(SYS_epoll_ctl, set, EPOLL_CTL_DEL, fd, NULL);
	errno = ENOSPC;
	return -1;
}

/* A connection that cannot be watched stays hot, and sleepers must look at it. */
CASE_IN(a_connection_without_a_watch_stays, open_joined, close_both)
{
	expect_frame();
	POLL_UNTIL(ops->arm(node.ep) == 0);
	expect_frame();
	p3_set(&no_watches, 1);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(ops->arm(node.ep), -ENOSPC);
		end_poll(&node);
	}
	expect_frame();
	for (unsigned i = 0; i < 16; i++)
		end_send(&node, 1, i, P3_FAR_BYTES); /* more than the peer takes */
	assert_true(ops->arm(node.ep) < 0);
	p3_set(&no_watches, 0);
	POLL_UNTIL(node.sent + node.failed == 16);
	POLL_UNTIL(ops->arm(node.ep) == 0);
	expect_frame();
	assert_int_equal(node.failed, 0);
	assert_int_equal(node.broken[1], 0);
}

/* A connection that comes when there are no more watches is used, too. */
CASE_IN(a_connection_comes_without_a_watch, open_apart, close_both)
{
	p3_set(&no_watches, 1);
	connect_both();
	end_post(&node, 4);
	end_post(&peer, 4);
	for (unsigned i = 0; i < 1000 && !node.broken[1]; i++)
		end_poll(&node);
	p3_set(&no_watches, 0);
	assert_int_equal(node.broken[1], 0);
	expect_frame();
}

/* Let a message go each way. */
static void exchange(
	unsigned rank, ptl_handle_ni_t ni, ptl_handle_md_t md, ptl_handle_eq_t eq)
{
	for (unsigned from = 0; from < 2; from++) {
		if (rank == from)
			CHECK_OK(put_to(ni, md, 1 - rank, PT, BITS, PTL_NOACK_REQ));
		else
			(void)expect(eq, PTL_EVENT_PUT_END);
		sync_nodes();
	}
}

/* Return true if the passes during some rings of the wire's thread are few. */
static bool rings_cost_few_passes(struct patience *late)
{
	uint64_t rings = p3_nic_counter(nic(), P3_C_WIRE_RINGS) + RINGS;
	uint64_t passes = p3_nic_counter(nic(), P3_C_PASSES) + 3 * RINGS;
	while (p3_nic_counter(nic(), P3_C_WIRE_RINGS) < rings) {
		CHECK(!patience_is_over(late));
		sleep_ms(1); /* pause: between two looks */
	}
	return p3_nic_counter(nic(), P3_C_PASSES) <= passes;
}

/* Nodes that cannot watch a connection look at it at times, and sleep meanwhile. */
NODES_CASE(nodes_without_watches_sleep, 2)
{
	struct patience late = patience_begin();
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md = bind_md(ni, md_of(node_alloc(8), 8, MD_QUIET, PTL_EQ_NONE));
	post_md(ni, PT, BITS,
		md_of(node_alloc(8), 8, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
	sync_nodes();
	exchange(rank, ni, md, eq);
	p3_set(&no_watches, 1);
	exchange(rank, ni, md, eq);
	while (rank == 0 && !rings_cost_few_passes(&late))
		;
	sync_nodes();
	exchange(rank, ni, md, eq);
	p3_set(&no_watches, 0);
}

/* The program has put a set of its own in the place of that of the streams: its events
 * name no peer. */
CASE_IN(a_set_of_the_program_names_no_peer, open_joined, close_both)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)1 << 40};
	int set = ops->news(node.ep), own = epoll_create1(EPOLL_CLOEXEC);
	int ready = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(epoll_ctl(own, EPOLL_CTL_ADD, ready, &ev), 0);
	assert_int_equal(dup2(own, set), set);
	for (unsigned i = 0; i < 100; i++)
		end_poll(&node);
	close(own);
	close(set);
	close(ready);
}

/* A descriptor that the program has closed breaks the connection. */
CASE_IN(a_closed_descriptor_breaks_the_connection, open_joined, close_both)
{
	expect_frame();
	assert_int_equal(close(node.fd[1]), 0);
	assert_int_equal(dup2(STDERR_FILENO, node.fd[1]), node.fd[1]);
	POLL_UNTIL(node.broken[1]);
}

int main(void)
{
	if (p3_mac_load())
		return 1;
	return cases_run();
}
