// SPDX-License-Identifier: MIT
/* The codec by hand: what bytes mean, what is refused, and the buffer and arena under it. */
#include "cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/error.h"
#include "kafka/schema.h"

#define LIMIT (1 << 20)

static struct arena arena;
static struct codec_fault fault;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, LIMIT);
	memset(&fault, 0, sizeof(fault));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* Decode a request's body from a block of its own. The block stays in the arena. */
static int decode(int16_t key, int16_t version, const void *bytes, size_t n, void *out)
{
	uint8_t *copy = malloc(n ? n : 1);
	static uint8_t *last;
	int err;

	free(last);
	last = copy;
	memcpy(copy, bytes, n);
	err = codec_decode_request(api_find(key), version, copy, n, &arena, out, &fault);
	if (!n) {
		free(last);
		last = NULL;
	}
	return err;
}

#define DECODE(key, version, bytes, out) decode(key, version, bytes, sizeof(bytes) - 1, out)

static void assert_buf(const struct buf *b, const char *bytes, size_t n)
{
	assert_int_equal(buf_error(b), 0);
	assert_int_equal(b->len, n);
	assert_memory_equal(b->data, bytes, n);
}

#define ASSERT_BUF(b, bytes) assert_buf(b, bytes, sizeof(bytes) - 1)

static void test_tables(void **state)
{
	unsigned int i, j;

	(void)state;
	for (i = 0; i < api_count; i++) {
		const struct api *a = &api_table[i];
		const struct schema *both[] = { a->request, a->response };

		assert_true(!i || api_table[i - 1].key < a->key);
		assert_ptr_equal(api_find(a->key), a);
		assert_true(a->min <= a->served && a->served <= a->max);
		for (j = 0; j < 2; j++) {
			const struct schema *s = both[j];
			int tag = 0;
			unsigned int k;

			for (k = 0; k < s->nfields; k++) {
				const struct field *f = &s->fields[k];

				assert_true(f->min <= f->max);
				assert_true(f->offset < s->size);
				if (!f->tagged)
					continue;
				/* the encoder relies on these */
				assert_true(f->tagged > tag);
				assert_true(f->type != FIELD_RECORDS);
				assert_true(f->min >= a->flexible);
				tag = f->tagged;
			}
		}
	}
	assert_null(api_find(17));
	assert_null(api_find(-1));
	/* what librdkafka 2.0.2 wants to find */
	assert_true(api_find(API_PRODUCE)->min == 0 && api_find(API_PRODUCE)->max >= 7);
	assert_true(api_find(API_FETCH)->min <= 4 && api_find(API_FETCH)->max >= 10);
	assert_true(api_find(API_LIST_OFFSETS)->min <= 1);
}

static void test_api_versions_0(void **state)
{
	struct api_versions_range one = { 18, 0, 4 };
	struct api_versions_response r;
	struct api_versions_request *q;
	struct buf b;

	(void)state;
	assert_int_equal(DECODE(API_API_VERSIONS, 0, "", &q), 0);
	assert_int_equal(q->client_software_name.n, 0);
	codec_init(&schema_api_versions_response, &r);
	r.error_code = 35;
	r.api_keys.v = &one;
	r.api_keys.n = 1;
	buf_init(&b, LIMIT, NULL);
	assert_int_equal(codec_encode_response(&b, api_find(18), 0, 5, &r), 0);
	ASSERT_BUF(&b, "\0\0\0\x10" "\0\0\0\x05" "\0\x23" "\0\0\0\x01" "\0\x12" "\0\0" "\0\x04");
	buf_free(&b);
}

