// SPDX-License-Identifier: MIT
/* Every message in every version: against another implementation, round trips, cut short. */
#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "kafka/schema.h"

#define LIMIT (1 << 20)

/* What comes before the body. */
static size_t head_size(const struct api *api, int16_t version, bool request)
{
	bool flexible = version >= api->flexible;

	if (request)
		return 8 + 2 + strlen("golden") + (flexible ? 1 : 0);
	return 4 + (flexible && !api->plain_header ? 1 : 0);
}

static void encode(struct buf *b, const struct api *api, int16_t version, bool request,
		   const void *body)
{
	int err;

	if (request)
		err = codec_encode_request(b, api, version, 7, KSTR_LIT("golden"), body);
	else
		err = codec_encode_response(b, api, version, 7, body);
	assert_int_equal(err, 0);
}

/* Calls @run for each message of each version. */
static void each(void (*run)(const struct api *api, int16_t version, bool request, bool full))
{
	unsigned int i;
	int16_t v;
	int side;

	for (i = 0; i < api_count; i++)
		for (v = api_table[i].min; v <= api_table[i].max; v++)
			for (side = 0; side < 4; side++)
				run(&api_table[i], v, side & 1, side & 2);
}

static size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = 0;
	unsigned int byte;

	while (sscanf(hex + 2 * n, "%2x", &byte) == 1)
		out[n++] = (uint8_t)byte;
	return n;
}

static void test_golden(void **state)
{
	static char line[1 << 16];
	static uint8_t raw[1 << 15];
	unsigned int count = 0, versions = 0, i;
	FILE *f = fopen(SRCDIR "/golden_messages.txt", "r");

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		int key, version, bare, at;
		char side;
		const struct schema *schema;
		const struct api *api;
		struct codec_fault fault;
		struct codec_header header;
		struct arena arena;
		struct buf b;
		void *want, *got;
		size_t n, head, used;

		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%d %d %c %d %n", &key, &version, &side, &bare, &at),
				 4);
		n = unhex(line + at, raw);
		api = api_find((int16_t)key);
		assert_non_null(api);
		schema = side == 'q' ? api->request : api->response;
		head = head_size(api, (int16_t)version, side == 'q');
		arena_init(&arena, LIMIT);
		want = fill(&arena, schema, (int16_t)version, !bare);
		if (side == 'q') {
			assert_int_equal(codec_read_header(raw, n, &header, &fault), 0);
			assert_int_equal(header.key, key);
			assert_int_equal(header.version, version);
			assert_int_equal(header.correlation, 7);
			assert_true(kstr_is(header.client_id, "golden"));
			assert_int_equal(header.size, head);
		}
		if (codec_decode(schema, (int16_t)version, version >= api->flexible, raw + head,
				 n - head, &arena, &got, &used, &fault)) {
			char text[200];

			codec_fault_text(&fault, text, sizeof(text));
			fail_msg("%s %d %c: %s", api->name, version, side, text);
		}
		if (used != n - head || !codec_equal(schema, want, got))
			fail_msg("%s %d %c decodes to something else", api->name, version, side);
		buf_init(&b, LIMIT, NULL);
		encode(&b, api, (int16_t)version, side == 'q', want);
		if (b.len != n + 4 || memcmp(b.data + 4, raw, n))
			fail_msg("%s %d %c encodes to something else", api->name, version, side);
		buf_free(&b);
		arena_free(&arena);
		count++;
	}
	fclose(f);
	/* two sides, full and bare, of every version: only Produce 0 to 2 have no other maker */
	for (i = 0; i < api_count; i++)
		versions += api_table[i].max - api_table[i].min + 1;
	assert_int_equal(count, 4 * (versions - 3));
}

static void round_trip(const struct api *api, int16_t version, bool request, bool full)
{
	const struct schema *schema = request ? api->request : api->response;
	size_t head = 4 + head_size(api, version, request), used;
	struct codec_fault fault;
	struct arena arena;
	struct buf b;
	void *in, *out;

	arena_init(&arena, LIMIT);
	buf_init(&b, LIMIT, NULL);
	in = fill(&arena, schema, version, full);
	encode(&b, api, version, request, in);
	assert_int_equal(codec_decode(schema, version, version >= api->flexible, b.data + head,
				      b.len - head, &arena, &out, &used, &fault), 0);
	assert_int_equal(used, b.len - head);
	assert_true(codec_equal(schema, in, out));
	buf_free(&b);
	arena_free(&arena);
}

static void test_round_trips(void **state)
{
	(void)state;
	each(round_trip);
}

