/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame - the conformance suite of the libfabric provider: libfabric in one line
 *
 * Each program of the suite holds the statements of one part of the checklist
 * (statements.txt); support/ranks.h runs them.  They are written against libfabric's
 * interface, and run over the provider that OFI_PROVIDER names: portals, or another one
 * as a check of the tests.  Over another provider a statement is left out if that
 * provider does not claim an ability, or is known to lack what the statement asks for.
 */
#ifndef P3_TESTS_OFI_FRAME_H
#define P3_TESTS_OFI_FRAME_H

#include "../support/ranks.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sys/uio.h>

enum {
	API = FI_VERSION(1, 17),
	PEERS_MOST = 8,
	SHORT_MOST = 8192,  /* longest short message of portals */
	INJECT_MOST = 1536, /* longest message that portals injects */
	IOV_MOST = 8,
	LONG = 1 << 20,
	SETTLED = 0x5e771ed, /* tag of a message behind others */
	WOKEN_MS = 390,      /* within which no thread that sleeps looks by itself */
};

/* Any value as a context. */
#define CONTEXT(n) ((void *)(uintptr_t)(n))

#define OK(call)   CHECK_RC((int)(call), 0)
/* A region that a transfer uses, and an endpoint whose operations have not ended, are
 * busy while the peer has no CPU, for which one call waits some seconds. */
#define CLOSE(object)   close_at(__FILE__, __LINE__, &(object)->fid)
#define FAILS(call, rc) CHECK_RC((int)(call), rc)

/* ---- the provider ---- */

const char *provider(void);
bool over_portals(void);
/* Leave the statement out over other providers than portals. */
void only_portals(const char *reason);
/* Leave the statement out in builds with a sanitizer, whose run-time other programs that
 * would load the provider do not have. */
void only_plain(void);
/* Leave the statement out over this provider. */
void not_over(const char *name, const char *reason);

/* Return hints of a program that needs these capabilities and no mode. */
struct fi_info *hints_of(uint64_t caps);
/* Return what fi_getinfo has for the hints, which are freed; if the provider is another
 * one than portals and has nothing, leave the statement out. */
struct fi_info *info_of(struct fi_info *hints);

/* ---- an endpoint with all that it needs ---- */

struct how {
	uint64_t caps;
	uint64_t selective; /* FI_SELECTIVE_COMPLETION, or 0 */
	uint64_t op_flags;  /* of sends and RMA */
	uint64_t order;     /* of operations, beside that of messages */
	size_t queue;       /* least number of entries */
	enum fi_wait_obj wait;
	enum fi_av_type av_type;
	enum fi_threading threading;
	bool two_queues;            /* one for sends, one for receives */
	bool alone;                 /* no rank tells its name */
	struct fid_cntr **counters; /* COUNTERS, to be made and bound */
};
enum { C_SEND, C_RECV, C_READ, C_WRITE, C_REMOTE_READ, C_REMOTE_WRITE, COUNTERS };

/* A completion, good or bad. */
struct done {
	struct fi_cq_tagged_entry e;
	fi_addr_t from;
	int err;
	size_t olen;
};

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *tx, *rx; /* often the same */
	struct fid_ep *ep;
	fi_addr_t at[PEERS_MOST];            /* of each rank's endpoint */
	struct fid_cntr *counters[COUNTERS]; /* NULL: not open */
	struct done *early; /* taken from the queues, and not yet by the test */
	unsigned early_n, early_most;
};

/* Open all objects, up to the enabled endpoint, and learn all ranks' addresses. */
struct side *side_open(struct how how);
void side_close(struct side *s);
/* Open one more endpoint at the same queues and addresses. */
struct fid_ep *endpoint(struct side *s);
void close_at(const char *file, int line, struct fid *fid);
/* Open for messages with and without tags. */
struct side *both_kinds(uint64_t caps);
/* Let only so many receives into the NIC at once: those behind them wait. */
void few_posted(const char *n);
/* Tell all processes the endpoint's name, and enter the nth name of a rank. */
void tell_name(struct fid_ep *ep);
fi_addr_t address(struct side *s, unsigned rank, unsigned n);
/* Return the address of an endpoint of this process. */
fi_addr_t address_of(struct side *s, struct fid_ep *ep);
fi_addr_t enter(struct fid_av *av, const void *name);
struct fid_cq *queue_open(struct fid_domain *domain, enum fi_cq_format format,
	enum fi_wait_obj wait, size_t size);

