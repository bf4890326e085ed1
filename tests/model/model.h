/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model - the required behavior of a Portals 3.3 implementation, one step after the
 * other
 *
 * A plain rendering of the receive procedure and of the initiator's accounting.
 * Several nodes, each with one interface, live in one struct model.  A call is carried
 * out completely at once: messages arrive when they are sent.  Written from the
 * specification alone; nothing here knows how the library does it.
 *
 * Objects are named by slots.  A slot whose object died stands for its stale handle.
 *
 * Which of several errors a call reports is not specified, so calls yield a set of codes:
 * that of all faults present, or PTL_OK alone.
 *
 * Events that one call (or one burst of calls without a pause) causes in a queue may be
 * deposited in several orders.  The model notes them in one of these, with the number
 * of the batch, and m_event_before() says which events must not change places.
 */
#ifndef P3_TESTS_MODEL_H
#define P3_TESTS_MODEL_H

#include "portals3.h"
#include "support/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define M_NODES   4u
#define M_EQS     8u
#define M_MES     28u
#define M_MDS     40u
#define M_PTS     64u
#define M_ACS     8u
#define M_IOVS    6u
#define M_POLLS   3u
#define M_RING    512u          /* largest queue and largest batch together */
#define M_ARENA   (512u * 1024) /* NET_ARENA */
#define M_TOUCHES 256u
#define M_CAUSES  4096u

/* ---- a program's operations ---- */

enum m_kind {
	M_EQ_ALLOC,
	M_EQ_FREE,
	M_EQ_GET, /* up to count times, until the queue is empty */
	M_EQ_PEEK,
	M_EQ_POLL,
	M_ME_ATTACH,
	M_ME_ATTACH_ANY,
	M_ME_INSERT,
	M_ME_UNLINK,
	M_MD_ATTACH,
	M_MD_BIND,
	M_MD_UNLINK,
	M_MD_UPDATE,
	M_MEMD_ATTACH,
	M_MEMD_INSERT,
	M_MEMD_POST,
	M_PUT,
	M_GET,
	M_GETPUT,
	M_AC_ENTRY,
	M_STATUS,
	M_HANDLE,
	M_STORE, /* the program writes into its own memory */
	M_KINDS
};

/* A handle argument. */
enum m_how { M_SLOT, M_NONE, M_INVALID, M_ZERO, M_OTHER_KIND };

struct m_ref {
	uint8_t how; /* m_how */
	uint8_t slot;
};

struct m_seg {
	uint32_t at; /* offset in the node's arena */
	uint32_t len;
};

enum m_md_fault {
	M_MD_FINE,
	M_MD_NULL_START,
	M_MD_WRAPS,
	M_MD_IOVS,
	M_MD_IOV_NULL,
	M_MD_OPTION,
	M_MD_THRESHOLD
};

struct m_md_arg {
	uint8_t fault; /* m_md_fault */
	uint8_t nseg;
	struct m_ref eq;
	int threshold;
	unsigned options;
	uint32_t user;
	uint64_t max_size;
	struct m_seg seg[M_IOVS];
};

/* Wildcards of ids; another value is the number of a node. */
#define M_ANY   0xffu
#define M_OTHER 0xfeu /* an id that no node has */

struct m_op {
	uint8_t kind; /* m_kind */
	uint8_t node;
	uint8_t target;
	uint8_t ni_fault;
	bool burst;  /* the next operation follows without a pause */
	bool region; /* PutRegion and the like */
	bool ack;
	bool keep; /* MDUpdate: no new_md */
	bool me_unlink, md_unlink;
	bool before; /* position */
	bool handler;
	uint8_t slot;  /* of the new object: queue, entry, or descriptor */
	uint8_t slot2; /* of the descriptor made together with an entry */
	uint8_t id_nid, id_pid, id_uid, id_jid;
	uint8_t npoll;
	struct m_ref eq, me, md, md2;
	struct m_ref poll[M_POLLS];
	struct m_md_arg arg;
	uint32_t pt, ac;
	uint32_t count;
	uint32_t at; /* STORE */
	uint64_t bits, ignore;
	uint64_t local_offset, local_offset2, length, remote_offset, hdr;
};

/* ---- the model's objects ---- */

struct m_event {
	ptl_event_kind_t type;
	uint32_t batch;
	uint32_t call;  /* the data movement call that caused it */
	uint32_t class; /* events with the same link */
	uint32_t md;    /* unique number of its descriptor */
	uint8_t initiator;
	bool fail; /* END of an operation with a process that does not exist */
	bool taken;
	bool burst;     /* other operations were under way */
	bool read;      /* the library's event at this position has been read */
	uint64_t place; /* taken: position of the library's event */
	uint32_t pt;
	uint64_t bits, rlength, mlength, offset, hdr;
	ptl_md_t snap;
};