static void test_api_versions_3(void **state)
{
	struct api_versions_range one = { 3, 0, 13 };
	struct api_versions_finalized_feature feature = { KSTR_LIT("f"), 2, 1 };
	struct api_versions_response r;
	struct api_versions_request *q;
	struct buf b;

	(void)state;
	assert_int_equal(DECODE(API_API_VERSIONS, 3, "\x05kcat\x06" "1.7.1\0", &q), 0);
	assert_true(kstr_is(q->client_software_name, "kcat"));
	assert_true(kstr_is(q->client_software_version, "1.7.1"));
	codec_init(&schema_api_versions_response, &r);
	r.api_keys.v = &one;
	r.api_keys.n = 1;
	buf_init(&b, LIMIT, NULL);
	/* the header stays version 0: no tags after the correlation id */
	assert_int_equal(codec_encode_response(&b, api_find(18), 3, 5, &r), 0);
	ASSERT_BUF(&b, "\0\0\0\x13" "\0\0\0\x05" "\0\0" "\x02" "\0\x03\0\0\0\x0d\0"
		   "\0\0\0\0" "\0");
	buf_reset(&b);
	r.finalized_features_epoch = 9;
	r.finalized_features.v = &feature;
	r.finalized_features.n = 1;
	assert_int_equal(codec_encode_response(&b, api_find(18), 3, 5, &r), 0);
	ASSERT_BUF(&b, "\0\0\0\x27" "\0\0\0\x05" "\0\0" "\x02" "\0\x03\0\0\0\x0d\0"
		   "\0\0\0\0" "\x02" "\x01\x08\0\0\0\0\0\0\0\x09"
		   "\x02\x08\x02\x02" "f\0\x02\0\x01\0");
	buf_free(&b);
}

static void test_metadata_topics(void **state)
{
	struct metadata_request *q;

	(void)state;
	assert_int_equal(DECODE(API_METADATA, 0, "\0\0\0\0", &q), 0);
	assert_int_equal(q->topics.n, 0);
	assert_true(q->allow_auto_topic_creation);
	assert_int_equal(DECODE(API_METADATA, 1, "\xff\xff\xff\xff", &q), 0);
	assert_int_equal(q->topics.n, -1);
	assert_int_equal(DECODE(API_METADATA, 0, "\xff\xff\xff\xff", &q), -EPROTO);
	assert_string_equal(fault.field, "Topics");
	assert_int_equal(DECODE(API_METADATA, 4, "\0\0\0\x01\0\x02t1\0", &q), 0);
	assert_int_equal(q->topics.n, 1);
	assert_true(kstr_is(q->topics.v[0].name, "t1"));
	assert_false(q->allow_auto_topic_creation);
	/* 12: id and no name */
	assert_int_equal(DECODE(API_METADATA, 12, "\x02" "0123456789abcdef" "\0\0" "\x01\x01\0",
				&q), 0);
	assert_int_equal(q->topics.v[0].name.n, -1);
	assert_memory_equal(q->topics.v[0].topic_id.b, "0123456789abcdef", 16);
	assert_true(q->include_topic_authorized_operations);
}

static void test_produce_old(void **state)
{
	struct produce_request *q;

	(void)state;
	/* versions 0 to 2 can be read, to be refused in their own form */
	assert_int_equal(DECODE(API_PRODUCE, 2, "\0\x01" "\0\0\x05\xdc" "\0\0\0\x01" "\0\x01t"
				"\0\0\0\x01" "\0\0\0\x07" "\0\0\0\x03" "abc", &q), 0);
	assert_int_equal(q->transactional_id.n, -1);
	assert_int_equal(q->acks, 1);
	assert_int_equal(q->timeout_ms, 1500);
	assert_true(kstr_is(q->topics.v[0].name, "t"));
	assert_int_equal(q->topics.v[0].partitions.v[0].index, 7);
	assert_int_equal(q->topics.v[0].partitions.v[0].records.n, 3);
	assert_memory_equal(q->topics.v[0].partitions.v[0].records.p, "abc", 3);
}

