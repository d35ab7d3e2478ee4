// SPDX-License-Identifier: MIT
/*
 * What changes the log. Each does the same to the model, whatever the engine says:
 * after an error the log may be as before or after, and the caller decides.
 */
#include "model_run.h"

struct plog_fence fence_now(void)
{
	return (struct plog_fence){ .leader_epoch = m.epoch };
}

/* ---- appends ---- */

/* Times around the clock, some from long ago, some from the future. */
static s64 any_time(void)
{
	s64 now = clock_start + shim_clock_ms;

	return rnd(20) ? now + rnd(2000) - 1500 : rnd(2) ? 1000 + rnd(3000) : now + rnd(20000);
}

/* A batch that could come next, at @base; markers only of open transactions. */
static struct expected any_batch(s64 base, s32 epoch, unsigned int len)
{
	struct expected e = {
		.base = base, .count = 1 + rnd(5), .len = len, .seed = rnd(1000),
		.time = any_time(), .append_time = -1, .epoch = epoch, .producer = rnd(PRODUCERS),
	};
	s64 open[PRODUCERS];

	switch (rnd(12)) {
	case 0:
		e.kind = IDEMPOTENT;
		break;
	case 1:
		e.kind = TRANSACTIONAL;
		break;
	case 2:
	case 3:
		model_unstable(&m, 0, INT64_MAX, open);
		if (open[e.producer] < 0)
			break;
		e.kind = MARKER;
		e.count = 1;
		done.transactions++;
		break;
	default:
		break;
	}
	return e;
}

/*
 * What the daemon would say of transactions behind the last batch of the model; true if
 * it says something, or has nothing new to say.
 */
static bool say_unstable(struct plog_append_args *args, const struct expected *e)
{
	s64 open[PRODUCERS], first = model_unstable(&m, 0, INT64_MAX, open);

	/* a batch that says nothing opens one; an end has to be told */
	if (!rnd(10))
		return e->kind != MARKER;
	if (e->kind == PLAIN && rnd(4))
		return true;
	args->flags |= PLOG_APPEND_UNSTABLE;
	args->first_unstable = first == INT64_MAX ? PLOG_UNSTABLE_NONE : first;
	if (first != INT64_MAX && e->kind == TRANSACTIONAL && rnd(2))
		args->first_unstable = PLOG_UNSTABLE_HERE;
	return true;
}

/* The engine keeps so many ends apart; of more some count late. */
static void note_told(bool told)
{
	m.told = m.told && told && model_waiting(&m) <= PLOG_UNSTABLE_WAITING;
}

/*
 * What an append said, of which the model has the end already: one error may say that it
 * was made, and not synced.
 */
static int but_synced(int err)
{
	return err == -EIO && view().log_end == m.end ? 0 : err;
}

static struct iov_iter in_pieces(struct kvec parts[3], size_t size)
{
	struct iov_iter it;

	/* so that the engine has to walk */
	parts[0] = (struct kvec){ env.buf, size / 3 };
	parts[1] = (struct kvec){ env.buf + size / 3, 0 };
	parts[2] = (struct kvec){ env.buf + size / 3, size - size / 3 };
	iov_iter_kvec(&it, ITER_SOURCE, parts, 3, size);
	return it;
}

/* What a leader refuses of a batch of @size bytes; 0: nothing. */
static int refusal(size_t size, u32 flags)
{
	if (!model_leads(&m))
		return -EROFS;
	if (flags & PLOG_APPEND_ACKS_ALL && m.replicated && m.below_min_isr)
		return -EHOSTUNREACH;
	if (size > env.config.max_message_bytes || size > env.config.segment_bytes)
		return -EMSGSIZE;
	return 0;
}

