/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * siphash - SipHash-2-4, a keyed hash, which cannot be computed without the key
 *
 * It makes the MAC of frames that leave the machine, and the keys of pairs of nodes.
 * See J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012.
 * Any thread may call this function; it has no state.
 */
#ifndef P3_SHM_SIPHASH_H
#define P3_SHM_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct p3_sipkey {
	uint64_t k[2];
};

struct p3_sip {
	uint64_t v[4];
	uint64_t len; /* bytes so far */
};

/* Begin, go on with whole words of 8 bytes, and finish with up to any number of bytes.
 * Several calls hash what one call hashes of all the bytes together. */
void p3_sip_begin(struct p3_sip *s, const struct p3_sipkey *key);
void p3_sip_words(struct p3_sip *s, const void *bytes, size_t len);
uint64_t p3_sip_end(struct p3_sip *s, const void *bytes, size_t len);

static inline uint64_t p3_siphash(
	const struct p3_sipkey *key, const void *bytes, size_t len)
{
	struct p3_sip s;
	p3_sip_begin(&s, key);
	return p3_sip_end(&s, bytes, len);
}

#endif
