/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of a node for other hosts (nic/far/stream.h), whose other end sends arbitrary
 * bytes: a stranger without the keys of a pair, or a peer that is let in.
 */
#include "fuzz/input.h"
#include "nic/far/calls.h"
#include "nic/far/stream.h"
#include "shm/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SELF, PEER, NODES, POSTED = 4, READS = 3, STEPS_MOST = 400, RAW_MOST = 255 };
enum { OFFERED = 3000, LONG = 2 * P3_FAR_BYTES, SETTLE = 12 };

static const struct p3_endpoint_ops *const ops = &p3_endpoint_stream;
static const struct p3_far_keys keys = {{{1, 2}}, {{3, 4}}};
static const struct p3_far_keys guessed = {{{1, 2}}, {{3, 5}}};

static struct p3_endpoint *node;
static uint64_t to;
static union p3_call_address port;
static struct p3_far_buffer in[POSTED], out;
static struct p3_far_read asked[READS];
static bool reads[READS], sends, is_stranger;
static char place[READS][OFFERED], offered[OFFERED], lengthy[LONG];
static struct p3_far_region region;
static unsigned frames;

static struct p3_calls caller; /* the other end: only calls */
static struct p3_call call;
static int other; /* its socket, or -1 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void expect(bool truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_stream: %s\n", what);
	abort();
}

/* ---- the node that is tested ---- */

static bool knows(void *arg, uint32_t index, uint64_t *to_out)
{
	(void)arg;
	*to_out = to;
	return index == PEER;
}

