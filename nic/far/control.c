/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets over any number of connections, and the news of them. */
#include "nic/far/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define INBOX_PACKETS 64u
#define SEALED        (sizeof(struct p3_control_record) - sizeof(struct p3_mac_tag))

/* ---- out ---- */

int p3_control_post(struct p3_control *c, const struct p3_job_msg *msg,
	const unsigned char *name, uint32_t name_len)
{
	uint32_t next = p3_get(&c->next);
	if (next - p3_acquire(&c->acked) == P3_STREAM_KEPT) /* STREAM.3 */
		return -EAGAIN;
	struct p3_packet *p = &c->kept[next % P3_STREAM_KEPT];
	*p = (struct p3_packet){.msg = *msg, .name_len = name ? name_len : 0};
	if (name)
		memcpy(p->name, name, name_len);
	p3_release(&c->next, next + 1); /* STREAM.2 */
	return 0;
}

void p3_control_begin(struct p3_control *c, bool connected)
{
	c->item.len = 0;
	c->told = !connected;
	c->resumed = false;
}

static bool control_owes_taken(const struct p3_control *c)
{
	uint32_t news = c->taken - c->taken_sent;
	return !c->told ||
	       (c->resumed && (news >= P3_STREAM_ACK || (news && c->hurries)));
}

static bool control_has_packets(const struct p3_control *c)
{
	return c->resumed && c->given != p3_acquire(&c->next); /* STREAM.2 */
}

bool p3_control_is_due(const struct p3_control *c)
{
	return !c->item.len && (control_owes_taken(c) || control_has_packets(c));
}

void p3_control_write(struct p3_control *c)
{
	struct p3_packet *p = &c->out.packet;
	if (c->told && control_has_packets(c))
		*p = c->kept[c->given++ % P3_STREAM_KEPT];
	else
		*p = (struct p3_packet){
			.msg = {.magic = P3_JOB_MAGIC, .op = P3_JOB_TAKEN}};
	p->taken = c->taken_sent = c->taken;
	c->told = true;
	c->hurries = false;
	c->out.head.is = p3_record_word(P3_RECORD_CONTROL, sizeof *p);
	c->item = (struct p3_record_item){
		.head = &c->out.head, .len = sizeof c->out, .kind = P3_ITEM_PACKET};
}

int p3_stream_say(const struct p3_connection *c, const struct p3_job_msg *msg)
{
	struct p3_mac mac;
	struct p3_control_record r = {.packet.msg = *msg};
	p3_mac_begin(&mac, &c->key[0]);
	r.head.is = p3_record_word(P3_RECORD_CONTROL, sizeof r.packet);
	r.head.tag = p3_mac_seal(&mac, 0, &r.head.is, SEALED);
	return send(c->fd, &r, sizeof r, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int p3_stream_hear(const struct p3_connection *c, struct p3_job_msg *msg_out)
{
	struct p3_mac mac;
	struct p3_control_record r; /* which its sender sent in one piece */
	p3_mac_begin(&mac, &c->key[1]);
	ssize_t n = recv(c->fd, &r, sizeof r, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if (n != (ssize_t)sizeof r ||
		!p3_mac_check(&mac, &r.head.tag, &r.head.is, SEALED))
		return -EPIPE;
	*msg_out = r.packet.msg;
	return 0;
}

/* ---- in ---- */

/* Drop the packets that the other end has taken.  Return false if fewer were sent. */
static bool control_drop(struct p3_control *c, uint32_t taken)
{
	uint32_t acked = p3_get(&c->acked);
	uint32_t most = c->resumed ? c->given : p3_acquire(&c->next);
	if (taken - acked > most - acked)
		return false;
	p3_release(&c->acked, taken); /* STREAM.3 */
	return true;
}

/* Process the first packet of a connection, which must be TAKEN: go on behind the packets
 * that the other end has taken.  Return false if the packet is wrong. */
static bool control_resume(struct p3_control *c, const struct p3_packet *p)
{
	if (p->msg.op != P3_JOB_TAKEN || !control_drop(c, p->taken))
		return false;
	c->given = p->taken;
	c->resumed = true;
	return true;
}

int p3_control_take(struct p3_control *c)
{
	const struct p3_packet *p = &c->in.packet;
	if (p->msg.magic != P3_JOB_MAGIC || p->name_len > sizeof p->name)
		return -EPROTO;
	if (p->msg.op == P3_JOB_DROPPED)
		return 1; /* the other end has no stream with this one any more */
	if (!(c->resumed ? control_drop(c, p->taken) : control_resume(c, p)))
		return -EPROTO;
	if (p->msg.op == P3_JOB_TAKEN)
		return 0;
	c->taken++;
	c->hurries |= p->msg.op == P3_JOB_LEAVE; /* the leaver waits for it */
	return 1;
}

/* ---- news ---- */

int p3_inbox_open(struct p3_inbox *box, uint32_t ranks)
{
	uint32_t size = INBOX_PACKETS;
	while (size < INBOX_PACKETS + 2 * ranks)
		size *= 2;
	box->ring = calloc(size, sizeof *box->ring);
	box->mask = size - 1;
	box->spare = 2 * ranks;
	return box->ring ? 0 : -ENOMEM;
}

bool p3_inbox_has_room(const struct p3_inbox *box)
{
	uint32_t used = p3_get(&box->tail) - p3_acquire(&box->head); /* STREAM.5 */
	return used + box->spare <= box->mask;
}

void p3_inbox_put(
	struct p3_inbox *box, uint32_t rank, int broken, const struct p3_packet *p)
{
	uint32_t tail = p3_get(&box->tail);
	struct p3_stream_news *news = &box->ring[tail & box->mask];
	(void)p3_acquire(&box->head); /* STREAM.5 */
	news->rank = rank;
	news->broken = broken;
	if (p)
		news->packet = *p;
	p3_release(&box->tail, tail + 1); /* STREAM.4 */
}