int do_append(void)
{
	struct expected e = any_batch(m.end, -1, 1 + rnd(rnd(20) ? 200 : 8000));
	struct plog_append_args args = { .leader_epoch = m.epoch };
	struct kvec parts[3];
	struct iov_iter it;
	s64 before = m.end;
	enum how how = rnd(HOWS);
	bool told = true;
	int err, want;

	e.base = 0;
	e.size = batch_bytes(&e, env.buf);
	e.base = m.end;
	e.epoch = m.epoch;
	if (env.config.flags & PLOG_STATE_LOG_APPEND_TIME) {
		/* its records keep their times, but these do not count */
		e.append_time = clock_start + shim_clock_ms;
	}
	args.flags = (e.kind != PLAIN || rnd(2) ? PLOG_APPEND_DAEMON : 0) |
		     (rnd(30) ? 0 : PLOG_APPEND_SYNC) | (rnd(10) ? 0 : PLOG_APPEND_ACKS_ALL);
	want = refusal(e.size, args.flags);
	if (!want) {
		model_add(&m, &e);
		if (args.flags & PLOG_APPEND_DAEMON)
			told = say_unstable(&args, &e);
	}
	if (how == RAW) {
		args.raw = env.buf;
		args.size = e.size;
	} else {
		it = in_pieces(parts, e.size);
		args.from = &it;
		args.checked = how == ITER_CHECKED;
	}
	err = plog_partition_append(env.p, &args);
	if (want) {
		assert_int_equal(err, want);
		return 0;
	}
	if (model_last_epoch(&m) != m.epoch)
		model_epoch(&m, m.epoch, before);
	note_told(told);
	err = but_synced(err);
	return err ? err : args.base_offset == e.base ? 0 : -EINVAL;
}

/*
 * Where a leader's log starts inside a batch, that one comes whole: the log begins
 * anew, below its own start. Is that so? Then @e is that batch.
 */
static bool restarts(struct expected *e)
{
	s64 start = m.start;

	if (start != m.end || start <= 3 || m.swap_first >= 0 || m.taken >= 0 || rnd(3))
		return false;
	model_restart(&m, start);
	m.told = true;
	for (int i = 0; i < MAX_PINS; i++)
		pins[i].cut = -1;
	done.restarts++;
	e->base = start - 1 - rnd(3);
	e->count = start - e->base + 1 + rnd(3);
	e->kind = PLAIN;
	return true;
}

/* Batches as a leader sends them: offsets with gaps, epochs of their own. */
int do_replica(void)
{
	struct plog_append_args args = { .flags = PLOG_APPEND_DAEMON | PLOG_APPEND_REPLICA };
	s32 epoch = model_last_epoch(&m);
	struct kvec vec = { env.buf, 0 };
	int count = 1 + rnd(4), err;
	struct iov_iter it;
	bool told = true;

	if (epoch < 0)
		epoch = m.epoch ? rnd(m.epoch) : 0;
	for (int i = 0; i < count; i++) {
		struct expected e;

		if (epoch < m.epoch)
			epoch += rnd(2);
		e = any_batch(m.end + (rnd(8) ? 0 : rnd(6)), epoch, 1 + rnd(200));
		if (!i)
			restarts(&e);
		e.size = batch_bytes(&e, env.buf + vec.iov_len);
		vec.iov_len += e.size;
		model_add(&m, &e);
		model_epoch(&m, e.epoch, e.base);
		told &= e.kind != MARKER;
		if (count == 1)
			told = say_unstable(&args, &e);
	}
	model_set_start(&m, m.start);
	args.leader_epoch = m.epoch;
	iov_iter_kvec(&it, ITER_SOURCE, &vec, 1, vec.iov_len);
	args.from = &it;
	err = but_synced(plog_partition_append(env.p, &args));
	note_told(told);
	trace("replica of %d batches said %d", count, err);
	return err;
}

void do_refused(void)
{
	size_t size = make_batch(env.buf, 2, 100, 1, 1);
	s64 got;

	env.buf[size - 1] ^= 1;
	got = append_as(size, rnd(2) ? RAW : ITER, 0);
	if (!model_leads(&m) && got == -EROFS)
		return;
	assert_int_equal(got, -EBADMSG);
}

