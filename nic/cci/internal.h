/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * internal - what the files of nic/cci/ share
 *
 * From the bottom to the top, no file calls one above it:
 *
 *	event.c		queues of events, OS handles, gauges
 *	conn.c		connections, timers
 *	desc.c		descriptors, ends of operations
 *	sendq.c		messages into a lane; nic/proto/tx.c calls it, too
 *	retry.c		the send queue's marker (above nic/proto/tx.c), retries, time-outs
 *	setup.c		the set-up of connections
 *	rma.c		RMA: requests of peers, answers
 *	rx.c		requests and answers off the lanes
 *	peer.c		the start of the NIC, lost peers
 *	host.c		calls of host threads: the lease, waits, events
 *	msg_tx.c, region.c, endpoint.c	calls of host threads: sends, RMA, the others
 *
 * Only the lease holder calls these functions, except where a section or a comment says
 * otherwise.  The state is that of nic/cci/state.h.
 */
#ifndef P3_NIC_CCI_INTERNAL_H
#define P3_NIC_CCI_INTERNAL_H

#include "nic/cci/firmware.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"
#include "shm/atomics.h"

/* Return the endpoint or the connection of a program's pointer. */
static inline struct p3_cci_endpoint *p3_cci_endpoint_own(const cci_endpoint_t *endpoint)
{
	return (struct p3_cci_endpoint *)(uintptr_t)endpoint;
}

static inline struct p3_cci_conn *p3_cci_conn_own(const cci_connection_t *connection)
{
	return (struct p3_cci_conn *)(uintptr_t)connection;
}

/* ---- the queue of an endpoint's events, and the way back of returned ones ----
 *
 *	firmware  --post-->  ring  --take-->  program
 *	firmware  <--drain--  back, returned  <--give back--  program
 *
 * Both rings have a word for each item that the endpoint can have, so neither overflows
 * and no side waits.  A word is the address of an item, and in the upper 16 bits the lap
 * of the ring plus 1: a word of an earlier lap is no item.  The lease holder posts and
 * drains.  The thread that takes first owns the head and the ring back, and moves both by
 * plain stores.  A second thread that takes or gives back revokes the ownership, once.
 * From then on all threads move the head by compare-and-swap, and push what they return
 * on the list "returned".
 *
 * Memory ordering:
 *	CCIQ.1	word of the ring: post releases -> take acquires (the event is written)
 *	CCIQ.3	word of the ring back, or list "returned": give back releases -> drain
 *		acquires (the program has done with the event; the head has passed the
 *		item's word)
 *	EVQ.4	the owner, and the thread that revokes the ownership (shm/evq.h)
 */

#define P3_CCI_ITEMS_LOG2 15u
#define P3_CCI_ITEMS      (1u << P3_CCI_ITEMS_LOG2) /* most items of an endpoint */
#define P3_CCI_LAP_SHIFT  48u

/* Bytes of the two rings of a queue. */
#define P3_CCI_QUEUE_LEN (2u * P3_CCI_ITEMS * sizeof(p3_a64))

/* Set up a queue in zeroed memory of that length. */
void p3_cci_queue_init(struct p3_cci_queue *q, char *at);

/* Return the lap of a position, plus 1, in the upper 16 bits. */
static inline uint64_t p3_cci_queue_lap(uint64_t pos)
{
	return ((pos >> P3_CCI_ITEMS_LOG2) + 1) << P3_CCI_LAP_SHIFT;
}

static inline uint64_t p3_cci_queue_word(uint64_t pos, const struct p3_cci_item *item)
{
	return (uintptr_t)item | p3_cci_queue_lap(pos);
}

/* Return the item in a word, or NULL if the word is of an earlier lap. */
static inline struct p3_cci_item *p3_cci_queue_item_in(uint64_t pos, uint64_t word)
{
	uint64_t at = word ^ p3_cci_queue_lap(pos);
	return p3_likely(at >> P3_CCI_LAP_SHIFT == 0) ? (void *)(uintptr_t)at : NULL;
}

static inline p3_a64 *p3_cci_queue_place(p3_a64 *ring, uint64_t pos)
{
	return &ring[pos % P3_CCI_ITEMS];
}

