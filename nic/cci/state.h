/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of cci/: endpoints, connections, descriptors, and their part of peers; and the
 * words of CCI's messages in a lane.
 *
 * Only the lease holder touches this data, except the members that are marked (any) or
 * (host).
 */
#ifndef P3_NIC_CCI_STATE_H
#define P3_NIC_CCI_STATE_H

#include "nic/cci.h"
#include "nic/obj/state.h"
#include "nic/proto/format.h"
#include "nic/report/state.h"
#include "shm/atomics.h"
#include "shm/evq.h"

struct p3_peer;
struct p3_pending;
struct p3_cci_conn;
struct p3_cci_endpoint;

#define P3_CCI_ENDPOINTS  1024u /* endpoints of a process */
#define P3_CCI_REQUESTS   64u   /* connect requests that wait at an endpoint */
#define P3_CCI_CONN_MOST  4032u /* connections that an endpoint can have, as cci.h says */
#define P3_CCI_REGIONS    65536u /* regions of an endpoint */
#define P3_CCI_PEER_CONNS 1024u  /* most connections of one peer */
#define P3_CCI_INLINE     32u    /* bytes in a message's header, or in its descriptor */

/* ---- objects that can be in a queue ---- */

enum p3_cci_what {
	P3_CCI_RX,      /* a receive descriptor */
	P3_CCI_TX,      /* a send descriptor */
	P3_CCI_SETUP,   /* CONNECT or ACCEPT of a connection */
	P3_CCI_SILENCE, /* KEEPALIVE_TIMEDOUT of a connection */
	P3_CCI_REQUEST, /* a connect request */
	/* the send descriptor of a WRITE that was withdrawn: the thread that takes its
	 * event waits for readers */
	P3_CCI_WITHDRAWN
};

/* The first member of each object that has an event.  The program gets the address of
 * the event, and so of the object. */
struct p3_cci_item {
	union cci_event event;
	struct p3_cci_endpoint *ep;
	struct p3_cci_conn *conn; /* the connection that the event is about, or NULL */
	struct p3_cci_item *next; /* in a list of free or of returned items */
	uint8_t what;             /* p3_cci_what */
};

struct p3_cci_rx {
	struct p3_cci_item item;
	char *slot; /* memory for a message, and a zero byte */
};

enum p3_cci_tx_state {
	P3_CCI_TX_FREE,
	P3_CCI_TX_WAITS, /* in the connection's list of operations to send */
	P3_CCI_TX_SENT,  /* the answer is to come */
	P3_CCI_TX_DONE,  /* RO: waits for the operations before it */
	P3_CCI_TX_OVER   /* its event is posted, or no one wants it */
};

/* All are false when an operation begins. */
struct p3_cci_tx_is {
	bool numbered;  /* seq is set */
	bool silent;    /* no event */
	bool awaited;   /* a thread waits for done */
	bool in_flight; /* the answer to the message is to come, also if the operation is
			 * over */
	bool returned;  /* the program has returned the event, or none will be */
	bool with_msg;  /* RMA: a message follows the data */
	bool fence;     /* RMA: waits for all earlier RMA operations */
};

/* A send, or an RMA operation, from the call until its event is returned. */
struct p3_cci_tx {
	struct p3_cci_item item;
	struct p3_link fifo;   /* in the connection's operations that are not complete */
	struct p3_link wait;   /* in those to be sent, or to be sent again */
	uint64_t token;        /* names it in answers */
	struct p3_topic topic; /* of the request that was sent, for the trace */
	const char *bytes;     /* of the message: in_line, a slot, or the program's */
	char *slot;            /* its slot, or NULL */
	uint32_t len;          /* bytes of the message */
	uint32_t part;         /* bytes that earlier parts have carried */
	uint32_t seq;          /* RO: place among the messages of the connection */
	uint32_t tick;         /* the connection's tick when the operation began */
	cci_status_t status;
	uint8_t state; /* p3_cci_tx_state */
	struct p3_cci_tx_is is;
	p3_a32 done; /* (any) status plus 1 for the thread that waits; CCIQ.2 */
	char in_line[P3_CCI_INLINE];
	uint64_t local_name;    /* RMA: name of the local region */
	struct p3_pending *rma; /* RMA: its data, until they are in place; else NULL */
};

