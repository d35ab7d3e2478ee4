// SPDX-License-Identifier: MIT
/* Readers of the log, whose every answer is compared with the model's. */
#include "model_run.h"

void check_epochs(void)
{
	struct plog_epoch_info got[64];
	int n;

	for (int from = 0; from < m.epochs || !from; from += n) {
		s32 first = from ? m.ep[from].epoch : -1;

		n = plog_partition_epochs(env.p, first, got, 64);
		assert_true(n >= 0);
		assert_int_equal(n, m.epochs - from > 64 ? 64 : m.epochs - from);
		for (int i = 0; i < n; i++) {
			assert_int_equal(got[i].epoch, m.ep[from + i].epoch);
			assert_int_equal(got[i].start, m.ep[from + i].start);
		}
		if (!n)
			break;
	}
}

void check_view(void)
{
	struct plog_view v = view();
	s64 stable = model_last_stable(&m, m.start);
	u32 role = (m.replicated ? PLOG_STATE_REPLICATED : 0) | (m.leader ? PLOG_STATE_LEADER : 0) |
		   (m.below_min_isr ? PLOG_STATE_BELOW_MIN_ISR : 0);

	assert_int_equal(v.log_end, m.end);
	assert_int_equal(v.high_watermark, m.hw);
	assert_int_equal(v.log_start, m.start);
	assert_int_equal(v.leader_epoch, m.epoch);
	assert_int_equal(v.state, PLOG_PARTITION_ONLINE);
	assert_int_equal(v.flags & (PLOG_STATE_REPLICATED | PLOG_STATE_LEADER |
				    PLOG_STATE_BELOW_MIN_ISR), role);
	trace("last producer %lld, should be %lld", (long long)v.last_producer,
	      (long long)model_last_producer(&m));
	assert_int_equal(v.last_producer, model_last_producer(&m));
	/* nobody may see what is not decided, of what is there; who was told hides no more */
	if (tracing && v.last_stable != stable)
		for (int i = 0; i < m.n; i++)
			if (m.b[i].kind > IDEMPOTENT)
				trace("%s of %d at %lld", m.b[i].kind == MARKER ? "marker" : "batch",
				      m.b[i].producer, (long long)m.b[i].base);
	trace("last stable offset %lld, should be %lld", (long long)v.last_stable,
	      (long long)stable);
	assert_true(v.last_stable <= stable);
	if (m.told) {
		done.exact++;
		assert_int_equal(v.last_stable, model_last_stable(&m, 0));
	}
	check_epochs();
}

int check_extent(struct plog_extent *ext, const struct expected *b, u32 max)
{
	static uint8_t bytes[BATCH_MAX], want[BATCH_MAX];
	u32 pos = 0;
	int i = 0;

	assert_int_equal(ext->base_offset, b[0].base);
	while (pos < ext->length) {
		struct kvec vec = { bytes, ext->length - pos };
		size_t n = batch_bytes(&b[i], want);
		struct iov_iter it;

		trace("expect %lld+%u, %zu bytes at %u of %u", (long long)b[i].base, b[i].count, n,
		      pos, ext->length);
		assert_true(n <= ext->length - pos);
		assert_true(pos == 0 || pos + n <= max);
		iov_iter_kvec(&it, ITER_DEST, &vec, 1, n);
		assert_int_equal(plog_extent_read(ext, pos, &it), n);
		assert_memory_equal(bytes, want, n);
		pos += n;
		i++;
	}
	return i;
}

void check_all(void)
{
	s64 offset = m.start;
	struct plog_view v;

	while (offset < m.end) {
		struct plog_extent ext = { 0 };
		int i = model_find(&m, offset);

		assert_int_equal(plog_partition_locate(env.p, offset, 1 << 20, PLOG_END_LEO, true,
						       &ext, &v), 0);
		trace("check: %lld to %lld, %u bytes", (long long)ext.base_offset,
		      (long long)ext.next_offset, ext.length);
		if (i == m.n) {		/* nothing but a gap */
			assert_int_equal(ext.length, 0);
			break;
		}
		assert_true(ext.length > 0);
		i += check_extent(&ext, &m.b[i], UINT32_MAX);
		assert_true(ext.next_offset > last_of(&m.b[i - 1]));
		assert_true(ext.next_offset <= (i < m.n ? m.b[i].base : m.end));
		offset = ext.next_offset;
		plog_extent_put(&ext);
	}
}

static int add_segment(void *arg, const struct plog_segment_info *info)
{
	struct segments *s = arg;

	assert_true(s->n < MAX_SEGMENTS);
	s->base[s->n++] = info->base_offset;
	return 0;
}