/* The firmware. */

/* Return the next item of the ring back, and leave it there, or NULL. */
static inline struct p3_cci_item *p3_cci_queue_first_back(const struct p3_cci_queue *q)
{
	uint64_t at = q->back_head;
	uint64_t word = p3_acquire(p3_cci_queue_place(q->back, at)); /* CCIQ.3 */
	return p3_cci_queue_item_in(at, word);
}

/* Return the list of all items that threads other than the owner have returned. */
struct p3_cci_item *p3_cci_queue_take_returned(struct p3_cci_queue *q);

/* Any thread. */

/* Return true if there is an event.  This is a hint. */
static inline bool p3_cci_queue_any(const struct p3_cci_queue *q)
{
	uint64_t head = p3_get(&q->head);
	uint64_t word = p3_acquire(p3_cci_queue_place(q->ring, head)); /* CCIQ.1 */
	return p3_cci_queue_item_in(head, word) != NULL;
}

/* Take and give back in the rare cases: the thread does not own the queue. */
P3_RARE struct p3_cci_item *p3_cci_queue_take_rarely(struct p3_cci_endpoint *ep);
P3_RARE void p3_cci_queue_give_back_rarely(
	struct p3_cci_queue *q, struct p3_cci_item *item);

/* Take the oldest event, or return NULL.  A first look finds most queues empty without a
 * step of the owner.  Only the owner moves the head of a queue that has one, but a signal
 * handler may have interrupted it. */
static inline struct p3_cci_item *p3_cci_queue_take(struct p3_cci_endpoint *ep)
{
	struct p3_cci_queue *q = &ep->queue;
	uint64_t head = p3_get(&q->head);
	uint64_t word = p3_acquire(p3_cci_queue_place(q->ring, head)); /* CCIQ.1 */
	struct p3_cci_item *item = p3_cci_queue_item_in(head, word);
	if (!item)
		return NULL;
	if (p3_unlikely(!p3_owner_begin(&q->owner, p3_self.number)))
		return p3_cci_queue_take_rarely(ep);
	if (p3_likely(p3_get(&q->head) == head))
		p3_set(&q->head, head + 1);
	else
		item = NULL;
	p3_owner_leave(&q->owner);
	return item;
}

static inline void p3_cci_queue_give_back(
	struct p3_cci_queue *q, struct p3_cci_item *item)
{
	if (p3_unlikely(!p3_owner_begin(&q->owner, p3_self.number))) {
		p3_cci_queue_give_back_rarely(q, item);
		return;
	}
	uint64_t at = q->back_tail++;
	p3_release(p3_cci_queue_place(q->back, at),
		p3_cci_queue_word(at, item)); /* CCIQ.3 */
	p3_owner_leave(&q->owner);
}

/* Post the event that lies in an item. */
static inline void p3_cci_event_post(struct p3_nic *n, struct p3_cci_item *item)
{
	struct p3_cci_endpoint *ep = item->ep;
	struct p3_cci_queue *q = &ep->queue;
	uint64_t word = p3_cci_queue_word(q->tail, item);
	FAULT_POINT("cci.event_written");
	p3_release(p3_cci_queue_place(q->ring, q->tail), word); /* CCIQ.1 */
	q->tail++;
	FAULT_POINT("cci.event_posted");
	n->posted |= ep->news;
}

/* ---- timers ----
 *
 * Without a timer the firmware looks at no clock.  While one runs, whole passes look at
 * the clock each 64th time, brief passes each time that they publish gauges, and the NIC
 * thread sleeps until the first timer is due at most.  The look that finds a timer
 * due sets P3_ODD_CCI, and the last step of a pass fires the timer.
 */

void p3_cci_timer_init(
	struct p3_cci_timer *t, void (*fire)(struct p3_nic *n, struct p3_cci_timer *t));
/* Start a timer, or start it anew: it fires once, ns after now. */
void p3_cci_timer_start(struct p3_nic *n, struct p3_cci_timer *t, uint64_t ns);
void p3_cci_timer_stop(struct p3_nic *n, struct p3_cci_timer *t);