/* ---- connect requests at the server ---- */

enum p3_cci_request_state {
	P3_CCI_REQ_FREE,
	P3_CCI_REQ_COMING,  /* parts of its payload are to come */
	P3_CCI_REQ_OPEN,    /* undecided */
	P3_CCI_REQ_REJECTS, /* the rejection waits for room */
	P3_CCI_REQ_OVER     /* decided */
};

struct p3_cci_request {
	struct p3_cci_item item;
	struct p3_link todo; /* REJECTS: in the peer's list */
	struct p3_peer *peer;
	uint64_t incarnation; /* the peer's */
	uint64_t client;      /* tag of the client's connection */
	uint32_t mtu;         /* the client's max_send_size */
	uint32_t have;        /* bytes of the payload that have come */
	uint8_t state;        /* p3_cci_request_state */
	bool returned;
	_Alignas(8) char data[CCI_CONN_REQ_LEN + 8];
};

/* ---- timers ---- */

struct p3_cci_timer {
	struct p3_link link; /* in one of the lists of struct p3_cci, or in none */
	uint64_t due_ns;     /* 0: it does not run */
	void (*fire)(struct p3_nic *n, struct p3_cci_timer *t);
};

/* ---- connections ---- */

enum p3_cci_state {
	P3_CCI_FREE,
	P3_CCI_ABSENT,    /* client: the server's node has yet to join */
	P3_CCI_REQUESTED, /* client: CONNECT waits for room, here or at the server */
	P3_CCI_ASKED,     /* client: the server has the request */
	P3_CCI_DECIDED,   /* server: DECIDE waits for room, or for its answer */
	P3_CCI_READY,
	P3_CCI_DEAD,  /* the peer has closed it, or is gone, or an RO message failed */
	P3_CCI_CLOSED /* the program has closed it, or it never came to be */
};

/* Messages about a connection that have yet to be sent. */
enum p3_cci_todo {
	P3_CCI_TODO_CONNECT = 1,
	P3_CCI_TODO_DECIDE = 2,
	P3_CCI_TODO_READY = 4, /* tell the sender that there is room */
	P3_CCI_TODO_ALIVE = 8
};

struct p3_cci_conn {
	struct cci_connection pub;
	struct p3_peer *peer;
	struct p3_cci_endpoint *ep;
	uint64_t tag;      /* names it at the peer; 0: free */
	uint64_t peer_tag; /* the peer's connection */
	uint8_t state;     /* p3_cci_state */
	uint8_t todo;      /* bits of p3_cci_todo */
	bool client;
	bool held;     /* the peer has refused a message: wait for READY or the timer */
	bool probing;  /* one message tests whether the peer has room */
	bool resumes;  /* go on when the messages under way are answered */
	bool refusing; /* RO: messages behind seq_in were refused */
	bool in_parts; /* parts of a message are to come: for coming, or to skip */
	bool asked;    /* a keepalive is unanswered */
	bool silence_out;       /* the event silence was not returned yet */
	p3_a32 closed;          /* (any) no event of it is handed out any more */
	uint32_t refs;          /* events that name it */
	uint32_t ntx;           /* descriptors that name it */
	uint32_t nout;          /* messages sent, not answered */
	uint32_t rma_out;       /* RMA operations whose data are under way */
	uint32_t seq_out;       /* RO: of the next new message */
	uint32_t seq_in;        /* RO: of the next message to take */
	uint32_t tick;          /* counts the ends of timer */
	uint64_t moved;         /* how far its RMA had come at the last one */
	uint32_t refusals;      /* in a row */
	cci_status_t fate;      /* DEAD: status of all further operations */
	bool rnr;               /* the last answer to a message was a refusal */
	struct p3_link of_peer; /* in its peer's connections */
	struct p3_link work;    /* in its peer's list of those with messages to send */
	struct p3_link of_ep;   /* in its endpoint's connections, or free ones */
	struct p3_link starving;
	struct p3_link fifo;      /* operations that are not complete, oldest first */
	struct p3_link wait;      /* those to be sent */
	struct p3_link back;      /* those to be sent again, which come before wait */
	struct p3_link rma;       /* pendings of RMA whose data wait for their turn */
	struct p3_cci_rx *coming; /* message of which parts are to come, or NULL */
	uint32_t coming_len;
	struct p3_cci_timer timer; /* time-out of the connect, then of operations */
	struct p3_cci_timer retry; /* tries again if no READY comes */
	struct p3_cci_timer alive; /* keepalive */
	uint32_t timeout_us;       /* of operations; 0: none */
	uint32_t alive_us;
	struct p3_cci_item setup, silence;
	uint32_t number; /* its place in the endpoint's table */
	/* connect: where to, and with what */
	uint32_t server;
	uint32_t question; /* ABSENT: whose answer says whether the node comes */
	uint32_t data_len; /* bytes of the payload (p3_cci_conn_data()) */
	uint32_t data_sent;
};