/* ---- operations ---- */

/* Repeat a call while it returns -FI_EAGAIN, and take completions meanwhile. */
#define TRY(s, call)                                                                     \
	do {                                                                             \
		struct patience try_ = patience_begin();                                 \
		ssize_t rc_;                                                             \
		while ((rc_ = (call)) == -FI_EAGAIN) {                                   \
			pump(s);                                                         \
			look_at(__FILE__, __LINE__, &try_, #call);                       \
		}                                                                        \
		if (rc_ != 0)                                                            \
			check_failed(__FILE__, __LINE__, "%s gives %s", #call,           \
				check_code((int)rc_));                                   \
	} while (0)

/* Take completions from the queues into the list of early ones. */
void pump(struct side *s);
/* Send and receive with a tag, or without. */
void send_to(struct side *s, bool tagged, unsigned rank, const void *at, size_t len,
	uint64_t tag, void *context);
void recv_from(struct side *s, bool tagged, fi_addr_t from, void *at, size_t len,
	uint64_t tag, void *context);
/* Send with a tag and take the completion. */
void send_now(struct side *s, unsigned rank, const void *at, size_t len, uint64_t tag);
/* Send so that the completion comes when the receiver has the bytes, and take it. */
void deliver(struct side *s, unsigned rank, const void *at, size_t len, uint64_t tag);
/* Send a message to itself, for which it has posted a receive; leave both completions. */
void pass_one(struct side *s, uint64_t tag, void *sent, void *got);
/* Receive with a tag from any source, and take the completion. */
struct done recv_now(struct side *s, void *at, size_t len, uint64_t tag);
/* Look for a message without a receive; return the completion. */
struct done peek(struct side *s, uint64_t tag, uint64_t flags, void *context);
/* Wait until a message with this tag has arrived for which there is no receive. */
void await_late(struct side *s, uint64_t tag);
/* Wait until all ranks are here and what the sender has sent has come to the receiver,
 * for messages after which the sender sent one more with the tag. */
void settle(struct side *s, uint64_t tag, unsigned sender, unsigned receiver);

/* Return the next completion; the one with this context, which must be good, or bad with
 * this code. */
struct done next_at(const char *file, int line, struct side *s);
struct done take_at(const char *file, int line, struct side *s, void *context, int err);
#define NEXT(s)                     next_at(__FILE__, __LINE__, s)
#define TAKE(s, context)            take_at(__FILE__, __LINE__, s, context, 0)
#define TAKE_ERR(s, context, error) take_at(__FILE__, __LINE__, s, context, error)
/* Check that there is no completion now, nor within ms. */
void silence_at(const char *file, int line, struct side *s, unsigned ms);
#define SILENCE(s, ms) silence_at(__FILE__, __LINE__, s, ms)

/* Return LONG bytes of a pattern. */
unsigned char *sent_bytes(uint64_t seed);
/* Return memory with guards on both sides, all bytes 0xee. */
unsigned char *guarded(size_t len);
/* Check that a guarded block begins with these bytes and has no others. */
void check_guarded_at(const char *file, int line, const unsigned char *at, size_t len,
	size_t filled, uint64_t seed);
#define CHECK_GUARDED(at, len, filled, seed)                                             \
	check_guarded_at(__FILE__, __LINE__, at, len, filled, seed)

/* Return the time in ms that it takes to wake a thread on this machine, now. */
uint64_t wake_by_pipe(void);

/* ---- regions ---- */

struct region {
	struct fid_mr *mr;
	uint64_t key, base; /* base: address of the first byte in operations */
};
struct region region_open(
	struct side *s, void *at, size_t len, uint64_t access, uint64_t key);
/* Tell the other ranks a region; the region that a rank has told as its nth tale. */
void tell_region(const struct region *r);
struct region told_region(unsigned rank, unsigned n);

#endif