static void test_tags(void **state)
{
	struct fetch_request *q;
	static const char head[] = "\0\0\0\x01" "\0\0\0\x02" "\0\0\0\x03" "\0" "\0\0\0\0"
		"\xff\xff\xff\xff" "\x01" "\x01" "\x01";
	static const struct {
		const char *tags;
		size_t n;
		int err;
	} cases[] = {
#define T(bytes, err) { bytes, sizeof(bytes) - 1, err }
		T("\0", 0),
		T("\x01\0\x03" "ab", -EPROTO),		/* longer than the rest */
		T("\x01\0\x03\x03" "ab", 0),		/* ClusterId "ab" */
		T("\x01\0\x04\x03" "ab" "c", -EPROTO),	/* a byte left over */
		T("\x01\0\x02\x03" "ab", -EPROTO),	/* its length passes its end */
		T("\x01\x63\x02xy", 0),			/* unknown: skipped */
		T("\x02\x01\x0d\0\0\0\x05\0\0\0\0\0\0\0\x06\0\x63\0", 0),
		T("\x02\0\x01\0\0\x01\0", -EPROTO),	/* twice the same */
		T("\x02\x63\0\0\x01\0", -EPROTO),	/* falling */
		T("\xff\xff\xff\xff\x0f", -EPROTO),	/* a count that nothing backs */
		T("\xff\xff\xff\xff\x7f", -EPROTO),	/* more than 32 bits */
#undef T
	};
	unsigned char bytes[128];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(bytes, head, sizeof(head) - 1);
		memcpy(bytes + sizeof(head) - 1, cases[i].tags, cases[i].n);
		assert_int_equal(decode(API_FETCH, 16, bytes, sizeof(head) - 1 + cases[i].n, &q),
				 cases[i].err);
	}
	memcpy(bytes + sizeof(head) - 1, cases[2].tags, cases[2].n);
	assert_int_equal(decode(API_FETCH, 16, bytes, sizeof(head) - 1 + cases[2].n, &q), 0);
	assert_true(kstr_is(q->cluster_id, "ab"));
	assert_int_equal(q->replica_state.replica_id, -1);
	assert_int_equal(q->replica_id, -1);
	memcpy(bytes + sizeof(head) - 1, cases[6].tags, cases[6].n);
	assert_int_equal(decode(API_FETCH, 16, bytes, sizeof(head) - 1 + cases[6].n, &q), 0);
	assert_int_equal(q->cluster_id.n, -1);
	assert_int_equal(q->replica_state.replica_id, 5);
	assert_int_equal(q->replica_state.replica_epoch, 6);
}

static void test_lengths(void **state)
{
	struct delete_topics_request *q;

	(void)state;
	assert_int_equal(DECODE(API_DELETE_TOPICS, 1, "\0\0\0\x02\0\x01" "a\0\0\0\0\0\x09", &q), 0);
	assert_int_equal(q->topic_names.n, 2);
	assert_true(kstr_is(q->topic_names.v[0], "a"));
	assert_int_equal(q->topic_names.v[1].n, 0);
	assert_int_equal(q->timeout_ms, 9);
	assert_int_equal(DECODE(API_DELETE_TOPICS, 1, "\0\0\0\x01\xff\xff\0\0\0\x09", &q), -EPROTO);
	assert_int_equal(DECODE(API_DELETE_TOPICS, 1, "\0\0\0\x01\xff\xfe\0\0\0\x09", &q), -EPROTO);
	assert_int_equal(DECODE(API_DELETE_TOPICS, 1, "\0\0\0\x01\x7f\xff" "a", &q), -EPROTO);
	assert_int_equal(DECODE(API_DELETE_TOPICS, 1, "\xff\xff\xff\xfe\0\0\0\x09", &q), -EPROTO);
	assert_int_equal(DECODE(API_DELETE_TOPICS, 1, "\x7f\xff\xff\xff\0\0\0\x09", &q), -EPROTO);
	/* three elements cannot be in four bytes */
	assert_int_equal(DECODE(API_DELETE_TOPICS, 1, "\0\0\0\x03\0\0\0\0", &q), -EPROTO);
	assert_string_equal(fault.field, "TopicNames");
	assert_int_equal(fault.at, 4);
	/* compact: no elements, and the same with a bit that 32 do not hold */
	assert_int_equal(DECODE(API_DELETE_TOPICS, 4, "\x81\x80\x80\x80\0" "\0\0\0\x09\0", &q), 0);
	assert_int_equal(DECODE(API_DELETE_TOPICS, 4, "\x81\x80\x80\x80\x10" "\0\0\0\x09\0", &q),
			 -EPROTO);
	/* compact: 32768 bytes are there, but no text is so long */
	{
		static char text[4 + 32768 + 5] = "\x02\x81\x80\x02";

		assert_int_equal(decode(API_DELETE_TOPICS, 4, text, sizeof(text), &q), -EPROTO);
		text[1] = (char)0x80;
		assert_int_equal(decode(API_DELETE_TOPICS, 4, text, sizeof(text), &q), 0);
		assert_int_equal(q->topic_names.v[0].n, 32767);
	}
}

