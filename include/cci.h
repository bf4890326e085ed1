/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cci.h - the Common Communication Interface (CCI), API 2, on the network of libportals
 *
 * CCI has endpoints, which exchange messages of a few kilobytes without receive calls,
 * and which read and write registered memory of each other (RMA).  It shares one network
 * interface with Portals: a program may use both at once.  A process is started by hand,
 * in a domain, or by yod, mpirun, mpiexec or srun as a rank of a job.
 *
 *
 * Caveats
 * =======
 *
 * Objects.  A device is a network interface.  An endpoint is made on a device; it owns
 * send buffers, receive buffers, one queue of events, and registrations of memory.  It
 * has a URI, by which other endpoints connect to it.  A connection joins two endpoints,
 * also of one process, and has no buffers of its own.  The library allocates and frees
 * all of these; the string of CCI_OPT_ENDPT_URI is the only memory that the program
 * frees.
 *
 * Events.  Calls start operations, and all that happens becomes an event of an endpoint.
 * The program takes an event with cci_get_event, which lends it, and gives it back with
 * cci_return_event.  Until then the event, and the bytes that it points to, do not
 * change.
 *
 * Threads.  Any thread may call any function on any object at any time, except that the
 * program serialises
 *	- cci_destroy_endpoint and cci_finalize with each use of objects that they end,
 *	- cci_disconnect with each other use of its connection,
 *	- cci_return_event with each other use of its event.
 * "Any thread" below means exactly this.  Concurrent calls take effect in any order.
 *
 * Blocking.  Only a send or an RMA with CCI_FLAG_BLOCKING waits for a peer.  Starting and
 * ending CCI, and creating and destroying endpoints, may take some milliseconds.
 *
 * Progress.  Messages are received and acknowledged, and RMA is served, while the target
 * computes or sleeps.
 *
 * Fork.  A forked child has no part in the endpoints of its parent.  Its calls fail until
 * it has called cci_init itself; its exit does not disturb the parent.
 *
 * Signals.  The library installs no signal handler, and its thread blocks all signals.  A
 * signal handler may call cci_get_event, cci_return_event, cci_send and cci_sendv
 * without CCI_FLAG_BLOCKING, cci_strerror and cci_get_devices.  If it has interrupted a
 * call of the library in its own thread, cci_get_event may return CCI_EAGAIN although an
 * event is there, and calls that need the state of the interface return CCI_ENOBUFS.  The
 * other functions fail in such a handler, without harm.
 *
 * Death of a peer.  A process that ends, in whatever way, has closed its connections:
 * reliable operations with it complete with CCI_ERR_DISCONNECTED, and connects with
 * CCI_ECONNREFUSED.  Messages that it had sent, and that were acknowledged, stay
 * received.  A stopped process is alive: operations with it wait for their time-out.
 *
 *
 * How to read the function comments
 * =================================
 *
 * Every function that returns int returns a value of cci_status_t, and CCI_SUCCESS if
 * the comment names no other outcome.  Before cci_init, after the last cci_finalize and
 * in a forked child it returns CCI_ERROR, unless the comment names another code; the
 * comments do not repeat these two.  A call that fails has no effect.  "in" arguments
 * are read during the call and not kept, unless the comment says otherwise.  "out"
 * arguments are written on CCI_SUCCESS only, unless the comment says otherwise.  A
 * context is any value of the program; CCI does not follow it.  A pointer other than
 * NULL that is not the pointer asked for has undefined behavior.  If several codes
 * apply, any of them may be returned.  No function changes errno, and none is a
 * cancellation point.
 */
#ifndef CCI_H
#define CCI_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Words in front of each declaration; a program may define them before it includes this
 * file. */
#ifndef CCI_DECLSPEC
#define CCI_DECLSPEC
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ---- */

/*
 * Outcome of a call, or of an operation in its event.
 *
 *	CCI_SUCCESS		Success.
 *	CCI_ERROR		An error without a code of its own.
 *	CCI_ERR_DISCONNECTED	The connection is closed: this side has called
 *				cci_disconnect, or the peer has answered that it is
 *				closed, or the peer's process has ended.
 *	CCI_ERR_RNR		A reliable send: the receiver is connected, but had no
 *				receive buffer until the time-out.
 *	CCI_ERR_DEVICE_DEAD	The local device is gone for good.
 *	CCI_ERR_RMA_HANDLE	RMA: the remote handle, its range or its rights do not
 *				permit the access.
 *	CCI_ERR_RMA_OP		RMA: the target does not know the operation.
 *	CCI_ERR_NOT_IMPLEMENTED	The library does not have this function.
 *	CCI_ERR_NOT_FOUND	There is no transport.
 *	CCI_EINVAL		An argument is wrong.
 *	CCI_ETIMEDOUT		A reliable send: the peer did not answer within the
 *				time-out, so it is unknown whether the message arrived;
 *				a connect: no decision came in time.
 *	CCI_ENOMEM		Memory is short.
 *	CCI_ENODEV		There is no device.
 *	CCI_ENETDOWN		The device is down.
 *	CCI_EBUSY		Another endpoint has the service.
 *	CCI_ERANGE		A value is out of range.
 *	CCI_EAGAIN		There is no event.
 *	CCI_ENOBUFS		There is no buffer now: try again.
 *	CCI_EMSGSIZE		The message is too long.
 *	CCI_ENOMSG		There is no message.
 *	CCI_EADDRNOTAVAIL	The address is not one of this network.
 *	CCI_ECONNREFUSED	The target has refused the connection, or does not
 *				exist.
 */
