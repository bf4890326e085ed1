/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * takers - finds the one of B's match entries that takes A's next put
 *
 *	struct takers t = takers();
 *	if (spec.is_b)
 *		offer(&t, some_entry, 'x', 1);
 *	EXPECT_TAKERS(&t, SPEC_BITS, "x-");
 *
 * Descriptors are named by a letter, their user_ptr; '-' means that B drops the put.
 * All nodes call the checks, since A sends and B looks.
 */
#ifndef P3_TESTS_SPEC_TAKERS_H
#define P3_TESTS_SPEC_TAKERS_H

#include "spec.h"

enum { TAKERS_LENGTH = 8 };

struct takers {
	ptl_pt_index_t pt;
	ptl_handle_eq_t eq; /* of B: gets PUT_END and UNLINK of the offered descriptors */
	ptl_handle_md_t put; /* of A: the source of the puts */
	unsigned char *bytes;
};

static inline struct takers takers(void)
{
	struct takers t = {.pt = SPEC_PT, .bytes = suite_alloc(TAKERS_LENGTH)};
	t.eq = spec_eq(256);
	t.put = spec_bind(spec_md(t.bytes, TAKERS_LENGTH, 0, PTL_EQ_NONE), PTL_RETAIN);
	return t;
}

static inline ptl_md_t takers_md(const struct takers *t, char name, int threshold)
{
	static char names[128];
	ptl_md_t md = spec_md(t->bytes, TAKERS_LENGTH,
		PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE, t->eq);
	md.user_ptr = &names[(unsigned char)name % sizeof names];
	*(char *)md.user_ptr = name;
	md.threshold = threshold;
	return md;
}

/* Attach a descriptor for this number of puts that never unlinks by itself. */
static inline ptl_handle_md_t offer(
	const struct takers *t, ptl_handle_me_t me, char name, int threshold)
{
	ptl_handle_md_t md;
	CHECK_OK(PtlMDAttach(me, takers_md(t, name, threshold), PTL_RETAIN, &md));
	return md;
}

/* B: return the name in the event of the put, or '-'. */
static inline char takers_look(const struct takers *t, uint64_t drops)
{
	for (struct patience p = patience_begin(); !patience_is_over(&p);) {
		ptl_event_t ev;
		ptl_handle_eq_t eq = t->eq;
		int which, rc = PtlEQPoll(&eq, 1, 2, &ev, &which);
		if (rc == PTL_OK && ev.type == PTL_EVENT_PUT_END)
			return *(char *)ev.md.user_ptr;
		if (rc != PTL_OK)
			CHECK_RC(rc, PTL_EQ_EMPTY);
		if (spec_drops() > drops)
			return '-';
	}
	return '?';
}

static inline char takers_next(const struct takers *t, ptl_match_bits_t bits)
{
	char name = 0;
	uint64_t drops = spec.is_b ? spec_drops() : 0;
	spec_barrier();
	if (spec.is_a)
		CHECK_OK(PtlPut(t->put, PTL_NO_ACK_REQ, spec.b, t->pt, 0, bits, 0, 0));
	if (spec.is_b)
		name = takers_look(t, drops);
	spec_barrier();
	return name;
}

static inline void takers_expect(const char *file, int line, const struct takers *t,
	ptl_match_bits_t bits, const char *names)
{
	for (size_t i = 0; names[i]; i++) {
		char name = takers_next(t, bits);
		if (spec.is_b && name != names[i])
			check_failed(file, line, "put %zu is taken by %c, not %c", i,
				name, names[i]);
	}
}
#define EXPECT_TAKERS(t, bits, names) takers_expect(__FILE__, __LINE__, t, bits, names)

#endif
