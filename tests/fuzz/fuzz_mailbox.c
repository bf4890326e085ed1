/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands with arbitrary content, executed through the mailbox; and a mailbox whose
 * words have arbitrary values.  Memory that only the library's host side can give
 * (tables, rings, chunks, elements) is valid, as it always is.
 */
#include "fuzz/rig.h"

#include <string.h>

#define STEPS_MOST  300u
#define FLIGHT_MOST 4u
#define UNTOUCHED   0x7777

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct posted {
	struct host_gift gift;
	uint32_t slot;
};

static struct posted flight[FLIGHT_MOST];
static uint32_t nflight;
static bool scribbled;

/* ---- commands ---- */

static enum p3_kind kind_of(uint32_t op)
{
	switch (op) {
	case P3_OP_ME_UNLINK:
	case P3_OP_MD_ATTACH:
		return P3_KIND_ME;
	case P3_OP_MD_UNLINK:
	case P3_OP_MD_UPDATE:
	case P3_OP_PUT:
	case P3_OP_GET:
	case P3_OP_GETPUT:
		return P3_KIND_MD;
	case P3_OP_EQ_FREE:
	case P3_OP_EQ_WATCH:
		return P3_KIND_EQ;
	default:
		return P3_KIND_NI;
	}
}

static void fill(struct p3_cmd *c, struct input *in)
{
	uint8_t how = in_u8(in), *at = (uint8_t *)c;
	memset(c, how & 0x40 ? 0 : how, sizeof *c);
	for (uint32_t n = how & 15; n; n--) {
		uint64_t v = rig_number(in, rig_pick(in));
		memcpy(at + 8 * in_below(in, sizeof *c / 8), &v, 8);
	}
	how = in_u8(in);
	c->op = how < 0xf0 ? how % P3_OPS : (uint16_t)in_bytes(in, 2);
	how = in_u8(in);
	c->ni = how < 0xf0 ? how >= 0xc0 : (uint16_t)in_bytes(in, 2);
	c->handle = host_handle(in, kind_of(c->op));
}

static bool in_flight(uint32_t slot)
{
	for (uint32_t i = 0; i < nflight; i++)
		if (flight[i].slot == slot)
			return true;
	return false;
}

static void post(struct input *in)
{
	struct p3_mailbox *m = rig.nic->mailbox;
	uint32_t slot = nflight < FLIGHT_MOST ? p3_mbx_alloc(m) : P3_MBX_NONE;
	if (slot == P3_MBX_NONE || in_flight(slot))
		return;
	struct posted *p = &flight[nflight++];
	p->slot = slot;
	fill(&p->gift.cmd, in);
	host_prepare(&p->gift, in);
	p3_mbx_slot(m, slot)->result = UNTOUCHED;
	p3_mbx_post(m, slot, &p->gift.cmd, sizeof p->gift.cmd, false);
}

/* Return true if a table must grow before this command, as in p3_nic_do(). */
static bool again(int rc)
{
	return rc < 0 && rc >= -(int)P3_TABLES;
}

static int retry(struct posted *p)
{
	return p3_nic_do(rig.nic, &p->gift.cmd);
}

static void collect(void)
{
	for (uint32_t i = 0; i < nflight; i++) {
		struct posted *p = &flight[i];
		struct p3_mbx_slot *s = p3_mbx_slot(rig.nic->mailbox, p->slot);
		bool done = p3_mbx_is_done(s) && s->result != UNTOUCHED;
		if (!done && !scribbled)
			rig_fail("a command was not executed", p->slot, 0);
		if (done)
			memcpy(&p->gift.cmd, p3_mbx_cmd(s), sizeof p->gift.cmd);
		int rc = done ? s->result : PTL_FAIL;
		memset(s->cmd, 0, sizeof s->cmd);
		p3_mbx_free(rig.nic->mailbox, p->slot);
		host_done(&p->gift, again(rc) ? retry(p) : rc);
	}
	nflight = 0;
}

/* ---- words ---- */

static uint32_t any_slot(struct input *in)
{
	uint8_t how = in_u8(in);
	if (how < 0x80)
		return how % 8;
	return how < 0xc0 && nflight ? flight[how % nflight].slot
				     : (uint32_t)in_bytes(in, 4);
}

/* Fill other slots: commands that bring no memory. */
static void scribble_command(struct p3_mbx_slot *s, struct input *in)
{
	static const uint16_t plain[] = {P3_OP_PUT, P3_OP_GET, P3_OP_GETPUT,
		P3_OP_MD_UNLINK, P3_OP_ME_UNLINK, P3_OP_WHOSE, P3_OP_NI_STATUS,
		P3_OP_AC_ENTRY, 0, 0xffff};
	struct p3_cmd c;
	fill(&c, in);
	c.op = plain[in_below(in, sizeof plain / sizeof *plain)];
	memcpy(s->cmd, &c, sizeof c);
}

static void scribble(struct input *in)
{
	struct p3_mailbox *m = rig.nic->mailbox;
	uint32_t slot = 1 + in_u8(in) % P3_MBX_SLOTS;
	struct p3_mbx_slot *s = p3_mbx_slot(m, slot);
	uint8_t what = in_u8(in) % 4;
	scribbled = true;
	if (what == 0)
		p3_set(&m->head, any_slot(in));
	else if (what == 1)
		p3_set(&s->next, any_slot(in));
	else if (what == 2 && !in_flight(slot))
		p3_set(&s->state, in_u8(in) % 4);
	else if (what == 3 && !in_flight(slot))
		scribble_command(s, in);
}

static void settle(void)
{
	rig_passes(1);
	collect();
	if (scribbled)
		p3_mbx_format(rig.nic->mailbox);
	scribbled = false;
}

/* ---- a run ---- */

static void step(struct input *in)
{
	uint8_t what = in_u8(in) % 16;
	if (what < 9) {
		post(in);
		return;
	}
	if (what < 11) {
		scribble(in);
		return;
	}
	settle();
	if (what == 13)
		wire_step(in);
	else if (what == 14)
		host_step(in);
	else if (what == 15)
		rig_passes(1 + in_below(in, 4));
	host_check();
	rig_check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, data + len};
	rig_start(&in);
	for (uint32_t i = 0; i < STEPS_MOST && in_any(&in); i++)
		step(&in);
	settle();
	rig_stop();
	return 0;
}
