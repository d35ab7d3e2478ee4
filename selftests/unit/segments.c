// SPDX-License-Identifier: MIT
#include "segments.h"

void open_small(void)
{
	env.config.segment_bytes = 1100;
	env.config.max_message_bytes = 1024;
	env.config.file_delete_delay_ms = 1000;
	assert_int_equal(env_open(), 0);
}

void fill(unsigned int n, unsigned int len, int64_t last, int64_t step)
{
	for (unsigned int i = 0; i < n; i++)
		assert_true(put_at(1, len, i, last - step * (n - 1 - i)) >= 0);
}

const char *name_of(int64_t base, const char *kind)
{
	static char name[64];

	snprintf(name, sizeof(name), "%020lld.%s", (long long)base, kind);
	return name;
}

int64_t start_at(int64_t offset)
{
	s64 at = offset;
	int err = plog_partition_set_log_start(env.p, NULL, &at);

	return err ? err : at;
}

static int note(void *arg, const struct plog_retired_info *info)
{
	struct listed *l = arg;

	assert_true(l->n < 64);
	l->e[l->n++] = *info;
	return 0;
}

struct listed listed(void)
{
	struct listed l = { 0 };

	assert_int_equal(plog_partition_retired(env.p, 0, note, &l), 0);
	assert_int_equal(view().retired, l.n);
	return l;
}