/* At every length short of the whole: an error that says where, and no byte beyond read. */
static void cut(const struct api *api, int16_t version, bool request, bool full)
{
	const struct schema *schema = request ? api->request : api->response;
	size_t head = 4 + head_size(api, version, request), n;
	struct codec_fault fault;
	struct arena arena;
	struct buf b;
	uint8_t *piece;
	void *in, *out;

	arena_init(&arena, LIMIT);
	buf_init(&b, LIMIT, NULL);
	in = fill(&arena, schema, version, full);
	encode(&b, api, version, request, in);
	for (n = 0; n < b.len - head; n++) {
		/* a block of its own, so that the sanitizer sees one byte too many */
		piece = malloc(n ? n : 1);
		memcpy(piece, b.data + head, n);
		memset(&fault, 0, sizeof(fault));
		assert_int_equal(codec_decode(schema, version, version >= api->flexible, piece, n,
					      &arena, &out, NULL, &fault), -EPROTO);
		assert_non_null(fault.schema);
		assert_non_null(fault.why);
		assert_true(fault.at <= n);
		free(piece);
	}
	buf_free(&b);
	arena_free(&arena);
}

static void test_cut_short(void **state)
{
	(void)state;
	each(cut);
}

static void test_header_cut_short(void **state)
{
	static const uint8_t v12[] = { 0, 1, 0, 12, 0, 0, 0, 9, 0, 2, 'm', 'e', 0 };
	struct codec_fault fault;
	struct codec_header h;
	uint8_t *piece;
	size_t n;

	(void)state;
	for (n = 0; n < sizeof(v12); n++) {
		piece = malloc(n ? n : 1);
		memcpy(piece, v12, n);
		assert_int_equal(codec_read_header(piece, n, &h, &fault), -EPROTO);
		assert_string_equal(fault.schema, "request header");
		free(piece);
	}
	assert_int_equal(codec_read_header(v12, sizeof(v12), &h, &fault), 0);
	assert_int_equal(h.size, sizeof(v12));
	assert_true(kstr_is(h.client_id, "me"));
}

/* One byte changed anywhere: decoded or refused, never worse; what decodes encodes again. */
static void flip(const struct api *api, int16_t version, bool request, bool full)
{
	const struct schema *schema = request ? api->request : api->response;
	static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	size_t head = 4 + head_size(api, version, request), at, n, i;
	bool flexible = version >= api->flexible;
	struct codec_fault fault;
	struct arena arena, scratch;
	struct buf b, again;
	uint8_t *piece;
	void *in, *out;

	if (!full)
		return;
	arena_init(&arena, LIMIT);
	arena_init(&scratch, LIMIT);
	buf_init(&b, LIMIT, NULL);
	buf_init(&again, LIMIT, NULL);
	in = fill(&arena, schema, version, full);
	encode(&b, api, version, request, in);
	n = b.len - head;
	piece = malloc(n);
	for (at = 0; at < n; at++) {
		for (i = 0; i < sizeof(values); i++) {
			int err;

			memcpy(piece, b.data + head, n);
			piece[at] = values[i];
			err = codec_decode(schema, version, flexible, piece, n, &scratch, &out,
					   NULL, &fault);
			if (!err)
				assert_int_equal(codec_encode(&again, schema, version, flexible,
							      true, out), 0);
			else
				assert_int_equal(err, -EPROTO);
			buf_reset(&again);
			arena_reset(&scratch);
		}
	}
	free(piece);
	buf_free(&again);
	buf_free(&b);
	arena_free(&scratch);
	arena_free(&arena);
}

static void test_changed_bytes(void **state)
{
	(void)state;
	each(flip);
}

/*
 * Every array of every message with a count of 2^31-1 and nothing behind it: refused because
 * the bytes are not there, before any memory is asked for.
 */
static void hostile(const struct api *api, int16_t version, bool request, bool full)
{
	const struct schema *schema = request ? api->request : api->response;
	static const uint8_t compact[] = { 0x80, 0x80, 0x80, 0x80, 0x08 };
	static const uint8_t plain[] = { 0x7f, 0xff, 0xff, 0xff };
	bool flexible = version >= api->flexible;
	const uint8_t *count = flexible ? compact : plain;
	size_t width = flexible ? 5 : 4, head = 4 + head_size(api, version, request), at, n;
	struct codec_fault fault;
	struct arena arena, scratch;
	struct buf b;
	uint8_t *piece;
	void *in, *out;

	if (!full)
		return;
	arena_init(&arena, LIMIT);
	arena_init(&scratch, 8192);
	buf_init(&b, LIMIT, NULL);
	in = fill(&arena, schema, version, full);
	encode(&b, api, version, request, in);
	n = b.len - head;
	piece = malloc(n + width);
	/* wherever the count is put, it is met as a count in some of the places */
	for (at = 0; at < n; at++) {
		memcpy(piece, b.data + head, at);
		memcpy(piece + at, count, width);
		assert_int_not_equal(codec_decode(schema, version, flexible, piece, at + width,
						  &scratch, &out, NULL, &fault), -ENOMEM);
		arena_reset(&scratch);
	}
	free(piece);
	buf_free(&b);
	arena_free(&scratch);
	arena_free(&arena);
}

static void test_hostile_counts(void **state)
{
	(void)state;
	each(hostile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_header_cut_short),
		cmocka_unit_test(test_changed_bytes),
		cmocka_unit_test(test_hostile_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