typedef enum cci_status {
	CCI_SUCCESS = 0,
	CCI_ERROR,
	CCI_ERR_DISCONNECTED,
	CCI_ERR_RNR,
	CCI_ERR_DEVICE_DEAD,
	CCI_ERR_RMA_HANDLE,
	CCI_ERR_RMA_OP,
	CCI_ERR_NOT_IMPLEMENTED,
	CCI_ERR_NOT_FOUND,
	CCI_EINVAL = EINVAL,
	CCI_ETIMEDOUT = ETIMEDOUT,
	CCI_ENOMEM = ENOMEM,
	CCI_ENODEV = ENODEV,
	CCI_ENETDOWN = ENETDOWN,
	CCI_EBUSY = EBUSY,
	CCI_ERANGE = ERANGE,
	CCI_EAGAIN = EAGAIN,
	CCI_ENOBUFS = ENOBUFS,
	CCI_EMSGSIZE = EMSGSIZE,
	CCI_ENOMSG = ENOMSG,
	CCI_EADDRNOTAVAIL = EADDRNOTAVAIL,
	CCI_ECONNREFUSED = ECONNREFUSED
} cci_status_t;

/* ---- devices ---- */

/*
 * A device.  It exists until the last cci_finalize, and its strings with it.
 */
typedef const struct cci_device {
	const char *name;             /* of the section in the configuration file */
	const char *transport;        /* the scheme of its URIs */
	unsigned up;                  /* 0: the device cannot be used now */
	const char *info;             /* text for people, or NULL */
	const char *const *conf_argv; /* "key=value" of the section, then NULL */
	uint32_t max_send_size;       /* bytes of the longest message */
	uint64_t rate;                /* bits per second, 0: unknown */
	struct {
		uint32_t domain; /* all four are (uint32_t)-1: no PCI device */
		uint32_t bus;
		uint32_t dev;
		uint32_t func;
	} pci;
} cci_device_t;

/* A file descriptor to wait with; see cci_create_endpoint. */
typedef int cci_os_handle_t;

/* Flags of an endpoint: none is defined. */
typedef enum cci_endpoint_flags { bogus_must_have_something_here } cci_endpoint_flags_t;

/* An endpoint.  It exists until cci_destroy_endpoint or the last cci_finalize. */
typedef const struct cci_endpoint {
	cci_device_t *device;
} cci_endpoint_t;

/* ---- connections ---- */

/*
 * Reliability and order of a connection; the client chooses them.
 *
 *	CCI_CONN_ATTR_RO	Reliable and ordered: each message arrives once, in the
 *				order of the calls, and SEND events come in this order,
 *				too.  After the first failure all later sends fail
 *				likewise.
 *	CCI_CONN_ATTR_RU	Reliable and unordered: each message arrives once.
 *	CCI_CONN_ATTR_UU	Unreliable and unordered: the receiver drops a message
 *				for which it has no buffer, and the sender is not
 *				told.  No RMA.
 *	CCI_CONN_ATTR_UU_MC_TX	Multicast, the sending side, and
 *	CCI_CONN_ATTR_UU_MC_RX	the receiving side: cci_connect answers
 *				CCI_ERR_NOT_IMPLEMENTED, as every transport does.
 */
typedef enum cci_conn_attribute {
	CCI_CONN_ATTR_RO,
	CCI_CONN_ATTR_RU,
	CCI_CONN_ATTR_UU,
	CCI_CONN_ATTR_UU_MC_TX,
	CCI_CONN_ATTR_UU_MC_RX
} cci_conn_attribute_t;

/*
 * A connection.  It exists until cci_disconnect; its memory can be read until the last
 * event that names it is returned.
 */
typedef const struct cci_connection {
	uint32_t max_send_size;   /* bytes: the smaller one of the two devices */
	cci_endpoint_t *endpoint; /* of this side */
	cci_conn_attribute_t attribute;
	void *context; /* of cci_connect or cci_accept */
} cci_connection_t;