/* ---- queues ---- */

/*
 * The queue of an endpoint's events: a ring of words, each the address of an item and
 * the lap.  There is a word for each item, so the ring cannot overflow.  The first thread
 * that reads owns it, as in shm/evq.h; the owner's returns go through a second ring.
 */
struct p3_cci_queue {
	p3_a64 *ring;                  /* (any) */
	p3_a64 *back;                  /* (any) returned items */
	uint64_t tail;                 /* of ring */
	uint64_t back_head;            /* of back */
	_Alignas(P3_LINE) p3_a64 head; /* (host) of ring */
	uint64_t back_tail;            /* (host: the owner) of back */
	struct p3_owner owner;         /* (host) shm/evq.h */
	p3_a64 returned; /* (host) items returned by threads that do not own it */
};

/* ---- regions ---- */

/* Registered memory.  The handle is the program's. */
struct p3_cci_region {
	struct cci_rma_handle handle;
	uint64_t name; /* 0: free; else the first word of the handle */
	char *start;
	uint64_t length;
	int flags;
	struct p3_cci_region *next; /* among the free ones */
};

/* ---- endpoints ---- */

struct p3_cci_endpoint {
	struct cci_endpoint pub;
	struct p3_nic *nic;
	uint64_t len; /* bytes of the memory that begins here */
	uint32_t index;
	uint32_t number;
	uint32_t mtu;
	uint32_t stride; /* bytes from a slot to the next */
	struct p3_cci_handle handle;
	uint32_t news;                /* of its events */
	struct p3_cci_endpoint *next; /* in n->cci.destroyed; it may be freed when none of
				       * its rejections waits */
	struct p3_cci_queue queue;
	/* receive descriptors */
	_Alignas(P3_LINE) struct p3_cci_rx *rx;
	char *rx_slots;
	struct p3_cci_item *rx_free;
	p3_a32 rx_left;      /* (any) descriptors that are free */
	uint32_t rx_fresh;   /* descriptors that were ever used */
	uint32_t rx_count;   /* those that the program wants */
	uint32_t rx_surplus; /* of those in use, how many are too many */
	/* send descriptors */
	struct p3_cci_tx *tx;
	char *tx_slots;
	struct p3_cci_item *tx_free;
	char *slot_free; /* each slot begins with the address of the next one */
	uint32_t tx_fresh, tx_count, tx_used;
	uint32_t slot_fresh, slot_count;
	/* connections */
	struct p3_cci_conn *conn;
	char *conn_data; /* their payloads of connect requests */
	uint32_t conn_fresh;
	struct p3_link conns;
	struct p3_link conns_free;
	struct p3_link starved;
	p3_a32 starving;  /* (any) starved is not empty */
	uint32_t rejects; /* requests in peers' lists */
	uint32_t nconns;  /* connections in use, for tools */
	uint32_t nopen;   /* connect requests that are not decided, for tools */
	struct p3_cci_request *request;
	uint32_t timeout_us, alive_us; /* of connections made from now on */
	/* registered memory */
	struct p3_cci_region *region;
	struct p3_cci_region *region_free;
	uint32_t region_fresh;
};

/* ---- parts of peers and of the NIC ---- */

struct p3_cci_peer {
	struct p3_link conns;
	struct p3_link work;    /* connections with messages to send */
	struct p3_link rejects; /* requests whose rejection waits for room */
	uint32_t nconns;
	uint32_t asked; /* cells reserved for answers */
	struct p3_cci_request
		*coming; /* the request of which parts are to come, or NULL */
};

