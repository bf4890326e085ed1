/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_ucx - the patterns of compare that ucx_perftest has not, with the API of UCX
 *
 *	peer_ucx WHO quick|full test=list ...
 *
 *	ack	ns	rma.c	ucp_put_nbx of x bytes, and ucp_ep_flush_nbx
 *	get	ns	rma.c	ucp_get_nbx of x bytes
 *	am	ns	am.c	an active message (ucp_am_send_nbx), and its reply
 *	eqget	ns	rma.c	ucp_worker_progress where nothing is to be done
 *
 * The parent and its child are the two sides; side 0, the parent, keeps the time.
 * UCX allocates the memory of put and get, so that its shared memory reaches it.
 */
#ifndef BENCH_COMPARE_PEER_UCX_H
#define BENCH_COMPARE_PEER_UCX_H

#include "../peer.h"

#include <stdatomic.h>
#include <ucp/api/ucp.h>

enum { UCX_NAME = 4096, UCX_MEMORY = 4096 };

struct side {
	int number; /* 0 or 1 */
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_mem_h memory;
	char *bytes;      /* UCX_MEMORY of them */
	ucp_rkey_h rkey;  /* of the other side's bytes */
	uint64_t address; /* of the other side's bytes */
	bool quick;
};

/* A pattern.  Side 0 returns its value; it runs while side 1 makes progress. */
struct pattern {
	const char *name;
	void (*open)(struct side *s,
		uint64_t x); /* both sides, before they connect; or NULL */
	double (*run)(struct side *s, uint64_t x);
};
extern const struct pattern ucx_patterns[4];

void am_open(struct side *s, uint64_t bytes);
double am_run(struct side *s, uint64_t bytes);
double put_run(struct side *s, uint64_t bytes);
double get_run(struct side *s, uint64_t bytes);
double idle_run(struct side *s, uint64_t x);

/* Make progress, and yield the CPU now and then. */
void ucx_progress(struct side *s);
/* End the program unless status is UCS_OK. */
void ucx_check(ucs_status_t status, const char *call);
/* Wait until the request has ended. */
void ucx_wait(struct side *s, ucs_status_ptr_t request, const char *call);

/* Time rounds in batches, and return the median of a round, in ns. */
typedef void round_fn(struct side *s, uint64_t bytes, uint64_t round);
double ucx_timed(struct side *s, round_fn *fn, uint64_t bytes);

#endif