/* ---- events ---- */

/*
 * Types of events.
 *
 *	CCI_EVENT_NONE			Never handed out.
 *	CCI_EVENT_SEND			A send or an RMA is complete.
 *	CCI_EVENT_RECV			A message has arrived.
 *	CCI_EVENT_CONNECT		A cci_connect is complete.
 *	CCI_EVENT_CONNECT_REQUEST	Another endpoint asks for a connection.
 *	CCI_EVENT_ACCEPT		A cci_accept is complete.
 *	CCI_EVENT_KEEPALIVE_TIMEDOUT	The peer did not answer; the connection stays
 *					open.
 *	CCI_EVENT_ENDPOINT_DEVICE_FAILED	The endpoint cannot be used any more.
 */
typedef enum cci_event_type {
	CCI_EVENT_NONE,
	CCI_EVENT_SEND,
	CCI_EVENT_RECV,
	CCI_EVENT_CONNECT,
	CCI_EVENT_CONNECT_REQUEST,
	CCI_EVENT_ACCEPT,
	CCI_EVENT_KEEPALIVE_TIMEDOUT,
	CCI_EVENT_ENDPOINT_DEVICE_FAILED
} cci_event_type_t;

/*
 * A send or an RMA is complete.  On a reliable connection CCI_SUCCESS means that the
 * peer's interface has the message, or that the bytes are in place.
 */
typedef struct cci_event_send {
	cci_event_type_t type;
	cci_status_t status;
	cci_connection_t *connection;
	void *context; /* of the call */
} cci_event_send_t;

/* A message has arrived.  The event holds one receive buffer of the endpoint. */
typedef struct cci_event_recv {
	cci_event_type_t type;
	uint32_t len;    /* bytes */
	const void *ptr; /* aligned to 8; NULL if len is 0; a zero follows the message */
	cci_connection_t *connection;
} cci_event_recv_t;

/*
 * A cci_connect is complete.  status: CCI_SUCCESS, CCI_ECONNREFUSED (rejected, or there
 * is no such endpoint), CCI_ETIMEDOUT, or another error.
 */
typedef struct cci_event_connect {
	cci_event_type_t type;
	cci_status_t status;
	void *context;                /* of the call */
	cci_connection_t *connection; /* NULL unless status is CCI_SUCCESS */
} cci_event_connect_t;

/* Another endpoint asks for a connection: call cci_accept or cci_reject, then return the
 * event. */
typedef struct cci_event_connect_request {
	cci_event_type_t type;
	uint32_t data_len;    /* bytes of the payload */
	const void *data_ptr; /* aligned to 8; NULL if data_len is 0; a zero follows */
	cci_conn_attribute_t attribute;
} cci_event_connect_request_t;

/*
 * A cci_accept is complete.  status: CCI_SUCCESS, CCI_ETIMEDOUT (the client has given
 * up), CCI_ERR_DISCONNECTED (the client is gone), or another error.
 */
typedef struct cci_event_accept {
	cci_event_type_t type;
	cci_status_t status;
	void *context;                /* of the call */
	cci_connection_t *connection; /* NULL unless status is CCI_SUCCESS */
} cci_event_accept_t;

/* The peer has not answered for one period of keepalive, and the period is 0 now. */
typedef struct cci_event_keepalive_timedout {
	cci_event_type_t type;
	cci_connection_t *connection;
} cci_event_keepalive_timedout_t;

/* The device of the endpoint has failed. */
typedef struct cci_event_endpoint_device_failed {
	cci_event_type_t type;
	cci_endpoint_t *endpoint;
} cci_event_endpoint_device_failed_t;

/* An event; type tells which member it is. */
typedef const union cci_event {
	cci_event_type_t type;
	cci_event_send_t send;
	cci_event_recv_t recv;
	cci_event_connect_t connect;
	cci_event_connect_request_t request;
	cci_event_accept_t accept;
	cci_event_keepalive_timedout_t keepalive;
	cci_event_endpoint_device_failed_t dev_failed;
} cci_event_t;

/*
 * cci_event_type_str - name of a type of events
 *
 *	type	in	any value
 *
 * Return the name of the enumerator, or "Unknown event".  Never NULL.
 *
 * Any thread; does not block.
 */
