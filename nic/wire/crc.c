/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C, by the CPU's instruction or bit by bit. */
#include "nic/wire/crc.h"

#include <stdbool.h>
#include <string.h>

#if defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
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

#if defined(__x86_64__)

static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(
	uint32_t crc, const unsigned char *p, size_t len)
{
	uint64_t word, sum = ~crc;
	for (; len >= sizeof word; p += sizeof word, len -= sizeof word) {
		memcpy(&word, p, sizeof word);
		sum = __builtin_ia32_crc32di(sum, word);
	}
	for (; len; len--)
		sum = __builtin_ia32_crc32qi((uint32_t)sum, *p++);
	return ~(uint32_t)sum;
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

static bool has_instruction(void)
{
	return true;
}

static uint32_t by_instruction(uint32_t crc, const unsigned char *p, size_t len)
{
	uint64_t word;
	crc = ~crc;
	for (; len >= sizeof word; p += sizeof word, len -= sizeof word) {
		memcpy(&word, p, sizeof word);
		crc = __crc32cd(crc, word);
	}
	for (; len; len--)
		crc = __crc32cb(crc, *p++);
	return ~crc;
}

#else

static bool has_instruction(void)
{
	return false;
}

static uint32_t by_instruction(uint32_t crc, const unsigned char *p, size_t len)
{
	return p3_crc32c_portable(crc, p, len);
}

#endif

uint32_t p3_crc32c(uint32_t crc, const void *data, size_t len)
{
	return has_instruction() ? by_instruction(crc, data, len)
				 : p3_crc32c_portable(crc, data, len);
}
