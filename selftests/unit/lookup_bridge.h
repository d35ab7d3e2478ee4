/* SPDX-License-Identifier: MIT */
#ifndef LOOKUP_BRIDGE_H
#define LOOKUP_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * test_engine_lookup's partition as the C library and the daemon see one. Headers of the
 * three cannot meet in one file: each has a struct plog_record of its own.
 */
struct bridge_hit {
	int64_t offset, timestamp;
	int32_t leader_epoch;
	bool inside, behind;
};

int bridge_lookup(int64_t from, int64_t timestamp, bool max, struct bridge_hit *hit);

/* Pin an extent for bridge_read(); the one before is dropped. */
struct bridge_extent {
	uint32_t length;
	int64_t base_offset, next_offset;
};
int bridge_locate(int64_t offset, uint32_t max_bytes, struct bridge_extent *ext);
ssize_t bridge_read(uint64_t skip, void *buf, size_t n);

/* Ask them. 0 and offset and time (-1: none), or an error. */
int library_find(int64_t timestamp, bool max, int64_t *offset);
int daemon_find(int64_t timestamp, bool max, int64_t *offset, int64_t *found_time);

#endif