static inline const char *cci_event_type_str(cci_event_type_t type)
{
	switch (type) {
	case CCI_EVENT_NONE:
		return "CCI_EVENT_NONE";
	case CCI_EVENT_SEND:
		return "CCI_EVENT_SEND";
	case CCI_EVENT_RECV:
		return "CCI_EVENT_RECV";
	case CCI_EVENT_CONNECT:
		return "CCI_EVENT_CONNECT";
	case CCI_EVENT_CONNECT_REQUEST:
		return "CCI_EVENT_CONNECT_REQUEST";
	case CCI_EVENT_ACCEPT:
		return "CCI_EVENT_ACCEPT";
	case CCI_EVENT_KEEPALIVE_TIMEDOUT:
		return "CCI_EVENT_KEEPALIVE_TIMEDOUT";
	case CCI_EVENT_ENDPOINT_DEVICE_FAILED:
		return "CCI_EVENT_ENDPOINT_DEVICE_FAILED";
	}
	return "Unknown event";
}

/* ---- the library ---- */

#define CCI_ABI_VERSION 2 /* for cci_init */

/*
 * cci_init - start CCI
 *
 *	abi_ver	in	CCI_ABI_VERSION
 *	flags	in	0
 *	caps	out	0: no capability is defined
 *
 * Reads the file that CCI_CONFIG in the environment names, and makes the list of
 * devices.  Without CCI_CONFIG, or if it is empty, there is one device.  Calls are
 * counted: each one that succeeds needs its cci_finalize.  Joins no job or domain yet:
 * the first endpoint does that.
 *
 * The file has a section for each device, 32 at most: a line with its name in brackets,
 * then lines "key = value", 32 at most, which conf_argv has.  # begins a comment.  These
 * keys have an effect:
 *	transport	portals, or the name in PTL3_CCI_TRANSPORT.  A section without
 *			it, with two or with another one is no device
 *	mss, mtu	bytes of the longest message, 128 to 16384 (4096)
 *	priority	0 to 100 (50): the place in the list of devices
 *	default		other than 0: cci_create_endpoint takes this device for NULL,
 *			without any the first one
 *	up		0: the device cannot be used
 *	port, id	the least number of endpoints without a service, 1 to 65535
 *
 * CCI_EINVAL		abi_ver is not CCI_ABI_VERSION, caps is NULL, or flags is not 0
 *			in the first call
 * CCI_ERR_NOT_IMPLEMENTED	flags differ from those of the first call
 * CCI_ENOMEM		memory is short
 * CCI_ERROR		the file cannot be read (reported on stderr)
 *
 * Any thread; does not wait for peers.  It is the one function that a forked child may
 * call to start anew.
 */
CCI_DECLSPEC int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps);

/*
 * cci_finalize - end CCI
 *
 * Undoes one cci_init.  The last one destroys the endpoints that are left, as
 * cci_destroy_endpoint does, and frees the devices.  Portals interfaces are not touched.
 * A program may exit without it.
 *
 * CCI_ERROR	CCI is not initialised
 *
 * The last call: one thread, while no other thread uses CCI; waits as PtlNIFini does.
 */
CCI_DECLSPEC int cci_finalize(void);

/*
 * cci_strerror - name of a status
 *
 *	endpoint	in	an endpoint, or NULL: the result is the same
 *	status		in	any value
 *
 * Return the name of the enumerator; for another errno value its text, else "unknown
 * error".  The string is constant, and never NULL.  Works before cci_init.
 *
 * Any thread; does not block.
 */
CCI_DECLSPEC const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status);

/*
 * cci_get_devices - list of devices
 *
 *	devices	out	an array of pointers that ends with NULL; it and the devices are
 *			valid until the last cci_finalize
 *
 * Devices that are up come first, then the default one, then those with higher
 * priority.  Each call gives the same array.
 *
 * CCI_EINVAL	devices is NULL
 *
 * Any thread; does not block.
 */
CCI_DECLSPEC int cci_get_devices(cci_device_t *const **devices);

/* ---- endpoints ---- */

/*
 * cci_create_endpoint - make an endpoint
 *
 *	device		in	one of cci_get_devices, or NULL: the default device
 *	flags		in	ignored
 *	endpoint	out	the endpoint
 *	fd		out	a descriptor to wait with, or NULL: none is wanted
 *
 * The descriptor is readable (POLLIN) while events wait, for poll, select and epoll,
 * and nothing has to be armed.  It may be readable without an event: cci_get_event
 * returns CCI_EAGAIN then, and the descriptor is unreadable afterwards.  The library
 * owns it: do not read, write or close it.  The first endpoint of a process joins its
 * job or domain.
 *
 * CCI_EINVAL	endpoint is NULL, or device is none of cci_get_devices
 * CCI_ENODEV	device is NULL, and the default device is not up or not there; the job or
 *		domain cannot be joined (reported on stderr); or CCI is not initialised,
 *		or this is a forked child
 * CCI_ERROR	only in a signal handler that has interrupted the library
 * CCI_ENETDOWN	device is not up
 * CCI_ENOMEM	memory or descriptors are short
 * CCI_ERANGE	the process has 1,024 endpoints, or all numbers from the device's
 *		service on are in use
 *
 * Any thread; the first endpoint waits for the network interface to start.
 */
