/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session between hosts (lib/domain/session.h) whose other end sends arbitrary bytes:
 * a stranger without the secret of the job, or a rank that makes right MACs of anything.
 */
#include "fuzz/input.h"
#include "lib/domain/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SELF = 2, OTHER = 5, STEPS_MOST = 400, RAW_MOST = 255 };

static const struct p3_sipkey secret[2] = {{{1, 2}}, {{3, 4}}};
static const struct p3_sipkey guessed[2] = {{{1, 2}}, {{3, 5}}};

static struct p3_session session;
static struct p3_channel channel, other;
static bool is_stranger;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void expect(bool truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_session: %s\n", what);
	abort();
}

static void check(void)
{
	const struct p3_session *s = &session;
	uint32_t kept = s->next - s->acked, given = s->given - s->acked;
	expect(kept <= P3_SESSION_KEPT, "more packets are kept than there is room for");
	expect(given <= kept, "packets were given that were never said");
	expect(channel.left <= sizeof channel.out, "more is queued than there is room");
	expect(channel.got <= sizeof channel.in, "more has come than there is room");
	expect(!is_stranger || !p3_channel_is_open(&channel), "a stranger is let in");
}

/* ---- the end that is tested ---- */

static void close_both(void)
{
	p3_channel_close(&channel);
	p3_channel_close(&other);
}

/* Return false if the connection is broken. */
static bool hear_one(void)
{
	struct p3_packet p;
	uint32_t taken = session.taken;
	int rc = p3_session_receive(&session, &channel, &p);
	check();
	if (rc == 0)
		p3_session_open(&session, &channel);
	if (rc == 1) {
		expect(p.name_len <= sizeof p.name, "a name is too long");
		expect(p.msg.op == P3_JOB_DROPPED || session.taken == taken + 1,
			"a packet that was taken is not counted");
	}
	check();
	if (rc < 0 && rc != -EAGAIN)
		close_both();
	return rc >= 0;
}

static void hear(void)
{
	while (channel.state != P3_CHANNEL_CLOSED && hear_one())
		;
}

static void say(struct input *in)
{
	struct p3_job_msg msg = {.magic = P3_JOB_MAGIC, .op = P3_JOB_BORN};
	unsigned char name[P3_FAR_NAME] = {0};
	uint32_t kept = session.next - session.acked;
	uint32_t len = in_below(in, P3_FAR_NAME + 1);
	int rc = p3_session_send(&session, &channel, &msg, len ? name : NULL, len);
	expect((rc == -EAGAIN) == (kept == P3_SESSION_KEPT), "room is told wrongly");
}

/* ---- the other end ---- */

/* Greet as ranks do.  A stranger gets nowhere. */
static void connect_both(struct input *in)
{
	struct p3_packet p;
	int fds[2];
	bool calls = in_bit(in);
	close_both();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		return;
	const struct p3_sipkey *its = is_stranger ? guessed : secret;
	if (calls) {
		p3_channel_call(&channel, fds[0], secret, SELF, OTHER);
		p3_channel_be_called(&other, fds[1], its, OTHER);
	} else {
		p3_channel_call(&other, fds[1], its, OTHER, SELF);
		p3_channel_be_called(&channel, fds[0], secret, SELF);
	}
	for (int i = (int)in_below(in, 6); i && other.state != P3_CHANNEL_CLOSED; i--) {
		hear();
		if (other.state != P3_CHANNEL_CLOSED && !p3_channel_is_open(&other))
			(void)p3_channel_receive(&other, &p);
	}
}

static void send_bytes(const void *bytes, size_t len)
{
	if (other.state != P3_CHANNEL_CLOSED)
		(void)!send((int)p3_get(&other.fd), bytes, len, MSG_NOSIGNAL);
}

static void send_raw(struct input *in)
{
	unsigned char bytes[RAW_MOST];
	uint32_t len = in_below(in, RAW_MOST + 1);
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = in_u8(in);
	send_bytes(bytes, len);
}

/* Return a number of taken packets that is mostly possible, or nearly so. */
static uint32_t taken(struct input *in)
{
	uint8_t how = in_u8(in);
	if (how >= 0xf0)
		return (uint32_t)in_bytes(in, 4);
	return session.acked + how % (P3_SESSION_KEPT + 2) - (how >> 7);
}

/* Send a packet with a right MAC, if the other end has got a key. */
static void send_packet(struct input *in)
{
	static const uint32_t ops[] = {P3_JOB_TAKEN, P3_JOB_BORN, P3_JOB_TOLD,
		P3_JOB_LEAVE, P3_JOB_DROPPED, P3_JOB_BARRIER};
	struct p3_packet p;
	uint8_t how = in_u8(in);
	memset(&p, 0, sizeof p);
	p.msg.magic = how & 0x80 ? (uint32_t)in_bytes(in, 4) : P3_JOB_MAGIC;
	p.msg.op = how & 0x40 ? in_u8(in) : ops[how % 6];
	p.taken = taken(in);
	p.name_len = how & 0x20 ? (uint32_t)in_bytes(in, 4) : in_below(in, P3_FAR_NAME);
	p.number = other.number[0];
	p.mac = p3_siphash(&other.key[0], &p, offsetof(struct p3_packet, mac));
	if (how == 0xff)
		p.mac ^= 1;
	other.number[0]++;
	send_bytes(&p, sizeof p);
}

/* Take what has come, so that the tested end has room to send. */
static void drain(void)
{
	char bytes[4096];
	while (p3_channel_is_open(&other) &&
		recv((int)p3_get(&other.fd), bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

/* ---- the steps ---- */

static void step(struct input *in)
{
	switch (in_below(in, 8)) {
	case 0:
		connect_both(in);
		break;
	case 1:
		send_raw(in);
		break;
	case 2:
	case 3:
		send_packet(in);
		break;
	case 4:
		say(in);
		break;
	case 5:
		drain();
		break;
	default:
		hear();
	}
	check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, data + len};
	memset(&session, 0, sizeof session);
	p3_channel_init(&channel);
	p3_channel_init(&other);
	is_stranger = in_bit(&in);
	connect_both(&in);
	for (uint32_t i = 0; i < STEPS_MOST && in_any(&in); i++)
		step(&in);
	hear();
	close_both();
	return 0;
}
