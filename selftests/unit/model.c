// SPDX-License-Identifier: MIT
/* The log as it should be: model.h. */
#include "model.h"

void model_clear(struct model *m)
{
	memset(m, 0, offsetof(struct model, ep));
	m->told = true;
	m->swap_first = m->swap_last = m->taken = m->producer = -1;
}

void model_copy(struct model *to, const struct model *from)
{
	memcpy(to, from, offsetof(struct model, ep));
	memcpy(to->ep, from->ep, from->epochs * sizeof(to->ep[0]));
	memcpy(to->b, from->b, from->n * sizeof(to->b[0]));
}

/* ---- batches ---- */

/* In no order, also within a batch. */
static s64 own_time(const struct expected *e, unsigned int i)
{
	return i ? e->time + (s64)((e->seed * 31 + i * 17) % 41) - 20 : e->time;
}

s64 time_of(const struct expected *e, unsigned int i)
{
	return e->append_time >= 0 ? e->append_time : own_time(e, i);
}

s64 max_time(const struct expected *e)
{
	s64 max = time_of(e, 0);

	for (unsigned int i = 1; i < e->count; i++)
		max = time_of(e, i) > max ? time_of(e, i) : max;
	return max;
}

static uint8_t *varint(uint8_t *p, int64_t v)
{
	uint64_t z = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);

	for (; z >= 0x80; z >>= 7)
		*p++ = z | 0x80;
	*p++ = z;
	return p;
}

static unsigned int varint_size(int64_t v)
{
	uint8_t room[10];

	return varint(room, v) - room;
}

static uint8_t *put_record(uint8_t *p, const struct expected *e, unsigned int i)
{
	/* a marker's key is a version and what it says, its value a version and an epoch */
	static const uint8_t key[4] = { 0, 0, 0, PLOG_CONTROL_COMMIT };
	unsigned int key_len = e->kind == MARKER ? 4 : 0, len = e->kind == MARKER ? 6 : e->len;
	s64 delta = own_time(e, i) - e->time;

	p = varint(p, 1 + varint_size(delta) + varint_size(i) + varint_size(key_len ? 4 : -1) +
		      key_len + varint_size(len) + len + 1);
	*p++ = 0;
	p = varint(p, delta);
	p = varint(p, i);
	p = varint(p, key_len ? 4 : -1);
	p = mempcpy(p, key, key_len);
	p = varint(p, len);
	for (unsigned int k = 0; k < len; k++)
		*p++ = e->kind == MARKER ? 0 : 'a' + (e->seed + i + k * (e->seed | 1)) % 26;
	*p++ = 0;	/* headers */
	return p;
}

size_t batch_bytes(const struct expected *e, uint8_t *buf)
{
	uint8_t *p = buf + PLOG_BATCH_HEADER;
	struct plog_batch b = {
		.base_offset = e->base, .magic = 2, .leader_epoch = e->epoch,
		.last_offset_delta = e->count - 1, .count = e->count, .base_timestamp = e->time,
		.max_timestamp = max_time(e), .producer_id = -1, .producer_epoch = -1,
		.base_sequence = -1,
	};

	if (e->append_time >= 0)
		b.attributes |= PLOG_ATTR_LOG_APPEND_TIME;
	if (e->kind != PLAIN) {
		b.producer_id = e->producer;
		b.producer_epoch = 3;
		b.base_sequence = e->kind == MARKER ? -1 : 0;
	}
	if (e->kind == TRANSACTIONAL || e->kind == MARKER)
		b.attributes |= PLOG_ATTR_TRANSACTIONAL;
	if (e->kind == MARKER)
		b.attributes |= PLOG_ATTR_CONTROL;
	for (unsigned int i = 0; i < e->count; i++)
		p = put_record(p, e, i);
	b.size = p - buf;
	plog_batch_encode(&b, buf);
	fix_crc(buf, b.size);
	return b.size;
}

