/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout - sizes, offsets and values of cci.h as existing programs were compiled with
 *
 * Any file includes it after cci.h; it has assertions only, and needs C11 or C++.
 */
#ifndef P3_TESTS_CCI_LAYOUT_H
#define P3_TESTS_CCI_LAYOUT_H

#include <stddef.h>

#ifdef __cplusplus
#define LAYOUT_ASSERT(truth) static_assert(truth, #truth)
#else
#define LAYOUT_ASSERT(truth) _Static_assert(truth, #truth)
#endif
#define LAYOUT_AT(type, member, at) LAYOUT_ASSERT(offsetof(type, member) == (at))
#define LAYOUT_SIZE(type, size)     LAYOUT_ASSERT(sizeof(type) == (size))
#define LAYOUT_VALUE(name, value)   LAYOUT_ASSERT((int)(name) == (value))

LAYOUT_SIZE(struct cci_device, 72);
LAYOUT_AT(struct cci_device, name, 0);
LAYOUT_AT(struct cci_device, transport, 8);
LAYOUT_AT(struct cci_device, up, 16);
LAYOUT_AT(struct cci_device, info, 24);
LAYOUT_AT(struct cci_device, conf_argv, 32);
LAYOUT_AT(struct cci_device, max_send_size, 40);
LAYOUT_AT(struct cci_device, rate, 48);
LAYOUT_AT(struct cci_device, pci, 56);
LAYOUT_SIZE(struct cci_endpoint, 8);
LAYOUT_AT(struct cci_endpoint, device, 0);
LAYOUT_SIZE(struct cci_connection, 32);
LAYOUT_AT(struct cci_connection, max_send_size, 0);
LAYOUT_AT(struct cci_connection, endpoint, 8);
LAYOUT_AT(struct cci_connection, attribute, 16);
LAYOUT_AT(struct cci_connection, context, 24);
LAYOUT_SIZE(cci_event_send_t, 24);
LAYOUT_AT(cci_event_send_t, type, 0);
LAYOUT_AT(cci_event_send_t, status, 4);
LAYOUT_AT(cci_event_send_t, connection, 8);
LAYOUT_AT(cci_event_send_t, context, 16);
LAYOUT_SIZE(cci_event_recv_t, 24);
LAYOUT_AT(cci_event_recv_t, len, 4);
LAYOUT_AT(cci_event_recv_t, ptr, 8);
LAYOUT_AT(cci_event_recv_t, connection, 16);
LAYOUT_SIZE(cci_event_connect_t, 24);
LAYOUT_AT(cci_event_connect_t, status, 4);
LAYOUT_AT(cci_event_connect_t, context, 8);
LAYOUT_AT(cci_event_connect_t, connection, 16);
LAYOUT_SIZE(cci_event_connect_request_t, 24);
LAYOUT_AT(cci_event_connect_request_t, data_len, 4);
LAYOUT_AT(cci_event_connect_request_t, data_ptr, 8);
LAYOUT_AT(cci_event_connect_request_t, attribute, 16);
LAYOUT_SIZE(cci_event_accept_t, 24);
LAYOUT_AT(cci_event_accept_t, status, 4);
LAYOUT_AT(cci_event_accept_t, context, 8);
LAYOUT_AT(cci_event_accept_t, connection, 16);
LAYOUT_SIZE(cci_event_keepalive_timedout_t, 16);
LAYOUT_AT(cci_event_keepalive_timedout_t, connection, 8);
LAYOUT_SIZE(cci_event_endpoint_device_failed_t, 16);
LAYOUT_AT(cci_event_endpoint_device_failed_t, endpoint, 8);
LAYOUT_SIZE(union cci_event, 24);
LAYOUT_SIZE(struct cci_rma_handle, 32);
LAYOUT_SIZE(struct cci_alignment, 24);
LAYOUT_AT(struct cci_alignment, rma_write_local_addr, 0);
LAYOUT_AT(struct cci_alignment, rma_write_remote_addr, 4);
LAYOUT_AT(struct cci_alignment, rma_write_length, 8);
LAYOUT_AT(struct cci_alignment, rma_read_local_addr, 12);
LAYOUT_AT(struct cci_alignment, rma_read_remote_addr, 16);
LAYOUT_AT(struct cci_alignment, rma_read_length, 20);
LAYOUT_SIZE(cci_os_handle_t, sizeof(int));

