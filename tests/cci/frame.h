/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame - the conformance suite of CCI: CCI in one line
 *
 * Each program of the suite holds the statements of one part of the checklist
 * (statements.txt); support/ranks.h runs them.
 */
#ifndef P3_TESTS_CCI_FRAME_H
#define P3_TESTS_CCI_FRAME_H

#include "../support/ranks.h"

#include <cci.h>

#define OK(call) CHECK_RC(call, CCI_SUCCESS)

void up(void);   /* cci_init */
void down(void); /* cci_finalize */
/* Create an endpoint of the default device, without and with a handle, and tell its URI
 * as this rank's next one. */
cci_endpoint_t *endpoint(void);
cci_endpoint_t *endpoint_fd(int *fd);
/* Call up() and endpoint(). */
cci_endpoint_t *first_endpoint(void);
/* Return a URI of an endpoint, for ever. */
const char *uri_of(cci_endpoint_t *ep);
/* Return the nth URI that a rank has told; wait for it.  The last 16 are kept. */
const char *told_uri(unsigned rank, unsigned n);
void tell_uri(cci_endpoint_t *ep);
/* Return the number of URIs that this rank has told. */
unsigned uris_told(void);

/* Return the next event, of any type; of this type and status, or a success. */
cci_event_t *next_at(const char *file, int line, cci_endpoint_t *ep);
cci_event_t *expect_at(const char *file, int line, cci_endpoint_t *ep,
	cci_event_type_t type, int status);
#define NEXT(ep)                        next_at(__FILE__, __LINE__, ep)
#define EXPECT_STATUS(ep, type, status) expect_at(__FILE__, __LINE__, ep, type, status)
#define EXPECT(ep, type)                EXPECT_STATUS(ep, type, CCI_SUCCESS)
/* Return the event to the library. */
#define RETURN(event) OK(cci_return_event(event))
/* Expect, and return at once. */
#define TAKE(ep, type) RETURN(EXPECT(ep, type))
/* Expect a successful SEND with this context. */
void sent_at(const char *file, int line, cci_endpoint_t *ep, const void *context);
#define SENT(ep, context) sent_at(__FILE__, __LINE__, ep, context)
/* Check that there is no event now, nor within ms. */
void silence_at(const char *file, int line, cci_endpoint_t *ep, unsigned ms);
#define SILENCE(ep, ms) silence_at(__FILE__, __LINE__, ep, ms)
/* Take n messages and hold their buffers; return all of them to the library. */
cci_event_t **hold_all(cci_endpoint_t *ep, uint32_t n);
void return_all(cci_event_t **held, uint32_t n);
/* Return the status of a SEND, CONNECT or ACCEPT, and CCI_SUCCESS for other events. */
int status_of(cci_event_t *event);

/* Connect, and wait for success; any other event is a failure. */
cci_connection_t *connect_to(cci_endpoint_t *ep, const char *uri,
	cci_conn_attribute_t attribute, const void *context);
/* Start to connect, without payload and limit. */
void ask(cci_endpoint_t *ep, const char *uri, cci_conn_attribute_t attribute,
	const void *context);
/* Take a request and accept it; wait for ACCEPT. */
cci_connection_t *accept_one(cci_endpoint_t *ep, const void *context);

/* An endpoint and a connection of it. */
struct side {
	cci_endpoint_t *ep;
	cci_connection_t *conn;
};
/* Connect rank 0 to rank 1 with new endpoints, for others an endpoint only.  Both ranks
 * have told as many URIs before. */
struct side meet(cci_conn_attribute_t attribute);
struct side meet_fd(cci_conn_attribute_t attribute, int *fd);
/* Connect again, with endpoints that there are. */
cci_connection_t *meet_again(
	cci_endpoint_t *ep, unsigned nth_uri, cci_conn_attribute_t attribute);

/* Two connected endpoints of this process. */
struct both {
	struct side a, b;
};
struct both both(cci_conn_attribute_t attribute);

uint32_t option(const void *handle, cci_opt_name_t name);
void set_option(const void *handle, cci_opt_name_t name, uint32_t value);

/* Any value as a context. */
#define CONTEXT(n) ((const void *)(uintptr_t)(n))

#define EACH_ATTRIBUTE(a)                                                                \
	for (cci_conn_attribute_t a = CCI_CONN_ATTR_RO; a <= CCI_CONN_ATTR_UU; a++)

/*
 * stream - streams of checked messages from rank 0 to rank 1
 *
 * The functions keep the number of sends whose events are to come, so they serve one
 * connection of a process at a time.
 */

/* Send; while there is no buffer, take SEND events. */
void send_patiently(struct side s, const void *bytes, uint32_t length,
	const void *context, int flags);
/* Take SEND events, which must be successes, until at most this many are owed. */
void take_sends(struct side s, unsigned owed);
/* Leave the events that are owed to the caller. */
void forget_sends(void);
/* Give an unreliable receiver time: wait for it every now and then (words 30 and 31). */
void slow_down(unsigned sent);
/*
 * Send n messages of mixed lengths; the receiver checks each.  They arrive in order on
 * RO, and once each.  window > 0: that many may be on their way at most, which the
 * receiver tells by word 31.
 */
void stream(cci_conn_attribute_t attribute, unsigned long n, unsigned window);

#endif