CCI_DECLSPEC int cci_create_endpoint(
	cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/*
 * cci_create_endpoint_at - make an endpoint with a given number
 *
 *	device		in	one of cci_get_devices
 *	service		in	a decimal number from 1 to 65535, or "A/B" with such a
 *				number B, or NULL: as cci_create_endpoint
 *	flags		in	ignored
 *	endpoint	out	the endpoint
 *	fd		out	a descriptor to wait with, or NULL: none is wanted
 *
 * The URI depends on the service and on the place of the process only, so that it is
 * known in advance: portals://DOMAIN/NODE/ENDPOINT.  In a job without a domain, and on
 * several hosts, DOMAIN is job: and the job's number.
 *
 * CCI_EINVAL	endpoint is NULL, device is none of cci_get_devices, or service is not
 *		such a number
 * CCI_EBUSY	another endpoint of this process has the service
 * CCI_ENODEV	the job or domain cannot be joined (reported on stderr); or CCI is not
 *		initialised, or this is a forked child
 * CCI_ERROR	only in a signal handler that has interrupted the library
 *
 * The other codes are those of cci_create_endpoint.
 *
 * Any thread; the first endpoint waits for the network interface to start.
 */
CCI_DECLSPEC int cci_create_endpoint_at(cci_device_t *device, const char *service,
	int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/*
 * cci_destroy_endpoint - end an endpoint
 *
 *	endpoint	in	the endpoint; stale afterwards
 *
 * Ends its connections, events (also those that are lent), registrations and
 * descriptor.  Sends and RMAs that are under way end without events.  Afterwards the
 * library touches no memory of the program that was registered with this endpoint or
 * given with CCI_FLAG_NO_COPY.
 *
 * CCI_EINVAL	endpoint is NULL
 *
 * One thread, while no other thread uses the endpoint; does not wait for peers, but as
 * cci_rma_deregister.
 */
CCI_DECLSPEC int cci_destroy_endpoint(cci_endpoint_t *endpoint);

/* ---- connections ---- */

#define CCI_CONN_REQ_LEN 1024 /* most bytes of the payload of a connect */

/*
 * cci_connect - ask another endpoint for a connection
 *
 *	endpoint	in	the local endpoint
 *	server_uri	in	URI of the other one (CCI_OPT_ENDPT_URI)
 *	data_ptr	in	payload for the CONNECT_REQUEST event, or NULL
 *	data_len	in	bytes of the payload, at most CCI_CONN_REQ_LEN
 *	attribute	in	of the connection
 *	context		in	for the CONNECT event and the connection
 *	flags		in	ignored
 *	timeout		in	time for the whole connect; NULL: for ever
 *
 * After success exactly one CONNECT event with this context comes.  A server that is not
 * there, or rejects, makes it CCI_ECONNREFUSED.  The connection may be used from this
 * event on.  The request is reliable, whatever the attribute.
 *
 * An endpoint has at most 4,032 connections, those included that are yet to come, or that
 * an event names which is not returned.  A process takes at most 1,024 connections with
 * another process: it refuses further requests (CCI_ECONNREFUSED).
 *
 * CCI_EINVAL	endpoint or server_uri is NULL; data_len is too large, or not 0 with
 *		data_ptr NULL; the attribute is unknown; timeout is negative; the URI
 *		cannot be parsed
 * CCI_ERR_NOT_IMPLEMENTED	attribute is multicast
 * CCI_EADDRNOTAVAIL	the URI is of another transport or domain
 * CCI_ENOBUFS	the endpoint has 4,032 connections: end one and return its events
 *
 * Any thread; does not block.
 */
CCI_DECLSPEC int cci_connect(cci_endpoint_t *endpoint, const char *server_uri,
	const void *data_ptr, uint32_t data_len, cci_conn_attribute_t attribute,
	const void *context, int flags, const struct timeval *timeout);

/*
 * cci_accept - accept a request for a connection
 *
 *	conn_req	in	a CONNECT_REQUEST event, neither accepted nor rejected;
 *				it has to be returned afterwards
 *	context		in	for the ACCEPT event and the connection
 *
 * After success exactly one ACCEPT event with this context comes.  The connection may be
 * used from this event on.
 *
 * CCI_EINVAL	conn_req is NULL, of another type, or decided
 * CCI_ENOBUFS	the endpoint has 4,032 connections: end one and return its events, or
 *		reject the request
 *
 * Any thread; does not block.
 */
CCI_DECLSPEC int cci_accept(cci_event_t *conn_req, const void *context);

/*
 * cci_reject - reject a request for a connection
 *
 *	conn_req	in	a CONNECT_REQUEST event, neither accepted nor rejected;
 *				it has to be returned afterwards
 *
 * The client's CONNECT event has CCI_ECONNREFUSED.  No event comes here.
 *
 * CCI_EINVAL	conn_req is NULL, of another type, or decided
 *
 * Any thread; does not block.
 */
CCI_DECLSPEC int cci_reject(cci_event_t *conn_req);

/*
 * cci_disconnect - end the local side of a connection
 *
 *	connection	in	the connection; stale afterwards
 *
 * The peer is not told: its next reliable operation fails with CCI_ERR_DISCONNECTED.
 * Messages that have arrived but were not handed out are discarded.  Operations under
 * way complete with CCI_ERR_DISCONNECTED, or with success.
 *
 * CCI_EINVAL	connection is NULL
 *
 * One thread, while no other thread uses the connection; does not wait for the peer, but
 * as cci_rma_deregister.
 */
CCI_DECLSPEC int cci_disconnect(cci_connection_t *connection);

/* ---- events ---- */

/*
 * cci_arm_os_handle - tell that the caller is about to wait
 *
 *	endpoint	in	the endpoint
 *	flags		in	0
 *
 * A hint: the descriptor of cci_create_endpoint works without it.  The network interface
 * then prepares for a sleeping program.
 *
 * CCI_EINVAL	endpoint is NULL, it has no descriptor, or flags is not 0
 *
 * Any thread; does not block.
 */
CCI_DECLSPEC int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags);

/*
 * cci_get_event - take the oldest event of an endpoint
 *
 *	endpoint	in	the endpoint
 *	event		out	the event, lent until cci_return_event; NULL if there is
 *				none, then it is written although the call fails
 *
 * Any number of events may be lent at a time.  Each event is handed out once.
 *
 * CCI_EINVAL	an argument is NULL
 * CCI_EAGAIN	there is no event
 * CCI_ENOBUFS	there is no event, and the program holds all receive buffers, so that no
 *		message can arrive
 *
 * Any thread; does not block, but as cci_rma_deregister.
 */
CCI_DECLSPEC int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event);

