/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of Portals that programs of the model call: orders to the node. */
#include "model/orders.h"

#include <string.h>

/* The handlers of queues do the same for all queues, so one is enough. */
static ptl_eq_handler_t handler;

static int ask(const struct order *o)
{
	struct answer a;
	remote_ask(o, &a);
	return a.rc;
}

static int ask_handle(const struct order *o, uint64_t *handle_out)
{
	struct answer a;
	remote_ask(o, &a);
	if (a.rc == PTL_OK)
		*handle_out = a.handle[0];
	return a.rc;
}

static int ask_event(const struct order *o, ptl_event_t *event_out, int *which_out)
{
	struct answer a;
	remote_ask(o, &a);
	for (uint32_t i = 0; i < a.handled; i++)
		handler(&a.handler_event);
	if (a.rc == PTL_OK || a.rc == PTL_EQ_DROPPED) {
		*event_out = a.event;
		if (which_out)
			*which_out = a.which;
	}
	return a.rc;
}

/* Add a descriptor, with its elements, which the program may change after the call. */
static void add_md(struct order *o, const ptl_md_t *md)
{
	o->has_md = true;
	o->md = *md;
	if ((md->options & PTL_MD_IOVEC) && md->start)
		memcpy(o->iov, md->start, sizeof o->iov);
}

/* ---- match entries ---- */

/* An entry, with its place: an interface or another entry. */
static struct order entry(enum order_call call, uint64_t place, ptl_process_id_t id,
	ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t unlink,
	ptl_ins_pos_t position)
{
	return (struct order){.call = call,
		.handle = {place},
		.id = id,
		.bits = bits,
		.ignore = ignore,
		.me_unlink = unlink,
		.position = position};
}

int PtlMEAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_process_id_t id,
	ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t unlink,
	ptl_ins_pos_t position, ptl_handle_me_t *me)
{
	struct order o = entry(ORDER_ME_ATTACH, ni, id, bits, ignore, unlink, position);
	o.pt = pt;
	return ask_handle(&o, me);
}

int PtlMEAttachAny(ptl_handle_ni_t ni, ptl_pt_index_t *pt, ptl_process_id_t id,
	ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t unlink,
	ptl_handle_me_t *me)
{
	struct order o = entry(ORDER_ME_ATTACH_ANY, ni, id, bits, ignore, unlink, 0);
	struct answer a;
	remote_ask(&o, &a);
	if (a.rc == PTL_OK) {
		*pt = a.pt;
		*me = a.handle[0];
	}
	return a.rc;
}

int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t id, ptl_match_bits_t bits,
	ptl_match_bits_t ignore, ptl_unlink_t unlink, ptl_ins_pos_t position,
	ptl_handle_me_t *me)
{
	struct order o = entry(ORDER_ME_INSERT, base, id, bits, ignore, unlink, position);
	return ask_handle(&o, me);
}

int PtlMEUnlink(ptl_handle_me_t me)
{
	return ask(&(struct order){.call = ORDER_ME_UNLINK, .handle = {me}});
}

/* ---- descriptors ---- */

int PtlMDAttach(
	ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t unlink, ptl_handle_md_t *md_out)
{
	struct order o = {.call = ORDER_MD_ATTACH, .handle = {me}, .md_unlink = unlink};
	add_md(&o, &md);
	return ask_handle(&o, md_out);
}

int PtlMDBind(
	ptl_handle_ni_t ni, ptl_md_t md, ptl_unlink_t unlink, ptl_handle_md_t *md_out)
{
	struct order o = {.call = ORDER_MD_BIND, .handle = {ni}, .md_unlink = unlink};
	add_md(&o, &md);
	return ask_handle(&o, md_out);
}

int PtlMDUnlink(ptl_handle_md_t md)
{
	return ask(&(struct order){.call = ORDER_MD_UNLINK, .handle = {md}});
}

int PtlMDUpdate(ptl_handle_md_t md, ptl_md_t *old, ptl_md_t *new_md, ptl_handle_eq_t test)
{
	struct order o = {.call = ORDER_MD_UPDATE, .handle = {md, test}};
	struct answer a;
	if (new_md)
		add_md(&o, new_md);
	o.has_old = old != NULL;
	if (old)
		o.old = *old;
	remote_ask(&o, &a);
	if (!old || (a.rc != PTL_OK && a.rc != PTL_MD_NO_UPDATE))
		return a.rc;
	if ((old->options & PTL_MD_IOVEC) && old->start)
		memcpy(old->start, a.iov, sizeof a.iov);
	*old = a.old;
	return a.rc;
}

