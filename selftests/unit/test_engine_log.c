// SPDX-License-Identifier: MIT
/* The life of a partition: append, find, read, roll, close and open again. */
#include "engine.h"

static void test_empty(void **state)
{
	struct plog_extent ext = { 0 };
	struct plog_view v;

	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(env.state, PLOG_PARTITION_ONLINE);
	v = view();
	assert_int_equal(v.log_end, 0);
	assert_int_equal(v.log_start, 0);
	assert_int_equal(v.segments, 1);
	assert_int_equal(v.max_timestamp, -1);
	assert_int_equal(plog_partition_locate(env.p, 0, 100, PLOG_END_HW, true, &ext, &v), 0);
	assert_int_equal(ext.length, 0);
	assert_int_equal(plog_partition_locate(env.p, 1, 100, PLOG_END_HW, true, &ext, &v),
			 -ERANGE);
	assert_int_equal(walk(PLOG_END_HW), 0);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 0);
}

static void test_append(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	for (int how = RAW; how < HOWS; how++) {
		for (int daemon = 0; daemon < 2; daemon++) {
			int64_t end = view().log_end;
			size_t n = make_batch(env.buf, 3, 100, how, 5000 + how);

			assert_int_equal(append_as(n, how, daemon ? PLOG_APPEND_DAEMON : 0), end);
			assert_int_equal(view().log_end, end + 3);
			assert_int_equal(view().high_watermark, end + 3);
		}
	}
	assert_int_equal(env.visible, 1 + 6);
	assert_int_equal(view().max_timestamp, 5002);
	assert_int_equal(walk(PLOG_END_HW), 18);
	assert_int_equal(view().bytes, file_size(FIRST_LOG));
}

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	for (unsigned int len = 1; len < 300000; len = len * 3 + 1)
		for (int how = RAW; how < HOWS; how++)
			assert_true(append_as(make_batch(env.buf, 2, len, len, 7), how, 0) >= 0);
	walk(PLOG_END_HW);
}

static void test_record_mode(void **state)
{
	struct plog_reader r;

	(void)state;
	assert_int_equal(env_open(), 0);
	plog_reader_init(&r, env.p, PLOG_END_HW);
	assert_string_equal(next_value(&r), "-EAGAIN");
	append(make_records(env.buf, (struct rec[]){ { 1, "k", "one" }, { 2, NULL, "" },
						     { 3, NULL, NULL }, { 4, NULL, "two" } },
			    4, 0));
	append(make_records(env.buf, (struct rec[]){ { 5, NULL, "three" } }, 1, 0));
	assert_string_equal(next_value(&r), "one");
	assert_string_equal(next_value(&r), "two");
	assert_string_equal(next_value(&r), "three");
	assert_string_equal(next_value(&r), "-EAGAIN");
	append(make_records(env.buf, (struct rec[]){ { 6, NULL, "four" } }, 1, 0));
	assert_string_equal(next_value(&r), "four");
	plog_reader_seek(&r, 3);
	assert_string_equal(next_value(&r), "two");
	plog_reader_seek(&r, 7);
	assert_string_equal(next_value(&r), "-ERANGE");
	plog_reader_seek(&r, -1);
	assert_string_equal(next_value(&r), "one");
	/* a control batch is passed over, a compressed one is told */
	append(make_records(env.buf, (struct rec[]){ { 7, "c", "control" } }, 1,
			    PLOG_ATTR_CONTROL));
	append(make_records(env.buf, (struct rec[]){ { 8, NULL, "five" } }, 1, 0));
	append(make_records(env.buf, (struct rec[]){ { 9, NULL, "zip" } }, 1, 4));
	plog_reader_seek(&r, 6);
	assert_string_equal(next_value(&r), "five");
	assert_string_equal(next_value(&r), "-EOPNOTSUPP");
	assert_string_equal(next_value(&r), "-EOPNOTSUPP");
	plog_reader_release(&r);
}

static void test_short_buffer(void **state)
{
	static char big[100000];
	struct kvec vec = { big, 10 };
	struct plog_reader r;
	struct iov_iter it;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 11, 0);
	put(1, 50000, 1);
	plog_reader_init(&r, env.p, PLOG_END_HW);
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, 10);
	assert_int_equal(plog_reader_next(&r, &it), -EMSGSIZE);
	vec.iov_len = sizeof(big);
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, sizeof(big));
	assert_int_equal(plog_reader_next(&r, &it), 11);
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, 49999);
	assert_int_equal(plog_reader_next(&r, &it), -EMSGSIZE);
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, sizeof(big));
	assert_int_equal(plog_reader_next(&r, &it), 50000);
	assert_int_equal(iov_iter_count(&it), sizeof(big) - 50000);
	assert_int_equal(plog_reader_next(&r, &it), -EAGAIN);
	plog_reader_release(&r);
}