struct p3_cci {
	struct p3_link soon, late; /* timers, by due_ns */
	p3_a64 due_ns;             /* (any) of the first timer, or 0 */
	uint32_t looks;            /* passes while a timer ran */
	p3_a32 napped;             /* (any) a thread has slept until a timer was due */
	p3_a64 withdrawn_ns;       /* (any) time of the last withdrawal of bytes, or 0 */
	struct p3_cci_endpoint *destroyed; /* endpoints with rejections that wait */
	struct p3_link absent;             /* connections whose node has yet to join */
	uint64_t next_gen;
	struct p3_cci_conn *last; /* of the last message, or none */
	struct p3_cci_conn none;  /* its tag is 0 */
	uint32_t next_number;
	bool shown;                /* the control block has lines of endpoints */
	uint32_t nendpoints, ends; /* endpoints, and places in ep that were ever used */
	uint32_t nconns;
	struct p3_cci_endpoint *ep[P3_CCI_ENDPOINTS];
};

/* ---- the words of messages in a lane ----
 *
 * Word 0 is that of each message (nic/proto/format.h), and so are the helpers.  The enums
 * below name the fields, one enum for each layout.  Each request that wants an answer
 * reserves one cell of the response ring, and carries a token, which names the operation
 * that waits for the answer.
 * The tag of a connection and the token of an operation are names of the process that
 * made them; other processes copy them only.
 */

/* Flags: more parts of the request follow; parts of it came before; DECIDE: the connect
 * request is accepted. */
enum { P3_F_CCI_MORE = 1, P3_F_CCI_LATER = 2, P3_F_CCI_ACCEPT = 4 };

/* All requests but WRITE and READ. */
enum p3_cci_request_fields {
	P3_CCI_LENGTH = P3_FIELD(1, 0, 16), /* bytes of this part */
	P3_CCI_ROOM = P3_FIELD(1, 48, 16),  /* 1: an answer is wanted */
	P3_CCI_TOKEN = P3_FIELD(2, 0, 64),
	P3_CCI_TAG = P3_FIELD(3, 0, 64), /* of the target's connection */
	P3_CCI_DATA = P3_FIELD(4, 0, 256)
};

/* MSG. */
enum p3_cci_msg_fields { P3_CCI_MSG_SEQ = P3_FIELD(1, 16, 32) };

/* CONNECT, which has no tag. */
enum p3_cci_connect_fields {
	P3_CCI_CONNECT_TOTAL = P3_FIELD(1, 16, 16), /* bytes of all parts */
	P3_CCI_CONNECT_ATTRIBUTE = P3_FIELD(1, 32, 8),
	P3_CCI_CONNECT_NUMBER = P3_FIELD(3, 0, 32), /* of the endpoint */
	P3_CCI_CONNECT_MTU = P3_FIELD(3, 32, 32)
};

/* DECIDE. */
enum p3_cci_decide_fields { P3_CCI_DECIDE_MTU = P3_FIELD(1, 16, 32) };

/* An answer. */
enum p3_cci_answer_fields {
	P3_CCI_ANSWER_STATUS = P3_FIELD(1, 0, 32),
	P3_CCI_ANSWER_KIND = P3_FIELD(1, 32, 8), /* p3_req_kind of the request */
	P3_CCI_ANSWER_TOKEN = P3_FIELD(2, 0, 64)
};

#define P3_CCI_HEAD 32u /* bytes of data in the header of a request */

/* Word 0 of an answer. */
#define P3_CCI_ANSWER p3_word0(P3_RSP_CCI, 0, 1)

/* The status of an answer, also in the response to a WRITE or a READ. */
enum p3_cci_status {
	P3_CCI_OK,
	P3_CCI_RNR,     /* no room now */
	P3_CCI_REFUSED, /* there is no such connection or endpoint */
	P3_CCI_GONE,    /* DECIDE: the client has given up */
	P3_CCI_HANDLE   /* RMA: there is no such region, or it has not the right */
};

/* Return the cells of a request with this number of bytes. */
static inline uint32_t p3_cci_cells(uint64_t len)
{
	return 1 + (len > P3_CCI_HEAD ? (uint32_t)((len - P3_CCI_HEAD + 63) / 64) : 0);
}

/* Return the most bytes of a request of this number of cells. */
static inline uint64_t p3_cci_most(uint32_t cells)
{
	return P3_CCI_HEAD + 64ull * (cells - 1);
}

#endif
