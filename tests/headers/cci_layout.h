/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The binary interface of cci.h, in C99, C11 and C++: sizes, offsets and values, as
 * programs and bindings have compiled them in.  Compiling is the test.
 */
#include <cci.h>

#include <stddef.h>

#define P3_JOIN2(a, b) a##b
#define P3_JOIN(a, b)  P3_JOIN2(a, b)
/* An array of -1 elements does not compile. */
#define MUST(condition) typedef char P3_JOIN(must_, __LINE__)[(condition) ? 1 : -1]
#define AT(type, member, offset, size)                                                   \
	MUST(offsetof(type, member) == (offset) && sizeof(((type *)0)->member) == (size))

#if !defined(EINVAL) || !defined(UINT32_MAX) || !defined(EOF)
#error "cci.h does not bring errno.h, stdint.h and stdio.h along"
#endif
MUST(sizeof(struct iovec) == 16 && sizeof(struct timeval) == 16 && sizeof(ssize_t) == 8);

#if CCI_ABI_VERSION != 2 || CCI_CONN_REQ_LEN != 1024
#error "a constant differs"
#endif
#if CCI_FLAG_BLOCKING != 1 || CCI_FLAG_NO_COPY != 2 || CCI_FLAG_SILENT != 8 ||           \
	CCI_FLAG_READ != 16 || CCI_FLAG_WRITE != 32 || CCI_FLAG_FENCE != 64
#error "a flag differs"
#endif

MUST(CCI_SUCCESS == 0 && CCI_ERROR == 1 && CCI_ERR_DISCONNECTED == 2);
MUST(CCI_ERR_RNR == 3 && CCI_ERR_DEVICE_DEAD == 4 && CCI_ERR_RMA_HANDLE == 5);
MUST(CCI_ERR_RMA_OP == 6 && CCI_ERR_NOT_IMPLEMENTED == 7 && CCI_ERR_NOT_FOUND == 8);
MUST(CCI_EINVAL == 22 && CCI_ETIMEDOUT == 110 && CCI_ENOMEM == 12 && CCI_ENODEV == 19);
MUST(CCI_ENETDOWN == 100 && CCI_EBUSY == 16 && CCI_ERANGE == 34 && CCI_EAGAIN == 11);
MUST(CCI_ENOBUFS == 105 && CCI_EMSGSIZE == 90 && CCI_ENOMSG == 42);
MUST(CCI_EADDRNOTAVAIL == 99 && CCI_ECONNREFUSED == 111);

MUST(CCI_CONN_ATTR_RO == 0 && CCI_CONN_ATTR_RU == 1 && CCI_CONN_ATTR_UU == 2);
MUST(CCI_CONN_ATTR_UU_MC_TX == 3 && CCI_CONN_ATTR_UU_MC_RX == 4);
MUST(CCI_EVENT_NONE == 0 && CCI_EVENT_SEND == 1 && CCI_EVENT_RECV == 2);
MUST(CCI_EVENT_CONNECT == 3 && CCI_EVENT_CONNECT_REQUEST == 4 && CCI_EVENT_ACCEPT == 5);
MUST(CCI_EVENT_KEEPALIVE_TIMEDOUT == 6 && CCI_EVENT_ENDPOINT_DEVICE_FAILED == 7);
MUST(CCI_OPT_ENDPT_SEND_TIMEOUT == 0 && CCI_OPT_ENDPT_RECV_BUF_COUNT == 1);
MUST(CCI_OPT_ENDPT_SEND_BUF_COUNT == 2 && CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT == 3);
MUST(CCI_OPT_ENDPT_URI == 4 && CCI_OPT_ENDPT_RMA_ALIGN == 5);
MUST(CCI_OPT_CONN_SEND_TIMEOUT == 6 && CCI_OPT_CONN_KEEPALIVE_TIMEOUT == 7);
MUST(bogus_must_have_something_here == 0);
MUST(sizeof(enum cci_status) == 4 && sizeof(enum cci_endpoint_flags) == 4);
MUST(sizeof(enum cci_conn_attribute) == 4 && sizeof(enum cci_event_type) == 4);
MUST(sizeof(enum cci_opt_name) == 4 && sizeof(cci_os_handle_t) == sizeof(int));