static void take(const struct p3_far_event *ev)
{
	if (ev->read) {
		long i = ev->read - asked;
		expect(i >= 0 && i < READS && reads[i], "an event of no read");
		reads[i] = false;
	} else if (ev->buffer == &out) {
		expect(sends, "a frame is sent twice");
		sends = false;
	} else {
		long i = ev->buffer - in;
		expect(i >= 0 && i < POSTED && in[i].lent, "a buffer comes back twice");
		expect(ev->what == P3_FAR_RECEIVED && ev->len >= 64 &&
				ev->len <= P3_FAR_BYTES,
			"a frame is too short or too long");
		expect(in[i].frame.medium == PEER, "a frame names another node");
		frames++;
		(void)ops->post(node, ev->buffer);
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
	expect(!is_stranger || !frames, "a stranger sends frames");
}

static void settle(void)
{
	for (int i = 0; i < SETTLE; i++)
		poll_node();
	(void)ops->arm(node);
	poll_node();
}

static void node_open(void)
{
	const struct p3_far_conf conf = {.address = "127.0.0.1"};
	unsigned char name[P3_FAR_NAME];
	expect(ops->open(&conf, SELF, NODES, 1, POSTED, &node) == 0, "no endpoint");
	uint32_t len = ops->name(node, name);
	memcpy(&port, name, len);
	(void)ops->resolve(node, PEER, name, len, &keys, &to);
	ops->trust(node, knows, NULL);
	for (int i = 0; i < POSTED; i++) {
		in[i].receives = in[i].lent = true;
		(void)ops->post(node, &in[i]);
	}
	(void)ops->offer(node, offered, OFFERED, &region);
	memset(reads, 0, sizeof reads);
	sends = false;
	frames = 0;
}

/* Let the node send a frame, or ask for a read. */
static void say(struct input *from)
{
	uint32_t i = in_below(from, READS + 1);
	if (i == READS && !sends) {
		sends = ops->send(node, to, &out, 64 + 64 * in_below(from, 8)) == 0;
	} else if (i < READS && !reads[i]) {
		asked[i] = (struct p3_far_read){.is_read = true,
			.to = place[i],
			.len = 1 + in_bytes(from, 2) % OFFERED,
			.key = 1};
		reads[i] = ops->read(node, to, &asked[i]) == 0;
	}
	ops->push(node);
}

/* ---- the other end ---- */

static void hang_up(void)
{
	if (other >= 0)
		close(other);
	other = -1;
}

/* Connect; a peer is let in. */
static void connect_other(void)
{
	const struct p3_far_keys back = {keys.in, keys.out};
	hang_up();
	if (p3_call_begin(&caller, &call, SELF, &port))
		return;
	for (int i = 0; i < SETTLE && call.state != P3_CALL_NONE; i++) {
		int rc = p3_call_go_on(&call, is_stranger ? &guessed : &back);
		if (rc == 0)
			other = p3_call_take(&call).fd;
		else if (rc != -EAGAIN)
			p3_call_end(&caller, &call);
		poll_node();
	}
	expect(!is_stranger || other < 0, "a stranger is let in");
	p3_call_end(&caller, &call);
	if (is_stranger)
		other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (is_stranger && connect(other, &port.any, sizeof port.in))
		hang_up();
}

static void send_bytes(const void *bytes, size_t len)
{
	if (other >= 0)
		(void)!send(other, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_raw(struct input *from)
{
	unsigned char bytes[RAW_MOST];
	uint32_t len = in_below(from, RAW_MOST + 1);
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = in_u8(from);
	send_bytes(bytes, len);
}

static void send_greeting(struct input *from)
{
	uint8_t how = in_u8(from);
	struct p3_greeting g = {.magic = how & 0x80 ? in_u8(from) : 0x33504601u,
		.kind = how % 5,
		.from = how & 0x40 ? in_u8(from) : PEER,
		.to = how & 0x20 ? in_u8(from) : SELF,
		.proof = {in_u8(from), in_u8(from)}};
	send_bytes(&g, how & 0x10 ? in_below(from, sizeof g) : sizeof g);
}

/* Send a record that mostly can be. */
static void send_record(struct input *from)
{
	uint8_t how = in_u8(from);
	uint32_t len = how & 0x80 ? (uint32_t)in_bytes(from, 4) : in_u8(from) * 8u;
	uint64_t words[4] = {(uint64_t)(how & 0x40 ? in_u8(from) : 1 + how % 4) << 32};
	if (how % 4 == 1 && !(how & 0x80))
		len = 24;
	if (how % 4 == 3 && !(how & 0x80))
		len = 0;
	words[0] |= len;
	words[1] = how & 0x20 ? in_bytes(from, 2) : region.key;
	words[2] = in_bytes(from, 2);
	words[3] = in_bytes(from, 2);
	if (how % 4 == 1) {
		send_bytes(words, sizeof words);
		return;
	}
	send_bytes(words, sizeof words[0]);
	uint32_t body = how % 4 ? len : len - (uint32_t)sizeof words[0];
	send_bytes(lengthy, body < LONG ? body : LONG);
}

/* Take what has come, so that the node has room to send. */
static void drain(void)
{
	char bytes[4096];
	while (other >= 0 && recv(other, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

/* ---- the steps ---- */

static void step(struct input *from)
{
	switch (in_below(from, 12)) {
	case 0:
		connect_other();
		break;
	case 1:
		send_raw(from);
		break;
	case 2:
	case 3:
		send_greeting(from);
		break;
	case 4:
	case 5:
	case 6:
		send_record(from);
		break;
	case 7:
		say(from);
		break;
	case 8:
		drain();
		break;
	case 9:
		ops->cut(node, to);
		break;
	case 10:
		ops->recall(node, &region);
		(void)ops->offer(node, offered, 1 + in_bytes(from, 2) % OFFERED, &region);
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
	is_stranger = in_bit(&from);
	node_open();
	caller = (struct p3_calls){.node = PEER,
		.set = epoll_create1(EPOLL_CLOEXEC),
		.len = sizeof port.in,
		.own = port};
	other = -1;
	connect_other();
	expect(is_stranger || other >= 0, "a peer is not let in");
	for (uint32_t i = 0; i < STEPS_MOST && in_any(&from); i++)
		step(&from);
	settle();
	hang_up();
	ops->recall(node, &region);
	ops->close(node);
	close(caller.set);
	return 0;
}