/* ---- offsets that move ---- */

static void cut(s64 end)
{
	model_cut(&m, end);
	/* an end that was seen may be gone: what is open again is for the daemon to say */
	m.told = false;
	for (int i = 0; i < MAX_PINS; i++)
		if (pins[i].cut > end)
			pins[i].cut = end;
}

/* Nothing is cut off; a follower forgets an epoch that would begin at the end. */
static void cut_nothing(void)
{
	if (!model_leads(&m) && m.epochs && m.ep[m.epochs - 1].start >= m.end)
		model_cut_epochs(&m, m.end);
}

/*
 * A truncation to @to said @err; what goes may be a segment whose files are renamed now,
 * and where all goes the log begins anew with a name whose files may just be deleted.
 */
static int truncated(s64 to, s64 want, s64 got, int err)
{
	if (err == -EBUSY && (m.swap_first >= 0 || m.taken == to))
		return 0;
	/* where compaction has left a gap before a segment, the log may end behind it */
	if (!err && got > want && got <= to && got == plog_active(env.p)->base)
		want = got;
	if (!err)
		assert_int_equal(got, want);
	if (to < m.end)
		cut(want);
	else
		cut_nothing();
	return err;
}

int do_truncate(void)
{
	struct plog_fence f = fence_now();
	s64 back = rnd(10) ? rnd(20) : rnd(m.end - m.start + 1);
	s64 to = m.end - back < m.start ? m.start : m.end - back, asked = to;
	s64 want = model_cut_end(&m, to);
	int err;

	if (want < 0)
		return 0;
	err = plog_partition_truncate(env.p, &f, &to);
	return truncated(asked, want, to, err);
}

int do_truncate_epoch(void)
{
	struct plog_fence f = fence_now();
	s32 epoch = rnd(m.epoch + 2), own = epoch, next;
	s64 offset = rnd(10) ? m.end - rnd(20) : m.start + rnd(m.end - m.start + 1), to;
	bool again = false;
	int err;

	if (offset < 0)
		offset = 0;
	if (!rnd(20))
		epoch = offset = -1;
	to = offset < 0 ? m.hw : model_epoch_end(&m, &own);
	if (offset >= 0 && to < 0)
		to = offset;
	else if (offset >= 0 && own == epoch)
		to = to < offset ? to : offset;
	else if (offset >= 0)
		again = true;
	to = to < m.start ? m.start : to > m.end ? m.end : to;
	done.epoch_cuts++;
	if (model_cut_end(&m, to) < 0)
		return 0;
	next = epoch;
	err = plog_partition_truncate_epoch(env.p, &f, &next, &offset);
	trace("truncation to the end of epoch %d: %lld", epoch, (long long)to);
	err = truncated(to, model_cut_end(&m, to), offset, err);
	if (!err && !(m.swap_first >= 0))
		assert_int_equal(next, again ? model_last_epoch(&m) : -1);
	return err;
}

int do_log_start(void)
{
	struct plog_fence f = fence_now();
	s64 to = m.start + rnd(rnd(20) ? 5 : m.end - m.start + 1), want;
	int err;

	if (to > m.hw)
		to = m.hw;
	if (to < m.start)
		to = m.start;
	want = to;
	err = plog_partition_set_log_start(env.p, &f, &to);
	if (!err)
		assert_int_equal(to, want);
	model_set_start(&m, want);
	return err;
}

int do_start_at(void)
{
	struct plog_fence f = fence_now();
	s64 to = m.end + rnd(30), want = to;
	int err = plog_partition_start_at(env.p, &f, &to);

	if (model_leads(&m)) {
		assert_int_equal(err, -EINVAL);
		return 0;
	}
	/* of a swap, or a file of that name that is being deleted */
	if (err == -EBUSY && (m.swap_first >= 0 || m.taken == want)) {
		/* what was retired may be void by then */
		for (int i = 0; i < MAX_PINS; i++)
			if (pins[i].cut == S64_MAX)
				pins[i].cut = S64_MAX - 1;
		return 0;
	}
	if (!err)
		assert_int_equal(to, want);
	model_restart(&m, want);
	m.told = true;
	for (int i = 0; i < MAX_PINS; i++)
		pins[i].cut = -1;
	done.restarts++;
	return err;
}

