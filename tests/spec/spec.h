/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spec - the conformance suite: one test for each statement of the checklist
 *
 *	STATEMENT(64, attach_after_goes_behind)
 *	{
 *		...
 *	}
 *
 * A program of this directory holds the statements of some chapters and runs all of
 * them in the order of their numbers, on every node of a job: with one node (loopback)
 * A, the initiator, and B, the target, are the same process; with two or more A is rank
 * 0, B rank 1, and the others look on (spec.is_a and spec.is_b are false).  A test does
 * B's part in `if (spec.is_b)`, A's in `if (spec.is_a)`, with spec_barrier() between
 * steps that must follow one another, and must hold in both cases.
 *
 * Every test begins with a fresh interface on every node (spec.ni, no object, registers
 * zero, limits as spec.limits says) and a barrier, and may leave any objects behind.
 * It may close the interface itself, or the library: spec_up() brings it back.
 *
 * A check that fails ends the job; in a WEAK_STATEMENT only the rest of this node's part
 * is skipped.  support/suite.h has what all suites share.
 *
 * With SPEC_KEEP_GOING in the environment the tests behind one that fails are run, too
 * (and yod needs --keep-going).
 */
#ifndef P3_TESTS_SPEC_H
#define P3_TESTS_SPEC_H

#include "../support/suite.h"

#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

struct spec {
	ptl_handle_ni_t ni;
	ptl_ni_limits_t limits; /* actual limits */
	unsigned rank, size;
	bool is_a, is_b;
	ptl_process_id_t a, b, self; /* ids of A, of B, of this node */
	ptl_handle_ni_t second;      /* interface of spec_second() */
};
extern struct spec spec;

#define STATEMENT(number, name)      STATEMENT_OF(number, name, 0, 0)
#define WEAK_STATEMENT(number, name) STATEMENT_OF(number, name, 0, WEAK)

/* ---- checks ---- */

#define NEED_TWO_NODES()                                                                 \
	do {                                                                             \
		if (spec.size < 2)                                                       \
			suite_skip("needs two nodes");                                   \
	} while (0)
/* Print a line that has no effect on the result. */
void spec_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK_OK(call) CHECK_RC(call, PTL_OK)

/* A handle that was never valid. */
#define SPEC_JUNK ((ptl_handle_any_t)UINT64_C(0xdeadbeefcafef00d))

/* ---- jobs ---- */

/* Run a scene in an additional process outside the job, in which no call of the library
 * was made before, and wait for its end.  A check that fails there fails in the caller as
 * well. */
void spec_child(const char *name);

/* Wait for all nodes: rank 0's TAP line comes after the last of them. */
void spec_barrier(void);
/* Say a word to all nodes; wait for the nth word of this test.  Neither of them calls the
 * library. */
void spec_say(void);
void spec_hear(unsigned n);
/* Return B's value, on every node; there is a barrier before and behind it. */
uint64_t spec_told(uint64_t value_of_b);
/* Call PtlInit and open a fresh interface with these desired limits (NULL: the
 * library's), after closing all others; fill in spec. */
void spec_up(const ptl_ni_limits_t *desired);
/* Call PtlFini. */
void spec_down(void);
/* Open PTL_IFACE_SS, with default limits; it is closed before the next test. */
ptl_handle_ni_t spec_second(void);

/* ---- Portals calls in one line ---- */

#define SPEC_PT   4u /* the portal index that most tests use */
#define SPEC_BITS UINT64_C(0x1234567890abcdef)

/* Return true for interfaces of Cray's kind: a get has SEND events and takes two units,
 * a second PtlNIInit is PTL_IFACE_DUP, and UNLINK must be requested (spec_md() does). */
bool spec_cray(void);

ptl_process_id_t spec_any(void); /* both wildcards */
ptl_handle_eq_t spec_eq(ptl_size_t events);
/* Return a descriptor with start, length, options and queue; threshold infinite, no
 * user_ptr, no max_size. */
ptl_md_t spec_md(void *start, ptl_size_t length, unsigned options, ptl_handle_eq_t eq);
/* Append an entry to SPEC_PT's list: any process, exactly these bits, PTL_RETAIN. */
ptl_handle_me_t spec_me(ptl_match_bits_t bits);
/* Call spec_me() and attach a descriptor, PTL_RETAIN. */
ptl_handle_md_t spec_target(ptl_match_bits_t bits, ptl_md_t md);
ptl_handle_md_t spec_bind(ptl_md_t md, ptl_unlink_t unlink);
/* Put to B, SPEC_PT, access control entry 0, remote offset 0, without header data. */
void spec_put(ptl_handle_md_t md, ptl_ack_req_t ack, ptl_match_bits_t bits);
void spec_get(ptl_handle_md_t md, ptl_match_bits_t bits);

/* Return the next event; losses are not allowed. */
ptl_event_t spec_next(const char *file, int line, ptl_handle_eq_t eq);
#define NEXT(eq) spec_next(__FILE__, __LINE__, eq)
/* Check that the next event is of this kind and no failure. */
ptl_event_t spec_expect(
	const char *file, int line, ptl_handle_eq_t eq, ptl_event_kind_t kind);
#define EXPECT(eq, kind) spec_expect(__FILE__, __LINE__, eq, kind)
/* Check that there is no event, nor one within 20 ms. */
void spec_silence(const char *file, int line, ptl_handle_eq_t eq);
#define SILENCE(eq) spec_silence(__FILE__, __LINE__, eq)

uint64_t spec_drops(void); /* PTL_SR_DROP_COUNT of spec.ni */
/* Wait (20 s) for this count, then check for 20 ms that it stays. */
void spec_expect_drops(const char *file, int line, uint64_t count);
#define EXPECT_DROPS(count) spec_expect_drops(__FILE__, __LINE__, count)

#define CHECK_BYTES(at, from, len, seed)                                                 \
	check_bytes(__FILE__, __LINE__, at, from, len, seed)
#define CHECK_ZERO(at, len) CHECK_ALL(at, len, 0)

#endif
