/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream between hosts (nic/streams.h) whose other end is authenticated, and sends
 * anything: records and packets with right and wrong tags, and bytes.
 */
#include "fuzz/input.h"
#include "nic/far/records.h"
#include "shm/log.h"
#include "nic/obj/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SELF, PEER, NODES, POSTED = 4, SENT = 12, READS = 3 };
enum { STEPS_MOST = 400, RAW_MOST = 255 };
enum { OFFERED = 3000, LONG = 2 * P3_FAR_BYTES, SETTLE = 12 };

static const struct p3_endpoint_ops *const ops = &p3_endpoint_stream;
static const struct p3_mac_key key[2] = {{{1, 2}}, {{3, 4}}}; /* of the node, the peer */

static struct p3_endpoint *node;
static int fds[2] = {-1, -1}; /* the node's, the peer's */
static struct p3_far_buffer in[POSTED], out[SENT];
static struct p3_far_read asked[READS];
static bool reads[READS], sends[SENT];
static char place[READS][OFFERED], offered[OFFERED];
static _Alignas(8) char lengthy[LONG];
static struct p3_far_region region;
static struct p3_mac mac; /* of the peer's records */
static uint32_t posted, taken;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void expect(bool truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_stream: %s\n", what);
	abort();
}

/* ---- the node that is tested ---- */

static void take_read(const struct p3_far_read *read)
{
	long i = read - asked;
	expect(i >= 0 && i < READS && reads[i], "an event of no read");
	reads[i] = false;
}

static void take(const struct p3_far_event *ev)
{
	struct p3_far_buffer *b = p3_item(ev->op, struct p3_far_buffer, op);
	long i = b - in, k = b - out;
	if (ev->op->kind == P3_FAR_READ) {
		take_read(p3_item(ev->op, struct p3_far_read, op));
	} else if (k >= 0 && k < SENT) {
		expect(sends[k], "a frame is sent twice");
		sends[k] = false;
	} else {
		expect(i >= 0 && i < POSTED && in[i].lent, "a buffer comes back twice");
		expect(!ev->failed && ev->len >= 64 && ev->len <= P3_FAR_BYTES,
			"a frame is too short or too long");
		expect(in[i].frame.medium == PEER, "a frame names another node");
		(void)ops->post(node, b);
	}
}

static void connect_both(void)
{
	struct p3_connection c = {.key = {key[0], key[1]}};
	if (fds[1] >= 0)
		close(fds[1]);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		exit(1);
	c.fd = fds[0];
	c.file = p3_fd_file(c.fd);
	p3_mac_begin(&mac, &key[1]);
	p3_stream_give(node, PEER, &c);
}

static void take_news(void)
{
	struct p3_stream_news news;
	while (p3_streams_next(node, &news)) {
		expect(news.rank == PEER, "news of another rank");
		if (news.broken) {
			close(fds[0]);
			fds[0] = -1;
			continue;
		}
		expect(news.packet.name_len <= P3_FAR_NAME, "a name is too long");
		taken += news.packet.msg.op != P3_JOB_DROPPED;
	}
}

static void poll_node(void)
{
	struct p3_far_event ev[2];
	uint32_t n;
	do {
		n = ops->poll(node, ev, 2);
		for (uint32_t i = 0; i < n; i++)
			take(&ev[i]);
	} while (n);
	take_news();
}

static void settle(void)
{
	for (int i = 0; i < SETTLE; i++)
		poll_node();
	(void)ops->arm(node);
	poll_node();
	if (fds[0] < 0)
		connect_both();
}

static void nic_start(void)
{
	const struct p3_far_conf conf = {.streams = node};
	struct p3_endpoint *ep;
	expect(ops->open(&conf, SELF, NODES, &ep) == 0, "no endpoint");
	for (int i = 0; i < POSTED; i++) {
		in[i].op.kind = P3_FAR_RECEIVE;
		in[i].lent = true;
		(void)ops->post(node, &in[i]);
	}
	(void)ops->offer(node, offered, OFFERED, &region);
	memset(reads, 0, sizeof reads);
	memset(sends, 0, sizeof sends);
}

static void nic_stop(void)
{
	ops->recall(node, &region);
	ops->close(node);
	take_news();
}

/* Let the node send frames, a packet, or ask for a read. */
static void say(struct input *from)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC, .op = P3_JOB_BORN};
	uint32_t i = in_below(from, READS + 2);
	if (i == READS + 1) {
		posted += p3_stream_post(node, PEER, &m, NULL, 0) == 0;
	} else if (i == READS) {
		for (uint32_t k = in_below(from, SENT + 1); k-- > 0;)
			if (!sends[k])
				sends[k] = ops->send(node, PEER, &out[k],
						   64 + 64 * in_below(from, 8)) == 0;
	} else if (!reads[i]) {
		asked[i] = (struct p3_far_read){.op.kind = P3_FAR_READ,
			.to = place[i],
			.len = 1 + in_bytes(from, 2) % OFFERED,
			.key = 1};
		reads[i] = ops->read(node, PEER, &asked[i]) == 0;
	}
	if (in_bit(from))
		ops->push(node);
}