static void test_roll_by_size(void **state)
{
	struct plog_partition_stats st;

	(void)state;
	env.config.segment_bytes = 20000;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(put(2, 400, i), 2 * i);
	assert_int_equal(view().segments, 200 / (20000 / 891) + 1);
	assert_int_equal(walk(PLOG_END_HW), 400);
	plog_partition_stats(env.p, &st);
	assert_int_equal(st.rolls, view().segments - 1);
	assert_int_equal(st.appends, 200);
	assert_int_equal(st.records, 400);
	assert_int_equal(st.append_bytes, view().bytes);
	for (int again = 0; again < 2; again++) {
		int64_t bytes = view().bytes;

		if (again)
			env_crash();
		else
			env_close();
		assert_int_equal(env_open(), 0);
		assert_int_equal(view().log_end, 400 + again);
		assert_int_equal(view().bytes, bytes);
		assert_int_equal(view().max_timestamp, 1199);
		assert_int_equal(walk(PLOG_END_HW), 400 + again);
		assert_int_equal(put(1, 10, 0), 400 + again);
	}
}

static void test_roll_by_time(void **state)
{
	(void)state;
	env.config.segment_ms = 1000;
	assert_int_equal(env_open(), 0);
	put_at(1, 10, 0, 100000);
	put_at(1, 10, 0, 101000);
	assert_int_equal(view().segments, 1);
	put_at(1, 10, 0, 101001);
	assert_int_equal(view().segments, 2);
	put_at(1, 10, 0, 50);
	assert_int_equal(view().segments, 2);
	/* records without a time: the clock of the machine counts */
	put_at(1, 10, 0, 103000);
	assert_int_equal(view().segments, 3);
	env_close();
	assert_int_equal(env_open(), 0);
	put_at(1, 10, 0, 104000);
	assert_int_equal(view().segments, 3);
	put_at(1, 10, 0, 104001);
	assert_int_equal(view().segments, 4);
	assert_int_equal(walk(PLOG_END_HW), 7);
}

static void test_roll_by_clock(void **state)
{
	(void)state;
	env.config.segment_ms = 60000;
	assert_int_equal(env_open(), 0);
	put_at(1, 10, 0, -1);
	put_at(1, 10, 0, -1);
	assert_int_equal(view().segments, 1);
	shim_clock_ms = 61000;
	put_at(1, 10, 0, -1);
	assert_int_equal(view().segments, 2);
}

static void test_roll_by_index(void **state)
{
	(void)state;
	env.config.index_bytes = 24 * 3;	/* 9 offsets, 6 times less one */
	env.config.index_interval_bytes = 0;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 100; i++)
		put_at(1, 10, i, 1000);
	/* the times do not grow: only offsets count, and the first has none */
	assert_int_equal(view().segments, 10);
	for (int i = 0; i < 50; i++)
		put_at(1, 10, i, 2000 + i);
	assert_int_equal(walk(PLOG_END_HW), 150);
	assert_true(view().segments > 15);
}

/* Bytes between two entries, last offsets and positions, Kafka's layout. */
static void test_index_layout(void **state)
{
	uint8_t raw[4096];
	size_t n, size;

	(void)state;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 100; i++)
		put(2, 400, i);
	size = make_batch(env.buf, 2, 400, 1, 1);
	env_close();
	n = file_read(FIRST_INDEX, raw, sizeof(raw));
	assert_true(n % 8 == 0 && n > 0);
	for (size_t i = 0; i < n / 8; i++) {
		uint32_t offset = get_unaligned_be32(raw + 8 * i);
		uint32_t pos = get_unaligned_be32(raw + 8 * i + 4);
		/* 4096 bytes have to pass: five batches */
		uint32_t batch = (i + 1) * (4096 / size + 1);

		assert_int_equal(pos, batch * size);
		assert_int_equal(offset, 2 * batch + 1);
	}
	n = file_read(FIRST_TIMEINDEX, raw, sizeof(raw));
	assert_int_equal(n % 12, 0);
	/* one with each entry, and the last at the close */
	assert_int_equal(get_unaligned_be64(raw), 1005);
	assert_int_equal(get_unaligned_be32(raw + 8), 11);
	assert_int_equal(get_unaligned_be64(raw + n - 12), 1099);
	assert_int_equal(get_unaligned_be32(raw + n - 4), 199);
}

