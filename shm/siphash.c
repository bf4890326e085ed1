/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4.  Words are those of the machine: both ends of a wire have the same order
 * of bytes. */
#include "shm/siphash.h"

#include <string.h>

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
