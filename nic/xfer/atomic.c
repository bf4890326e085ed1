/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of PtlGetPut and PtlXAtomic on the bytes of a target.
 *
 * A value of 8 to 64 bits is kept in the low bits of a word; its other bits are any.  An
 * element that is aligned to its size changes by a compare-and-swap, so the program's own
 * atomic operations see it before or after.  Others change by plain copies: before and
 * after them no other operation of this firmware comes, since it does one at a time.
 */
#include "nic/xfer/xfer.h"
#include "shm/atomics.h"
#include "shm/fault.h"

#include <string.h>

/* ---- values ---- */

/* A float is exact as a double, and so is a sum or product of two of them until it is
 * rounded to a float again. */
static double atomic_real(uint32_t type, uint64_t bits)
{
	float f;
	double d;
	uint32_t low = (uint32_t)bits;
	memcpy(&f, &low, sizeof f);
	memcpy(&d, &bits, sizeof d);
	return type == PTLX_FLOAT ? (double)f : d;
}

static uint64_t atomic_bits(uint32_t type, double real)
{
	float f = (float)real;
	uint32_t low;
	uint64_t bits;
	memcpy(&low, &f, sizeof low);
	memcpy(&bits, &real, sizeof bits);
	return type == PTLX_FLOAT ? low : bits;
}

enum { BELOW = 1, EQUAL = 2, ABOVE = 4 }; /* none: not a number */

/* Return the order of a to b, as in C. */
static uint32_t atomic_order(uint32_t type, uint64_t a, uint64_t b)
{
	uint32_t unused = 64 - 8 * p3_atomic_size(P3_ATOMIC(0, type));
	if (type >= PTLX_FLOAT) {
		double x = atomic_real(type, a), y = atomic_real(type, b);
		return x < y ? BELOW : x > y ? ABOVE : x <= y ? EQUAL : 0;
	}
	a <<= unused;
	b <<= unused;
	if (type % 2 == PTLX_INT8) { /* signed: the sign is the highest bit */
		a ^= UINT64_C(1) << 63;
		b ^= UINT64_C(1) << 63;
	}
	return a < b ? BELOW : a > b ? ABOVE : EQUAL;
}

static bool atomic_is_true(uint32_t type, uint64_t value)
{
	return atomic_order(type, value, 0) != EQUAL;
}

static uint64_t atomic_truth(uint32_t type, bool is_true)
{
	return type < PTLX_FLOAT ? is_true : atomic_bits(type, is_true);
}

static uint64_t atomic_sum(uint32_t type, uint64_t a, uint64_t b)
{
	return type < PTLX_FLOAT
		       ? a + b
		       : atomic_bits(type, atomic_real(type, a) + atomic_real(type, b));
}

static uint64_t atomic_product(uint32_t type, uint64_t a, uint64_t b)
{
	return type < PTLX_FLOAT
		       ? a * b
		       : atomic_bits(type, atomic_real(type, a) * atomic_real(type, b));
}

/* Return the value in place of old. */
static __attribute__((noinline)) uint64_t atomic_result(
	uint32_t what, uint64_t old, uint64_t value, uint64_t compare)
{
	uint32_t type = p3_atomic_type(what);
	switch (p3_atomic_op(what)) {
	case PTLX_MIN:
		return atomic_order(type, value, old) == BELOW ? value : old;
	case PTLX_MAX:
		return atomic_order(type, value, old) == ABOVE ? value : old;
	case PTLX_SUM:
		return atomic_sum(type, old, value);
	case PTLX_PROD:
		return atomic_product(type, old, value);
	case PTLX_LOR:
		return atomic_truth(
			type, atomic_is_true(type, old) || atomic_is_true(type, value));
	case PTLX_LAND:
		return atomic_truth(
			type, atomic_is_true(type, old) && atomic_is_true(type, value));
	case PTLX_LXOR:
		return atomic_truth(
			type, atomic_is_true(type, old) != atomic_is_true(type, value));
	case PTLX_BOR:
		return old | value;
	case PTLX_BAND:
		return old & value;
	case PTLX_BXOR:
		return old ^ value;
	case PTLX_CSWAP:
		return atomic_order(type, compare, old) == EQUAL ? value : old;
	case PTLX_CSWAP_NE:
		return atomic_order(type, compare, old) != EQUAL ? value : old;
	case PTLX_CSWAP_LE:
		return atomic_order(type, compare, old) & (BELOW | EQUAL) ? value : old;
	case PTLX_CSWAP_LT:
		return atomic_order(type, compare, old) == BELOW ? value : old;
	case PTLX_CSWAP_GE:
		return atomic_order(type, compare, old) & (ABOVE | EQUAL) ? value : old;
	case PTLX_CSWAP_GT:
		return atomic_order(type, compare, old) == ABOVE ? value : old;
	case PTLX_MSWAP:
		return (value & compare) | (old & ~compare);
	default: /* PTLX_WRITE */
		return value;
	}
}

/* ---- elements ---- */

/* Change the element at off, and return its former value. */
static uint64_t atomic_change(uint32_t what, const struct p3_region *r, uint64_t off,
	uint64_t value, uint64_t compare)
{
	uint64_t piece, result, old = 0;
	uint32_t size = p3_atomic_size(what);
	char *at = p3_region_at(r, off, &piece);
	if (p3_likely(piece >= size && (uintptr_t)at % size == 0)) {
		old = p3_value_get(at, size);
		do
			result = atomic_result(what, old, value, compare);
		while (!p3_value_cas(at, size, &old, result));
		return old;
	}
	p3_region_read(r, off, &old, size); /* little-endian, as messages are */
	result = atomic_result(what, old, value, compare);
	p3_region_write(r, off, &result, size);
	return old;
}

/* The firmware runs in threads of the program, which may have chosen another rounding, or
 * traps that a peer's operands must not spring. */
static uint32_t atomic_take_modes(void)
{
#if defined(__x86_64__)
	uint32_t modes = __builtin_ia32_stmxcsr();
	__builtin_ia32_ldmxcsr(0x1f80); /* as at the start of a program */
	return modes;
#else
	return 0;
#endif
}

static void atomic_give_modes(uint32_t modes)
{
#if defined(__x86_64__)
	__builtin_ia32_ldmxcsr(modes);
#else
	(void)modes;
#endif
}

/* Copy a value.  Most have eight bytes. */
static inline void atomic_copy(void *to, const void *from, uint32_t size)
{
	if (p3_likely(size == sizeof(uint64_t)))
		memcpy(to, from, sizeof(uint64_t));
	else
		memcpy(to, from, size);
}

void p3_atomic_do(uint32_t what, const struct p3_region *r, uint64_t off, uint64_t length,
	const char *operand, const char *compare, char *old_out)
{
	uint32_t size = p3_atomic_size(what);
	if (what == P3_ATOMIC_SWAP) {
		p3_region_read(r, off, old_out, length);
		FAULT_POINT("swap.read");
		p3_region_write(r, off, operand, length);
		return;
	}
	bool real = p3_atomic_type(what) >= PTLX_FLOAT;
	bool two = p3_atomic_sent(what, 1) == 2;
	uint32_t modes = real ? atomic_take_modes() : 0;
	for (uint64_t i = 0; i < length; i += size) {
		uint64_t value = 0, other = 0, old;
		atomic_copy(&value, operand + i, size);
		if (two)
			atomic_copy(&other, compare + i, size);
		old = atomic_change(what, r, off + i, value, other);
		atomic_copy(old_out + i, &old, size);
	}
	if (real)
		atomic_give_modes(modes);
}
