/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crc - CRC32C (Castagnoli), by the CPU's instruction where it has one
 *
 * Any thread may call these functions; there is no state.
 */
#ifndef P3_NIC_CRC_H
#define P3_NIC_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continue a checksum over these bytes; crc is that of the bytes before, 0 at the
 * start. */
uint32_t p3_crc32c(uint32_t crc, const void *data, size_t len);

/* Compute the same without the instruction: for other CPUs, and to check one version by
 * the other. */
uint32_t p3_crc32c_portable(uint32_t crc, const void *data, size_t len);

#endif