/* ---- the other end ---- */

static void send_bytes(const void *bytes, size_t len)
{
	(void)!send(fds[1], bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_raw(struct input *from)
{
	unsigned char bytes[RAW_MOST];
	uint32_t len = in_below(from, RAW_MOST + 1);
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = in_u8(from);
	send_bytes(bytes, len);
}

/* Give a record its tag, mostly the right one. */
static void seal(struct p3_record_head *head, size_t len, bool wrong)
{
	head->tag = p3_mac_seal(&mac, mac.number++, &head->is, len - sizeof head->tag);
	head->tag.word[0] ^= wrong;
}

/* Send a packet that mostly can be. */
static void send_packet(struct input *from)
{
	static const uint32_t what[] = {P3_JOB_TAKEN, P3_JOB_TAKEN, P3_JOB_BORN,
		P3_JOB_LEAVE, P3_JOB_DROPPED, P3_JOB_BARRIER};
	struct p3_control_record r;
	uint8_t how = in_u8(from);
	memset(&r, 0, sizeof r);
	r.head.is = p3_record_word(P3_RECORD_CONTROL, sizeof r.packet);
	r.packet.msg.magic = how & 0x80 ? (uint32_t)in_bytes(from, 4) : P3_JOB_MAGIC;
	r.packet.msg.op = mac.number ? what[how % 6] : P3_JOB_TAKEN;
	r.packet.taken = how & 0x40 ? (uint32_t)in_bytes(from, 4) : in_below(from, 20);
	r.packet.name_len = how & 0x20 ? (uint32_t)in_bytes(from, 4) : 0;
	seal(&r.head, sizeof r, how == 0xff);
	send_bytes(&r, sizeof r);
}

/* Send a record that mostly can be. */
static void send_record(struct input *from)
{
	uint8_t how = in_u8(from);
	uint32_t len = how & 0x80 ? (uint32_t)in_bytes(from, 4) : in_u8(from) * 8u;
	uint64_t kind = how & 0x40 ? in_u8(from) : 1u + how % 4;
	struct p3_record_asked *ask = (struct p3_record_asked *)(void *)lengthy;
	memset(lengthy, 0, sizeof *ask);
	if (how % 4 == 1 && !(how & 0x80))
		len = sizeof ask->ask;
	if (how % 4 == 3 && !(how & 0x80))
		len = 0;
	ask->head.is = kind << 32 | len;
	ask->ask.key = how & 0x20 ? in_bytes(from, 2) : region.key;
	ask->ask.from = in_bytes(from, 2);
	ask->ask.len = in_bytes(from, 2);
	uint32_t all = kind == P3_RECORD_FRAME ? len : (uint32_t)sizeof ask->head + len;
	all = all < sizeof ask->head ? sizeof ask->head : all < LONG ? all : LONG;
	bool whole = kind == P3_RECORD_FRAME || kind == P3_RECORD_ASK;
	seal(&ask->head, whole ? all : sizeof ask->head, how == 0xfe);
	send_bytes(lengthy, all);
}

/* Take what has come, so that the node has room to send. */
static void drain(void)
{
	char bytes[4096];
	while (recv(fds[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

/* ---- the steps ---- */

static void step(struct input *from)
{
	switch (in_below(from, 14)) {
	case 0:
		(void)shutdown(fds[1], SHUT_RDWR);
		break;
	case 1:
		send_raw(from);
		break;
	case 2:
	case 3:
	case 4:
		send_packet(from);
		break;
	case 5:
	case 6:
	case 7:
		send_record(from);
		break;
	case 8:
		say(from);
		break;
	case 9:
		drain();
		break;
	case 10:
		ops->cut(node, PEER);
		break;
	case 11:
		ops->recall(node, &region);
		(void)ops->offer(node, offered, 1 + in_bytes(from, 2) % OFFERED, &region);
		break;
	case 12:
		nic_stop();
		nic_start();
		break;
	default:
		settle();
	}
	poll_node();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint8_t mute[P3_LOG_AREAS];
	struct input from = {data, data + len};
	p3_log_set(mute);
	expect(p3_mac_load() == 0, "no libsodium");
	node = p3_streams_new(NODES);
	expect(node, "no streams");
	posted = taken = 0;
	nic_start();
	connect_both();
	for (uint32_t i = 0; i < STEPS_MOST && in_any(&from); i++)
		step(&from);
	settle();
	nic_stop();
	p3_streams_free(node);
	for (int i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
	return 0;
}
