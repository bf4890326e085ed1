/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * long_put - the result of a call while a long put arrives
 *
 * A sends megabytes into untouched memory of B.  As soon as B reads PUT_START it makes
 * a call that must be refused until the put has ended: so it returns PTL_MD_IN_USE, or
 * PTL_OK and PUT_END can be read.  A machine that moves all bytes in one step never
 * shows the former; there are some tries, and a note if none of them was refused.
 */
#ifndef P3_TESTS_SPEC_LONG_PUT_H
#define P3_TESTS_SPEC_LONG_PUT_H

#include "spec.h"

enum { LONG_PUT_LENGTH = 24 << 20, LONG_PUT_TRIES = 3, LONG_PUT_STRIDE = 4099 };

struct long_put {
	ptl_handle_eq_t eq; /* B */
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	unsigned char *bytes;
};

/* Fill a byte in each page, and both ends. */
static inline void long_put_fill(unsigned char *bytes, unsigned seed)
{
	for (size_t i = 0; i < LONG_PUT_LENGTH; i += LONG_PUT_STRIDE)
		bytes[i] = byte_of(seed, i);
	bytes[LONG_PUT_LENGTH - 1] = byte_of(seed, 1);
}

static inline void long_put_check(const unsigned char *bytes, unsigned seed)
{
	for (size_t i = 0; i < LONG_PUT_LENGTH; i += LONG_PUT_STRIDE)
		CHECK_EQ(bytes[i], byte_of(seed, i));
	CHECK_EQ(bytes[LONG_PUT_LENGTH - 1], byte_of(seed, 1));
}

static inline struct long_put long_put_target(void)
{
	struct long_put p = {.eq = spec_eq(16), .me = spec_me(SPEC_BITS)};
	p.bytes = suite_alloc(LONG_PUT_LENGTH);
	CHECK_OK(PtlMDAttach(p.me, spec_md(p.bytes, LONG_PUT_LENGTH, PTL_MD_OP_PUT, p.eq),
		PTL_RETAIN, &p.md));
	return p;
}

/* B: return true if the call was refused.  In the end the call is done. */
static inline bool long_put_watch(struct long_put *p, int (*call)(struct long_put *p))
{
	ptl_event_t ev;
	(void)EXPECT(p->eq, PTL_EVENT_PUT_START);
	int rc = call(p);
	if (rc == PTL_OK) {
		CHECK_OK(PtlEQGet(p->eq, &ev));
		CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
		return false;
	}
	CHECK_RC(rc, PTL_MD_IN_USE);
	ev = EXPECT(p->eq, PTL_EVENT_PUT_END);
	CHECK_EQ(ev.mlength, LONG_PUT_LENGTH);
	CHECK_EQ(ev.md_handle, p->md);
	CHECK_OK(call(p));
	return true;
}

static inline bool long_put_once(unsigned seed, int (*call)(struct long_put *p))
{
	struct long_put p = {0};
	bool refused = false;
	if (spec.is_b)
		p = long_put_target();
	spec_barrier();
	if (spec.is_a) {
		unsigned char *from = suite_alloc(LONG_PUT_LENGTH);
		long_put_fill(from, seed);
		spec_put(spec_bind(spec_md(from, LONG_PUT_LENGTH, 0, PTL_EQ_NONE),
				 PTL_RETAIN),
			PTL_NO_ACK_REQ, SPEC_BITS);
	}
	if (spec.is_b) {
		refused = long_put_watch(&p, call);
		long_put_check(p.bytes, seed);
		SILENCE(p.eq);
	}
	return spec_told(refused);
}

static inline void long_put_try(int (*call)(struct long_put *p))
{
	for (unsigned i = 0; i < LONG_PUT_TRIES; i++)
		if (long_put_once(i, call))
			return;
	if (spec.is_b)
		spec_note("not observed: the put was over when its START was read");
}

#endif
