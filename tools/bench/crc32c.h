/* SPDX-License-Identifier: MIT */
#ifndef PLOG_BENCH_CRC32C_H
#define PLOG_BENCH_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/**
 * crc32c_init() - build the tables; once, before crc32c()
 *
 * Return: 0, or -1 if the processor has no SSE4.2.
 */
int crc32c_init(void);

/* CRC-32C of @len bytes at @data, as Kafka's batches carry it. */
uint32_t crc32c(const void *data, size_t len);

#endif
