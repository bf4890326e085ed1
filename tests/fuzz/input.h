/* SPDX-License-Identifier: BSD-3-Clause */
/* input - the bytes of one run, read from front to back; behind the end they are 0 */
#ifndef P3_TESTS_FUZZ_INPUT_H
#define P3_TESTS_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input {
	const uint8_t *at, *end;
};

static inline bool in_any(const struct input *in)
{
	return in->at < in->end;
}

static inline uint8_t in_u8(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* Return a number below n. */
static inline uint32_t in_below(struct input *in, uint32_t n)
{
	return in_u8(in) % n;
}

static inline bool in_bit(struct input *in)
{
	return in_u8(in) & 1;
}

static inline uint64_t in_bytes(struct input *in, unsigned n)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)in_u8(in) << 8 * i;
	return v;
}

#endif
