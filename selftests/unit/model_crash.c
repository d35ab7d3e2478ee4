// SPDX-License-Identifier: MIT
/*
 * The end of the process, or of the machine, at rest or in the middle of
 * something; damage to what is only a help; and calls that fail.
 */
#include "model_run.h"

/* The model as it was before what was under way. */
static struct model before;

/* ---- damage ---- */

static bool is_index(const char *name)
{
	return strstr(name, "index") && !strstr(name, ".swap");
}

/* What an index of either kind can have suffered while the partition was closed. */
static void damage_index(void)
{
	const char *name, *other;
	unsigned int n = 0, i = 0;
	u8 junk[64];
	s64 size;

	while (memdisk_name(n))
		n++;
	if (!n)
		return;
	do {
		name = memdisk_name(rnd(n));
	} while (!is_index(name) && i++ < 20);
	if (!is_index(name))
		return;
	size = memdisk_size(name);
	done.damage++;
	trace("%s is damaged", name);
	for (i = 0; i < sizeof(junk); i++)
		junk[i] = rnd(256);
	switch (rnd(7)) {
	case 0:
		memdisk_remove(name);
		break;
	case 1:
		memdisk_cut(name, rnd(size + 1));
		break;
	case 2:
		memdisk_cut(name, size + rnd(5000));
		break;
	case 3:
		memset(junk, 0, sizeof(junk));
		/* fallthrough */
	case 4:
		memdisk_write(name, size ? rnd(size) : 0, junk, rnd(sizeof(junk)));
		break;
	case 5:		/* another one's */
		other = memdisk_name(rnd(n));
		if (strstr(other, "index")) {
			memdisk_cut(name, 0);
			memdisk_write(name, 0, junk, memdisk_read(other, 0, junk, sizeof(junk)));
		}
		break;
	default:	/* stale */
		memdisk_cut(name, size / 24 * 12);
	}
}

/* The list of leader epochs, which the log and the state file say too. */
static void damage_epochs(void)
{
	static const char name[] = "leader-epoch-checkpoint";
	s64 size = memdisk_size(name);

	if (size < 0)
		return;
	done.damage++;
	trace("%s is damaged", name);
	if (rnd(2))
		memdisk_remove(name);
	else if (rnd(2))
		memdisk_cut(name, rnd(size + 1));
	else
		memdisk_write(name, rnd(size + 1), "9", 1);
}

/* Some indexes, as they are after a bad night, and perhaps the epochs. */
static bool damage(void)
{
	bool epochs = !rnd(4);

	for (unsigned int n = 1 + rnd(4); n; n--)
		damage_index();
	if (epochs)
		damage_epochs();
	return epochs;
}

/* ---- opening ---- */

/* As if it was never asked for, if it was under way and had not come far. */
static void settle_swap(void)
{
	if (finish_swap())
		return;
	assert_true(before.swap_first < 0);
	model_copy(&m, &before);
}

void take_role(void)
{
	m.led = false;
	m.below_min_isr = false;
	m.replicated = env.config.flags & PLOG_STATE_REPLICATED;
	m.leader = env.config.flags & PLOG_STATE_LEADER;
	m.taken = -1;
}

static s32 epoch_of(s64 offset)
{
	for (int i = m.epochs; i-- > 0;)
		if (m.ep[i].start <= offset)
			return m.ep[i].epoch;
	return -1;
}

/*
 * What the engine has found of epochs after an unclean stop, or without its file:
 * at least what the batches say, and nothing that was never so. @was: the list as
 * it was, whose last entry was on disk if @noted.
 */
