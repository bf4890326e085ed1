/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C11, portals3_runtime.h before anything else.  The test is that it compiles: it
 * checks sizes, orders and values that the document or existing programs rely on, and
 * defines names again after the header, as programs do.
 */
#include <portals3_runtime.h>
#include <portals3.h>
#include <portals3x.h>

#include <sys/uio.h>

#define PTL_EQ_HANDLER_NONE NULL
#define PTL_PID_ANY         ((ptl_pid_t)-1)
#define PTL_NO_ACK_REQ      PTL_NOACK_REQ
#ifndef PTL_MD_EVENT_AUTO_UNLINK_ENABLE
#error "UNLINK events cannot be asked for"
#endif

#define CHECK(condition) _Static_assert(condition, #condition)

CHECK(sizeof(ptl_size_t) == 8 && (ptl_size_t)-1 > 0);
CHECK(sizeof(ptl_match_bits_t) == 8 && (ptl_match_bits_t)-1 > 0);
CHECK(sizeof(ptl_hdr_data_t) == 8 && (ptl_hdr_data_t)-1 > 0);
CHECK(sizeof(ptl_sr_value_t) >= 4 && (ptl_sr_value_t)-1 < 0);
CHECK((ptl_seq_t)-1 > 0);

CHECK(PTL_OK == 0 && PTL_FAIL == 5 && PTL_SR_INDEX_INVALID == 23);
CHECK(PTL_UNKNOWN_ERROR == 24 && PTL_MAX_ERRNO == 30);
CHECK(PTL_NI_OK == 0 && PTL_NI_FAIL == 1);
CHECK(PTL_EVENT_GET_START == 0 && PTL_EVENT_UNLINK == 11);
CHECK(PTL_SR_DROP_COUNT == 0 && PTL_SR_MD_ALIGN_8 == 28);
CHECK(PTL_RETAIN == 0 && PTL_UNLINK == 1);
CHECK(PTL_INS_BEFORE == 0 && PTL_INS_AFTER == 1);
CHECK(PTL_ACK_REQ == 0 && PTL_NO_ACK_REQ == 1 && PTL_NOACK_REQ == 1);
CHECK(PTL_MD_THRESH_INF < 0);
CHECK(PTL_IFACE_DEFAULT != PTL_IFACE_SS && CRAY_USER_NAL == PTL_IFACE_SS);
CHECK(CRAY_UK_SSNAL == PTL_IFACE_SS && CRAY_QK_NAL == PTL_IFACE_SS);
CHECK(IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS) == PTL_IFACE_SS);
CHECK(IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_QK, PTL_IFACE_SS) == PTL_IFACE_SS);
CHECK(IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, CRAY_UK_SSNAL) == PTL_IFACE_SS);
CHECK(PTL_INVALID_HANDLE != PTL_EQ_NONE && PTL_EQ_NONE != PTL_HANDLE_NONE);
CHECK(PTL_INVALID_HANDLE != PTL_HANDLE_NONE);

/* Each option is one bit: the sum is the union. */
#define ALL_OPTIONS(op)                                                                  \
	(PTL_MD_OP_PUT op PTL_MD_OP_GET op PTL_MD_MANAGE_REMOTE op PTL_MD_TRUNCATE op    \
			PTL_MD_ACK_DISABLE op PTL_MD_IOVEC op PTL_MD_MAX_SIZE op         \
				PTL_MD_EVENT_START_DISABLE op PTL_MD_EVENT_END_DISABLE   \
					op PTL_MD_EVENT_AUTO_UNLINK_ENABLE op            \
						PTL_MD_EVENT_MANUAL_UNLINK_ENABLE)
CHECK(ALL_OPTIONS(+) == 0x7ff && ALL_OPTIONS(|) == 0x7ff);

CHECK(offsetof(ptl_process_id_t, nid) < offsetof(ptl_process_id_t, pid));
CHECK(sizeof(ptl_ni_limits_t) == 8 * sizeof(int));
CHECK(offsetof(ptl_ni_limits_t, max_eqs) == 2 * sizeof(int));
CHECK(offsetof(ptl_ni_limits_t, max_ac_index) == 3 * sizeof(int));
CHECK(offsetof(ptl_ni_limits_t, max_getput_md) == 7 * sizeof(int));
CHECK(offsetof(ptl_event_t, unlinked) > offsetof(ptl_event_t, ni_fail_type));
CHECK(offsetof(ptl_event_t, sequence) > offsetof(ptl_event_t, unlinked));

CHECK(sizeof(ptl_md_iovec_t) == sizeof(struct iovec));
CHECK(offsetof(ptl_md_iovec_t, iov_base) == offsetof(struct iovec, iov_base));
CHECK(offsetof(ptl_md_iovec_t, iov_len) == offsetof(struct iovec, iov_len));

/* Counters without a hole, so that a size tells which of them are there. */
CHECK(offsetof(ptlx_stats_t, struct_size) == 0);
CHECK(sizeof(ptlx_stats_t) == 8 + 38 * sizeof(uint64_t));
CHECK(offsetof(ptlx_stats_t, moved_direct_bytes) ==
	sizeof(ptlx_stats_t) - 16 * sizeof(uint64_t));

int main(void)
{
	static const ptl_ni_limits_t limits = {1, 2, 3, 4, 5, 6, 7, 8};
	static const ptl_process_id_t id = {1, 2};
	ptl_md_t md = {.length = 0,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT,
		.eq_handle = PTL_EQ_NONE};
	ptl_handle_any_t any = md.eq_handle;
	ptl_handle_eq_t eq = any;

	return !(limits.max_mes == 1 && limits.max_getput_md == 8 && id.nid == 1 &&
		 id.pid == 2 && eq == PTL_EQ_NONE);
}