int do_hw(void)
{
	struct plog_fence f = fence_now();
	int i = model_find(&m, m.hw) + rnd(10), err;
	s64 to = i < m.n ? m.b[i].base : m.end;

	if (!m.replicated || to < m.hw)
		return 0;
	err = plog_partition_set_hw(env.p, &f, &to);
	if (!err)
		m.hw = to;
	return err;
}

int do_unstable(void)
{
	struct plog_fence f = fence_now();
	s64 open[PRODUCERS], first = model_unstable(&m, 0, INT64_MAX, open);
	s64 to = first == INT64_MAX ? -1 : first;
	int err = plog_partition_set_unstable(env.p, &f, &to);

	/* it counts once all that is there now is replicated */
	if (!err && m.hw == m.end)
		m.told = true;
	return err;
}

/* ---- who leads ---- */

/* The role and the epoch from now on. */
static void model_role(bool replicated, bool leader, s32 epoch)
{
	m.replicated = replicated;
	m.leader = leader;
	m.epoch = epoch;
	if (m.tried < epoch)
		m.tried = epoch;
	if (model_leads(&m) && model_last_epoch(&m) != epoch) {
		model_epoch(&m, epoch, m.end);
		m.noted = true;
	}
	if (!replicated)
		m.hw = m.end;
}

int do_epoch(void)
{
	s32 to = m.epoch + rnd(2);
	int err = plog_partition_set_epoch(env.p, to);

	model_role(m.replicated, m.leader, to);
	return err;
}

int do_lead(void)
{
	u32 role = rnd(10) ? PLOG_LEAD_REPLICATED : 0;
	struct plog_lead_args args = { .epoch = m.epoch + rnd(2) };
	int err;

	role |= rnd(3) ? PLOG_LEAD_LEADER : 0;
	role |= rnd(4) ? 0 : PLOG_LEAD_BELOW_MIN_ISR;
	args.flags = role;
	err = plog_partition_lead(env.p, &args);
	m.led = true;
	m.below_min_isr = role & PLOG_LEAD_BELOW_MIN_ISR;
	model_role(role & PLOG_LEAD_REPLICATED, role & PLOG_LEAD_LEADER, args.epoch);
	done.leads++;
	if (!err) {
		assert_int_equal(args.log_end, m.end);
		assert_int_equal(args.high_watermark, m.hw);
	}
	return err;
}

/* ---- retention ---- */

static s64 file_time(s64 base)
{
	char name[PLOG_SEGMENT_NAME + 8];

	plog_segment_name(name, base, base == m.swap_first ? "log.swap" : "log");
	return memdisk_mtime(name);
}

int do_retain(void)
{
	static struct segments s;
	s64 start;
	int ret = list_segments(&s);

	if (ret)
		return ret;
	start = model_retain(&m, &s, &env.config, clock_start + shim_clock_ms, file_time);
	ret = plog_partition_retain(env.p);
	trace("retention: to %lld, said %d", (long long)start, ret);
	/* the name of the segment that would take the appends is being deleted */
	if (ret == -EBUSY && m.taken == m.end)
		return 0;
	done.retained += start > m.start;
	model_set_start(&m, start);
	if (ret < 0)
		return ret;
	ret = list_segments(&s);
	/* nothing is left that lies wholly below, but what waits for its names */
	if (!ret && s.n > 1 && m.swap_first < 0)
		assert_true(s.base[1] > m.start);
	return ret;
}

struct pick {
	unsigned int n;
	struct plog_retired_info info;
};

static int pick_one(void *arg, const struct plog_retired_info *info)
{
	struct pick *p = arg;

	if (!rnd(++p->n))
		p->info = *info;
	return 0;
}