/*
 * cci_return_event - give an event back
 *
 *	event	in	the event; stale afterwards
 *
 * Events may be returned in any order, and by another thread than took them.  Each event
 * has to be returned, or its buffer stays in use.
 *
 * CCI_EINVAL	event is NULL, or a CONNECT_REQUEST that was neither accepted nor
 *		rejected, which stays lent
 *
 * Any thread; does not block.
 */
CCI_DECLSPEC int cci_return_event(cci_event_t *event);

/* ---- options ---- */

/* Handle of an option: a cci_endpoint_t * for names with ENDPT, a cci_connection_t * for
 * names with CONN. */
typedef const void cci_opt_handle_t;

/*
 * Names of options, and the type of their values.
 *
 *	CCI_OPT_ENDPT_SEND_TIMEOUT	uint32_t, microseconds, 0: never.  Time-out of
 *					reliable sends; for connections made from now
 *					on.
 *	CCI_OPT_ENDPT_RECV_BUF_COUNT	uint32_t.  Messages that can be received and not
 *					yet returned.
 *	CCI_OPT_ENDPT_SEND_BUF_COUNT	uint32_t.  Sends that can be incomplete or not
 *					yet returned.
 *	CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT	uint32_t, microseconds, 0: off.  Period for all
 *					reliable connections, present and future.
 *	CCI_OPT_ENDPT_URI	char *, get only.  A string that the program frees.
 *	CCI_OPT_ENDPT_RMA_ALIGN	cci_alignment_t, get only.
 *	CCI_OPT_CONN_SEND_TIMEOUT	uint32_t, microseconds, 0: that of the endpoint.
 *	CCI_OPT_CONN_KEEPALIVE_TIMEOUT	uint32_t, microseconds, 0: off.  Period for this
 *					connection.
 */
typedef enum cci_opt_name {
	CCI_OPT_ENDPT_SEND_TIMEOUT,
	CCI_OPT_ENDPT_RECV_BUF_COUNT,
	CCI_OPT_ENDPT_SEND_BUF_COUNT,
	CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT,
	CCI_OPT_ENDPT_URI,
	CCI_OPT_ENDPT_RMA_ALIGN,
	CCI_OPT_CONN_SEND_TIMEOUT,
	CCI_OPT_CONN_KEEPALIVE_TIMEOUT
} cci_opt_name_t;

