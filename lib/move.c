/* SPDX-License-Identifier: BSD-3-Clause */
/* Data movement. */
#include "lib/node/call.h"
#include "portals3x.h"

static inline bool move_is_target(ptl_process_id_t id)
{
	return id.nid != PTL_NID_ANY && id.pid != PTL_PID_ANY;
}

/* Narrow an index to 16 bits.  A longer one becomes 0xffff, which no target has. */
static inline uint16_t move_narrow(uint32_t index)
{
	return index > 0xffff ? 0xffff : (uint16_t)index;
}

/* Execute a command.  Its parameters are a copy, so that the caller keeps them in
 * registers until it calls this function. */
static __attribute__((noinline)) int move_do(
	struct p3_nic *nic, enum p3_op op, uint64_t handle, struct p3_move m)
{
	struct p3_cmd c;
	if (!move_is_target(m.target))
		return PTL_PROCESS_INVALID;
	p3_cmd_begin(&c, op, handle);
	c.move = m;
	return p3_nic_do(nic, &c);
}

/* Keep the compiler from making a tail call.  A tail call writes the callee's arguments
 * over the stack arguments of this function, so the compiler would copy these first. */
#define NO_TAIL_CALL() __asm__ __volatile__("")

/* Put on a node with peers on other hosts, or by a command. */
static P3_RARE int put_slowly(
	struct p3_nic *nic, ptl_handle_md_t md_handle, const struct p3_move *m)
{
	if (!m->ack && m->pt_index <= 0xffff && p3_nic_put_wired(nic, md_handle, m))
		return PTL_OK;
	return move_do(nic, P3_OP_PUT, md_handle, *m);
}

/* Put in any case but that of put_at_once().  length may be P3_WHOLE. */
P3_PATH
static __attribute__((noinline)) int put_any(ptl_handle_md_t md_handle, ptl_size_t offset,
	ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_id_t target_id,
	ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	P3_CALL(nic, PTL_MD_INVALID);
	const struct p3_move m = {.target = target_id,
		.bits = match_bits,
		.hdr = hdr_data,
		.remote_offset = remote_offset,
		.offset = offset,
		.length = length,
		.pt_index = pt_index,
		.ac_index = move_narrow(ac_index),
		.ack = ack_req == PTL_ACK_REQ};
	if (p3_likely(ack_req == PTL_ACK_REQ) &&
		p3_likely((pt_index | ac_index) <= 0xffff) &&
		p3_likely(p3_nic_put_acked(nic, md_handle, &m)))
		return PTL_OK;
	int rc = put_slowly(nic, md_handle, &m);
	NO_TAIL_CALL();
	return rc;
}

/* Put in the most frequent case.  Return false, having done nothing, in all others. */
static P3_HOT bool put_at_once(ptl_handle_md_t md_handle, ptl_size_t offset,
	ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_id_t target_id,
	ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	struct p3_nic *nic = p3_nic_ready(p3_node());
	if (p3_unlikely(!nic || ack_req == PTL_ACK_REQ || (pt_index | ac_index) > 0xffff))
		return false;
	const struct p3_move m = {.target = target_id,
		.bits = match_bits,
		.hdr = hdr_data,
		.remote_offset = remote_offset,
		.offset = offset,
		.length = length,
		.pt_index = pt_index,
		.ac_index = (uint16_t)ac_index};
	return p3_nic_put(nic, md_handle, &m);
}

P3_PATH
int PtlPut(ptl_handle_md_t md_handle, ptl_ack_req_t ack_req, ptl_process_id_t target_id,
	ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	if (p3_likely(put_at_once(md_handle, 0, P3_WHOLE, ack_req, target_id, pt_index,
		    ac_index, match_bits, remote_offset, hdr_data)))
		return PTL_OK;
	int rc = put_any(md_handle, 0, P3_WHOLE, ack_req, target_id, pt_index, ac_index,
		match_bits, remote_offset, hdr_data);
	NO_TAIL_CALL();
	return rc;
}

P3_PATH
int PtlPutRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
	ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
	ptl_hdr_data_t hdr_data)
{
	if (p3_likely(length != P3_WHOLE &&
		      put_at_once(md_handle, local_offset, length, ack_req, target_id,
			      pt_index, ac_index, match_bits, remote_offset, hdr_data)))
		return PTL_OK;
	if (length == P3_WHOLE)
		local_offset = length--; /* beyond the end of any descriptor */
	int rc = put_any(md_handle, local_offset, length, ack_req, target_id, pt_index,
		ac_index, match_bits, remote_offset, hdr_data);
	NO_TAIL_CALL();
	return rc;
}