/* ---- connections ----
 *
 * A tag names a connection at its peer; it ends when the program closes the connection.
 * The memory stays as long as an event or an operation names it.
 */

/* The words of tags and tokens. */
#define P3_CCI_INDEX_BITS 10u
#define P3_CCI_CONN_BITS  16u
#define P3_CCI_GEN_SHIFT  (P3_CCI_INDEX_BITS + P3_CCI_CONN_BITS)

_Static_assert(P3_CCI_ENDPOINTS == 1u << P3_CCI_INDEX_BITS &&
		       P3_CCI_CONN_MOST <= 1u << P3_CCI_CONN_BITS,
	"a tag names each");

/* Return the endpoint whose index a tag or a token has, or NULL. */
static inline struct p3_cci_endpoint *p3_cci_conn_endpoint(
	const struct p3_nic *n, uint64_t name)
{
	return n->cci.ep[name & (P3_CCI_ENDPOINTS - 1)];
}

/* Return the number of a connection or of a descriptor in a tag or a token. */
static inline uint32_t p3_cci_conn_number(uint64_t name)
{
	return (uint32_t)(name >> P3_CCI_INDEX_BITS) & ((1u << P3_CCI_CONN_BITS) - 1);
}

static inline uint64_t p3_cci_conn_new_name(
	struct p3_nic *n, const struct p3_cci_endpoint *ep, uint32_t number)
{
	uint64_t gen = ++n->cci.next_gen << P3_CCI_GEN_SHIFT;
	if (p3_unlikely(!gen)) /* a name is never 0 */
		gen = ++n->cci.next_gen << P3_CCI_GEN_SHIFT;
	return gen | (uint64_t)number << P3_CCI_INDEX_BITS | ep->index;
}

/* Return the endpoint that has this number, or NULL. */
static inline struct p3_cci_endpoint *p3_cci_endpoint_numbered(
	const struct p3_nic *n, uint32_t number)
{
	for (uint32_t i = 0; i < n->cci.ends; i++)
		if (n->cci.ep[i] && n->cci.ep[i]->number == number)
			return n->cci.ep[i];
	return NULL;
}

/* Return the connection that a tag names, or NULL. */
static P3_HOT struct p3_cci_conn *p3_cci_conn_named(const struct p3_nic *n, uint64_t tag)
{
	struct p3_cci_endpoint *ep = p3_cci_conn_endpoint(n, tag);
	uint32_t number = p3_cci_conn_number(tag);
	if (p3_unlikely(!ep || number >= ep->conn_fresh))
		return NULL;
	struct p3_cci_conn *conn = &ep->conn[number];
	return p3_likely(conn->tag == tag && tag) ? conn : NULL;
}

/* Return the connection with the peer that a tag names, or NULL. */
static P3_HOT struct p3_cci_conn *p3_cci_conn_of_peer(
	const struct p3_nic *n, const struct p3_peer *p, uint64_t tag)
{
	struct p3_cci_conn *conn = p3_cci_conn_named(n, tag);
	return conn && conn->peer == p ? conn : NULL;
}

/* Return the payload of a connection's connect request. */
static inline char *p3_cci_conn_data(const struct p3_cci_conn *conn)
{
	return conn->ep->conn_data + (uint64_t)conn->number * CCI_CONN_REQ_LEN;
}

/* Return a connection to the peer, or NULL if the endpoint has the most.  The caller sets
 * its timers up. */
struct p3_cci_conn *p3_cci_conn_new(
	struct p3_nic *n, struct p3_cci_endpoint *ep, struct p3_peer *p);
/* Count an event that names the connection, and its return. */
static inline void p3_cci_conn_ref(struct p3_cci_conn *conn)
{
	conn->refs++;
}
/* Free the connection, which is closed, if nothing names it. */
P3_RARE void p3_cci_conn_settle(struct p3_nic *n, struct p3_cci_conn *conn);
static inline void p3_cci_conn_unref(struct p3_nic *n, struct p3_cci_conn *conn)
{
	conn->refs--;
	if (p3_unlikely(conn->state == P3_CCI_CLOSED))
		p3_cci_conn_settle(n, conn);
}
/* Take the connection from all lists but that of its endpoint: no message of it is sent
 * or taken any more. */