/* Ask for an entry with a descriptor. */
static int ask_two(struct order *o, const ptl_md_t *md, ptl_unlink_t md_unlink,
	ptl_handle_me_t *me_out, ptl_handle_md_t *md_out)
{
	struct answer a;
	o->md_unlink = md_unlink;
	add_md(o, md);
	remote_ask(o, &a);
	if (a.rc == PTL_OK) {
		*me_out = a.handle[0];
		*md_out = a.handle[1];
	}
	return a.rc;
}

int PtlMEMDAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_process_id_t id,
	ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t me_unlink,
	ptl_ins_pos_t position, ptl_md_t md, ptl_unlink_t md_unlink,
	ptl_handle_me_t *me_out, ptl_handle_md_t *md_out)
{
	struct order o =
		entry(ORDER_MEMD_ATTACH, ni, id, bits, ignore, me_unlink, position);
	o.pt = pt;
	return ask_two(&o, &md, md_unlink, me_out, md_out);
}

int PtlMEMDInsert(ptl_handle_me_t base, ptl_process_id_t id, ptl_match_bits_t bits,
	ptl_match_bits_t ignore, ptl_unlink_t me_unlink, ptl_ins_pos_t position,
	ptl_md_t md, ptl_unlink_t md_unlink, ptl_handle_me_t *me_out,
	ptl_handle_md_t *md_out)
{
	struct order o =
		entry(ORDER_MEMD_INSERT, base, id, bits, ignore, me_unlink, position);
	return ask_two(&o, &md, md_unlink, me_out, md_out);
}

int PtlMEMDPost(ptl_handle_ni_t ni, ptl_handle_me_t base, ptl_process_id_t id,
	ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t me_unlink,
	ptl_ins_pos_t position, ptl_md_t md, ptl_unlink_t md_unlink,
	ptl_handle_me_t *me_out, ptl_handle_md_t *md_out, ptl_handle_eq_t test)
{
	struct order o =
		entry(ORDER_MEMD_POST, ni, id, bits, ignore, me_unlink, position);
	o.handle[1] = base;
	o.handle[2] = test;
	return ask_two(&o, &md, md_unlink, me_out, md_out);
}

/* ---- operations ---- */

static struct order move(enum order_call call, ptl_handle_md_t md, ptl_process_id_t id,
	ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t bits, ptl_size_t remote)
{
	return (struct order){.call = call,
		.handle = {md},
		.id = id,
		.pt = pt,
		.ac = ac,
		.bits = bits,
		.remote_offset = remote};
}

int PtlPutRegion(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack, ptl_process_id_t id, ptl_pt_index_t pt, ptl_ac_index_t ac,
	ptl_match_bits_t bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr)
{
	struct order o = move(ORDER_PUT_REGION, md, id, pt, ac, bits, remote_offset);
	o.local_offset = local_offset;
	o.length = length;
	o.ack = ack;
	o.hdr = hdr;
	return ask(&o);
}

int PtlPut(ptl_handle_md_t md, ptl_ack_req_t ack, ptl_process_id_t id, ptl_pt_index_t pt,
	ptl_ac_index_t ac, ptl_match_bits_t bits, ptl_size_t remote_offset,
	ptl_hdr_data_t hdr)
{
	struct order o = move(ORDER_PUT, md, id, pt, ac, bits, remote_offset);
	o.ack = ack;
	o.hdr = hdr;
	return ask(&o);
}

int PtlGetRegion(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length,
	ptl_process_id_t id, ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t bits,
	ptl_size_t remote_offset)
{
	struct order o = move(ORDER_GET_REGION, md, id, pt, ac, bits, remote_offset);
	o.local_offset = local_offset;
	o.length = length;
	return ask(&o);
}

int PtlGet(ptl_handle_md_t md, ptl_process_id_t id, ptl_pt_index_t pt, ptl_ac_index_t ac,
	ptl_match_bits_t bits, ptl_size_t remote_offset)
{
	struct order o = move(ORDER_GET, md, id, pt, ac, bits, remote_offset);
	return ask(&o);
}

