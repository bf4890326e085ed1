/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mp - the common functions of the programs of tests/mp: one process is one node, under
 * yod
 *
 * They see the public API only.  A check that fails prints one line and ends the node
 * with status 1, and yod the job with it.
 */
#ifndef P3_TESTS_MP_H
#define P3_TESTS_MP_H

#include "../support/patience.h"

#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MP_PORTAL  4
#define MP_MOST    256u       /* ranks */
#define MP_PATTERN (9u << 18) /* bytes of the pattern that data are cut from */
#define MP_LONGEST (2u << 20) /* of one message */

struct mp {
	ptl_handle_ni_t ni;
	unsigned rank, size;
	ptl_process_id_t id[MP_MOST];
};
extern struct mp mp;

/* Call PtlInit and PtlNIInit, and find rank and ids. */
void mp_start(void);
void mp_barrier(void);
/* Meet a last time, so that no rank is still sending, then call PtlFini. */
void mp_end(void);

_Noreturn void mp_fail(const char *where, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Text behind an error line, such as a way to repeat this run. */
extern char mp_note[80];

/* No call of the library changes errno, with any result. */
#define MP_ERRNO 0x5eed
#define mp_keeps_errno(rc, call)                                                         \
	do {                                                                             \
		errno = MP_ERRNO;                                                        \
		(rc) = (call);                                                           \
		if (errno != MP_ERRNO)                                                   \
			mp_fail(__FILE__, __LINE__, "%s sets errno to %d", #call,        \
				errno);                                                  \
	} while (0)

#define mp_ok(call)                                                                      \
	do {                                                                             \
		int rc_;                                                                 \
		mp_keeps_errno(rc_, call);                                               \
		if (rc_ != PTL_OK)                                                       \
			mp_fail(__FILE__, __LINE__, "%s: %s", #call,                     \
				PtlErrorStr((unsigned)rc_));                             \
	} while (0)

#define mp_check(truth, ...)                                                             \
	do {                                                                             \
		if (!(truth))                                                            \
			mp_fail(__FILE__, __LINE__, __VA_ARGS__);                        \
	} while (0)

/* ---- objects ---- */

ptl_handle_eq_t mp_queue(ptl_size_t events);
/* Describe a region: any number of operations, with just these options. */
ptl_md_t mp_region(void *start, ptl_size_t length, unsigned options, ptl_handle_eq_t eq);
/* START events are off unless options has MP_STARTS, which is no option of Portals. */
#define MP_STARTS 0x80000000u
ptl_handle_md_t mp_bind(
	void *start, ptl_size_t length, ptl_handle_eq_t eq, unsigned options);
ptl_handle_md_t mp_attach(ptl_match_bits_t bits, void *start, ptl_size_t length,
	unsigned options, ptl_handle_eq_t eq);

/* Return the next event, which must be of this type and no failure. */
ptl_event_t mp_expect(ptl_handle_eq_t eq, ptl_event_kind_t type);
/* Return the next event; lost events are an error. */
ptl_event_t mp_next(ptl_handle_eq_t eq);
/* Wait for the next event; return false if none comes. */
bool mp_next_soon(ptl_handle_eq_t eq, ptl_event_t *ev);
/* Wait for the next event; return false if none comes within ms, whatever the load. */
bool mp_next_within(ptl_handle_eq_t eq, unsigned ms, ptl_event_t *ev);
bool mp_poll(ptl_handle_eq_t eq, ptl_event_t *ev);

/* Put a region to a rank; wait (with progress) while there is no room for it. */
void mp_put(ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack,
	unsigned rank, ptl_match_bits_t bits, ptl_size_t remote, ptl_hdr_data_t hdr);
void mp_get(ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, unsigned rank,
	ptl_match_bits_t bits, ptl_size_t remote);

/* ---- data ---- */

/* The same random bytes in every node. */
extern unsigned char *mp_pattern;
/* Return the offset in mp_pattern of message number seq between two ranks. */
ptl_size_t mp_cut(unsigned from, unsigned to, uint64_t seq);
bool mp_same(
	const void *got, unsigned from, unsigned to, uint64_t seq, ptl_size_t length);
uint64_t mp_mix(uint64_t x);
/* Fill with bytes that follow from a seed and their place. */
void mp_fill(unsigned char *at, size_t n, unsigned seed);
void mp_compare(const unsigned char *at, size_t n, unsigned seed, const char *what);

/* ---- time ---- */

/* Sort and return the median; n > 0. */
uint64_t mp_median(uint64_t *ns, size_t n);
uint64_t mp_percentile(const uint64_t *sorted, size_t n, double p);
/* Pin this thread, and all that it starts later, to the nth CPU of its affinity mask. */
void mp_pin(unsigned nth);

#endif