struct m_eq {
	bool live, has_handler;
	uint32_t number; /* unique */
	uint32_t size;
	uint64_t written, read;
	struct m_event ring[M_RING];
};

struct m_me;

struct m_region {
	unsigned n;
	uint64_t size;
	struct m_seg seg[M_IOVS];
};

struct m_md {
	bool live, active, exhausted, unlink;
	uint8_t node;
	uint32_t number; /* unique */
	int threshold;
	uint64_t local_offset;
	struct m_region region;
	struct m_me *me;
	struct m_eq *eq; /* NULL: no queue */
	uint32_t eq_number;
	ptl_md_t given; /* as the caller gave it */
};

struct m_me {
	bool live, unlink;
	uint8_t id_nid, id_pid;
	uint32_t pt;
	uint64_t bits, ignore;
	struct m_md *md;
};

struct m_list {
	unsigned n;
	struct m_me *me[M_MES];
};

struct m_ac {
	bool valid;
	uint8_t id_nid, id_pid, id_uid, id_jid;
	uint32_t pt;
};

struct m_node {
	ptl_ni_limits_t limits;
	ptl_process_id_t id;
	unsigned char *memory;     /* the model's memory */
	unsigned char *lib_memory; /* memory of the library's descriptors */
	uint64_t drops;
	struct m_eq eq[M_EQS];
	struct m_me me[M_MES];
	struct m_md md[M_MDS];
	struct m_list list[M_PTS];
	struct m_ac ac[M_ACS];
	ptl_md_iovec_t iov[M_MDS][M_IOVS]; /* start of iovec descriptors */
};

/* Bytes that a call read or wrote. */
struct m_touch {
	uint8_t node;
	bool write;
	bool remote; /* by the target's side of the operation */
	uint32_t call;
	uint32_t at, len;
};

struct model {
	unsigned n; /* number of nodes */
	struct m_node node[M_NODES];
	uint32_t batch;
	bool in_burst;
	uint32_t calls;
	uint32_t classes;
	uint32_t numbers;
	unsigned ntouch;
	struct m_touch touch[M_TOUCHES];
	/* The last ENDs and ACKs in bursts, posted or not, of objects that may unlink
	 * themselves. */
	struct m_event cause[M_CAUSES];
	uint32_t ncauses;
	unsigned char data[M_ARENA], reply[M_ARENA];
};

/* ---- calls ---- */

#define M_CODE(code) (1u << (code))

void model_reset(struct model *m);
/* Carry the operation out; return the set of codes that it may return. */
uint32_t model_call(struct model *m, const struct m_op *op);
/* Complete all operations so far. */
void model_pause(struct model *m);
/* Return true if the operation is left out, because it would make an object in a used
 * slot, or its outcome is open. */
bool model_skips(const struct model *m, const struct m_op *op);

/* Return the ptl_md_t that the program passes for a descriptor in this slot; the caller
 * adds the event queue. */
ptl_md_t model_md(
	struct model *m, unsigned node, unsigned slot, const struct m_md_arg *a);

struct m_eq *m_eq(struct model *m, unsigned node, struct m_ref r);
struct m_me *m_me(struct model *m, unsigned node, struct m_ref r);
struct m_md *m_md(struct model *m, unsigned node, struct m_ref r);
struct m_eq *m_md_eq(const struct m_md *md); /* NULL unless it lives */

/* ---- queues ---- */

/* Return the position of the oldest unread event that was not lost. */
uint64_t m_eq_oldest(const struct m_eq *eq);
bool m_event_before(const struct m_event *a, const struct m_event *b);

/* generate.c: the next operation of a random program, given the state of the model */
struct generator {
	uint64_t state;
	unsigned nodes;
	unsigned made;
	/* Properties of this program, in percent. */
	unsigned longs;  /* lengths that do not travel in one piece */
	unsigned faults; /* bad handles and arguments */
	unsigned bursts;
	unsigned iovecs;
	unsigned events; /* events taken from queues; the others may be lost */
};

void generate_begin(struct generator *g, uint64_t seed);
struct m_op generate_op(struct generator *g, const struct model *m);

/* show.c: operations and events as text for people */
const char *show_kind(const struct m_op *op);
void show_op(char *text, size_t len, const struct m_op *op);
void show_event(char *text, size_t len, const ptl_event_t *ev);
void show_expected(char *text, size_t len, const struct m_event *ev,
	const ptl_process_id_t *initiator, ptl_handle_md_t md);

#endif
