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

/*
 * A MAC of long messages.  Each block of P3_NH_BLOCK bytes first becomes two words by NH,
 * the hash of UMAC (J. Black et al., 1999; RFC 4418), which is ten times as fast; SipHash
 * takes these.  Without the key, two messages of one length have the same words with a
 * chance of 2^-64.
 */
#define P3_NH_BLOCK 4096u

struct p3_sipwide {
	_Alignas(64) uint32_t nh[P3_NH_BLOCK / 4 + 4];
};

void p3_sip_wide_init(struct p3_sipwide *w, const struct p3_sipkey *key);
/* len is a multiple of 8. */
uint64_t p3_sip_wide(const struct p3_sipwide *w, const struct p3_sipkey *key,
	const void *bytes, size_t len);
/* The same by the instructions that every CPU has, for tests. */
void p3_nh_portable(
	const struct p3_sipwide *w, const void *block, size_t len, uint64_t out[2]);
void p3_nh(const struct p3_sipwide *w, const void *block, size_t len, uint64_t out[2]);

#endif