MUST(sizeof(struct cci_device) == 72);
AT(struct cci_device, name, 0, 8);
AT(struct cci_device, transport, 8, 8);
AT(struct cci_device, up, 16, 4);
AT(struct cci_device, info, 24, 8);
AT(struct cci_device, conf_argv, 32, 8);
AT(struct cci_device, max_send_size, 40, 4);
AT(struct cci_device, rate, 48, 8);
AT(struct cci_device, pci, 56, 16);
AT(struct cci_device, pci.domain, 56, 4);
AT(struct cci_device, pci.bus, 60, 4);
AT(struct cci_device, pci.dev, 64, 4);
AT(struct cci_device, pci.func, 68, 4);

MUST(sizeof(struct cci_endpoint) == 8);
AT(struct cci_endpoint, device, 0, 8);

MUST(sizeof(struct cci_connection) == 32);
AT(struct cci_connection, max_send_size, 0, 4);
AT(struct cci_connection, endpoint, 8, 8);
AT(struct cci_connection, attribute, 16, 4);
AT(struct cci_connection, context, 24, 8);

MUST(sizeof(union cci_event) == 24);
AT(union cci_event, type, 0, 4);
AT(union cci_event, send, 0, 24);
AT(union cci_event, recv, 0, 24);
AT(union cci_event, connect, 0, 24);
AT(union cci_event, request, 0, 24);
AT(union cci_event, accept, 0, 24);
AT(union cci_event, keepalive, 0, 16);
AT(union cci_event, dev_failed, 0, 16);

AT(cci_event_send_t, type, 0, 4);
AT(cci_event_send_t, status, 4, 4);
AT(cci_event_send_t, connection, 8, 8);
AT(cci_event_send_t, context, 16, 8);
AT(cci_event_recv_t, type, 0, 4);
AT(cci_event_recv_t, len, 4, 4);
AT(cci_event_recv_t, ptr, 8, 8);
AT(cci_event_recv_t, connection, 16, 8);
AT(cci_event_connect_t, type, 0, 4);
AT(cci_event_connect_t, status, 4, 4);
AT(cci_event_connect_t, context, 8, 8);
AT(cci_event_connect_t, connection, 16, 8);
AT(cci_event_connect_request_t, type, 0, 4);
AT(cci_event_connect_request_t, data_len, 4, 4);
AT(cci_event_connect_request_t, data_ptr, 8, 8);
AT(cci_event_connect_request_t, attribute, 16, 4);
AT(cci_event_accept_t, type, 0, 4);
AT(cci_event_accept_t, status, 4, 4);
AT(cci_event_accept_t, context, 8, 8);
AT(cci_event_accept_t, connection, 16, 8);
AT(cci_event_keepalive_timedout_t, type, 0, 4);
AT(cci_event_keepalive_timedout_t, connection, 8, 8);
AT(cci_event_endpoint_device_failed_t, type, 0, 4);
AT(cci_event_endpoint_device_failed_t, endpoint, 8, 8);

MUST(sizeof(struct cci_rma_handle) == 32);
AT(struct cci_rma_handle, stuff, 0, 32);
MUST(sizeof(struct cci_alignment) == 24);
AT(struct cci_alignment, rma_write_local_addr, 0, 4);
AT(struct cci_alignment, rma_write_remote_addr, 4, 4);
AT(struct cci_alignment, rma_write_length, 8, 4);
AT(struct cci_alignment, rma_read_local_addr, 12, 4);
AT(struct cci_alignment, rma_read_remote_addr, 16, 4);
AT(struct cci_alignment, rma_read_length, 20, 4);

/* A name of each enumerator, and the text for other values. */
static int type_names_are_wrong(void)
{
	const char *const names[] = {"CCI_EVENT_NONE", "CCI_EVENT_SEND", "CCI_EVENT_RECV",
		"CCI_EVENT_CONNECT", "CCI_EVENT_CONNECT_REQUEST", "CCI_EVENT_ACCEPT",
		"CCI_EVENT_KEEPALIVE_TIMEDOUT", "CCI_EVENT_ENDPOINT_DEVICE_FAILED",
		"Unknown event"};
	for (int i = 0; i < 9; i++) {
		const char *a = cci_event_type_str((cci_event_type_t)i), *b = names[i];
		while (*a && *a == *b)
			a++, b++;
		if (*a != *b)
			return 1 + i;
	}
	return 0;
}