int PtlGetPutRegion(ptl_handle_md_t get_md, ptl_size_t get_offset, ptl_handle_md_t put_md,
	ptl_size_t put_offset, ptl_size_t length, ptl_process_id_t id, ptl_pt_index_t pt,
	ptl_ac_index_t ac, ptl_match_bits_t bits, ptl_size_t remote_offset,
	ptl_hdr_data_t hdr)
{
	struct order o =
		move(ORDER_GETPUT_REGION, get_md, id, pt, ac, bits, remote_offset);
	o.handle[1] = put_md;
	o.local_offset = get_offset;
	o.local_offset2 = put_offset;
	o.length = length;
	o.hdr = hdr;
	return ask(&o);
}

int PtlGetPut(ptl_handle_md_t get_md, ptl_handle_md_t put_md, ptl_process_id_t id,
	ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t bits,
	ptl_size_t remote_offset, ptl_hdr_data_t hdr)
{
	struct order o = move(ORDER_GETPUT, get_md, id, pt, ac, bits, remote_offset);
	o.handle[1] = put_md;
	o.hdr = hdr;
	return ask(&o);
}

/* ---- queues ---- */

int PtlEQAlloc(ptl_handle_ni_t ni, ptl_size_t count, ptl_eq_handler_t eq_handler,
	ptl_handle_eq_t *eq)
{
	struct order o = {.call = ORDER_EQ_ALLOC,
		.handle = {ni},
		.length = count,
		.has_handler = eq_handler != PTL_EQ_HANDLER_NONE};
	if (o.has_handler)
		handler = eq_handler;
	return ask_handle(&o, eq);
}

int PtlEQFree(ptl_handle_eq_t eq)
{
	return ask(&(struct order){.call = ORDER_EQ_FREE, .handle = {eq}});
}

int PtlEQGet(ptl_handle_eq_t eq, ptl_event_t *event)
{
	struct order o = {.call = ORDER_EQ_GET, .handle = {eq}};
	return ask_event(&o, event, NULL);
}

int PtlEQPeek(ptl_handle_eq_t eq, ptl_event_t *event)
{
	struct order o = {.call = ORDER_EQ_PEEK, .handle = {eq}};
	return ask_event(&o, event, NULL);
}

int PtlEQPoll(ptl_handle_eq_t *eqs, int size, ptl_time_t timeout, ptl_event_t *event,
	int *which)
{
	struct order o = {.call = ORDER_EQ_POLL, .n = size, .timeout = timeout};
	for (int i = 0; i < size && i < (int)ORDER_POLLS; i++)
		o.handle[i] = eqs[i];
	return ask_event(&o, event, which);
}

/* ---- the rest ---- */

int PtlACEntry(ptl_handle_ni_t ni, ptl_ac_index_t ac, ptl_process_id_t id, ptl_uid_t uid,
	ptl_jid_t jid, ptl_pt_index_t pt)
{
	return ask(&(struct order){.call = ORDER_AC_ENTRY,
		.handle = {ni},
		.ac = ac,
		.id = id,
		.uid = uid,
		.jid = jid,
		.pt = pt});
}

int PtlNIStatus(ptl_handle_ni_t ni, ptl_sr_index_t index, ptl_sr_value_t *value_out)
{
	struct order o = {.call = ORDER_NI_STATUS, .handle = {ni}, .n = (int)index};
	struct answer a;
	remote_ask(&o, &a);
	if (a.rc == PTL_OK)
		*value_out = a.value;
	return a.rc;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_out)
{
	struct order o = {.call = ORDER_NI_HANDLE, .handle = {handle}};
	return ask_handle(&o, ni_out);
}

int PtlHandleIsEqual(ptl_handle_any_t a, ptl_handle_any_t b)
{
	return ask(&(struct order){.call = ORDER_IS_EQUAL, .handle = {a, b}});
}

int PtlGetUid(ptl_handle_ni_t ni, ptl_uid_t *uid_out)
{
	struct order o = {.call = ORDER_GET_IDS, .handle = {ni}};
	struct answer a;
	remote_ask(&o, &a);
	*uid_out = a.uid;
	return a.rc;
}

int PtlGetJid(ptl_handle_ni_t ni, ptl_jid_t *jid_out)
{
	struct order o = {.call = ORDER_GET_IDS, .handle = {ni}};
	struct answer a;
	remote_ask(&o, &a);
	*jid_out = a.jid;
	return a.rc;
}