static void test_locate(void **state)
{
	struct plog_extent ext = { 0 };
	struct plog_view v;
	size_t size;

	(void)state;
	env.config.segment_bytes = 100000;
	assert_int_equal(env_open(), 0);
	size = make_batch(env.buf, 3, 200, 0, 1000);
	for (int i = 0; i < 500; i++)
		put(3, 200, i);
	for (int64_t offset = 0; offset < 1500; offset += 7) {
		for (uint32_t max = 1; max < 200000; max = max * 5 + 300) {
			int err = plog_partition_locate(env.p, offset, max, PLOG_END_HW, true,
							&ext, &v);

			assert_int_equal(err, 0);
			assert_int_equal(ext.base_offset, offset / 3 * 3);
			assert_true(ext.length == size || ext.length <= max);
			assert_int_equal(ext.length % size, 0);
			assert_int_equal(ext.next_offset, ext.base_offset + ext.length / size * 3);
			/* as much as fits, up to the segment's end */
			if (ext.length + size <= max)
				assert_true(ext.next_offset == 1500 ||
					    ext.next_offset % (100000 / size * 3) == 0);
			plog_extent_put(&ext);
		}
	}
	assert_int_equal(plog_partition_locate(env.p, 5, size - 1, PLOG_END_HW, false, &ext, &v),
			 0);
	assert_int_equal(ext.length, 0);
	assert_null(ext.segment);
}

static void test_high_watermark(void **state)
{
	struct plog_fence f = { 0 };
	struct plog_view v;
	s64 hw;

	(void)state;
	env.config.flags = PLOG_STATE_REPLICATED | PLOG_STATE_LEADER;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 100; i++)
		put(2, 300, i);
	v = view();
	assert_int_equal(v.high_watermark, 0);
	assert_int_equal(v.log_end, 200);
	assert_int_equal(walk(PLOG_END_HW), 0);
	assert_int_equal(walk(PLOG_END_LEO), 200);
	hw = 100;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &hw), 0);
	assert_int_equal(walk(PLOG_END_HW), 100);
	hw = 50;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &hw), 0);
	assert_int_equal(hw, 100);
	hw = 201;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &hw), -ERANGE);
	f.leader_epoch = -1;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &hw), -ESTALE);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().high_watermark, 100);
	env.config.flags = PLOG_STATE_REPLICATED;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(append_as(make_batch(env.buf, 1, 1, 1, 1), RAW, 0), -EROFS);
	env.config.flags = 0;
	assert_int_equal(plog_partition_configure(env.p, &env.config), 0);
	assert_int_equal(view().high_watermark, 200);
	f.leader_epoch = 0;
	assert_int_equal(plog_partition_set_hw(env.p, &f, &hw), -EINVAL);
}

static void test_log_start(void **state)
{
	struct plog_fence f = { 0 };
	struct plog_extent ext = { 0 };
	struct plog_reader r;
	struct plog_view v;
	s64 at = 7;

	(void)state;
	assert_int_equal(env_open(), 0);
	append(make_records(env.buf, (struct rec[]){ { 1, NULL, "0" }, { 1, NULL, "1" },
						     { 1, NULL, "2" } }, 3, 0));
	put(5, 10, 0);
	at = 9;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), -ERANGE);
	at = 2;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	at = 1;
	assert_int_equal(plog_partition_set_log_start(env.p, &f, &at), 0);
	assert_int_equal(at, 2);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_start, 2);
	assert_int_equal(plog_partition_locate(env.p, 1, 1000, PLOG_END_HW, true, &ext, &v),
			 -ERANGE);
	assert_int_equal(v.log_start, 2);
	plog_reader_init(&r, env.p, PLOG_END_HW);
	assert_string_equal(next_value(&r), "2");
	plog_reader_release(&r);
	assert_int_equal(plog_partition_locate(env.p, 2, 1000, PLOG_END_HW, true, &ext, &v), 0);
	assert_int_equal(ext.base_offset, 0);
	plog_extent_put(&ext);
}