LAYOUT_VALUE(CCI_ABI_VERSION, 2);
LAYOUT_VALUE(CCI_CONN_REQ_LEN, 1024);
LAYOUT_VALUE(CCI_FLAG_BLOCKING, 1);
LAYOUT_VALUE(CCI_FLAG_NO_COPY, 2);
LAYOUT_VALUE(CCI_FLAG_SILENT, 8);
LAYOUT_VALUE(CCI_FLAG_READ, 16);
LAYOUT_VALUE(CCI_FLAG_WRITE, 32);
LAYOUT_VALUE(CCI_FLAG_FENCE, 64);
LAYOUT_VALUE(CCI_SUCCESS, 0);
LAYOUT_VALUE(CCI_ERROR, 1);
LAYOUT_VALUE(CCI_ERR_DISCONNECTED, 2);
LAYOUT_VALUE(CCI_ERR_RNR, 3);
LAYOUT_VALUE(CCI_ERR_DEVICE_DEAD, 4);
LAYOUT_VALUE(CCI_ERR_RMA_HANDLE, 5);
LAYOUT_VALUE(CCI_ERR_RMA_OP, 6);
LAYOUT_VALUE(CCI_ERR_NOT_IMPLEMENTED, 7);
LAYOUT_VALUE(CCI_ERR_NOT_FOUND, 8);
LAYOUT_VALUE(CCI_EINVAL, 22);
LAYOUT_VALUE(CCI_ETIMEDOUT, 110);
LAYOUT_VALUE(CCI_ENOMEM, 12);
LAYOUT_VALUE(CCI_ENODEV, 19);
LAYOUT_VALUE(CCI_ENETDOWN, 100);
LAYOUT_VALUE(CCI_EBUSY, 16);
LAYOUT_VALUE(CCI_ERANGE, 34);
LAYOUT_VALUE(CCI_EAGAIN, 11);
LAYOUT_VALUE(CCI_ENOBUFS, 105);
LAYOUT_VALUE(CCI_EMSGSIZE, 90);
LAYOUT_VALUE(CCI_ENOMSG, 42);
LAYOUT_VALUE(CCI_EADDRNOTAVAIL, 99);
LAYOUT_VALUE(CCI_ECONNREFUSED, 111);
LAYOUT_VALUE(CCI_CONN_ATTR_RO, 0);
LAYOUT_VALUE(CCI_CONN_ATTR_RU, 1);
LAYOUT_VALUE(CCI_CONN_ATTR_UU, 2);
LAYOUT_VALUE(CCI_CONN_ATTR_UU_MC_TX, 3);
LAYOUT_VALUE(CCI_CONN_ATTR_UU_MC_RX, 4);
LAYOUT_VALUE(CCI_EVENT_NONE, 0);
LAYOUT_VALUE(CCI_EVENT_SEND, 1);
LAYOUT_VALUE(CCI_EVENT_RECV, 2);
LAYOUT_VALUE(CCI_EVENT_CONNECT, 3);
LAYOUT_VALUE(CCI_EVENT_CONNECT_REQUEST, 4);
LAYOUT_VALUE(CCI_EVENT_ACCEPT, 5);
LAYOUT_VALUE(CCI_EVENT_KEEPALIVE_TIMEDOUT, 6);
LAYOUT_VALUE(CCI_EVENT_ENDPOINT_DEVICE_FAILED, 7);
LAYOUT_VALUE(CCI_OPT_ENDPT_SEND_TIMEOUT, 0);
LAYOUT_VALUE(CCI_OPT_ENDPT_RECV_BUF_COUNT, 1);
LAYOUT_VALUE(CCI_OPT_ENDPT_SEND_BUF_COUNT, 2);
LAYOUT_VALUE(CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, 3);
LAYOUT_VALUE(CCI_OPT_ENDPT_URI, 4);
LAYOUT_VALUE(CCI_OPT_ENDPT_RMA_ALIGN, 5);
LAYOUT_VALUE(CCI_OPT_CONN_SEND_TIMEOUT, 6);
LAYOUT_VALUE(CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 7);
LAYOUT_VALUE(bogus_must_have_something_here, 0);

#endif