/* Alignment that RMA needs: bytes, 0: none.  All are 0 here. */
typedef struct cci_alignment {
	uint32_t rma_write_local_addr;
	uint32_t rma_write_remote_addr;
	uint32_t rma_write_length;
	uint32_t rma_read_local_addr;
	uint32_t rma_read_remote_addr;
	uint32_t rma_read_length;
} cci_alignment_t;

/*
 * cci_set_opt - set an option
 *
 *	handle	in	an endpoint or a connection, as the name demands
 *	name	in	of the option
 *	val	in	the value; cci_opt_name_t gives its type
 *
 * CCI_EINVAL	handle or val is NULL, or name is unknown or can only be got
 * CCI_ERANGE	the value cannot be had
 *
 * Any thread; does not block.
 */
CCI_DECLSPEC int cci_set_opt(
	cci_opt_handle_t *handle, cci_opt_name_t name, const void *val);

/*
 * cci_get_opt - get an option
 *
 *	handle	in	an endpoint or a connection, as the name demands
 *	name	in	of the option
 *	val	out	the value; cci_opt_name_t gives its type
 *
 * CCI_EINVAL	handle or val is NULL, or name is unknown
 * CCI_ENOMEM	memory for the URI is short
 *
 * Any thread; does not block.
 */
CCI_DECLSPEC int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val);

/* ---- messages ---- */

/*
 * Flags of sends, registrations and RMA, or-ed; bits without a name are ignored.
 *
 *	CCI_FLAG_BLOCKING	Return after completion, with its status, and without an
 *				event.
 *	CCI_FLAG_NO_COPY	The program does not change the message until
 *				completion, so that no copy is needed.  With
 *				CCI_FLAG_SILENT on RO only.
 *	CCI_FLAG_SILENT		No SEND event.  On RO, the completion of a later send
 *				tells of the silent ones before it.
 *	CCI_FLAG_READ		Registration: others may read.  RMA: read remote memory.
 *	CCI_FLAG_WRITE		Registration: others may write.  RMA: write remote
 *				memory.
 *	CCI_FLAG_FENCE		RMA: begin after all earlier RMAs of the connection are
 *				complete; later ones begin after this one has begun.
 */
#define CCI_FLAG_BLOCKING (1 << 0)
#define CCI_FLAG_NO_COPY  (1 << 1)
#define CCI_FLAG_SILENT   (1 << 3)
#define CCI_FLAG_READ     (1 << 4)
#define CCI_FLAG_WRITE    (1 << 5)
#define CCI_FLAG_FENCE    (1 << 6)

/*
 * cci_send - send a message
 *
 *	connection	in	the connection
 *	msg_ptr		in	the message; may be changed after the call, unless flags
 *				has CCI_FLAG_NO_COPY
 *	msg_len		in	bytes, at most the connection's max_send_size
 *	context		in	for the SEND event
 *	flags		in	CCI_FLAG_BLOCKING, CCI_FLAG_NO_COPY, CCI_FLAG_SILENT, or
 *				0
 *
 * After success exactly one SEND event comes, unless flags has CCI_FLAG_BLOCKING or
 * CCI_FLAG_SILENT.  On a connection that is known to be closed the event has
 * CCI_ERR_DISCONNECTED.
 *
 * CCI_EINVAL	connection is NULL; msg_ptr is NULL, and msg_len is not 0;
 *		CCI_FLAG_NO_COPY and CCI_FLAG_SILENT on a connection that is not RO
 * CCI_EMSGSIZE	the message is too long
 * CCI_ENOBUFS	no buffer now: nothing is sent, try again
 * CCI_ERR_DISCONNECTED	CCI_FLAG_SILENT, on a reliable connection that is known to be
 *		closed.  After a failure on RO the code is that of the failure
 *
 * With CCI_FLAG_BLOCKING it also returns each status of the SEND event: CCI_ERR_RNR,
 * CCI_ETIMEDOUT, CCI_ERR_DISCONNECTED.
 *
 * Any thread; blocks with CCI_FLAG_BLOCKING only, until completion.
 */
CCI_DECLSPEC int cci_send(cci_connection_t *connection, const void *msg_ptr,
	uint32_t msg_len, const void *context, int flags);

/*
 * cci_sendv - send a message that lies in pieces
 *
 *	connection	in	the connection
 *	data		in	the pieces; the array may be changed after the call
 *	iovcnt		in	number of pieces; 0: an empty message
 *	context		in	for the SEND event
 *	flags		in	as for cci_send
 *
 * As cci_send, with the message gathered from the pieces.
 *
 * CCI_EINVAL	connection is NULL; data is NULL, and iovcnt is not 0; a piece is NULL,
 *		and its length is not 0; CCI_FLAG_NO_COPY and CCI_FLAG_SILENT on a
 *		connection that is not RO
 * CCI_EMSGSIZE	the message is too long
 * CCI_ENOBUFS	no buffer now: nothing is sent, try again
 * CCI_ERR_DISCONNECTED	CCI_FLAG_SILENT, on a reliable connection that is known to be
 *		closed.  After a failure on RO the code is that of the failure
 *
 * Any thread; blocks with CCI_FLAG_BLOCKING only, until completion.
 */
