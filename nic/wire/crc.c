/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C, by the CPU's instruction or bit by bit. */
#include "nic/wire/crc.h"

#include <string.h>

#if defined(__x86_64__)
#define HAS_INSTRUCTION()      __builtin_cpu_supports("sse4.2")
#define WITH_INSTRUCTION       __attribute__((target("sse4.2")))
#define CRC_OF_WORD(crc, word) ((uint32_t)__builtin_ia32_crc32di(crc, word))
#define CRC_OF_BYTE(crc, byte) __builtin_ia32_crc32qi(crc, byte)
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define HAS_INSTRUCTION() true
#define WITH_INSTRUCTION
#define CRC_OF_WORD(crc, word) __crc32cd(crc, word)
#define CRC_OF_BYTE(crc, byte) __crc32cb(crc, byte)
#endif

#define P3_CASTAGNOLI 0x82f63b78u /* the polynomial, lowest bit first */

uint32_t p3_crc32c_portable(uint32_t crc, const void *data, size_t len)
{
	const unsigned char *p = data;
	crc = ~crc;
	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (P3_CASTAGNOLI & -(crc & 1));
	}
	return ~crc;
}

#ifdef HAS_INSTRUCTION
WITH_INSTRUCTION static uint32_t by_instruction(
	uint32_t crc, const unsigned char *p, size_t len)
{
	uint64_t word;
	crc = ~crc;
	for (; len >= sizeof word; p += sizeof word, len -= sizeof word) {
		memcpy(&word, p, sizeof word);
		crc = CRC_OF_WORD(crc, word);
	}
	for (; len; len--)
		crc = CRC_OF_BYTE(crc, *p++);
	return ~crc;
}
#endif

uint32_t p3_crc32c(uint32_t crc, const void *data, size_t len)
{
#ifdef HAS_INSTRUCTION
	if (HAS_INSTRUCTION())
		return by_instruction(crc, data, len);
#endif
	return p3_crc32c_portable(crc, data, len);
}