/* Get.  length may be P3_WHOLE. */
P3_PATH
static __attribute__((noinline)) int get_any(ptl_handle_md_t md_handle, ptl_size_t offset,
	ptl_size_t length, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
	ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset)
{
	P3_CALL(nic, PTL_MD_INVALID);
	const struct p3_move m = {.target = target_id,
		.bits = match_bits,
		.remote_offset = remote_offset,
		.offset = offset,
		.length = length,
		.pt_index = pt_index,
		.ac_index = move_narrow(ac_index)};
	if (p3_likely((pt_index | ac_index) <= 0xffff && p3_nic_get(nic, md_handle, &m)))
		return PTL_OK;
	return move_do(nic, P3_OP_GET, md_handle, m);
}

P3_PATH
int PtlGet(ptl_handle_md_t md_handle, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
	ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset)
{
	return get_any(md_handle, 0, P3_WHOLE, target_id, pt_index, ac_index, match_bits,
		remote_offset);
}

P3_PATH
int PtlGetRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset)
{
	if (length == P3_WHOLE)
		local_offset = length--; /* as in PtlPutRegion */
	return get_any(md_handle, local_offset, length, target_id, pt_index, ac_index,
		match_bits, remote_offset);
}

static int getput_do(ptl_handle_md_t get_md, ptl_size_t get_offset,
	ptl_handle_md_t put_md, ptl_size_t put_offset, ptl_size_t length,
	ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	P3_CALL(nic, PTL_MD_INVALID);
	const struct p3_move m = {.target = target_id,
		.bits = match_bits,
		.hdr = hdr_data,
		.remote_offset = remote_offset,
		.offset = get_offset,
		.length = length,
		.pt_index = pt_index,
		.ac_index = move_narrow(ac_index),
		.what = P3_ATOMIC_SWAP,
		.put_handle = put_md,
		.put_offset = put_offset};
	return move_do(nic, P3_OP_GETPUT, get_md, m);
}

int PtlGetPut(ptl_handle_md_t get_md_handle, ptl_handle_md_t put_md_handle,
	ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	return getput_do(get_md_handle, 0, put_md_handle, 0, P3_WHOLE, target_id,
		pt_index, ac_index, match_bits, remote_offset, hdr_data);
}

int PtlGetPutRegion(ptl_handle_md_t get_md_handle, ptl_size_t get_local_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t put_local_offset, ptl_size_t length,
	ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	if (length == P3_WHOLE)
		length--; /* more than max_getput_md, too */
	return getput_do(get_md_handle, get_local_offset, put_md_handle, put_local_offset,
		length, target_id, pt_index, ac_index, match_bits, remote_offset,
		hdr_data);
}

int PtlXAtomic(ptl_handle_md_t get_md_handle, ptl_size_t get_local_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t put_local_offset, ptl_size_t length,
	ptlx_op_t op, ptlx_type_t type, ptl_ack_req_t ack_req, ptl_process_id_t target_id,
	ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	P3_CALL(nic, PTL_MD_INVALID);
	bool plain = get_md_handle == PTL_INVALID_HANDLE && op != PTLX_READ;
	bool known = (unsigned)op <= PTLX_MSWAP && (unsigned)type <= PTLX_DOUBLE;
	const struct p3_move m = {.target = target_id,
		.bits = match_bits,
		.hdr = hdr_data,
		.remote_offset = remote_offset,
		.offset = plain ? put_local_offset : get_local_offset,
		.length = length == P3_WHOLE ? length - 1 : length, /* too much, too */
		.pt_index = pt_index,
		.ac_index = move_narrow(ac_index),
		.ack = ack_req == PTL_ACK_REQ,
		.what = known ? (uint8_t)P3_ATOMIC(op, type) : UINT8_MAX,
		.put_handle = put_md_handle,
		.put_offset = put_local_offset};
	uint64_t handle = plain ? put_md_handle : get_md_handle;
	if (p3_likely(op != PTLX_READ && (pt_index | ac_index) <= 0xffff) &&
		p3_likely(p3_nic_atomic(nic, handle, &m, !plain)))
		return PTL_OK;
	return move_do(nic,
		plain             ? P3_OP_PUT
		: op == PTLX_READ ? P3_OP_GET
				  : P3_OP_GETPUT,
		handle, m);
}