void p3_cci_conn_detach(struct p3_nic *n, struct p3_cci_conn *conn);

/* ---- descriptors: free, in use, returned ----
 *
 * The lists of free descriptors and slots are last-in-first-out, so a ping-pong stays in
 * the nearest cache.  Memory that no message has used is not touched.
 */

static inline void p3_cci_desc_push(struct p3_cci_item **list, struct p3_cci_item *item)
{
	item->next = *list;
	*list = item;
}

/* Take back all that the program has returned.  Most are receive descriptors. */
void p3_cci_desc_drain_all(struct p3_nic *n, struct p3_cci_endpoint *ep);
static inline void p3_cci_desc_drain(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	const struct p3_cci_queue *q = &ep->queue;
	uint64_t at = q->back_head;
	uint64_t word = p3_get(p3_cci_queue_place(q->back, at));
	if (p3_cci_queue_item_in(at, word) || p3_unlikely(p3_get(&q->returned) != 0))
		p3_cci_desc_drain_all(n, ep);
}

/* Use a descriptor for the first time. */
P3_RARE struct p3_cci_rx *p3_cci_rx_fresh(struct p3_cci_endpoint *ep);

/* Free a descriptor. */
static inline void p3_cci_rx_free(struct p3_cci_rx *rx)
{
	struct p3_cci_endpoint *ep = rx->item.ep;
	p3_cci_desc_push(&ep->rx_free, &rx->item);
	if (p3_unlikely(ep->rx_surplus))
		ep->rx_surplus--;
	else
		p3_set(&ep->rx_left, p3_get(&ep->rx_left) + 1);
}

/* Change the number of receive descriptors. */
void p3_cci_rx_set_count(struct p3_cci_endpoint *ep, uint32_t count);

/* Return true if p3_cci_tx_new() would return a descriptor. */
static inline bool p3_cci_tx_is_free(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	if (p3_likely(ep->tx_used < ep->tx_count))
		return true;
	p3_cci_desc_drain(n, ep);
	return ep->tx_used < ep->tx_count;
}

/* Use a send descriptor for the first time. */
P3_RARE struct p3_cci_tx *p3_cci_tx_fresh(struct p3_cci_endpoint *ep);

/* Return a send descriptor of the connection in the state OVER; p3_cci_tx_is_free() has
 * returned true. */
static P3_HOT struct p3_cci_tx *p3_cci_tx_take(struct p3_cci_conn *conn)
{
	struct p3_cci_endpoint *ep = conn->ep;
	struct p3_cci_item *item = ep->tx_free;
	struct p3_cci_tx *tx = (struct p3_cci_tx *)item;
	if (p3_likely(item != NULL))
		ep->tx_free = item->next;
	else
		tx = p3_cci_tx_fresh(ep);
	ep->tx_used++;
	conn->ntx++;
	tx->item.conn = conn;
	tx->is = (struct p3_cci_tx_is){0};
	tx->state = P3_CCI_TX_OVER;
	return tx;
}

/* Return a send descriptor of the connection, or NULL.  Its token is 0. */
struct p3_cci_tx *p3_cci_tx_new(struct p3_nic *n, struct p3_cci_conn *conn);
/* Free a send descriptor, unless its event or its answer is to come back. */
void p3_cci_tx_settle(struct p3_nic *n, struct p3_cci_tx *tx);
/* Give the descriptor a slot for its message.  Return false if there is none. */
bool p3_cci_tx_slot(struct p3_cci_tx *tx);
P3_RARE void p3_cci_tx_slot_back(struct p3_cci_tx *tx);

/* Return the operation that an answer names, or NULL. */
static inline struct p3_cci_tx *p3_cci_tx_named(const struct p3_nic *n, uint64_t token)
{
	struct p3_cci_endpoint *ep = p3_cci_conn_endpoint(n, token);
	uint32_t i = p3_cci_conn_number(token);
	if (p3_unlikely(!ep || i >= ep->tx_fresh || !token))
		return NULL;
	return p3_likely(ep->tx[i].token == token) ? &ep->tx[i] : NULL;
}

