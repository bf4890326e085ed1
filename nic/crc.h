/* SPDX-License-Identifier: BSD-3-Clause */
/* crc - CRC32C (Castagnoli), by the CPU's instruction where there is one. */
#ifndef P3_NIC_CRC_H
#define P3_NIC_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Of these bytes, after those that gave crc (0: none). */
uint32_t p3_crc32c(uint32_t crc, const void *data, size_t len);

/* The same without the instruction: for other CPUs, and to test the one by the other. */
uint32_t p3_crc32c_portable(uint32_t crc, const void *data, size_t len);

#endif
