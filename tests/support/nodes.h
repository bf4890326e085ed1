/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nodes - several nodes in one test process, each with threads of its own
 *
 *	run_nodes(n, fn, arg)
 *	  rendezvous thread    the launcher's side of every node's socket
 *	  node threads 0..n-1  node, PtlInit, PtlNIInit, fn(rank, size, ni, arg), PtlFini
 *	  side threads	       side_start() by a node's thread: they act on its node
 *	  watchdog	       prints the place of every thread and aborts, instead of
 *			hanging
 *
 * cmocka's assertions work in the main thread only.  Here CHECK records the first
 * failures with file and line and ends the thread that failed (side threads are joined,
 * the node is finalised, its socket closed: the barriers of the other nodes fail, and
 * their next_event() times out); run_nodes() then fails the test.
 *
 * P3_FAR places the nodes on several hosts (far/placed.h).
 *
 * Memory that descriptors name comes from node_alloc(): it outlives the node.
 */
#ifndef P3_TESTS_NODES_H
#define P3_TESTS_NODES_H

#define CHECK_AT(file, line) check_at(file, line)
#include "check.h"
#include "patience.h"
#include "portals3.h"
#include "portals3_runtime.h"
#include "portals3x.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODES_MAX 18

typedef void nodes_fn(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg);

void run_nodes(unsigned n, nodes_fn *fn, void *arg);

struct nodes_opt {
	bool no_ni;              /* fn calls PtlNIInit itself; ni is PTL_INVALID_HANDLE */
	bool bad_headers;        /* peers are expected to report bad headers */
	ptl_ni_limits_t *limits; /* desired limits, or NULL */
};
void run_nodes_opt(unsigned n, nodes_fn *fn, void *arg, const struct nodes_opt *opt);

/* ---- checks, in any thread of a node ---- */

void check_at(const char *file, int line);
#define CHECK_OK(call) CHECK_RC(call, PTL_OK)

/* ---- around a node ---- */

/* Return 1 if P3_FAR asks for faults on the wire and there were none. */
int nodes_missed_faults(void);

/* Return n, or a small part of it under valgrind (P3_QUICK=1). */
unsigned rounds(unsigned n);

/* Return zeroed or patterned memory of the calling node, freed after its PtlFini. */
unsigned char *node_alloc(size_t len);
unsigned char *node_pattern(size_t len, unsigned seed);

unsigned char pattern(unsigned seed, size_t i);
void fill_pattern(void *at, size_t len, unsigned seed);
/* Check that bytes from..from+len of a pattern lie at "at". */
void check_pattern(const char *file, int line, const void *at, size_t from, size_t len,
	unsigned seed);
#define CHECK_PATTERN(at, from, len, seed)                                               \
	check_pattern(__FILE__, __LINE__, at, from, len, seed)
void check_zero(const char *file, int line, const void *at, size_t len);
#define CHECK_ZERO(at, len) check_zero(__FILE__, __LINE__, at, len)

/* Wait for all nodes; fail the test if a node is gone. */
void sync_nodes(void);
/* Do so without the library, whose barrier waits for messages that have not left. */
void meet_nodes(void);
/* A barrier among n threads of one or several nodes, without the library. */
struct gate;
struct gate *gate_new(unsigned n);
void gate_wait(struct gate *g);
void gate_free(struct gate *g);

/* An additional thread of the calling node. */
struct side;
struct side *side_start(void (*fn)(void *arg), void *arg);
struct side *side_start_small(void (*fn)(void *arg), void *arg); /* with a small stack */
void side_join(struct side *s);

/* End the node as if it was killed: its firmware stops where it is, its socket breaks.
 * Only the node's only thread may call it, and makes no library call afterwards. */
void node_die(void);
/* Do the same in a thread that holds the lease: the firmware takes no message any more.
 * With node_die() the NIC's thread may get the lease once more before. */
void node_die_holding(void);
/* End the node's process: it will never join, nor come to a barrier. */
void node_leave_job(void);
/* Open the node's interface with opt.limits, or return it if it is open.  With opt.no_ni
 * the node calls this before any call that needs an interface. */
ptl_handle_ni_t node_ni(void);

void run_for_drops(ptl_handle_ni_t ni, uint64_t drops); /* until that number of drops
							 * is counted */
ptlx_stats_t stats_of(ptl_handle_ni_t ni);
uint64_t drops_of(ptl_handle_ni_t ni);

/* ---- Portals calls in one line ---- */

#define MD_QUIET (PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE)
#define MD_ANY   (PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE)

ptl_process_id_t id_of(ptl_handle_ni_t ni, unsigned rank);
ptl_process_id_t anybody(void);
ptl_handle_eq_t eq_new(ptl_handle_ni_t ni, ptl_size_t n);
ptl_md_t md_of(void *start, size_t len, unsigned options, ptl_handle_eq_t eq);
/* A source, and a target of each operation, which have END events only. */
ptl_md_t source_md(void *start, size_t len, ptl_handle_eq_t eq);
ptl_md_t sink_md(void *start, size_t len, ptl_handle_eq_t eq);
ptl_handle_md_t bind_md(ptl_handle_ni_t ni, ptl_md_t md);
/* Unlink a descriptor once no operation uses it any more. */
void unlink_at_last(ptl_handle_md_t md);
ptl_handle_me_t me_last(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_match_bits_t bits,
	ptl_match_bits_t ignore, ptl_unlink_t unlink);
/* Append an entry with this descriptor, both retained. */
ptl_handle_md_t post_md(
	ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_md_t md);
int put_to(ptl_handle_ni_t ni, ptl_handle_md_t md, unsigned rank, ptl_pt_index_t pt,
	ptl_match_bits_t bits, ptl_ack_req_t ack);
int get_from(ptl_handle_ni_t ni, ptl_handle_md_t md, unsigned rank, ptl_pt_index_t pt,
	ptl_match_bits_t bits);

/* Return the next event within 15 s; PTL_EQ_DROPPED is a failure. */
ptl_event_t next_event_at(const char *file, int line, ptl_handle_eq_t eq);
#define next_event(eq) next_event_at(__FILE__, __LINE__, eq)
/* Return the next event, which must be of this kind and without failure. */
ptl_event_t expect_at(
	const char *file, int line, ptl_handle_eq_t eq, ptl_event_kind_t kind);
#define expect(eq, kind) expect_at(__FILE__, __LINE__, eq, kind)
/* Expect a START of this kind and its END.  Return the END. */
ptl_event_t expect_pair_at(
	const char *file, int line, ptl_handle_eq_t eq, ptl_event_kind_t start);
#define expect_pair(eq, start) expect_pair_at(__FILE__, __LINE__, eq, start)
/* Check that the queue is empty. */
void expect_empty_at(const char *file, int line, ptl_handle_eq_t eq);
#define expect_empty(eq) expect_empty_at(__FILE__, __LINE__, eq)

#endif