static void adopt_epochs(const struct model *was, bool noted)
{
	bool found = !noted || !was->epochs || was->ep[was->epochs - 1].start > m.end;
	struct plog_epoch_info last = { 0 };
	int n;

	if (!found)
		last = was->ep[was->epochs - 1];
	n = plog_partition_epochs(env.p, 0, m.ep, MAX_EPOCHS);
	assert_true(n >= 0);
	m.epochs = n;
	for (int i = 0; i < n; i++) {
		assert_true(!i || (m.ep[i].epoch > m.ep[i - 1].epoch &&
				   m.ep[i].start > m.ep[i - 1].start));
		assert_true(m.ep[i].epoch <= m.epoch);
		assert_true(m.ep[i].start <= m.end);
		/* or a later one in its place, that failed only in the end */
		found |= m.ep[i].epoch == last.epoch ||
			 (m.ep[i].epoch > last.epoch && m.ep[i].start == last.start);
	}
	for (int i = 0; i < n; i++)
		trace("found epoch %d from %lld", m.ep[i].epoch, (long long)m.ep[i].start);
	for (int i = 0; i < was->epochs; i++)
		trace("was epoch %d from %lld", was->ep[i].epoch, (long long)was->ep[i].start);
	assert_true(found);
	for (int i = model_find(&m, m.start); i < m.n; i++)
		if (m.b[i].epoch >= 0 && m.b[i].base >= m.start)
			assert_int_equal(epoch_of(m.b[i].base), m.b[i].epoch);
	/* who leads has noted it */
	if (model_leads(&m))
		assert_int_equal(model_last_epoch(&m), m.epoch);
	m.noted = false;
}

void do_reopen(void)
{
	static struct model was;
	bool replicated = m.replicated, unclean = m.swap_first >= 0, epochs = false;
	struct plog_view v;

	unpin_all();
	env_close();
	if (!rnd(3))
		epochs = damage();
	assert_true(finish_swap());
	configure();
	model_copy(&was, &m);
	assert_int_equal(env_open(), 0);
	take_role();
	v = view();
	trace("opened: [%lld, %lld) hw %lld", (long long)v.log_start, (long long)v.log_end,
	      (long long)v.high_watermark);
	assert_int_equal(v.leader_epoch, m.epoch);
	assert_int_equal(v.log_start, m.start);
	/* a gap at the end is the leader's, and not found by who looks */
	if (unclean && v.log_end < m.end) {
		assert_int_equal(v.log_end, model_cut_end(&m, v.log_end));
		assert_int_equal(model_find(&m, v.log_end), m.n);
		m.end = v.log_end;
	}
	if (!m.replicated)
		m.hw = m.end;
	else if (m.hw > m.end)
		m.hw = m.end;
	if (replicated || !m.replicated)
		assert_int_equal(v.high_watermark, m.hw);
	if (epochs || unclean)
		adopt_epochs(&was, false);
	else if (model_leads(&m) && model_last_epoch(&m) != m.epoch)
		model_epoch(&m, m.epoch, m.end);
	m.noted = false;
	/* of ends that were not replicated nobody knows any more */
	if (unclean || replicated || m.replicated)
		m.told = false;
	if (unclean && v.last_producer > model_last_producer(&m))
		m.producer = v.last_producer;
}

/* The log is that before what was under way, if it was to get shorter and has not. */
static void choose(const struct plog_view *v, bool is_done)
{
	bool fresh = m.n < before.n && m.start == m.end && before.end <= m.end;
	s32 epoch = m.epoch;

	if (is_done || (fresh && v->log_start == m.start))
		return;
	if (fresh || m.end < before.end)
		model_copy(&m, &before);
	/* its files have got their names since */
	m.swap_first = m.swap_last = -1;
	if (v->log_start == before.start)
		m.start = before.start;
	m.epoch = epoch;
}

/* A log cannot start below its first file: what of it lay in a gap before that is no loss. */
static void begins_later(const struct plog_view *v)
{
	int i = model_find(&m, m.start);

	if (v->log_start > m.start && v->log_start <= m.end &&
	    v->log_start == plog_table(env.p)->seg[0]->base &&
	    (i == m.n || m.b[i].base >= v->log_start))
		model_set_start(&m, v->log_start);
}

/*
 * Open after a crash, of the machine if @power. The log must hold at least everything below @floor; what
 * was under way is there or not, unless it @is_done.
 */
