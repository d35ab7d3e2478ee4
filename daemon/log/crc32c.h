/* SPDX-License-Identifier: MIT */
#ifndef PLOG_CRC32C_H
#define PLOG_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * CRC32C (Castagnoli) as record batches carry it. @crc is what an earlier part gave, 0 to
 * begin. By the processor's instruction where it has one.
 */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

/* The same without the instruction: for tests. */
uint32_t crc32c_portable(uint32_t crc, const void *p, size_t n);

#endif
