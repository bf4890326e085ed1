/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues. */
#include "lib/node/call.h"

static uint64_t eq_timeout_ns(ptl_time_t ms)
{
	return ms == PTL_TIME_FOREVER ? UINT64_MAX : (uint64_t)ms * 1000000;
}

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_eq_handler_t eq_handler,
	ptl_handle_eq_t *eq_handle)
{
	if (!eq_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	if (!p3_node_find_ni(p3_node(), ni_handle))
		return PTL_NI_INVALID;
	if (count == 0) {
		*eq_handle = PTL_EQ_NONE;
		return PTL_OK;
	}
	return p3_nic_eq_alloc(nic, ni_handle, count, eq_handler, eq_handle);
}

int PtlEQFree(ptl_handle_eq_t eq_handle)
{
	P3_CALL(nic, PTL_EQ_INVALID);
	return p3_nic_eq_free(nic, eq_handle);
}

P3_PATH
int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	if (!event)
		return PTL_SEGV;
	P3_CALL(nic, PTL_EQ_INVALID);
	return p3_nic_eq_get(nic, eq_handle, event);
}

P3_PATH
int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	if (!event)
		return PTL_SEGV;
	P3_CALL(nic, PTL_EQ_INVALID);
	return p3_nic_eq_wait(nic, eq_handle, event);
}

int PtlEQPeek(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	if (!event)
		return PTL_SEGV;
	P3_CALL(nic, PTL_EQ_INVALID);
	return p3_nic_eq_peek(nic, eq_handle, event);
}

P3_PATH
int PtlEQPoll(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout,
	ptl_event_t *event, int *which_eq)
{
	if (p3_unlikely(!eq_handles) || p3_unlikely(!event) || p3_unlikely(!which_eq))
		return PTL_SEGV;
	P3_CALL(nic, PTL_EQ_INVALID);
	if (p3_unlikely(size <= 0))
		return PTL_EQ_INVALID;
	return p3_nic_eq_poll(nic, eq_handles, (uint32_t)size,
		p3_likely(!timeout) ? 0 : eq_timeout_ns(timeout), event, which_eq);
}

int PtlProgress(ptl_handle_any_t handle, ptl_time_t timeout)
{
	ptl_handle_ni_t ni;
	int rc = PtlNIHandle(handle, &ni);
	if (rc != PTL_OK)
		return rc;
	P3_CALL(nic, PTL_HANDLE_INVALID);
	p3_nic_progress(nic, eq_timeout_ns(timeout));
	return PTL_OK;
}
