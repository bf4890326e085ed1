/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setup - the set-up of connections
 *
 *	client				server
 *	connect		CONNECT ->	request event; answer at once
 *	CONNECT event	<- DECIDE	accept or reject
 *			answer ->	ACCEPT event
 *
 * No decision of a program holds room in a lane: the answer to CONNECT only says that the
 * server has the request.
 *
 * Only the lease holder calls these functions.  The state is in connections and requests.
 */
#ifndef P3_NIC_CCI_SETUP_H
#define P3_NIC_CCI_SETUP_H

#include "nic/state.h"

/* ---- the client ---- */

struct p3_cci_dial {
	struct p3_cci_endpoint *ep;
	const struct p3_cci_connect *c;
	struct p3_cci_blob *data; /* NULL, or the payload: the firmware's after success */
	struct p3_cci_conn *chunk;   /* memory for connections, or NULL; NULL after use */
	struct p3_cci_blob *garbage; /* out: for the caller to free */
	int rc;                      /* out; CCI_EAGAIN: a chunk is needed */
};

void p3_cci_setup_connect(struct p3_nic *n, struct p3_cci_dial *d);
/* The server has answered the request. */
void p3_cci_setup_asked(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t status);
/* The question n->told is answered; coming is that of p3_nic_peer_told().  Return true if
 * a connect waits for the answer to the next question. */
bool p3_cci_setup_told(struct p3_nic *n, const uint64_t *coming);
/* The server's node has joined. */
void p3_cci_setup_joined(struct p3_nic *n, struct p3_peer *p);
/* Take the server's decision: return false if the peer wrote nonsense. */
bool p3_cci_setup_take_decision(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0);

/* ---- the server ---- */

/* Take a connect request, or a part of it.  Return false if the peer wrote nonsense. */
bool p3_cci_setup_take_request(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0);

/* Forget the request of the peer of which parts are to come, if there is one: a peer
 * sends the parts of a request one behind the other. */
void p3_cci_setup_forget(struct p3_peer *p);

struct p3_cci_decision {
	struct p3_cci_request *request;
	void *context;
	bool accept;
	struct p3_cci_conn *chunk;
	int rc;
};

void p3_cci_setup_decide(struct p3_nic *n, struct p3_cci_decision *d);
/* The client has answered the decision. */
void p3_cci_setup_decided(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t status);
/*
 * Return the living connection that a message or an RMA request of the peer names, or
 * NULL.  The client publishes its answer to the decision before its first message, and a
 * pass takes the responses of a peer before its requests.  With matching by the host
 * (PTL3_MATCH) the answer may lie behind a reply that waits for the host, and the message
 * is found first.  Only the decision tells the client the tag, so the message says what
 * the answer says, and the answer is ignored when it is found.
 */
struct p3_cci_conn *p3_cci_setup_used(
	struct p3_nic *n, const struct p3_peer *p, uint64_t tag);
/* Reject a request whose endpoint ends, or that the program rejects. */
void p3_cci_setup_reject(struct p3_nic *n, struct p3_cci_request *r);

#endif