/* ---- operations, from their begin to their end ----
 *
 * An operation is in its connection's FIFO until it is complete.  On an RO connection an
 * operation that is done waits there for those before it, so the SEND events come in the
 * order of the calls.
 */

/* The request of an RMA operation enters the lane, or its data move, or are in place: its
 * time begins anew. */
static inline void p3_cci_tx_renew(const struct p3_cci_conn *conn, struct p3_cci_tx *tx)
{
	tx->tick = conn->tick;
}

/* Post the SEND event of an operation, whose context is set. */
static P3_HOT void p3_cci_tx_post(
	struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status)
{
	union cci_event *e = &tx->item.event;
	e->send.type = CCI_EVENT_SEND;
	e->send.status = status;
	e->send.connection = &tx->item.conn->pub;
	p3_cci_event_post(n, &tx->item);
}

/* Withdraw the data of an RMA operation from the transfer: the memory that the peer may
 * read, or that this node's read writes.  No slice begins afterwards; before the program
 * gets its memory back, a host thread calls p3_cci_wait_for_readers().  The pending waits
 * for its answer alone. */
P3_RARE void p3_cci_rma_withdraw(struct p3_nic *n, struct p3_cci_tx *tx);
/* End an operation that is in its connection's FIFO, with its data. */
void p3_cci_tx_end(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status);
/* End an operation that is in no list. */
void p3_cci_tx_over(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status);
/* The connection does not carry messages any more: end its operations, and let further
 * ones end with the same status. */
void p3_cci_conn_break(struct p3_nic *n, struct p3_cci_conn *conn, cci_status_t status);
/* Post CONNECT or ACCEPT.  A connection whose status is not CCI_SUCCESS is closed. */
void p3_cci_conn_set_up(struct p3_nic *n, struct p3_cci_conn *conn, cci_status_t status);

/* ---- messages into a lane, and answers ---- */

/* A request, or a part of it, as copied from its header. */
struct p3_cci_part {
	const char *bytes;
	uint64_t word1, token, tag;
	uint32_t len;
	bool later, last; /* parts came before; no part follows */
};

/* Copy the header c, with word 0 w0.  Return false if the peer wrote nonsense. */
static inline bool p3_cci_part_load(
	const struct p3_cell *c, uint64_t w0, struct p3_cci_part *m)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ROOM);
	uint32_t flags = p3_word0_flags(w0);
	*m = (struct p3_cci_part){.bytes = p3_format_bytes(c, P3_CCI_DATA),
		.word1 = w1,
		.token = p3_format_get(c, P3_CCI_TOKEN),
		.tag = p3_format_get(c, P3_CCI_TAG),
		.len = (uint32_t)p3_field_of(P3_CCI_LENGTH, w1),
		.later = flags & P3_F_CCI_LATER,
		.last = !(flags & P3_F_CCI_MORE)};
	return p3_word0_ncells(w0) == p3_cci_cells(m->len) &&
	       p3_field_of(P3_CCI_ROOM, w1) == (m->token && m->last);
}

/* Return the most cells of one message to the peer. */
static inline uint32_t p3_cci_req_most_cells(const struct p3_peer *p)
{
	return p3_ring_most(p->req_out.n);
}

/* Fill the first words of a request. */
static P3_HOT void p3_cci_req_fill(
	struct p3_cell *c, uint64_t word1, uint64_t token, uint64_t tag)
{
	p3_format_set(c, P3_CCI_ROOM, word1);
	p3_format_set(c, P3_CCI_TOKEN, token);
	p3_format_set(c, P3_CCI_TAG, tag);
}

/* Answer. */
void p3_cci_rsp_send(struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t token,
	enum p3_cci_status status);

/* Count a message whose last part was published.  tx is its operation if it is answered,
 * or NULL. */
static P3_HOT void p3_cci_msg_sent(
	struct p3_nic *n, struct p3_cci_conn *conn, struct p3_cci_tx *tx)
{
	p3_count(&n->count[P3_C_CCI_SENT], 1);
	if (!tx)
		return;
	P3_TRACE(keep, n, &tx->topic);
	tx->state = P3_CCI_TX_SENT;
	tx->is.in_flight = true;
	conn->nout++;
}