int model_find(const struct model *m, s64 offset)
{
	int low = 0, high = m->n;

	while (low < high) {
		int mid = (low + high) / 2;

		if (last_of(&m->b[mid]) < offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

s64 model_by_time(const struct model *m, s64 from, s64 limit, s64 t, const struct expected **e)
{
	for (int i = model_find(m, from); i < m->n && m->b[i].base < limit; i++)
		for (unsigned int k = 0; k < m->b[i].count; k++)
			if (m->b[i].base + k >= from && m->b[i].base + k < limit &&
			    time_of(&m->b[i], k) >= t) {
				*e = &m->b[i];
				return m->b[i].base + k;
			}
	return -1;
}

s64 model_latest(const struct model *m, s64 from)
{
	s64 max = -1;

	for (int i = model_find(m, from); i < m->n; i++)
		for (unsigned int k = 0; k < m->b[i].count; k++)
			if (m->b[i].base + k >= from && time_of(&m->b[i], k) > max)
				max = time_of(&m->b[i], k);
	return max;
}

u64 model_bytes(const struct model *m, s64 from, s64 to)
{
	u64 bytes = 0;

	for (int i = model_find(m, from); i < m->n && m->b[i].base < to; i++)
		bytes += m->b[i].size;
	return bytes;
}

/* ---- offsets ---- */

void model_add(struct model *m, const struct expected *e)
{
	m->b[m->n++] = *e;
	m->end = last_of(e) + 1;
	if (!m->replicated)
		m->hw = m->end;
}

s64 model_cut_end(const struct model *m, s64 to)
{
	int i = model_find(m, to);
	s64 end = to;

	if (i < m->n && m->b[i].base < to)
		end = m->b[i].base;
	if (end < m->start)
		return -1;
	if (end < m->end)
		end = i ? last_of(&m->b[i - 1]) + 1 : 0;
	return end > m->start ? end : m->start;
}

void model_cut(struct model *m, s64 end)
{
	/* who has to look for another one finds what is there */
	if (model_last_producer(m) >= end)
		m->producer = -1;
	while (m->n && last_of(&m->b[m->n - 1]) >= end)
		m->n--;
	m->end = end;
	if (m->hw > end)
		m->hw = end;
	model_cut_epochs(m, end);
	if (model_leads(m))
		model_epoch(m, m->epoch, end);
	/* what a follower knows of epochs without a batch is in the list alone */
	m->noted = model_leads(m);
}

void model_restart(struct model *m, s64 start)
{
	m->n = 0;
	m->epochs = 0;
	m->noted = false;
	m->producer = -1;
	m->start = m->end = m->hw = start;
}

void model_set_start(struct model *m, s64 start)
{
	int first = 0;

	m->start = start;
	while (first + 1 < m->epochs && m->ep[first + 1].start <= start)
		first++;
	m->epochs -= first;
	memmove(m->ep, m->ep + first, m->epochs * sizeof(m->ep[0]));
	if (m->epochs && m->ep[0].start < start)
		m->ep[0].start = start;
}

/* ---- leader epochs ---- */

s32 model_last_epoch(const struct model *m)
{
	return m->epochs ? m->ep[m->epochs - 1].epoch : -1;
}

void model_epoch(struct model *m, s32 epoch, s64 start)
{
	if (model_last_epoch(m) == epoch && m->ep[m->epochs - 1].start <= start)
		return;
	while (m->epochs &&
	       (m->ep[m->epochs - 1].epoch >= epoch || m->ep[m->epochs - 1].start >= start))
		m->epochs--;
	assert_true(m->epochs < MAX_EPOCHS);
	m->ep[m->epochs++] = (struct plog_epoch_info){ epoch, start };
	m->noted = false;
}

void model_cut_epochs(struct model *m, s64 end)
{
	while (m->epochs && m->ep[m->epochs - 1].start >= end)
		m->epochs--;
}

s64 model_epoch_end(const struct model *m, s32 *epoch)
{
	int i = m->epochs - 1;

	if (*epoch < 0 || *epoch > model_last_epoch(m)) {
		*epoch = -1;
		return -1;
	}
	while (i >= 0 && m->ep[i].epoch > *epoch)
		i--;
	if (i < 0)	/* all that is known is newer */
		return m->ep[0].start;
	*epoch = m->ep[i].epoch;
	return i + 1 < m->epochs ? m->ep[i + 1].start : m->end;
}

/* ---- transactions ---- */

s64 model_unstable(const struct model *m, s64 from, s64 hw, s64 open[PRODUCERS])
{
	s64 first = INT64_MAX;

	for (int p = 0; p < PRODUCERS; p++)
		open[p] = -1;
	for (int i = model_find(m, from); i < m->n; i++) {
		const struct expected *e = &m->b[i];

		if (e->kind == TRANSACTIONAL && open[e->producer] < 0)
			open[e->producer] = e->base;
		if (e->kind != MARKER || open[e->producer] < 0)
			continue;
		if (e->base >= hw && open[e->producer] < first)
			first = open[e->producer];
		open[e->producer] = -1;
	}
	for (int p = 0; p < PRODUCERS; p++)
		if (open[p] >= 0 && open[p] < first)
			first = open[p];
	return first;
}

s64 model_last_stable(const struct model *m, s64 from)
{
	s64 open[PRODUCERS], first = model_unstable(m, from, m->hw, open);

	if (first < m->start)
		first = m->start;
	return first < m->hw ? first : m->hw;
}

s64 model_last_producer(const struct model *m)
{
	s64 guess = m->producer >= m->start ? m->producer : -1;

	for (int i = m->n - 1; i >= 0 && last_of(&m->b[i]) >= m->start; i--)
		if (m->b[i].kind != PLAIN)
			return last_of(&m->b[i]) > guess ? last_of(&m->b[i]) : guess;
	return guess;
}

int model_waiting(const struct model *m)
{
	int count = 0;

	for (int i = m->n - 1; i >= 0 && m->b[i].base >= m->hw; i--)
		count += m->b[i].kind == MARKER;
	return count;
}

/* ---- retention ---- */

static s64 next_base(const struct model *m, const struct segments *s, int i)
{
	return i + 1 < s->n ? s->base[i + 1] : m->end;
}

/* The newest record between two offsets; -1. */
static s64 newest(const struct model *m, s64 from, s64 to)
{
	s64 max = -1;

	for (int i = model_find(m, from); i < m->n && m->b[i].base < to; i++)
		max = max_time(&m->b[i]) > max ? max_time(&m->b[i]) : max;
	return max;
}

/* May the segment go? Never what the high watermark has not passed, nor an empty last one. */
static bool may_go(const struct model *m, const struct segments *s, int i)
{
	return i < s->n && m->hw >= next_base(m, s, i) &&
	       (i + 1 < s->n || model_bytes(m, s->base[i], m->end));
}

s64 model_retain(const struct model *m, const struct segments *s, const struct plog_config *c,
		 s64 now, s64 (*mtime)(s64 base))
{
	u64 left, bytes;
	int i = 0, below;
	s64 t;

	/* below the log start: gone, but for one whose files are being renamed */
	while (i + 1 < s->n && s->base[i + 1] <= m->start && s->base[i] != m->swap_first)
		i++;
	below = i;
	left = model_bytes(m, s->base[i], m->end);
	for (; c->retention_bytes >= 0 && may_go(m, s, i); i++) {
		bytes = model_bytes(m, s->base[i], next_base(m, s, i));
		if (left < bytes || left - bytes < (u64)c->retention_bytes)
			break;
		left -= bytes;
	}
	for (; c->retention_ms >= 0 && may_go(m, s, i); i++) {
		t = newest(m, s->base[i], next_base(m, s, i));
		if (t < 0)
			t = mtime(s->base[i]);
		if (now - t <= c->retention_ms)
			break;
	}
	t = i < s->n ? s->base[i] : m->end;
	return i > below && t > m->start ? t : m->start;
}