static void reopen_after(s64 floor, bool power, bool is_done, bool epochs, bool swapped)
{
	static struct model was;
	s64 old_hw = before.hw > m.hw ? before.hw : m.hw;
	bool noted;
	struct plog_view v;
	int i;

	settle_swap();
	configure();
	assert_int_equal(env_open(), 0);
	v = view();
	trace("epoch %d, should be %d, %d or %d", v.leader_epoch, m.epoch, m.tried, before.epoch);
	trace("opened: [%lld, %lld) hw %lld, at least to %lld", (long long)v.log_start,
	      (long long)v.log_end, (long long)v.high_watermark, (long long)floor);
	begins_later(&v);
	assert_true(v.log_start == m.start || (!is_done && v.log_start == before.start));
	/* what was answered is on disk, and of what failed perhaps the epoch */
	assert_true(v.leader_epoch == m.epoch || v.leader_epoch == m.tried ||
		    (!is_done && v.leader_epoch == before.epoch));
	noted = is_done && m.noted && m.end >= before.end;
	model_copy(&was, &m);
	choose(&v, is_done);
	m.epoch = v.leader_epoch;
	/* the state file's other slot is the one on disk perhaps, and may say what failed */
	if (power || m.tried < m.epoch)
		m.tried = m.epoch;
	m.start = v.log_start;
	/* a gap at the end was the leader's, and is not kept */
	i = model_find(&m, floor);
	if (!i && floor > m.start)
		floor = m.start;
	else if (i > 0 && last_of(&m.b[i - 1]) + 1 < floor)
		floor = last_of(&m.b[i - 1]) + 1;
	assert_true(v.log_end >= floor || v.log_end == v.log_start);
	assert_true(v.log_end >= v.log_start);
	assert_true(v.log_end <= m.end);
	if (v.log_end < floor)
		assert_true(floor <= v.log_start);
	for (i = m.n; i > 0 && last_of(&m.b[i - 1]) >= v.log_end; i--)
		;
	/* it ends behind a batch, or where a segment begins, or begins anew at its start */
	if (v.log_end != m.end && v.log_end != v.log_start &&
	    v.log_end != plog_active(env.p)->base)
		assert_int_equal(v.log_end, i ? last_of(&m.b[i - 1]) + 1 : 0);
	m.n = i;
	m.end = v.log_end;
	take_role();
	m.hw = m.end;
	if (m.replicated) {
		assert_true(v.high_watermark <= (old_hw > v.log_start ? old_hw : v.log_start));
		assert_true(v.high_watermark >= v.log_start);
		assert_true(v.high_watermark <= v.log_end);
		m.hw = v.high_watermark;
	}
	m.told = false;
	/* where a swap was under way it may be that of before */
	m.producer = -1;
	if (swapped && v.last_producer > model_last_producer(&m))
		m.producer = v.last_producer;
	adopt_epochs(&was, noted && !epochs);
	trace("open again");
	check_view();
	if (m.n < 100 || !rnd(4))
		check_all();
}

/* ---- crashes ---- */

/* How much of a write is done: whole pages, as the page cache does it, or all. */
static size_t part_of(u64 pos, size_t len)
{
	u64 end = (pos + rnd(len + 1)) / MEMDISK_PAGE * MEMDISK_PAGE;

	return !rnd(3) ? len : end > pos ? end - pos : 0;
}

/* The power is gone after so many file operations, -1: it stays. */
static int power_left = -1;

static int no_power(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *size)
{
	trace("op %d %s %llu+%zu, left %d", op, name, (unsigned long long)pos, len, power_left);
	if (power_left == -2)
		return 0;
	if (power_left > 0) {
		power_left -= op != SHIM_READ && op != SHIM_OPEN;
		return 0;
	}
	if (size)
		*size = power_left == 0 ? part_of(pos, len) : 0;
	power_left = -1;
	return -EIO;
}

static void power_on(void)
{
	power_left = -2;
	shim_file_fault = tracing ? no_power : NULL;
}

