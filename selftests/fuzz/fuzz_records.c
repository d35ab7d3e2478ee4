// SPDX-License-Identifier: MIT
/*
 * Any bytes as a client's records: the check in one go and in small steps agree, what is
 * accepted can be read and found in again, and what is refused is left alone.
 *
 * Input: flags, then a batch. Flag 1: its length, magic and CRC are set right before, so
 * that what lies behind them is reached. Flags 2 to 64: rules. Flag 128: the topic has a
 * codec of its own, which the input's length tells.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/error.h"
#include "log/compressor.h"
#include "log/records.h"

#define EXPANDED_MAX (1 << 20)

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static void accepted(const uint8_t *p, size_t n, const struct records_check *c)
{
	struct records_batch b;
	struct records_iter it;
	struct record r, hit;
	int64_t max = INT64_MIN;
	int32_t count = 0;
	int ret;

	must(!records_header(p, n, &b) && b.size == (int64_t)n && b.crc == records_crc(p, n));
	must(!records_iter_open(&it, p, n, EXPANDED_MAX));
	while ((ret = records_iter_next(&it, &r, NULL)) > 0) {
		must(r.index == count && r.offset == count);
		if (r.key)
			must(r.key >= p && r.key + r.key_size <= p + n);
		if (r.value)
			must(r.value >= p && r.value + r.value_size <= p + n);
		if (r.timestamp > max)
			max = r.timestamp;
		count++;
	}
	records_iter_close(&it);
	must(!ret && count == c->batch.count);
	if (c->rules.log_append_time)
		return;
	must(max == c->batch.max_timestamp);
	must(records_find_time(p, n, 0, max, false, NULL, &hit) == 1 && hit.timestamp == max);
	must(records_find_time(p, n, 0, 0, true, NULL, &r) == 1 && r.offset == hit.offset);
	if (max < INT64_MAX)
		must(records_find_time(p, n, 0, max + 1, false, NULL, &r) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct records_check c, steps;
	struct records_rules rules;
	struct arena arena;
	uint8_t *one, *two;
	uint8_t flags;

	if (!n)
		return 0;
	flags = *p++;
	n--;
	one = malloc(n ? n : 1);
	two = malloc(n ? n : 1);
	memcpy(one, p, n);
	if (flags & 1 && n >= RECORDS_HEADER) {
		put32(one + 8, (uint32_t)n - RECORDS_LOG_OVERHEAD);
		one[16] = 2;
		put32(one + 17, records_crc(one, n));
	}
	memcpy(two, one, n);
	records_rules_init(&rules, 1700000000000);
	rules.expanded_max = EXPANDED_MAX;
	rules.compact = flags & 2;
	rules.log_append_time = flags & 4;
	rules.producer_ids = flags & 8;
	rules.transactions = flags & 16;
	rules.zstd = !(flags & 32);
	rules.before_max_ms = flags & 64 ? 1000 : INT64_MAX;
	if (flags & 128) {
		rules.codec = (int)(n % 5);
		rules.level = compress_default_level((unsigned int)rules.codec);
	}
	arena_init(&arena, 1 << 20);
	records_check_init(&c, one, n, &rules, &arena);
	must(records_check_run(&c, UINT64_MAX) == 1);
	records_check_init(&steps, two, n, &rules, &arena);
	while (!records_check_run(&steps, 1))
		;
	must(c.error == steps.error && c.nbad == steps.nbad && !c.error == !c.text);
	must(!memcmp(one, two, n));
	if (!c.error) {
		must(!c.nbad);
		must(c.size == steps.size && !memcmp(c.data, steps.data, c.size));
		must(rules.codec < 0 || (c.data[22] & RECORDS_CODEC_MASK) == rules.codec);
		accepted(c.data, c.size, &c);
	} else {
		memcpy(two, p, n);
		if (!(flags & 1))
			must(!memcmp(one, two, n));
	}
	records_check_end(&c);
	records_check_end(&steps);
	arena_free(&arena);
	free(one);
	free(two);
	return 0;
}
