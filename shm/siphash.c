/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4.  Words are those of the machine: both ends of a wire have the same order
 * of bytes. */
#include "shm/siphash.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static uint64_t turned(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void mix(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = turned(v[1], 13) ^ v[0];
	v[3] = turned(v[3], 16) ^ v[2];
	v[0] = turned(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = turned(v[1], 17) ^ v[2];
	v[3] = turned(v[3], 21) ^ v[0];
	v[2] = turned(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix(v);
	mix(v);
	v[0] ^= word;
}

void p3_sip_begin(struct p3_sip *s, const struct p3_sipkey *key)
{
	s->v[0] = 0x736f6d6570736575u ^ key->k[0];
	s->v[1] = 0x646f72616e646f6du ^ key->k[1];
	s->v[2] = 0x6c7967656e657261u ^ key->k[0];
	s->v[3] = 0x7465646279746573u ^ key->k[1];
	s->len = 0;
}

void p3_sip_words(struct p3_sip *s, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t v[4] = {s->v[0], s->v[1], s->v[2], s->v[3]};
	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint64_t word;
		memcpy(&word, at + i, 8);
		absorb(v, word);
	}
	memcpy(s->v, v, sizeof v);
	s->len += len / 8 * 8;
}

uint64_t p3_sip_end(struct p3_sip *s, const void *bytes, size_t len)
{
	size_t left = len % 8;
	uint64_t last = 0;
	p3_sip_words(s, bytes, len);
	if (left)
		memcpy(&last, (const unsigned char *)bytes + (len - left), left);
	absorb(s->v, last | (s->len + left) << 56);
	s->v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		mix(s->v);
	return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

/* ---- long messages ---- */

#define SHORT 256u /* bytes of a message that SipHash takes as it is */

void p3_sip_wide_init(struct p3_sipwide *w, const struct p3_sipkey *key)
{
	for (uint32_t i = 0; i < sizeof w->nh / sizeof *w->nh; i++)
		w->nh[i] = (uint32_t)p3_siphash(key, &i, sizeof i);
}

/* Return the sum over pairs of words, each with a word of the key. */
static uint64_t nh_from(const uint32_t *key, const unsigned char *at, size_t len)
{
	uint64_t sum = 0;
	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint32_t m[2];
		memcpy(m, at + i, sizeof m);
		sum += (uint64_t)(uint32_t)(m[0] + key[i / 4]) *
		       (uint32_t)(m[1] + key[i / 4 + 1]);
	}
	return sum;
}

void p3_nh_portable(
	const struct p3_sipwide *w, const void *block, size_t len, uint64_t out[2])
{
	out[0] = nh_from(w->nh, block, len);
	out[1] = nh_from(w->nh + 4, block, len);
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) static __m256i nh_add(
	__m256i sum, __m256i m, const uint32_t *key)
{
	__m256i x = _mm256_add_epi32(
		m, _mm256_loadu_si256((const __m256i *)(const void *)key));
	return _mm256_add_epi64(sum, _mm256_mul_epu32(x, _mm256_srli_epi64(x, 32)));
}

__attribute__((target("avx2"))) static uint64_t nh_total(__m256i sum)
{
	uint64_t v[4];
	_mm256_storeu_si256((__m256i *)(void *)v, sum);
	return v[0] + v[1] + v[2] + v[3];
}

__attribute__((target("avx2"))) static void nh_by_avx2(
	const struct p3_sipwide *w, const unsigned char *at, size_t len, uint64_t out[2])
{
	__m256i a = _mm256_setzero_si256(), b = a;
	size_t i = 0;
	for (; i + 32 <= len; i += 32) {
		__m256i m = _mm256_loadu_si256((const __m256i *)(const void *)(at + i));
		a = nh_add(a, m, w->nh + i / 4);
		b = nh_add(b, m, w->nh + i / 4 + 4);
	}
	out[0] = nh_total(a) + nh_from(w->nh + i / 4, at + i, len - i);
	out[1] = nh_total(b) + nh_from(w->nh + i / 4 + 4, at + i, len - i);
}

void p3_nh(const struct p3_sipwide *w, const void *block, size_t len, uint64_t out[2])
{
	if (__builtin_cpu_supports("avx2"))
		nh_by_avx2(w, block, len, out);
	else
		p3_nh_portable(w, block, len, out);
}

#else

void p3_nh(const struct p3_sipwide *w, const void *block, size_t len, uint64_t out[2])
{
	p3_nh_portable(w, block, len, out);
}

#endif

uint64_t p3_sip_wide(const struct p3_sipwide *w, const struct p3_sipkey *key,
	const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t words[2], all = len;
	struct p3_sip s;
	if (len <= SHORT)
		return p3_siphash(key, bytes, len);
	p3_sip_begin(&s, key);
	while (len) {
		size_t block = len < P3_NH_BLOCK ? len : P3_NH_BLOCK;
		p3_nh(w, at, block, words);
		p3_sip_words(&s, words, sizeof words);
		at += block;
		len -= block;
	}
	return p3_sip_end(&s, &all, sizeof all);
}