/* What can be under way when the end comes. */
static int (*const mutations[])(void) = {
	do_append, do_append, do_append, do_replica, do_replica, do_truncate, do_truncate_epoch,
	do_log_start, do_epoch, do_lead, do_hw, do_sync, do_configure, do_work, do_roll,
	do_retain, do_retain, do_retired, do_swap, do_swap, do_start_at, do_unstable,
};

/* Recovery does not come to its end either. */
static void crash_again(bool power)
{
	done.crashes++;
	settle_swap();
	configure();
	power_left = rnd(12);
	shim_file_fault = no_power;
	if (!env_open())
		env_crash();
	power_on();
	if (power && rnd(2))
		memdisk_power_cut(rnd);
}

void do_crash(bool power, bool middle)
{
	s64 floor = power ? env.p->recovery_point : m.end;
	bool is_done = true, epochs = false, swapped;
	u64 restarts = done.restarts;
	unsigned int what;
	int err = 0;

	trace("%s%s, synced to %lld", power ? "power cut" : "kill", middle ? " in the middle" : "",
	      (long long)env.p->recovery_point);
	done.crashes++;
	done.cuts += power;
	unpin_all();
	model_copy(&before, &m);
	if (middle) {
		done.middle++;
		what = rnd(ARRAY_SIZE(mutations));
		power_left = rnd(12);
		shim_file_fault = no_power;
		err = mutations[what]();
		trace("mutation %u after which the power is gone said %d", what, err);
		/* what was done counts; what failed may be there or not */
		is_done = !err;
		worn = err && done.restarts != restarts;
		if (m.end < floor)
			floor = m.end;
		if (is_done && !power)
			floor = m.end;
		else if (is_done && env.p->recovery_point > floor)
			floor = env.p->recovery_point;
	}
	swapped = before.swap_first >= 0 || m.swap_first >= 0 || m.producer >= 0;
	if (middle && rnd(2))
		env_close();
	else
		env_crash();
	power_on();
	if (power)
		memdisk_power_cut(rnd);
	while (!rnd(3))
		crash_again(power);
	if (!rnd(6))
		epochs = damage();
	reopen_after(floor, power, is_done, epochs, swapped);
}

/* ---- calls that fail ---- */

static int fault_left;
static bool fault_kills;	/* and the filesystem is frozen by then */

static int one_fault(enum shim_file_op op, const char *name, u64 pos, size_t len, size_t *size)
{
	(void)name;
	if (op != SHIM_WRITE || fault_left-- != 0)
		return 0;
	if (size)
		*size = part_of(pos, len);
	if (!fault_kills)
		return -ENOSPC;
	shim_killed = shim_frozen = true;
	/* it stays there: a whole batch is one after a crash, see test_killed_when_frozen() */
	if (size && *size == len)
		*size = len - 1;
	return -EINTR;
}

void do_fault(void)
{
	/* without memory these leave everything as it was */
	static int (*const ops[])(void) = {
		do_append, do_replica, do_append, do_replica, do_lead, do_epoch, do_swap,
		do_unstable,
	};
	u64 restarts = done.restarts;
	u32 cuts = view().cuts;
	bool memory = rnd(2);
	int err;

	done.faults++;
	model_copy(&before, &m);
	fault_left = rnd(4);
	fault_kills = rnd(2);
	if (!memory)
		shim_file_fault = one_fault;
	else
		shim_fail_alloc = 1 + rnd(8);
	err = ops[rnd(memory ? ARRAY_SIZE(ops) : 2)]();
	power_on();
	shim_fail_alloc = 0;
	shim_killed = shim_frozen = false;
	if (!err)
		return;
	trace("a fault: %d", err);
	assert_true(err == -ENOSPC || err == -ENOMEM || err == -EINTR);
	if (m.swap_first != before.swap_first)
		drop_swap();
	before.tried = m.tried > before.tried ? m.tried : before.tried;
	model_copy(&m, &before);
	if (done.restarts == restarts)
		return;
	/* nothing could be read, and what lay below the log start is gone, if it came to that */
	if (view().cuts != cuts)
		model_restart(&m, m.start);
	for (int i = 0; i < MAX_PINS; i++)
		pins[i].cut = S64_MAX - 1;
}