/* Take a rejection that was sent, or will not be, from its peer's list. */
static inline void p3_cci_request_unlist(struct p3_cci_request *r)
{
	p3_list_del(&r->todo);
	r->item.ep->rejects--;
	r->state = r->returned ? P3_CCI_REQ_FREE : P3_CCI_REQ_OVER;
}

/* Send from the peer's lists, and put the marker into its queue if something is left. */
void p3_cci_sendq_kick(struct p3_nic *n, struct p3_peer *p);

/* Send from this connection's lists. */
static inline void p3_cci_conn_kick(struct p3_nic *n, struct p3_cci_conn *conn)
{
	if (p3_list_empty(&conn->work))
		p3_list_add(&conn->peer->cci.work, &conn->work);
	p3_cci_sendq_kick(n, conn->peer);
}

/* ---- refused messages: receiver not ready ----
 *
 * A receiver without a free receive descriptor refuses reliable messages, and keeps
 * nothing.  The sender then holds the connection.  It goes on when the receiver says that
 * there is room again (READY), or, in case that hint is late or lost, when a timer
 * fires, after 100 us and then twice as long each time, 12.8 ms at most.  It sends one
 * message, and the others once that one was taken.
 *
 * On an RO connection the receiver refuses all messages behind the first refused one
 * until that comes again, and the sender sends them again in their order.
 */

/* Sender: the message was refused. */
void p3_cci_retry_refused(struct p3_nic *n, struct p3_cci_tx *tx);
/* Sender: the receiver has said that there is room again, or the timer has fired. */
void p3_cci_retry_resume(struct p3_nic *n, struct p3_cci_conn *conn);
/* Sender: the message was taken, or has failed. */
void p3_cci_retry_answered(struct p3_nic *n, struct p3_cci_conn *conn);
/* Sender: try the connect request again later. */
void p3_cci_retry_connect(struct p3_nic *n, struct p3_cci_conn *conn);
/* Client: the server's node is not known here, and may have joined.  Ask the job or the
 * domain for the news, as puts do. */
void p3_cci_retry_absent(struct p3_nic *n, struct p3_cci_conn *conn);

/* Receiver: a message of this connection was refused. */
void p3_cci_retry_starve(struct p3_cci_conn *conn);
/* Receiver: tell the senders that were refused if the endpoint has room again. */
void p3_cci_retry_feed(struct p3_nic *n, void *endpoint);

/* ---- the ends of a connection's timers: time-outs, retries, keepalives ----
 *
 * The time-out of operations needs no clock in a send: while a connection has operations,
 * its timer fires 16 times in the length of the time-out, and counts; an operation is
 * late when the timer has fired 17 times since the operation began.
 */

#define P3_CCI_TICKS 16u

/* Set up the timers of a new connection. */
void p3_cci_expire_init(struct p3_cci_conn *conn);
void p3_cci_expire_start(struct p3_nic *n, struct p3_cci_conn *conn);
/* Watch the time of the connection's operations. */
static inline void p3_cci_expire_watch(struct p3_nic *n, struct p3_cci_conn *conn)
{
	if (p3_unlikely(!conn->timer.due_ns && conn->timeout_us))
		p3_cci_expire_start(n, conn);
}

/* Change the time-out of operations, or the period of keepalives. */
void p3_cci_expire_set_timeout(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t us);
void p3_cci_expire_set_alive(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t us);
/* The peer is gone: report that at once if keepalives are on. */
void p3_cci_expire_silence(struct p3_nic *n, struct p3_cci_conn *conn);

/* ---- the set-up of connections ----
 *
 *	client				server
 *	connect		CONNECT ->	request event; answer at once
 *	CONNECT event	<- DECIDE	accept or reject
 *			answer ->	ACCEPT event
 *
 * No decision of a program holds room in a lane: the answer to CONNECT only says that the
 * server has the request.
 */

struct p3_cci_dial {
	struct p3_cci_endpoint *ep;
	const struct p3_cci_connect *c;
	int rc; /* out */
};

