/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cci - the firmware's half of the Common Communication Interface, as lib/cci/ sees it
 *
 * The NIC serves CCI endpoints itself: there is no match list, and no event is
 * translated.  Each event lies in the descriptor of its message (nic/cci/), and
 * p3_cci_get_event() returns its address.
 *
 * Any thread may call any function at any time, with these exceptions of the API: the
 * destruction of an endpoint excludes all other use of the endpoint, a disconnect all
 * other use of the connection, and a return of an event all other use of the event.  No
 * function blocks, but sends and RMA operations with CCI_FLAG_BLOCKING.  In a signal
 * handler that has interrupted a call of the library they return CCI_ENOBUFS.
 *
 * Results are values of cci_status_t.  The caller has checked the arguments: pointers
 * that must not be NULL, lengths, flags and attributes.
 *
 * The structs of the API are the first members of the firmware's own: an endpoint, a
 * connection or an event that a function returns is also the argument that names it.
 * The NIC must run as long as an endpoint exists.
 */
#ifndef P3_NIC_CCI_H
#define P3_NIC_CCI_H

#include <cci.h>
#include "nic/nic.h"

#define P3_CCI_MTU_LEAST  128u
#define P3_CCI_MTU        4096u /* default of max_send_size */
#define P3_CCI_MTU_MOST   16384u

#define P3_CCI_RX_USUAL   4096u  /* default of CCI_OPT_ENDPT_RECV_BUF_COUNT */
#define P3_CCI_RX_MOST    8192u  /* its greatest value */
#define P3_CCI_TX_USUAL   16384u /* default of CCI_OPT_ENDPT_SEND_BUF_COUNT */

#define P3_CCI_TIMEOUT_US 64000000u /* default of CCI_OPT_ENDPT_SEND_TIMEOUT */
#define P3_CCI_NO_TIMEOUT UINT64_MAX

/* Numbers of endpoints: 1 to P3_CCI_SERVICE_MOST are those of services, larger ones are
 * chosen by the firmware. */
#define P3_CCI_SERVICE_MOST 65535u

/* ---- endpoints ---- */

struct p3_cci_endpoint_conf {
	cci_device_t *device;
	uint32_t service;       /* 1 to P3_CCI_SERVICE_MOST; 0: any number above */
	uint32_t max_send_size; /* P3_CCI_MTU_LEAST to P3_CCI_MTU_MOST */
	bool with_handle;       /* it has an OS handle */
};

/*
 * Make an endpoint.  Return CCI_SUCCESS, CCI_ENOMEM if memory or descriptors are short,
 * CCI_EBUSY if the service belongs to another endpoint of this process, or CCI_ERANGE if
 * no number is free.
 */
int p3_cci_endpoint_create(struct p3_nic *nic, const struct p3_cci_endpoint_conf *conf,
	cci_endpoint_t **endpoint_out);
/* Destroy an endpoint, or NULL: any, with all that belongs to it.  Return false if there
 * is no such endpoint.  This waits for no peer.  Afterwards the firmware touches no
 * memory of the program that was registered there, and the OS handle is closed. */
bool p3_cci_endpoint_destroy(struct p3_nic *nic, cci_endpoint_t *endpoint);

/* The endpoint's number, for its URI. */
uint32_t p3_cci_endpoint_number(cci_endpoint_t *endpoint);

/* ---- the OS handle ---- */

/*
 * Each call on an endpoint that makes progress, and does not wait, begins with
 * p3_cci_handle_enter() and ends with p3_cci_handle_leave(), or cci_get_event with
 * p3_cci_handle_looked().  Between them this thread's passes signal nothing; at the end
 * the thread looks at the queue itself.  Endpoints without a handle pay one test.
 */

struct p3_evfd;

struct p3_cci_handle {
	struct p3_evfd *evfd; /* nic/run/evfd.h; NULL: the endpoint has no handle */
	p3_a32 polls;     /* pairs of quick looks in vain, up to a limit; also set to 0 by
			   * the NIC thread */
	p3_a64 looked_ns; /* time of the last look; 0: it found an event */
	uint64_t reminded; /* (lease holder) events taken until the last tick */
};

