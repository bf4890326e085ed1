/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets that leave their node within the call, if the lease is free and no
 * command waits. */
#include "nic/host/call.h"
#include "nic/proto/tx.h"

P3_HOT
bool p3_nic_put(struct p3_nic *n, uint64_t handle, const struct p3_move *m)
{
	struct p3_peer *p;
	uint32_t posted;
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	if (p3_unlikely(!p3_tx_put_now(n, handle, m, &p, &posted)))
		return p3_trylease_turn_back(n);
	return p3_trylease_leave_to(n, p, posted);
}

P3_HOT
bool p3_nic_inject(
	struct p3_nic *n, uint64_t ni_handle, const void *bytes, const struct p3_move *m)
{
	struct p3_peer *p;
	uint32_t ni = p3_handle_ni(ni_handle);
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	if (p3_unlikely(!p3_ni_is(n, ni, ni_handle) ||
			!p3_tx_put_bytes_now(n, ni, bytes, m, &p)))
		return p3_trylease_turn_back(n);
	return p3_trylease_leave_to(n, p, 0);
}

static P3_HOT bool req_ask(
	struct p3_nic *n, uint64_t handle, const struct p3_move *m, uint32_t kind)
{
	struct p3_peer *p;
	uint32_t posted;
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	if (p3_unlikely(!p3_tx_ask_now(n, handle, m, kind, &p, &posted)))
		return p3_trylease_turn_back(n);
	return p3_trylease_leave_to(n, p, posted);
}

P3_HOT
bool p3_nic_put_acked(struct p3_nic *n, uint64_t handle, const struct p3_move *m)
{
	return req_ask(n, handle, m, P3_REQ_PUT);
}

P3_HOT
bool p3_nic_get(struct p3_nic *n, uint64_t handle, const struct p3_move *m)
{
	return req_ask(n, handle, m, P3_REQ_GET);
}

bool p3_nic_atomic(struct p3_nic *n, uint64_t handle, const struct p3_move *m, bool fetch)
{
	struct p3_peer *p;
	uint32_t posted;
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	if (p3_unlikely(!p3_tx_atomic_now(
		    n, handle, m, fetch ? P3_REQ_GETPUT : P3_REQ_PUT, &p, &posted)))
		return p3_trylease_turn_back(n);
	return p3_trylease_leave_to(n, p, posted);
}