int list_segments(struct segments *s)
{
	struct plog_view v = view();
	int err;

	s->n = 0;
	err = plog_partition_segments(env.p, 0, add_segment, s);
	if (err)
		return err;
	assert_int_equal(s->n, v.segments);
	trace("%d segments from %lld, %llu bytes, should be %llu", s->n, (long long)s->base[0],
	      (unsigned long long)v.bytes,
	      (unsigned long long)model_bytes(&m, s->base[0], m.end));
	assert_int_equal(v.bytes, model_bytes(&m, s->base[0], m.end));
	return 0;
}

/* ---- pins ---- */

static void unpin(struct pin *p)
{
	if (!p->ext.length)
		return;
	/* what was compacted was there until then, whatever was truncated afterwards */
	if (!p->swapped && p->b[p->count - 1].base >= p->cut)
		assert_true(plog_extent_stale(&p->ext));
	/* where an earlier cut lies lower, one that does not concern it makes it stale too */
	if (p->cut == S64_MAX || !plog_extent_stale(&p->ext))
		assert_int_equal(check_extent(&p->ext, p->b, UINT32_MAX), p->count);
	plog_extent_put(&p->ext);
}

void unpin_all(void)
{
	for (int i = 0; i < MAX_PINS; i++)
		unpin(&pins[i]);
}

void do_pin(void)
{
	struct pin *p = &pins[rnd(MAX_PINS)];
	s64 offset = m.start + rnd(m.end - m.start + 1);
	struct plog_view v;
	int i = model_find(&m, offset);

	unpin(p);
	if (i == m.n)
		return;
	assert_int_equal(plog_partition_locate(env.p, offset, rnd(8000), PLOG_END_LEO, true,
					       &p->ext, &v), 0);
	p->count = check_extent(&p->ext, &m.b[i], UINT32_MAX);
	if (p->count > 64) {
		plog_extent_put(&p->ext);
		return;
	}
	memcpy(p->b, &m.b[i], p->count * sizeof(p->b[0]));
	p->cut = S64_MAX;
	p->swapped = false;
}

/* ---- readers ---- */

static s64 any_end(enum plog_end *end)
{
	*end = rnd(3);
	switch (*end) {
	case PLOG_END_HW:
		return m.hw;
	case PLOG_END_LSO:
		return view().last_stable;
	default:
		return m.end;
	}
}

void do_locate(void)
{
	s64 offset = m.start + rnd(m.end - m.start + 1);
	enum plog_end end;
	s64 limit = any_end(&end);
	struct plog_extent ext = { 0 };
	u32 max = rnd(20000);
	struct plog_view v;
	int i = model_find(&m, offset);

	assert_int_equal(plog_partition_locate(env.p, offset, max, end, true, &ext, &v), 0);
	if (offset >= limit || i == m.n || last_of(&m.b[i]) >= limit) {
		assert_int_equal(ext.length, 0);
		return;
	}
	assert_true(ext.length > 0);
	i += check_extent(&ext, &m.b[i], max);
	assert_true(last_of(&m.b[i - 1]) < limit);
	assert_true(ext.next_offset > last_of(&m.b[i - 1]));
	assert_true(ext.next_offset <= (i < m.n ? m.b[i].base : m.end));
	plog_extent_put(&ext);
}

void do_lookup(void)
{
	s64 from = rnd(3) ? 0 : m.start + rnd(m.end - m.start + 1), t, want, limit, least;
	const struct expected *e = NULL;
	struct plog_time_hit hit;
	bool max = !rnd(4);
	enum plog_end end;

	done.lookups++;
	limit = any_end(&end);
	least = from > m.start ? from : m.start;
	/* around what is there */
	t = m.n && rnd(10) ? max_time(&m.b[rnd(m.n)]) + rnd(60) - 30 : clock_start + rnd(100000);
	assert_int_equal(plog_partition_lookup_from(env.p, from, t, max, end, &hit), 0);
	/* the largest is that of the whole log, as Kafka has it, though none may read it yet */
	if (max)
		t = model_latest(&m, least);
	want = max && t < 0 ? -1 : model_by_time(&m, least, limit, t, &e);
	trace("lookup of %lld%s from %lld: %lld, should be %lld", (long long)t, max ? ", max" : "",
	      (long long)least, (long long)hit.offset, (long long)want);
	assert_int_equal(hit.offset, want);
	assert_false(hit.inside);
	assert_int_equal(hit.behind, max && want < 0 && t >= 0);
	if (want < 0)
		return;
	assert_int_equal(hit.timestamp, time_of(e, want - e->base));
	assert_int_equal(hit.leader_epoch, e->epoch);
}