struct p3_cci_handle *p3_cci_handle_of(cci_endpoint_t *endpoint);
static inline bool p3_cci_has_handle(cci_endpoint_t *endpoint)
{
	return p3_unlikely(p3_cci_handle_of(endpoint)->evfd != NULL);
}

/* The endpoint has a handle: return its descriptor. */
int p3_cci_handle_fd(cci_endpoint_t *endpoint);
/* Arm the handle, or make it readable if events wait. */
void p3_cci_handle_begin(cci_endpoint_t *endpoint);

void p3_cci_handle_enter_slowly(cci_endpoint_t *endpoint);
void p3_cci_handle_leave_slowly(cci_endpoint_t *endpoint);
void p3_cci_handle_looked_slowly(cci_endpoint_t *endpoint, bool found);

static inline void p3_cci_handle_enter(cci_endpoint_t *endpoint)
{
	if (p3_cci_has_handle(endpoint))
		p3_cci_handle_enter_slowly(endpoint);
}

static inline void p3_cci_handle_leave(cci_endpoint_t *endpoint)
{
	if (p3_cci_has_handle(endpoint))
		p3_cci_handle_leave_slowly(endpoint);
}

/* End a cci_get_event, which has found an event or not. */
static inline void p3_cci_handle_looked(cci_endpoint_t *endpoint, bool found)
{
	if (p3_cci_has_handle(endpoint))
		p3_cci_handle_looked_slowly(endpoint, found);
}

/* ---- events ---- */

/*
 * Take the oldest event; make progress first if there is none.  Return CCI_SUCCESS,
 * CCI_EAGAIN, or CCI_ENOBUFS if there is none and the program holds all receive buffers.
 * *event_out is NULL unless an event was taken.
 */
int p3_cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event_out);
/* Return CCI_SUCCESS, or CCI_EINVAL for a connect request that was not decided. */
int p3_cci_return_event(cci_event_t *event);

/* ---- connections ---- */

struct p3_cci_connect {
	uint32_t node;     /* index of the server's node */
	uint32_t endpoint; /* number of its endpoint */
	const void *data;
	uint32_t data_len; /* at most CCI_CONN_REQ_LEN */
	cci_conn_attribute_t attribute;
	void *context;
	uint64_t timeout_ns; /* P3_CCI_NO_TIMEOUT: for ever */
};

/* Start a connection.  The payload is copied.  Return CCI_SUCCESS, CCI_EADDRNOTAVAIL, or
 * CCI_ENOBUFS if the endpoint has the most connections. */
int p3_cci_connect(cci_endpoint_t *endpoint, const struct p3_cci_connect *c);
/* Decide about a connect request.  Return CCI_SUCCESS, CCI_ENOBUFS if the endpoint has
 * the most connections, or CCI_EINVAL if the event is not a connect request, or was
 * decided before. */
int p3_cci_decide(cci_event_t *request, void *context, bool accept);
/* Close a connection.  Its memory stays readable until all events that name it are
 * returned. */
int p3_cci_disconnect(cci_connection_t *connection);

/* ---- messages ---- */

/* Send a message of len bytes, at most the connection's max_send_size: those at data, or,
 * unless pieces is 0, those of the iovecs at data.  Return as cci_send() does. */
int p3_cci_send(cci_connection_t *connection, const void *data, uint32_t pieces,
	uint32_t len, void *context, int flags);

/* ---- RMA ---- */

int p3_cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
	cci_rma_handle_t **handle_out);
int p3_cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *handle);

struct p3_cci_rma {
	const void *msg;
	uint32_t msg_len;
	struct cci_rma_handle local, remote; /* copies */
	uint64_t local_offset, remote_offset;
	uint64_t data_len; /* not 0 */
	void *context;
	int flags; /* with CCI_FLAG_READ or CCI_FLAG_WRITE, not both */
};

/* Start an RMA operation of a reliable connection.  Return as cci_rma() does. */
int p3_cci_rma(cci_connection_t *connection, const struct p3_cci_rma *rma);

/* ---- options ---- */

/* Set or get a number: the time-outs and the buffer counts of an endpoint, or the
 * time-outs of a connection.  Return CCI_SUCCESS, CCI_ERANGE, or CCI_EINVAL for any
 * other option. */
int p3_cci_number(const void *handle, cci_opt_name_t name, bool set, uint32_t *value);

#endif