static void test_arena_bounds_requests(void **state)
{
	static char bytes[4 + 2 * 1000 + 4] = "\0\0\x03\xe8";
	struct delete_topics_request *q;
	struct codec_fault f;
	struct arena small;
	char text[200];

	(void)state;
	arena_init(&small, 4096);
	assert_int_equal(codec_decode_request(api_find(API_DELETE_TOPICS), 1, (uint8_t *)bytes,
					      sizeof(bytes), &small, (void **)&q, &f), -ENOMEM);
	codec_fault_text(&f, text, sizeof(text));
	assert_string_equal(text, "DeleteTopicsRequest TopicNames: the request needs more memory "
			    "than one request may have, at byte 4");
	arena_free(&small);
}

static void test_trailing_bytes(void **state)
{
	struct delete_topics_request *q;
	size_t used;

	(void)state;
	assert_int_equal(codec_decode(&schema_delete_topics_request, 1, false,
				      (const uint8_t *)"\0\0\0\0\0\0\0\x01xyz", 11, &arena,
				      (void **)&q, &used, &fault), 0);
	assert_int_equal(used, 8);
}

static void test_headers(void **state)
{
	struct codec_header h;
	struct buf b;
	struct metadata_request q;

	(void)state;
#define READ(bytes) codec_read_header((const uint8_t *)bytes, sizeof(bytes) - 1, &h, &fault)
	assert_int_equal(READ("\0\x12\0\x09\0\0\0\x2a\0\x01" "c\0"), -ERANGE);
	assert_int_equal(h.key, 18);
	assert_int_equal(h.version, 9);
	assert_int_equal(h.correlation, 42);
	assert_int_equal(READ("\0\x12\xff\xff\0\0\0\x2a\0\x01" "c\0"), -ERANGE);
	assert_int_equal(READ("\0\x63\0\0\0\0\0\x2a\xff\xff"), -ENOENT);
	assert_int_equal(h.key, 99);
	assert_int_equal(READ("\0\x01\0\x03\0\0\0\x2a\xff\xff"), -ERANGE);
	assert_int_equal(READ("\0\x03\0\0\0\0\0\x2a\xff\xff"), 0);
	assert_int_equal(h.client_id.n, -1);
	assert_int_equal(h.size, 10);
	/* flexible: tags end the header, unknown ones are passed over */
	assert_int_equal(READ("\0\x03\0\x09\0\0\0\x2a\0\x01" "c\x01\x05\x02zz"), 0);
	assert_int_equal(h.size, 16);
	assert_int_equal(READ("\0\x03\0\x09\0\0\0\x2a\0\x01" "c\x01\x05\x03zz"), -EPROTO);
	assert_int_equal(READ("\0\x03\0\x09\0\0\0\x2a\xff\xfe" "c\0"), -EPROTO);
#undef READ
	codec_init(&schema_metadata_request, &q);
	buf_init(&b, LIMIT, NULL);
	assert_int_equal(codec_encode_request(&b, api_find(3), 9, 1, KSTR_LIT("me"), &q), 0);
	ASSERT_BUF(&b, "\0\0\0\x12" "\0\x03\0\x09\0\0\0\x01\0\x02me\0" "\x01\x01\0\0\0");
	buf_free(&b);
}

