/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets over any number of connections. */
#include "lib/domain/session.h"

#include <errno.h>
#include <string.h>

static void send_taken(struct p3_session *s, struct p3_channel *c)
{
	struct p3_job_msg msg = {.magic = P3_JOB_MAGIC, .op = P3_JOB_TAKEN};
	c->taken = s->taken;
	if (p3_channel_send(c, &msg, NULL, 0) == 0)
		s->taken_sent = s->taken;
}

void p3_session_open(struct p3_session *s, struct p3_channel *c)
{
	s->begun = true;
	s->resumed = false;
	send_taken(s, c);
}

void p3_session_confirm(struct p3_session *s, struct p3_channel *c)
{
	if (s->resumed && p3_channel_is_open(c) && s->taken_sent != s->taken)
		send_taken(s, c);
}

static bool give(struct p3_session *s, struct p3_channel *c)
{
	const struct p3_kept *k = &s->kept[s->given % P3_SESSION_KEPT];
	c->taken = s->taken;
	if (p3_channel_send(c, &k->msg, k->name_len ? k->name : NULL, k->name_len))
		return false;
	s->given++;
	s->taken_sent = s->taken;
	return true;
}

void p3_session_push(struct p3_session *s, struct p3_channel *c)
{
	if (!s->resumed || !p3_channel_is_open(c))
		return;
	while (s->given != s->next && give(s, c))
		;
	if (s->taken - s->taken_sent >= P3_SESSION_ACK)
		send_taken(s, c);
}

int p3_session_send(struct p3_session *s, struct p3_channel *c,
	const struct p3_job_msg *msg, const unsigned char *name, uint32_t name_len)
{
	if (s->next - s->acked == P3_SESSION_KEPT)
		return -EAGAIN;
	struct p3_kept *k = &s->kept[s->next++ % P3_SESSION_KEPT];
	k->msg = *msg;
	k->name_len = name ? name_len : 0;
	if (name)
		memcpy(k->name, name, name_len);
	p3_session_push(s, c);
	return 0;
}

/* Drop the packets that the other end has taken.  Return false if fewer were sent. */
static bool drop(struct p3_session *s, uint32_t taken)
{
	uint32_t most = s->resumed ? s->given : s->next;
	if (taken - s->acked > most - s->acked)
		return false;
	s->acked = taken;
	return true;
}

/* Process the first packet of a channel, which must be TAKEN: go on behind the packets
 * that the other end has taken.  Return false if the packet is wrong. */
static bool resume(struct p3_session *s, const struct p3_packet *p)
{
	if (p->msg.op != P3_JOB_TAKEN || !drop(s, p->taken))
		return false;
	s->given = s->acked;
	s->resumed = true;
	return true;
}

/* Return 1 if the packet is for the caller, 0 if not, or -EPROTO. */
static int take(struct p3_session *s, const struct p3_packet *p)
{
	if (p->msg.op == P3_JOB_DROPPED)
		return 1; /* the other end has no session with this one any more */
	if (!(s->resumed ? drop(s, p->taken) : resume(s, p)))
		return -EPROTO;
	if (p->msg.op == P3_JOB_TAKEN)
		return 0;
	s->taken++;
	return 1;
}

int p3_session_receive(
	struct p3_session *s, struct p3_channel *c, struct p3_packet *packet_out)
{
	for (;;) {
		int rc = p3_channel_receive(c, packet_out);
		if (rc == 1)
			rc = take(s, packet_out);
		else if (rc == 0)
			return 0; /* the channel has opened */
		p3_session_push(s, c);
		if (rc)
			return rc;
	}
}
