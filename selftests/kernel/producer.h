/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A registered daemon and batches of producers, for the tests of transactions.
 */
#ifndef PLOG_SELFTESTS_PRODUCER_H
#define PLOG_SELFTESTS_PRODUCER_H

#include "fixture.h"

#define ATTR_TRANSACTIONAL	0x10
#define ATTR_CONTROL		0x20

/* Says nothing of transactions. */
#define SAYS_NOTHING		INT64_MIN

FIXTURE(producer)
{
	struct instance in;
	int control;
	int fd;			/* record mode, O_NONBLOCK */
	int batch;		/* batch mode, O_NONBLOCK */
	uint64_t incarnation;
};

FIXTURE_SETUP(producer)
{
	ASSERT_EQ(0, namespace_new());
	ASSERT_EQ(0, instance_start(&self->in, NULL));
	ASSERT_EQ(0, instance_topic(&self->in, "t"));
	self->control = control_open(0);
	ASSERT_LE(0, self->control);
	ASSERT_EQ(0, control_register(self->control, 0, &self->incarnation));
	self->fd = partition_bind_flags("t", 0, 0, O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->batch = partition_bind_flags("t", 0, PLOG_MODE_BATCH, O_NONBLOCK);
	ASSERT_LE(0, self->batch);
}

FIXTURE_TEARDOWN(producer)
{
	close(self->control);
	close(self->fd);
	close(self->batch);
	EXPECT_EQ(0, instance_stop(&self->in));
	instance_remove(&self->in);
}

/* Append as the daemon; @says: an offset, PLOG_UNSTABLE_*, SAYS_NOTHING. The offset, or -errno. */
static inline int64_t append_says(int fd, uint64_t incarnation, const uint8_t *data, size_t size,
				  int64_t says)
{
	struct plog_append arg = {
		.flags = PLOG_APPEND_DAEMON,
		.incarnation = incarnation,
		.leader_epoch = EPOCH,
	};
	int err;

	if (says != SAYS_NOTHING) {
		arg.flags |= PLOG_APPEND_UNSTABLE;
		arg.first_unstable = says;
	}
	err = partition_append(fd, data, size, &arg);
	return err ? err : arg.base_offset;
}

/* One record of @producer's, in a transaction or not (@attributes). */
static inline int64_t put_of(int fd, uint64_t incarnation, int64_t producer, int attributes,
			     int64_t says)
{
	struct batch b;
	int64_t ret;

	if (!batch_fill(&b, 30, 'p'))
		return -ENOMEM;
	batch_put(b.data, AT_PRODUCER_ID, 8, (uint64_t)producer);
	batch_put(b.data, AT_PRODUCER_EPOCH, 2, 1);
	batch_put(b.data, AT_SEQUENCE, 4, 0);
	batch_set(b.data, b.size, AT_ATTRIBUTES, 2, (uint64_t)attributes);
	ret = append_says(fd, incarnation, b.data, b.size, says);
	batch_free(&b);
	return ret;
}

/* A marker of @producer's. */
static inline int64_t put_marker(int fd, uint64_t incarnation, int64_t producer, int type,
				 int64_t says)
{
	uint8_t key[4] = { 0, 0, (uint8_t)(type >> 8), (uint8_t)type }, value[6] = { 0, 0, 0, 0, 0, 5 };
	struct record r = { .key = key, .key_length = 4, .value = value, .value_length = 6 };
	struct batch b;
	int64_t ret;

	if (!batch_init(&b, 200, 1) || !batch_add(&b, &r))
		return -ENOMEM;
	batch_finish(&b);
	batch_put(b.data, AT_PRODUCER_ID, 8, (uint64_t)producer);
	batch_put(b.data, AT_PRODUCER_EPOCH, 2, 1);
	batch_set(b.data, b.size, AT_ATTRIBUTES, 2, ATTR_TRANSACTIONAL | ATTR_CONTROL);
	ret = append_says(fd, incarnation, b.data, b.size, says);
	batch_free(&b);
	return ret;
}

#define PUT(producer, attributes, says) \
	put_of(self->batch, self->incarnation, producer, attributes, says)
#define MARKER(producer, type, says) \
	put_marker(self->batch, self->incarnation, producer, type, says)

#endif