/* The next batch from @i on that a person reads something of, below the high watermark. */
static int readable(int i)
{
	while (i < m.n && last_of(&m.b[i]) < m.hw && m.b[i].kind == MARKER)
		i++;
	return i < m.n && last_of(&m.b[i]) < m.hw ? i : m.n;
}

void do_read(void)
{
	static uint8_t want[BATCH_MAX];
	s64 offset = m.start + rnd(m.end - m.start + 1);
	struct plog_reader r;
	int i;

	if (offset > m.hw)
		return;
	plog_reader_init(&r, env.p, PLOG_END_HW);
	plog_reader_seek(&r, offset);
	i = readable(model_find(&m, offset));
	for (int k = 0; k < 20 && i < m.n; k++) {
		struct plog_source src;
		struct plog_record rec = { .pos = PLOG_BATCH_HEADER };
		const char *got;
		size_t n = batch_bytes(&m.b[i], want);

		if (offset < m.b[i].base)
			offset = m.b[i].base;
		plog_source_mem(&src, want, n);
		for (s64 o = m.b[i].base; o <= offset; o++)
			assert_int_equal(plog_record_decode(&src, rec.pos + rec.size, &rec), 0);
		got = next_value(&r);
		assert_int_equal(strlen(got), rec.value_len);
		assert_memory_equal(got, want + rec.value_pos, rec.value_len);
		if (++offset > last_of(&m.b[i]))
			i = readable(i + 1);
	}
	if (i == m.n)
		assert_string_equal(next_value(&r), "-EAGAIN");
	plog_reader_release(&r);
}

static void check_header(const struct plog_batch_header *h, const struct expected *e)
{
	assert_int_equal(h->base_offset, e->base);
	assert_int_equal(h->last_offset, last_of(e));
	assert_int_equal(h->size, e->size);
	assert_int_equal(h->count, e->count);
	assert_int_equal(h->leader_epoch, e->epoch);
	assert_int_equal(h->max_timestamp, max_time(e));
	assert_int_equal(h->producer_id, e->kind == PLAIN ? -1 : e->producer);
	assert_int_equal(h->control, e->kind == MARKER ? PLOG_CONTROL_COMMIT : -1);
}

/* Is it for who has asked with @flags? */
static bool wanted(const struct expected *e, u32 flags)
{
	return (!(flags & PLOG_HEADERS_PRODUCERS) || e->kind != PLAIN) &&
	       (!(flags & PLOG_HEADERS_CONTROL) || e->kind == MARKER);
}

void do_headers(void)
{
	static struct plog_batch_header h[64];
	s64 offset = m.start + rnd(m.end - m.start + 1), before;
	u32 flags = rnd(4), count, room = 1 + rnd(64);
	struct plog_view v;
	enum plog_end end;
	s64 limit = any_end(&end);
	int i = model_find(&m, offset);

	done.headers++;
	for (int calls = 0; offset < limit && calls < 4; calls++) {
		count = room;
		before = offset;
		assert_int_equal(plog_partition_headers(env.p, end, flags, &offset, h, &count, &v),
				 0);
		assert_true(offset > before);
		for (u32 k = 0; k < count; k++) {
			while (i < m.n && !wanted(&m.b[i], flags))
				i++;
			assert_true(i < m.n && last_of(&m.b[i]) < limit);
			check_header(&h[k], &m.b[i++]);
		}
		/* all the others before the offset where it goes on are not wanted */
		for (; i < m.n && last_of(&m.b[i]) < offset && last_of(&m.b[i]) < limit; i++)
			assert_false(wanted(&m.b[i], flags));
	}
}

void do_ask_epochs(void)
{
	s32 asked = rnd(10) ? (s32)rnd(m.epoch + 2) : -1, epoch = asked, want = asked, current;
	s64 offset = m.start + rnd(m.end - m.start + 1), end;
	int i = model_find(&m, offset);

	assert_int_equal(plog_partition_epoch_end(env.p, &epoch, &end, &current), 0);
	assert_int_equal(end, model_epoch_end(&m, &want));
	assert_int_equal(epoch, want);
	assert_int_equal(current, m.epoch);
	if (i == m.n || m.b[i].base > offset)
		return;
	assert_int_equal(plog_partition_epoch_at(env.p, offset, &epoch, &current), 0);
	assert_int_equal(epoch, m.b[i].epoch);
}