void p3_cci_setup_connect(struct p3_nic *n, void *dial);
/* The server has answered the request. */
void p3_cci_setup_asked(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t status);
/* Take the server's decision: return false if the peer wrote nonsense. */
bool p3_cci_setup_take_decision(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cci_part *m, bool accept);

/* Take a connect request, or a part of it.  Return false if the peer wrote nonsense. */
bool p3_cci_setup_take_request(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cci_part *m);

/* Forget the request of the peer of which parts are to come, if there is one: a peer
 * sends the parts of a request one behind the other. */
void p3_cci_setup_forget(struct p3_peer *p);

struct p3_cci_decision {
	struct p3_cci_request *request;
	void *context;
	bool accept;
	int rc; /* out */
};

void p3_cci_setup_decide(struct p3_nic *n, void *decision);
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

/* ---- messages ----
 *
 * An unreliable message that finds room leaves at once, from the program's memory.  A
 * reliable one is copied first, since its target may refuse it.  A message that comes in
 * parts gets its receive descriptor with the first part.
 */

struct p3_cci_msg {
	struct p3_cci_conn *conn;
	const void *data; /* n iovecs, or len bytes if n is 0 */
	uint32_t n, len;
	void *context;
};

/*
 * Make an operation, in no list, which keeps the bytes of a message.  Return CCI_SUCCESS,
 * or CCI_ENOBUFS without a descriptor or a slot.  If the connection is dead, there is no
 * operation either: return the status of the call, which has its event if it is to have
 * one.
 */
int p3_cci_msg_new(struct p3_nic *n, const struct p3_cci_msg *m, int flags,
	struct p3_cci_tx **tx_out);

/* Free the descriptor of a message whose other parts will not come. */
void p3_cci_msg_forget(struct p3_cci_conn *conn);

/* ---- registered memory ----
 *
 * A region is named by its index and 47 random bits, so a peer cannot guess the name of a
 * region whose handle it did not get, and an old name does not fit a later region.  Only
 * this process's own table counts: a peer's request names a region, and the firmware
 * checks it.
 */

#define P3_CCI_REGION_BITS 16u

_Static_assert(P3_CCI_REGIONS == 1u << P3_CCI_REGION_BITS,
	"a name has the place of each region");

/* Return the region of the endpoint that has this name, or NULL. */
static inline struct p3_cci_region *p3_cci_region_named(
	const struct p3_cci_endpoint *ep, uint64_t name)
{
	uint32_t i = (uint32_t)name & ((1u << P3_CCI_REGION_BITS) - 1);
	if (p3_unlikely(!name || i >= ep->region_fresh))
		return NULL;
	struct p3_cci_region *r = &ep->region[i];
	return p3_likely(r->name == name) ? r : NULL;
}

static inline bool p3_cci_region_holds(
	const struct p3_cci_region *r, uint64_t offset, uint64_t length)
{
	return offset <= r->length && length <= r->length - offset;
}

/* End all regions of an endpoint: no byte of them is read or written any more. */
void p3_cci_region_end_all(struct p3_nic *n, struct p3_cci_endpoint *ep);

/* ---- calls of host threads, without the lease ---- */

/*
 * Run a function with the lease: in this thread, or in the thread that has it, while this
 * one waits.  Return false if the function was not run: in a signal handler that has
 * interrupted a call of the library, or while the NIC closes.
 */
bool p3_cci_call(struct p3_nic *n, void (*run)(struct p3_nic *n, void *arg), void *arg);

/*
 * Wait, without the lease, until no peer of this host reads a slice of memory that was
 * withdrawn (XFER.7).  A slice takes some 10 us; a peer that is stopped in one is awaited
 * for P3_CCI_READERS_NS after the last withdrawal.
 */
#define P3_CCI_READERS_NS 100000000u
void p3_cci_wait_for_readers(struct p3_nic *n);
/*
 * Wait until the operation is complete, give it back, and return its status.
 *
 * Memory ordering:
 *	CCIQ.2	done of an operation: the firmware releases (it has written the bytes of
 *		a READ) -> the thread that waits acquires
 */
int p3_cci_wait_for(struct p3_nic *n, struct p3_cci_tx *tx);

#endif