CCI_DECLSPEC int cci_sendv(cci_connection_t *connection, const struct iovec *data,
	uint32_t iovcnt, const void *context, int flags);

/* ---- remote memory access ---- */

/* Name of registered memory: the contents count, and copies work in every process. */
typedef const struct cci_rma_handle {
	uint64_t stuff[4];
} cci_rma_handle_t;

/*
 * cci_rma_register - register memory for RMA
 *
 *	endpoint	in	the endpoint through which the memory is used
 *	start		in	any memory of the process
 *	length		in	bytes, more than 0
 *	flags		in	CCI_FLAG_READ, CCI_FLAG_WRITE: the rights of other
 *				endpoints; 0: use it as local memory only
 *	rma_handle	out	the handle; its memory is the library's, until
 *				cci_rma_deregister
 *
 * Registrations may overlap.  The memory has to stay mapped until cci_rma_deregister.
 *
 * CCI_EINVAL	a pointer is NULL, or length is 0
 * CCI_ENOMEM	the endpoint has 65,536 registrations
 *
 * Any thread; does not block.
 */
CCI_DECLSPEC int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length,
	int flags, cci_rma_handle_t **rma_handle);

/*
 * cci_rma_deregister - end a registration
 *
 *	endpoint	in	the endpoint of the registration
 *	rma_handle	in	its handle, or a copy of it
 *
 * Afterwards the library reads and writes no byte of the memory for this registration.
 * RMA that is under way fails with CCI_ERR_RMA_HANDLE.
 *
 * CCI_EINVAL	a pointer is NULL, or the handle is not a registration of this endpoint
 *
 * Any thread.  If RMA is under way the call waits for the end of a read that a peer on
 * this host has begun: some 10 us, and 100 ms at most, after which a peer that is stopped
 * in the middle may still read up to 1 MiB.  cci_disconnect, cci_destroy_endpoint, and
 * cci_get_event before a SEND event of an RMA that has timed out, wait likewise.
 */
CCI_DECLSPEC int cci_rma_deregister(
	cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle);

/*
 * cci_rma - read or write remote memory
 *
 *	connection	in	a reliable connection
 *	msg_ptr		in	a message for the target, or NULL; copied
 *	msg_len		in	bytes of the message; 0: none
 *	local_handle	in	local memory, registered with the connection's endpoint
 *	local_offset	in	bytes
 *	remote_handle	in	memory registered with the endpoint of the peer
 *	remote_offset	in	bytes
 *	data_len	in	bytes, more than 0
 *	context		in	for the SEND event
 *	flags		in	CCI_FLAG_READ or CCI_FLAG_WRITE, and CCI_FLAG_BLOCKING,
 *				CCI_FLAG_SILENT, CCI_FLAG_FENCE
 *
 * Writes local memory to the remote one, or reads the remote one.  The program of the
 * target takes no part.  After success exactly one SEND event comes, unless flags has
 * CCI_FLAG_BLOCKING or CCI_FLAG_SILENT, when the bytes are in place and the message is
 * acknowledged.  The target gets the message as a RECV event after the bytes are written
 * or read; it is not sent if the RMA fails.  A remote handle, range or right that is
 * wrong gives CCI_ERR_RMA_HANDLE in the event, and no byte is moved.
 *
 * CCI_EINVAL	connection or a handle is NULL; data_len is 0; the connection is UU;
 *		flags has both CCI_FLAG_READ and CCI_FLAG_WRITE, or neither;
 *		local_handle is not a registration of the endpoint, or the range is
 *		outside of it
 * CCI_EMSGSIZE	the message is too long
 * CCI_ENOBUFS	no buffer now: nothing is started, try again
 * CCI_ERR_DISCONNECTED	the connection is known to be closed
 *
 * With CCI_FLAG_BLOCKING it also returns each status of the SEND event.
 *
 * Any thread; blocks with CCI_FLAG_BLOCKING only, until completion.
 * Memory that is slow to read (portals3.h) delays only the process that it belongs to.
 */
CCI_DECLSPEC int cci_rma(cci_connection_t *connection, const void *msg_ptr,
	uint32_t msg_len, cci_rma_handle_t *local_handle, uint64_t local_offset,
	cci_rma_handle_t *remote_handle, uint64_t remote_offset, uint64_t data_len,
	const void *context, int flags);

#ifdef __cplusplus
}
#endif

#endif