static void test_encode_refuses(void **state)
{
	struct fetch_request q;
	struct delete_topics_response r;
	struct delete_topics_response_topic topic;
	const struct api *api = api_find(API_DELETE_TOPICS);
	static char text[32768];
	struct buf b;

	(void)state;
	buf_init(&b, 64, NULL);
	buf_put(&b, "x", 1);
	codec_init(&schema_delete_topics_response, &r);
	codec_init(&schema_delete_topics_response_topic, &topic);
	r.topics.v = &topic;
	r.topics.n = 1;
	topic.name = KSTR_NULL;
	assert_int_equal(codec_encode_response(&b, api, 6, 1, &r), 0);
	buf_reset(&b);
	buf_put(&b, "x", 1);
	assert_int_equal(codec_encode_response(&b, api, 5, 1, &r), -EINVAL);
	topic.name = (struct kstr){ text, sizeof(text) };
	assert_int_equal(codec_encode_response(&b, api, 6, 1, &r), -EINVAL);
	topic.name = (struct kstr){ text, 100 };
	assert_int_equal(codec_encode_response(&b, api, 6, 1, &r), -EMSGSIZE);
	r.topics.n = -1;
	assert_int_equal(codec_encode_response(&b, api, 6, 1, &r), -EINVAL);
	r.topics.v = NULL;
	r.topics.n = 1;
	assert_int_equal(codec_encode_response(&b, api, 6, 1, &r), -EINVAL);
	/* after all that the buffer is as before and good */
	ASSERT_BUF(&b, "x");

	/* an answer leaves out what the version lacks, a request must not */
	codec_init(&schema_fetch_request, &q);
	q.rack_id = KSTR_LIT("r");
	assert_int_equal(codec_encode(&b, &schema_fetch_request, 4, false, true, &q), 0);
	q.forgotten_topics.n = 1;
	assert_int_equal(codec_encode(&b, &schema_fetch_request, 4, false, true, &q), -EPROTO);
	assert_int_equal(codec_encode(&b, &schema_fetch_request, 4, false, false, &q), 0);
	buf_free(&b);
}

static unsigned int dropped;

static void drop(void *handle)
{
	(*(int *)handle)++;
	dropped++;
}

/* Two partitions, the payload of each elsewhere: where it belongs is known to the byte. */
static void test_extents(void **state)
{
	struct fetch_response_partition part[2];
	struct fetch_response_topic topic;
	struct fetch_response r;
	struct buf_pos pos = { 0 };
	struct buf_piece piece;
	struct buf b, plain;
	int one = 0, two = 0;
	uint8_t whole[512];
	size_t n = 0;

	(void)state;
	dropped = 0;
	codec_init(&schema_fetch_response, &r);
	codec_init(&schema_fetch_response_topic, &topic);
	codec_init(&schema_fetch_response_partition, &part[0]);
	part[1] = part[0];
	part[1].partition_index = 1;
	topic.topic = KSTR_LIT("t");
	topic.partitions.v = part;
	topic.partitions.n = 2;
	r.topics.v = &topic;
	r.topics.n = 1;
	part[0].records = (struct krecords){ NULL, 5, &one };
	part[1].records = (struct krecords){ NULL, 3, &two };

	/* a failure leaves the extents with their owner */
	buf_init(&b, 20, drop);
	assert_int_equal(codec_encode_response(&b, api_find(1), 12, 1, &r), -EMSGSIZE);
	buf_free(&b);
	assert_int_equal(dropped, 0);

	buf_init(&b, LIMIT, drop);
	assert_int_equal(codec_encode_response(&b, api_find(1), 12, 1, &r), 0);
	assert_int_equal(b.nextents, 2);
	for (;;) {
		buf_peek(&b, &pos, &piece);
		if (!piece.len)
			break;
		/* in two goes each, as a socket would have it */
		if (piece.len > 2)
			piece.len /= 2;
		if (piece.extent)
			memset(whole + n, piece.extent == &one ? 'A' : 'B', piece.len);
		else
			memcpy(whole + n, piece.data, piece.len);
		n += piece.len;
		buf_advance(&b, &pos, piece.len);
	}
	assert_int_equal(n, buf_total(&b));

	/* the same with the bytes in memory */
	part[0].records = (struct krecords){ (const uint8_t *)"AAAAA", 5, NULL };
	part[1].records = (struct krecords){ (const uint8_t *)"BBB", 3, NULL };
	buf_init(&plain, LIMIT, NULL);
	assert_int_equal(codec_encode_response(&plain, api_find(1), 12, 1, &r), 0);
	assert_int_equal(plain.len, n);
	assert_memory_equal(plain.data, whole, n);
	buf_free(&plain);

	buf_reset(&b);
	assert_int_equal(dropped, 2);
	assert_int_equal(one, 1);
	assert_int_equal(two, 1);
	buf_free(&b);
	assert_int_equal(dropped, 2);
	/* an extent of no bytes has no place in an answer */
	part[0].records = (struct krecords){ NULL, 0, &one };
	assert_int_equal(codec_encode_response(&b, api_find(1), 12, 1, &r), -EINVAL);
}