static void test_log_append_time(void **state)
{
	struct plog_append_args args = { .raw = env.buf, .leader_epoch = 0,
					 .flags = PLOG_APPEND_DAEMON };
	struct plog_time_hit hit;

	(void)state;
	env.config.flags = PLOG_STATE_LOG_APPEND_TIME;
	assert_int_equal(env_open(), 0);
	args.size = make_batch(env.buf, 3, 5000, 1, 42);
	assert_int_equal(plog_partition_append(env.p, &args), 0);
	assert_true(args.log_append_time > 1600000000000);
	for (int how = RAW; how < HOWS; how++) {
		make_batch(env.buf, 3, 5000, 1, 42);
		assert_int_equal(append_as(args.size, how, 0), 3 + 3 * how);
	}
	/* the CRC that was corrected is right: walk() checks */
	assert_int_equal(walk(PLOG_END_HW), 12);
	assert_true(view().max_timestamp >= args.log_append_time);
	assert_int_equal(plog_partition_lookup(env.p, args.log_append_time, false, PLOG_END_HW,
					       &hit), 0);
	assert_int_equal(hit.offset, 0);
	assert_int_equal(hit.timestamp, args.log_append_time);
	/* and back: a client's bit is rewritten */
	env.config.flags = 0;
	plog_partition_configure(env.p, &env.config);
	make_batch(env.buf, 3, 5000, 1, 42);
	env.buf[22] |= PLOG_ATTR_LOG_APPEND_TIME;
	fix_crc(env.buf, args.size);
	assert_int_equal(plog_partition_append(env.p, &args), 0);
	assert_int_equal(args.log_append_time, -1);
	assert_int_equal(env.buf[22], 0);
	assert_int_equal(walk(PLOG_END_HW), 15);
}

static void test_epoch(void **state)
{
	struct plog_batch b;
	struct plog_append_args args = { .raw = env.buf, .leader_epoch = 0,
					 .flags = PLOG_APPEND_DAEMON };
	u64 incarnation = 5;

	(void)state;
	assert_int_equal(env_open(), 0);
	args.size = make_batch(env.buf, 1, 10, 0, 1);
	args.current_incarnation = &incarnation;
	args.incarnation = 4;
	assert_int_equal(plog_partition_append(env.p, &args), -ESTALE);
	args.incarnation = 5;
	assert_int_equal(plog_partition_append(env.p, &args), 0);
	assert_int_equal(plog_partition_set_epoch(env.p, 7), 0);
	assert_int_equal(plog_partition_set_epoch(env.p, 6), -ESTALE);
	assert_int_equal(plog_partition_append(env.p, &args), -ESTALE);
	args.leader_epoch = 7;
	assert_int_equal(plog_partition_append(env.p, &args), 0);
	assert_int_equal(plog_batch_decode(env.buf, &b), 0);
	assert_int_equal(b.leader_epoch, 7);
	assert_int_equal(b.base_offset, 1);
	env_close();
	file_remove("plog.state");
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().leader_epoch, 7);	/* learnt from the log */
}

static void test_replica(void **state)
{
	uint32_t flags = PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA;
	uint8_t *tail;
	size_t n = 0;

	(void)state;
	env.config.segment_bytes = 5000;
	assert_int_equal(env_open(), 0);
	assert_int_equal(plog_partition_set_epoch(env.p, 4), 0);
	for (int i = 0; i < 5; i++) {
		uint8_t *at = env.buf + n;

		n += make_batch(at, 2, 300, i, 100 + i);
		put_unaligned_be64(10 + 3 * i, at);	/* with gaps, as compaction leaves */
		put_unaligned_be32(4, at + 12);
	}
	assert_int_equal(append_as(n, ITER, flags), 10);
	assert_int_equal(view().log_end, 24);
	assert_int_equal(walk(PLOG_END_LEO), 10);
	assert_int_equal(append_as(n, ITER, flags), -EINVAL);	/* below the log end */
	for (int i = 0; i < 5; i++)
		put_unaligned_be64(100 + 3 * i, env.buf + n / 5 * i);
	tail = env.buf + n - 1;
	*tail ^= 1;			/* the last batch is damaged: none is taken */
	assert_int_equal(append_as(n, ITER, flags), -EBADMSG);
	*tail ^= 1;
	assert_int_equal(append_as(n - 1, ITER, flags), -EINVAL);
	put_unaligned_be64(100, env.buf + n / 5);	/* offsets that do not rise */
	assert_int_equal(append_as(n, ITER, flags), -EINVAL);
	put_unaligned_be64(103, env.buf + n / 5);
	assert_int_equal(file_size(FIRST_LOG), n);
	assert_int_equal(append_as(n, ITER, flags), 100);
	assert_int_equal(view().segments, 2);
	assert_int_equal(walk(PLOG_END_LEO), 20);
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, 114);
	assert_int_equal(walk(PLOG_END_LEO), 20);
}