/* Is an extent pinned that lies in the segment? */
static bool is_pinned(s64 base)
{
	for (int i = 0; i < MAX_PINS; i++)
		if (pins[i].ext.length && pins[i].ext.segment->base == base &&
		    pins[i].cut == S64_MAX && !pins[i].swapped)
			return true;
	return false;
}

static void remove_files(s64 base)
{
	static const char *const kinds[] = { "log", "index", "timeindex" };
	char name[PLOG_SEGMENT_NAME];

	for (int i = 0; i < 3; i++) {
		plog_segment_name(name, base, kinds[i]);
		memdisk_remove(name);
	}
}

/* The daemon deletes one of the retired segments, or says that it has. */
int do_retired(void)
{
	struct pick p = { 0 };
	int err;

	if (m.taken >= 0) {
		bool gone = rnd(4);

		if (gone)
			remove_files(m.taken);
		/* where the log began anew meanwhile the list is another one */
		err = plog_partition_retired_done(env.p, m.taken, 7, gone);
		m.taken = -1;
		done.retired++;
		return err;
	}
	plog_partition_retired(env.p, 0, pick_one, &p);
	assert_int_equal(p.n, view().retired);
	if (!p.n)
		return 0;
	err = plog_partition_retired_take(env.p, p.info.base_offset, 7);
	switch (p.info.state) {
	case PLOG_RETIRED_DELAYED:
	case PLOG_RETIRED_HELD:
		assert_int_equal(err, -EBUSY);
		return 0;
	case PLOG_RETIRED_EMPTIED:
		assert_int_equal(p.info.bytes, 0);
		break;
	default:
		assert_false(is_pinned(p.info.base_offset));
	}
	if (!err)
		m.taken = p.info.base_offset;
	return err;
}

/* ---- compaction ---- */

static void swap_name(char *name, s64 base, const char *kind, const char *suffix)
{
	snprintf(name, 64, "%020lld.%s%s", (long long)base, kind, suffix);
}

/* Write what is kept of the batches from @first to below @next, and keep it in the model. */
static void compact_to(s64 first, s64 next, bool one)
{
	int i = 0, kept;
	char name[64];
	u64 pos = 0;

	swap_name(name, first, "log", ".swap");
	memdisk_write(name, 0, NULL, 0);
	while (i < m.n && m.b[i].base < first)
		i++;
	for (kept = i; i < m.n; i++) {
		struct expected *e = &m.b[i];
		/* so that who finds the files later knows how far they reach */
		bool last = !one && (i + 1 == m.n || m.b[i + 1].base >= next);

		if (e->base < next && e->kind != MARKER && !last && !rnd(2))
			continue;
		if (e->base < next) {
			batch_bytes(e, env.buf);
			memdisk_write(name, pos, env.buf, e->size);
			pos += e->size;
		}
		m.b[kept++] = *e;
	}
	m.n = kept;
	swap_name(name, first, "index", ".swap");
	memdisk_write(name, 0, NULL, 0);
	swap_name(name, first, "timeindex", ".swap");
	memdisk_write(name, 0, NULL, 0);
}

void drop_swap(void)
{
	static const char *const kinds[] = { "index", "timeindex", "log" };
	char name[64];

	for (int i = 0; i < 3; i++) {
		swap_name(name, m.swap_first, kinds[i], ".swap");
		memdisk_remove(name);
	}
	m.swap_first = m.swap_last = -1;
}

static void rename_swap(void)
{
	static const char *const kinds[] = { "index", "timeindex", "log" };
	s64 covered[256];
	unsigned int n = 0;
	const char *name;
	char to[64];

	for (int i = 0; (name = memdisk_name(i)); i++) {
		s64 base = strlen(name) == 24 ? plog_segment_parse(name, 24) : -1;

		if (base > m.swap_first && base <= m.swap_last && n < 256)
			covered[n++] = base;
	}
	while (n)
		remove_files(covered[--n]);
	for (int i = 0; i < 3; i++) {
		char from[64];

		swap_name(from, m.swap_first, kinds[i], ".swap");
		swap_name(to, m.swap_first, kinds[i], "");
		memdisk_rename(from, to);
	}
	m.swap_first = m.swap_last = -1;
}