static void test_buf(void **state)
{
	struct buf b;
	int handle = 0;
	size_t i;

	(void)state;
	dropped = 0;
	buf_init(&b, 1000, drop);
	buf_put_u8(&b, 1);
	buf_put_be16(&b, 0x0203);
	buf_put_be32(&b, 0x04050607);
	buf_put_be64(&b, 0x08090a0b0c0d0e0full);
	buf_put_uvarint(&b, 0);
	buf_put_uvarint(&b, 300);
	buf_put_uvarint(&b, UINT32_MAX);
	buf_set_be32(&b, 3, 0xaabbccdd);
	ASSERT_BUF(&b, "\x01\x02\x03\xaa\xbb\xcc\xdd\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
		   "\0\xac\x02\xff\xff\xff\xff\x0f");
	for (i = b.len; i < 1000; i++)
		buf_put_u8(&b, 0);
	assert_int_equal(buf_error(&b), 0);
	buf_put_u8(&b, 0);
	assert_int_equal(buf_error(&b), -EMSGSIZE);
	assert_int_equal(b.len, 1000);
	/* an extent that finds the buffer broken is given back at once */
	buf_put_extent(&b, &handle, 7);
	assert_int_equal(dropped, 1);
	buf_reset(&b);
	assert_int_equal(buf_error(&b), 0);
	for (i = 0; i < 100; i++)
		buf_put_extent(&b, &handle, 1);
	assert_int_equal(buf_total(&b), 100);
	buf_free(&b);
	assert_int_equal(dropped, 101);
}

static void test_arena(void **state)
{
	struct arena a;
	char *p, *q;
	size_t i;

	(void)state;
	arena_init(&a, 100000);
	p = arena_alloc(&a, 1);
	q = arena_alloc(&a, 0);
	assert_non_null(p);
	assert_non_null(q);
	assert_ptr_not_equal(p, q);
	assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
	p = arena_alloc(&a, 50000);
	for (i = 0; i < 50000; i++)
		assert_int_equal(p[i], 0);
	memset(p, 1, 50000);
	assert_null(arena_alloc(&a, 50000));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_array(&a, SIZE_MAX / 2, 3));
	assert_string_equal(arena_printf(&a, "%s-%d", "x", 7), "x-7");
	assert_string_equal(arena_copy(&a, "abc", 3), "abc");
	arena_reset(&a);
	assert_int_equal(a.used, 0);
	/* memory that is used again is zero again */
	for (i = 0; i < 100000 / 1024 - 1; i++) {
		p = arena_alloc(&a, 1024);
		assert_non_null(p);
		assert_int_equal(p[0] | p[1023], 0);
		memset(p, 0xff, 1024);
	}
	arena_free(&a);
	arena_free(&a);
}

static void test_errors(void **state)
{
	int16_t i;

	(void)state;
	assert_string_equal(error_name(KERR_INVALID_RECORD), "INVALID_RECORD");
	assert_int_equal(KERR_INVALID_RECORD, 87);
	assert_int_equal(KERR_UNKNOWN_TOPIC_ID, 100);
	assert_string_equal(error_name(0), "NONE");
	assert_string_equal(error_name(-2), "UNKNOWN");
	assert_string_equal(error_text(999), "unknown error");
	/* the numbers have no gap */
	for (i = -1; i <= 129; i++)
		assert_string_not_equal(error_name(i), "UNKNOWN");
	assert_string_equal(error_name(130), "UNKNOWN");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_tables),
		T(test_api_versions_0),
		T(test_api_versions_3),
		T(test_metadata_topics),
		T(test_produce_old),
		T(test_tags),
		T(test_lengths),
		T(test_arena_bounds_requests),
		T(test_trailing_bytes),
		T(test_headers),
		T(test_encode_refuses),
		T(test_extents),
		T(test_buf),
		T(test_arena),
		T(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