static struct {
	int left;	/* copies before it changes */
	size_t at;	/* of the batch that does */
	int how;
} change;

static void change_memory(void)
{
	uint8_t *at = env.buf + change.at;

	if (change.left--)
		return;
	if (change.how == 0)
		put_unaligned_be64(get_unaligned_be64(at) + 50, at);
	else if (change.how == 1)
		put_unaligned_be32(get_unaligned_be32(at + 23) + 50, at + 23);
	else if (change.how == 2)
		put_unaligned_be32(get_unaligned_be32(at + 8) - 10, at + 8);
	else
		put_unaligned_be32(3, at + 12);
}

/* A caller who changes the batches as they are read gets what one of the reads said, or nothing. */
static void test_replica_changes(void **state)
{
	uint32_t flags = PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA;
	int64_t records = 0, got, end;
	unsigned int taken = 0;

	(void)state;
	assert_int_equal(env_open(), 0);
	assert_int_equal(plog_partition_set_epoch(env.p, 4), 0);
	for (int i = 0; i < 128; i++) {
		struct plog_extent ext = { 0 };
		int batches = 1 + i / 64;
		struct plog_view v;
		size_t n = 0, one = 0;

		end = view().log_end;
		for (int k = 0; k < batches; k++) {
			uint8_t *at = env.buf + n;

			one = make_batch(at, 2, 300, i, 100 + i);
			put_unaligned_be64(end + 10 + 2 * k, at);
			put_unaligned_be32(4, at + 12);
			n += one;
		}
		change.left = i % 8;
		change.how = i / 8 % 4;
		change.at = i & 1 ? n - one : 0;
		shim_copied = change_memory;
		got = append_as(n, ITER, flags);
		shim_copied = NULL;
		if (got < 0) {
			assert_int_equal(view().log_end, end);
			continue;
		}
		taken++;
		records += 2 * batches;
		assert_int_equal(plog_partition_locate(env.p, end, 1, PLOG_END_LEO, true, &ext,
						       &v), 0);
		assert_int_equal(ext.base_offset, got);
		plog_extent_put(&ext);
		assert_int_equal(plog_partition_locate(env.p, v.log_end - 1, 1, PLOG_END_LEO, true,
						       &ext, &v), 0);
		assert_int_equal(ext.next_offset, v.log_end);
		plog_extent_put(&ext);
	}
	assert_true(taken > 10);
	assert_int_equal(walk(PLOG_END_LEO), records);
	end = view().log_end;
	env_crash();
	assert_int_equal(env_open(), 0);
	assert_int_equal(view().log_end, end);
	assert_int_equal(walk(PLOG_END_LEO), records);
}

static int list_one(void *arg, const struct plog_segment_info *info)
{
	int64_t *sum = arg;

	sum[0]++;
	sum[1] += info->bytes;
	sum[2] += info->active;
	sum[3] += info->max_timestamp >= 0;
	return 0;
}

static void test_segments(void **state)
{
	int64_t sum[4] = { 0 };

	(void)state;
	env.config.segment_bytes = 10000;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 100; i++)
		put(1, 500, i);
	env_close();
	assert_int_equal(env_open(), 0);
	assert_int_equal(plog_partition_segments(env.p, 0, list_one, sum), 0);
	assert_int_equal(sum[0], view().segments);
	assert_int_equal(sum[1], view().bytes);
	assert_int_equal(sum[2], 1);
}

static void test_closed(void **state)
{
	struct plog_extent ext = { 0 }, none = { 0 };
	struct plog_view v;
	struct kvec vec = { env.buf, 100 };
	struct iov_iter it;

	(void)state;
	assert_int_equal(env_open(), 0);
	put(1, 100, 0);
	assert_int_equal(plog_partition_locate(env.p, 0, 1000, PLOG_END_HW, true, &ext, &v), 0);
	plog_partition_get(env.p);
	assert_int_equal(plog_partition_close(env.p, true), 0);
	assert_int_equal(env.state, PLOG_PARTITION_CLOSED);
	assert_int_equal(put(1, 1, 0), -ENODEV);
	assert_int_equal(plog_partition_locate(env.p, 0, 1000, PLOG_END_HW, true, &none, &v),
			 -ENODEV);
	assert_int_equal(plog_partition_sync(env.p), -ENODEV);
	/* an extent outlives it */
	iov_iter_kvec(&it, ITER_DEST, &vec, 1, 100);
	assert_int_equal(plog_extent_read(&ext, 0, &it), 100);
	plog_extent_put(&ext);
	plog_partition_put(env.p);
}

