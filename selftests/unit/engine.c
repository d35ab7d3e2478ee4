// SPDX-License-Identifier: MIT
/* A partition of the engine in a directory of its own, for tests. */
#include "engine.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

struct env env;

static void log_line(const char *line)
{
	size_t n = strlen(env.log);

	snprintf(env.log + n, sizeof(env.log) - n, "%s", line);
}

static void on_visible(struct plog_partition *p)
{
	(void)p;
	__atomic_fetch_add(&env.visible, 1, __ATOMIC_RELAXED);
}

static void on_state(struct plog_partition *p, u32 state, int error)
{
	(void)p;
	(void)error;
	env.state = state;
}

static bool on_retired(struct plog_partition *p)
{
	(void)p;
	return env.deletes;
}

static const struct plog_partition_events events = { on_visible, on_state, on_retired };

static void empty_tree(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

static void remove_tree(const char *dir)
{
	empty_tree(dir);
	rmdir(dir);
}

/* In memory where that is to be had: there are thousands of syncs. */
static char *make_dir(char dir[64])
{
	const char *in = getenv("PLOG_ENGINE_DIR");	/* of ./check, which removes it */

	if (!in)
		in = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	if (snprintf(dir, 64, "%s/plog-engine-XXXXXX", in) >= 64)
		return NULL;
	return mkdtemp(dir);
}

int env_setup(void **state)
{
	(void)state;
	memset(&env, 0, sizeof(env));
	if (!make_dir(env.dir))
		return -1;
	env.buf = malloc(BATCH_MAX);
	shim_log = log_line;
	shim_clock_ms = 0;
	plog_config_init(&env.config);
	return plog_engine_init();
}

int env_teardown(void **state)
{
	(void)state;
	/* what a test that failed has left; the engine's workers may be about to look at it */
	if (__atomic_load_n(&shim_fail_alloc, __ATOMIC_RELAXED))
		__atomic_store_n(&shim_fail_alloc, 0, __ATOMIC_RELAXED);
	if (shim_file_fault)
		shim_file_fault = NULL;
	shim_killed = false;
	shim_frozen = false;
	shim_locking = NULL;
	shim_copied = NULL;
	if (env.p)
		env_close();
	plog_engine_exit();
	remove_tree(env.dir);
	free(env.buf);
	return 0;
}

int env_open(void)
{
	int fd = open(env.dir, O_RDONLY | O_DIRECTORY), err;
	struct plog_dir *dir;

	assert_true(fd >= 0);
	dir = plog_dir_get(fd);
	close(fd);
	if (IS_ERR(dir))
		return PTR_ERR(dir);
	env.p = plog_partition_create("test-0", dir, &env.config, &events, &env);
	if (IS_ERR(env.p)) {
		err = PTR_ERR(env.p);
		env.p = NULL;
		return err;
	}
	assert_ptr_equal(plog_partition_owner(env.p), &env);
	err = plog_partition_open(env.p);
	if (err) {
		plog_partition_close(env.p, false);
		plog_partition_put(env.p);
		env.p = NULL;
	}
	return err;
}

static void let_go(bool clean)
{
	plog_partition_close(env.p, clean);
	plog_partition_put(env.p);
	env.p = NULL;
}

void env_close(void)
{
	let_go(true);
}

/* Whatever is still queued would be lost, and what is lost must do no harm. */
void env_crash(void)
{
	let_go(false);
}

static uint8_t *varint(uint8_t *p, int64_t v)
{
	uint64_t z = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);

	while (z >= 0x80) {
		*p++ = z | 0x80;
		z >>= 7;
	}
	*p++ = z;
	return p;
}

size_t make_records(uint8_t *buf, const struct rec *recs, unsigned int count, unsigned int attrs)
{
	uint8_t *p = buf + PLOG_BATCH_HEADER, body[1 << 16];
	struct plog_batch b = {
		.magic = 2, .attributes = attrs, .last_offset_delta = count - 1,
		.base_timestamp = recs[0].time, .max_timestamp = -1, .producer_id = -1,
		.producer_epoch = -1, .base_sequence = -1, .count = count, .leader_epoch = -1,
	};

	for (unsigned int i = 0; i < count; i++) {
		uint8_t *q = body;

		*q++ = 0;
		q = varint(q, recs[i].time - recs[0].time);
		q = varint(q, i);
		q = varint(q, recs[i].key ? (int64_t)strlen(recs[i].key) : -1);
		if (recs[i].key)
			q = mempcpy(q, recs[i].key, strlen(recs[i].key));
		q = varint(q, recs[i].value ? (int64_t)strlen(recs[i].value) : -1);
		if (recs[i].value)
			q = mempcpy(q, recs[i].value, strlen(recs[i].value));
		q = varint(q, 1);		/* a header, with a null value */
		q = varint(q, 1);
		*q++ = 'h';
		q = varint(q, -1);
		p = varint(p, q - body);
		p = mempcpy(p, body, q - body);
		if (recs[i].time > b.max_timestamp)
			b.max_timestamp = recs[i].time;
	}
	b.size = p - buf;
	plog_batch_encode(&b, buf);
	fix_crc(buf, b.size);
	return b.size;
}

void fix_crc(uint8_t *batch, size_t size)
{
	put_unaligned_be32(plog_batch_crc(batch, size), batch + 17);
}