bool finish_swap(void)
{
	struct plog_saved saved;
	struct plog_dir *dir;
	bool dense;

	if (m.swap_first < 0)
		return true;
	/* as the daemon's tools: without gaps there was no swap; a clean mark holds no more */
	dir = plog_dir_get(-1);
	assert_false(IS_ERR(dir));
	assert_int_equal(plog_state_read(dir, &saved), 0);
	dense = saved.dense;
	if (!dense && saved.clean) {
		saved.clean = false;
		assert_int_equal(plog_state_write(dir, &saved, true), 0);
	}
	plog_dir_put(dir);
	trace("the swap is %s", dense ? "dropped" : "completed");
	if (dense)
		drop_swap();
	else
		rename_swap();
	return !dense;
}

int do_swap_done(void)
{
	struct plog_fence f = fence_now();

	if (m.swap_first < 0)
		return 0;
	rename_swap();
	return plog_partition_swap_done(env.p, &f);
}

int do_swap(void)
{
	static struct segments s;
	struct plog_fence f = fence_now();
	struct plog_swap_args args;
	s64 pending, last, next, unstable, open[PRODUCERS];
	int i, j, err;
	bool late;

	if (m.swap_first >= 0)
		return do_swap_done();
	err = list_segments(&s);
	if (err || s.n < 2)
		return err;
	i = rnd(s.n - 1);
	j = i + rnd(s.n - 1 - i < 4 ? s.n - 1 - i : 4);
	next = s.base[j + 1];
	if (next > view().last_stable)
		return 0;
	assert_int_equal(plog_partition_swap_state(env.p, &args.generation, &pending, &last), 0);
	assert_int_equal(pending, -1);
	late = !rnd(10);
	args.generation -= late;
	args.first = m.swap_first = s.base[i];
	args.last = m.swap_last = s.base[j];
	trace("compaction from %lld to %lld", (long long)args.first, (long long)args.last);
	if (late) {
		assert_int_equal(plog_partition_swap(env.p, &f, &args), -ESTALE);
		m.swap_first = m.swap_last = -1;
		return 0;
	}
	for (int k = 0; k < MAX_PINS; k++)
		if (pins[k].ext.length && pins[k].ext.segment->base >= args.first &&
		    pins[k].ext.segment->base <= args.last)
			pins[k].swapped = true;
	unstable = model_unstable(&m, 0, m.hw, open);
	compact_to(args.first, next, i == j);
	/*
	 * Of a transaction that DeleteRecords has passed nothing may be left but what is known;
	 * the last stable offset need not show it yet.
	 */
	if (model_unstable(&m, 0, m.hw, open) != unstable)
		m.told = false;
	if (m.producer >= args.first && m.producer < next)
		m.producer = -1;
	err = plog_partition_swap(env.p, &f, &args);
	done.swaps += !err;
	return err;
}

/* ---- and the rest ---- */

int do_roll(void)
{
	struct plog_fence f = fence_now();
	s64 base = 0;
	int err = plog_partition_roll(env.p, &f, &base);

	return err == -EBUSY && m.taken == m.end ? 0 : err;
}

int do_sync(void)
{
	int err = plog_partition_sync(env.p);

	if (!err)
		assert_int_equal(env.p->recovery_point, m.end);
	return err;
}

int do_configure(void)
{
	int err;

	configure();
	err = plog_partition_configure(env.p, &env.config);
	if (!err && !m.led) {
		m.replicated = env.config.flags & PLOG_STATE_REPLICATED;
		m.leader = env.config.flags & PLOG_STATE_LEADER;
	}
	if (!m.replicated)
		m.hw = m.end;
	return err;
}

int do_work(void)
{
	shim_run_work();
	return 0;
}
