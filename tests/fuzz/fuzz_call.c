/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call between hosts (lib/domain/call.c) whose other end is a stranger: it does not
 * know the secret of the job, and says anything, also greetings of ranks that it has
 * heard.
 */
#include "fuzz/input.h"
#include "lib/domain/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SELF = 2, OTHER = 5, STEPS_MOST = 400, RAW_MOST = 255, HEARD = 8 };

static const struct p3_mac_key secret = {{1, 2}};

static struct p3_call call;
static int other = -1;                  /* the stranger's socket */
static struct p3_greeting heard[HEARD]; /* of ranks, and of the tested end */
static uint32_t nheard;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void expect(bool truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_call: %s\n", what);
	abort();
}

static void hang_up(void)
{
	p3_call_close(&call);
	if (other >= 0)
		close(other);
	other = -1;
}

static void hear(const struct p3_greeting *g)
{
	heard[nheard++ % HEARD] = *g;
}

/* Let two ranks greet each other, and hear what they say. */
static void overhear(void)
{
	struct p3_call a, b;
	struct p3_greeting g;
	int near[2], far[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, near) ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, far))
		return;
	p3_call_dial(&a, near[0], &secret, OTHER, SELF);
	p3_call_accept(&b, far[0], &secret, SELF);
	for (int i = 0; i < 4; i++) {
		(void)p3_call_go_on(&a);
		while (recv(near[1], &g, sizeof g, 0) == (ssize_t)sizeof g) {
			hear(&g);
			(void)!send(far[1], &g, sizeof g, MSG_NOSIGNAL);
		}
		(void)p3_call_go_on(&b);
		while (recv(far[1], &g, sizeof g, 0) == (ssize_t)sizeof g) {
			hear(&g);
			(void)!send(near[1], &g, sizeof g, MSG_NOSIGNAL);
		}
	}
	expect(a.state == P3_CALL_OPEN && b.state == P3_CALL_OPEN, "ranks are kept out");
	p3_call_close(&a);
	p3_call_close(&b);
	close(near[1]);
	close(far[1]);
}

static void begin(struct input *in)
{
	int fds[2];
	hang_up();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		return;
	other = fds[1];
	if (in_bit(in))
		p3_call_dial(&call, fds[0], &secret, SELF, OTHER);
	else
		p3_call_accept(&call, fds[0], &secret, SELF);
}

static void go_on(void)
{
	struct p3_greeting g;
	int rc = call.state == P3_CALL_NONE ? -EPIPE : p3_call_go_on(&call);
	expect(rc != 0 && call.state != P3_CALL_OPEN, "a stranger is let in");
	expect(call.got < sizeof call.in, "more has come than there is room");
	while (other >= 0 && recv(other, &g, sizeof g, 0) == (ssize_t)sizeof g)
		hear(&g);
	if (rc != -EAGAIN)
		hang_up();
}

static void send_bytes(const void *bytes, size_t len)
{
	if (other >= 0)
		(void)!send(other, bytes, len, MSG_NOSIGNAL);
}

static void send_raw(struct input *in)
{
	unsigned char bytes[RAW_MOST];
	uint32_t len = in_below(in, RAW_MOST + 1);
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = in_u8(in);
	send_bytes(bytes, len);
}

/* Say what was heard, with other words in it. */
static void send_greeting(struct input *in)
{
	struct p3_greeting g = heard[in_below(in, HEARD)];
	uint8_t how = in_u8(in);
	if (how & 0x01)
		g.op = in_below(in, 5);
	if (how & 0x02)
		g.from = in_below(in, 8);
	if (how & 0x04)
		g.to = in_below(in, 8);
	if (how & 0x08)
		memcpy(g.nonce, heard[in_below(in, HEARD)].nonce, sizeof g.nonce);
	if (how & 0x10)
		g.proof = heard[in_below(in, HEARD)].proof;
	if (how & 0x20)
		((unsigned char *)&g)[in_below(in, sizeof g)] ^= in_u8(in);
	send_bytes(&g, how & 0x40 ? in_below(in, sizeof g) : sizeof g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, data + len};
	expect(p3_mac_load() == 0, "no libsodium");
	p3_call_init(&call);
	memset(heard, 0, sizeof heard);
	nheard = 0;
	overhear();
	begin(&in);
	for (uint32_t i = 0; i < STEPS_MOST && in_any(&in); i++)
		switch (in_below(&in, 6)) {
		case 0:
			begin(&in);
			break;
		case 1:
			send_raw(&in);
			break;
		case 2:
		case 3:
			send_greeting(&in);
			break;
		default:
			go_on();
		}
	go_on();
	hang_up();
	return 0;
}