size_t make_batch(uint8_t *buf, unsigned int count, unsigned int len, unsigned int seed,
		  int64_t timestamp)
{
	struct plog_builder b;

	plog_builder_init(&b, buf, BATCH_MAX, timestamp);
	for (unsigned int i = 0; i < count; i++) {
		uint8_t *v = plog_builder_value(&b, len);

		assert_non_null(v);
		for (unsigned int k = 0; k < len; k++)
			v[k] = 'a' + (seed + i + k * (seed | 1)) % 26;
	}
	return plog_builder_finish(&b);
}

int64_t append_as(size_t size, enum how how, uint32_t flags)
{
	/* in pieces, so that the engine has to walk */
	struct kvec parts[3] = {
		{ env.buf, size / 3 }, { env.buf + size / 3, 0 },
		{ env.buf + size / 3, size - size / 3 },
	};
	struct plog_append_args args = { .flags = flags };
	struct iov_iter it;
	int err;

	if (flags & PLOG_APPEND_DAEMON)
		args.leader_epoch = view().leader_epoch;
	if (how == RAW) {
		args.raw = env.buf;
		args.size = size;
	} else {
		iov_iter_kvec(&it, ITER_SOURCE, parts, 3, size);
		args.from = &it;
		args.checked = how == ITER_CHECKED;
	}
	err = plog_partition_append(env.p, &args);
	return err ? err : args.base_offset;
}

int64_t append(size_t size)
{
	return append_as(size, RAW, PLOG_APPEND_DAEMON);
}

int64_t put_at(unsigned int count, unsigned int len, unsigned int seed, int64_t timestamp)
{
	return append(make_batch(env.buf, count, len, seed, timestamp));
}

int64_t put(unsigned int count, unsigned int len, unsigned int seed)
{
	return put_at(count, len, seed, 1000 + seed);
}

struct plog_view view(void)
{
	struct plog_view v;

	plog_partition_view(env.p, &v);
	return v;
}

int64_t walk(enum plog_end end)
{
	struct plog_view v = view();
	int64_t offset = v.log_start, records = 0;
	uint8_t *bytes = malloc(BATCH_MAX);

	for (;;) {
		struct plog_extent ext = { 0 };
		uint32_t pos = 0;

		assert_int_equal(plog_partition_locate(env.p, offset, BATCH_MAX / 2, end, true,
						       &ext, &v), 0);
		if (!ext.length)
			break;
		while (pos < ext.length) {
			struct kvec vec = { bytes, BATCH_MAX };
			struct plog_batch b;
			struct iov_iter it;

			iov_iter_kvec(&it, ITER_DEST, &vec, 1, PLOG_BATCH_HEADER);
			assert_int_equal(plog_extent_read(&ext, pos, &it), PLOG_BATCH_HEADER);
			assert_int_equal(plog_batch_decode(bytes, &b), 0);
			iov_iter_kvec(&it, ITER_DEST, &vec, 1, b.size);
			assert_int_equal(plog_extent_read(&ext, pos, &it), b.size);
			assert_int_equal(plog_batch_check(bytes, b.size, &b), 0);
			assert_true(plog_batch_last_offset(&b) >= offset);
			assert_true(pos || b.base_offset <= offset || b.base_offset > offset);
			offset = plog_batch_last_offset(&b) + 1;
			records += b.count;
			pos += b.size;
		}
		assert_int_equal(pos, ext.length);
		assert_true(ext.next_offset >= offset);
		offset = ext.next_offset;
		plog_extent_put(&ext);
	}
	free(bytes);
	assert_int_equal(offset, plog_partition_end(env.p, end));
	return records;
}

const char *next_value(struct plog_reader *r)
{
	static char value[1 << 16];
	struct kvec vec = { value, sizeof(value) - 1 };
	struct iov_iter it;
	ssize_t n;

	iov_iter_kvec(&it, ITER_DEST, &vec, 1, sizeof(value) - 1);
	n = plog_reader_next(r, &it);
	if (n < 0)
		snprintf(value, sizeof(value), "-%s", strerrorname_np(-n));
	else
		value[n] = 0;
	return value;
}

static const char *path(const char *name)
{
	static char p[512];

	snprintf(p, sizeof(p), "%s/%s", env.dir, name);
	return p;
}

long file_size(const char *name)
{
	struct stat st;

	return stat(path(name), &st) ? -1 : st.st_size;
}

void file_cut(const char *name, long size)
{
	assert_int_equal(truncate(path(name), size), 0);
}

void file_write(const char *name, long pos, const void *bytes, size_t n)
{
	int fd = open(path(name), O_WRONLY | O_CREAT, 0644);

	assert_int_equal(pwrite(fd, bytes, n, pos), n);
	close(fd);
}

size_t file_read(const char *name, void *bytes, size_t n)
{
	int fd = open(path(name), O_RDONLY);
	ssize_t got = fd < 0 ? 0 : pread(fd, bytes, n, 0);

	if (fd >= 0)
		close(fd);
	return got;
}

void file_remove(const char *name)
{
	assert_int_equal(unlink(path(name)), 0);
}

void env_wipe(void)
{
	remove_tree(env.dir);
}

void env_empty(void)
{
	empty_tree(env.dir);
}

void env_snapshot(char to[64])
{
	DIR *d = opendir(env.dir);
	struct dirent *e;

	assert_non_null(make_dir(to));
	while ((e = readdir(d))) {
		char name[512], buf[65536];
		int in, out;
		ssize_t n;

		if (e->d_name[0] == '.')
			continue;
		in = open(path(e->d_name), O_RDONLY);
		snprintf(name, sizeof(name), "%s/%s", to, e->d_name);
		out = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
		while ((n = read(in, buf, sizeof(buf))) > 0)
			assert_int_equal(write(out, buf, n), n);
		close(in);
		close(out);
	}
	closedir(d);
}