static void test_idle(void **state)
{
	(void)state;
	assert_int_equal(env_open(), 0);
	env_close();
	assert_int_equal(shim_open_files, 0);
	env.config.segment_bytes = 1000;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 300; i++)
		put(1, 500, i);
	assert_int_equal(walk(PLOG_END_HW), 300);
	assert_int_equal(plog_partition_sync(env.p), 0);
	/* a worker lets go of what was synced */
	for (int i = 0; shim_open_files >= 128 * 3 + 20 && i < 5000; i++)
		usleep(1000);
	assert_true(shim_open_files < 128 * 3 + 20);
	env_close();
	assert_int_equal(shim_open_files, 0);
}

static int logs_opened;

static int count_logs(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *done)
{
	(void)pos; (void)len; (void)done;
	if (op == SHIM_OPEN && strstr(name, ".log"))
		logs_opened++;
	return 0;
}

/* Use the segment of one batch at @offset: was its log opened for that? */
static bool opens(int64_t offset)
{
	struct plog_extent ext = { 0 };
	struct plog_view v;

	logs_opened = 0;
	shim_file_fault = count_logs;
	assert_int_equal(plog_partition_locate(env.p, offset, 1, PLOG_END_HW, true, &ext, &v), 0);
	plog_extent_put(&ext);
	shim_file_fault = NULL;
	return logs_opened;
}

/* kmod/segment.h and engine.h, which are not for tests */
extern unsigned int plog_segment_idle_max, plog_segments_max;

/* A lower limit is kept to, whoever was idle longest goes first. */
static void test_idle_limit(void **state)
{
	(void)state;
	env.config.segment_bytes = 1000;
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 40; i++)
		put(1, 500, i);
	env_close();
	assert_int_equal(env_open(), 0);
	for (int i = 0; i < 20; i++)
		assert_true(opens(i));
	for (int i = 0; i < 20; i++)
		assert_false(opens(i));
	plog_segment_idle_max = 5;
	for (int i = 0; i < 4; i++)
		assert_false(opens(19));
	assert_true(shim_open_files <= 5 * 3);
	for (int i = 15; i < 20; i++)
		assert_false(opens(i));
	/* 15 goes for 14, which was closed, and 16 for 15 */
	assert_true(opens(14));
	assert_true(opens(15));
	assert_false(opens(17));
	assert_true(opens(16));
	assert_false(opens(17));
	assert_false(opens(19));
	plog_segment_idle_max = 128;
}

static void test_segments_max(void **state)
{
	size_t size;

	(void)state;
	plog_segments_max = 3;
	env.config.segment_bytes = 1000;
	assert_int_equal(env_open(), 0);
	put(1, 500, 0);
	put(1, 500, 1);
	put(1, 500, 2);
	assert_int_equal(view().segments, 3);
	/* no roll, no append; what is there stays readable */
	size = make_batch(env.buf, 1, 500, 3, 3);
	assert_int_equal(append(size), -ENOSPC);
	assert_non_null(strstr(env.log, "segments_max"));
	assert_int_equal(walk(PLOG_END_HW), 3);
	/* nor is a log opened that has more, until it is allowed */
	env_close();
	plog_segments_max = 2;
	assert_int_equal(env_open(), -E2BIG);
	assert_non_null(strstr(env.log, "segments_max"));
	plog_segments_max = 4;
	assert_int_equal(env_open(), 0);
	make_batch(env.buf, 1, 500, 3, 3);
	assert_int_equal(append(size), 3);
	plog_segments_max = 1u << 20;
}

#define T(f) cmocka_unit_test_setup_teardown(f, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_empty), T(test_append), T(test_sizes), T(test_record_mode),
		T(test_short_buffer), T(test_roll_by_size), T(test_roll_by_time),
		T(test_roll_by_clock), T(test_roll_by_index), T(test_index_layout),
		T(test_locate), T(test_high_watermark), T(test_log_start),
		T(test_log_append_time), T(test_epoch), T(test_replica),
		T(test_replica_changes), T(test_segments), T(test_closed), T(test_idle),
		T(test_idle_limit), T(test_segments_max),
	};

	return cmocka_run_group_tests_name("engine log", tests, NULL, NULL);
}
