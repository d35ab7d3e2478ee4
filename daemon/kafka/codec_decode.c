// SPDX-License-Identifier: MIT
#include "codec.h"
#include "codec_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct reader {
	const uint8_t *begin, *p, *end;
	int16_t version;
	bool flexible;
	struct arena *arena;
	const char *schema, *field;	/* where we are, for the fault */
	struct codec_fault *fault;
};

/* The bytes to read. None may come without a place. */
static void give(struct reader *r, const uint8_t *p, size_t n)
{
	static const uint8_t nothing[1];

	r->begin = n ? p : nothing;
	r->p = r->begin;
	r->end = r->begin + n;
}

static size_t left(const struct reader *r)
{
	return (size_t)(r->end - r->p);
}

static int bad(struct reader *r, const char *why)
{
	if (r->fault)
		*r->fault = (struct codec_fault){
			r->schema, r->field, why, (size_t)(r->p - r->begin)
		};
	return -EPROTO;
}

static int full(struct reader *r)
{
	bad(r, "the request needs more memory than one request may have");
	return -ENOMEM;
}

/* An integer of @n bytes, most significant first. */
static int read_int(struct reader *r, unsigned int n, int64_t *out)
{
	uint64_t v = 0;
	unsigned int i;

	if (left(r) < n)
		return bad(r, "the request ends in the middle");
	for (i = 0; i < n; i++)
		v = v << 8 | r->p[i];
	r->p += n;
	/* the sign is that of the topmost byte that was there */
	*out = n == 8 ? (int64_t)v : (int64_t)(v << (64 - 8 * n)) >> (64 - 8 * n);
	return 0;
}

static int read_uvarint(struct reader *r, uint32_t *out)
{
	uint32_t v = 0;
	unsigned int shift;

	for (shift = 0; shift < 35; shift += 7) {
		uint8_t byte;

		if (!left(r))
			return bad(r, "the request ends in the middle of a number");
		byte = *r->p;
		if (shift == 28 && byte > 0x0f)
			return bad(r, "a number does not fit 32 bits");
		r->p++;
		v |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	*out = v;
	return 0;
}

/*
 * The length of a text, records or an array: compact, or in @bytes bytes. -1 for null, which
 * @nullable permits or not. Nothing is said yet about the bytes that follow.
 */
static int read_length(struct reader *r, unsigned int bytes, bool nullable, int64_t *out)
{
	uint32_t compact;
	int64_t n;
	int err;

	if (r->flexible) {
		err = read_uvarint(r, &compact);
		n = (int64_t)compact - 1;
	} else {
		err = read_int(r, bytes, &n);
	}
	if (err)
		return err;
	if (n < -1)
		return bad(r, "a length is negative");
	if (n == -1 && !nullable)
		return bad(r, "null where a value must be");
	if (n > INT32_MAX)
		return bad(r, "a length is above 2^31-1");
	*out = n;
	return 0;
}

static int read_string(struct reader *r, bool nullable, struct kstr *s)
{
	int64_t n;
	int err;

	err = read_length(r, 2, nullable, &n);
	if (err)
		return err;
	if (n > STRING_MAX)
		return bad(r, "a text is longer than 32767 bytes");
	if (n > (int64_t)left(r))
		return bad(r, "a text is longer than the rest of the request");
	*s = (struct kstr){ n > 0 ? (const char *)r->p : NULL, (int32_t)n };
	if (n > 0)
		r->p += n;
	return 0;
}

static int read_records(struct reader *r, bool nullable, struct krecords *out)
{
	int64_t n;
	int err;

	err = read_length(r, 4, nullable, &n);
	if (err)
		return err;
	if (n > (int64_t)left(r))
		return bad(r, "records are longer than the rest of the request");
	*out = (struct krecords){ n > 0 ? r->p : NULL, n, NULL };
	if (n > 0)
		r->p += n;
	return 0;
}

/* The fewest bytes that a struct of @schema takes. The tables are a few levels deep. */
static size_t min_struct_size(const struct schema *schema, int16_t version, bool flexible);

static size_t min_value_size(const struct field *f, int16_t version, bool flexible)
{
	switch (f->type) {
	case FIELD_BOOL:
	case FIELD_INT8:
		return 1;
	case FIELD_INT16:
		return 2;
	case FIELD_INT32:
		return 4;
	case FIELD_INT64:
		return 8;
	case FIELD_UUID:
		return 16;
	case FIELD_STRING:
		return flexible ? 1 : 2;
	case FIELD_RECORDS:
		return flexible ? 1 : 4;
	case FIELD_STRUCT:
		return min_struct_size(f->sub, version, flexible);
	}
	return 1;
}

static size_t min_struct_size(const struct schema *schema, int16_t version, bool flexible)
{
	size_t sum = flexible ? 1 : 0;
	unsigned int i;

	for (i = 0; i < schema->nfields; i++) {
		const struct field *f = &schema->fields[i];

		if (!in_version(f, version) || f->tagged)
			continue;
		if (f->array)
			sum += flexible ? 1 : 4;
		else
			sum += min_value_size(f, version, flexible);
	}
	return sum;
}

static int read_struct(struct reader *r, const struct schema *schema, void *obj);

static int read_value(struct reader *r, const struct field *f, void *at)
{
	static const unsigned char width[] = {
		[FIELD_BOOL] = 1, [FIELD_INT8] = 1, [FIELD_INT16] = 2,
		[FIELD_INT32] = 4, [FIELD_INT64] = 8,
	};
	int64_t v;
	int err;

	switch (f->type) {
	case FIELD_UUID:
		if (left(r) < sizeof(struct kuuid))
			return bad(r, "the request ends in the middle of an id");
		memcpy(at, r->p, sizeof(struct kuuid));
		r->p += sizeof(struct kuuid);
		return 0;
	case FIELD_STRING:
		/* the elements of an array are never null: no message of Kafka has that */
		return read_string(r, !f->array && null_allowed(f, r->version), at);
	case FIELD_RECORDS:
		return read_records(r, null_allowed(f, r->version), at);
	case FIELD_STRUCT:
		return read_struct(r, f->sub, at);
	default:
		err = read_int(r, width[f->type], &v);
		if (!err)
			codec_int_set(f, at, v);
		return err;
	}
}

static int read_array(struct reader *r, const struct field *f, void *at)
{
	size_t min, size = codec_value_size(f);
	int64_t n, i;
	char *v;
	int err;

	err = read_length(r, 4, null_allowed(f, r->version), &n);
	if (err)
		return err;
	if (n <= 0) {
		codec_array_set(at, NULL, (int32_t)n);
		return 0;
	}
	min = min_value_size(f, r->version, r->flexible);
	if ((uint64_t)n > left(r) / (min ? min : 1))
		return bad(r, "an array has more elements than the rest of the request can hold");
	v = arena_array(r->arena, (size_t)n, size);
	if (!v)
		return full(r);
	codec_array_set(at, v, (int32_t)n);
	for (i = 0; i < n; i++) {
		err = read_value(r, f, v + (size_t)i * size);
		if (err)
			return err;
	}
	return 0;
}

static int read_field(struct reader *r, const struct field *f, void *obj)
{
	void *at = member(obj, f);

	r->field = f->name;
	return f->array ? read_array(r, f, at) : read_value(r, f, at);
}

static const struct field *find_tag(const struct schema *schema, int16_t version, uint32_t tag)
{
	unsigned int i;

	for (i = 0; i < schema->nfields; i++) {
		const struct field *f = &schema->fields[i];

		if (f->tagged && (uint32_t)f->tagged - 1 == tag && in_version(f, version))
			return f;
	}
	return NULL;
}

/* The tagged fields at the end of a struct; unknown ones are skipped. @schema NULL: all are. */
static int read_tags(struct reader *r, const struct schema *schema, void *obj)
{
	int64_t last = -1;
	uint32_t count, i;
	int err;

	r->field = NULL;
	err = read_uvarint(r, &count);
	if (err)
		return err;
	for (i = 0; i < count; i++) {
		const uint8_t *end = r->end, *next;
		const struct field *f;
		uint32_t tag, size;

		r->field = NULL;
		err = read_uvarint(r, &tag);
		if (!err)
			err = read_uvarint(r, &size);
		if (err)
			return err;
		if ((int64_t)tag <= last)
			return bad(r, "tagged fields are not in rising order");
		last = tag;
		if (size > left(r))
			return bad(r, "a tagged field is longer than the rest of the request");
		next = r->p + size;
		f = schema ? find_tag(schema, r->version, tag) : NULL;
		if (f) {
			r->end = next;
			err = read_field(r, f, obj);
			if (!err && r->p != next)
				err = bad(r, "a tagged field has bytes left over");
			r->end = end;
			if (err)
				return err;
		}
		r->p = next;
	}
	return 0;
}

static int read_struct(struct reader *r, const struct schema *schema, void *obj)
{
	const char *outer = r->schema;
	unsigned int i;
	int err;

	r->schema = schema->name;
	codec_init(schema, obj);
	for (i = 0; i < schema->nfields; i++) {
		const struct field *f = &schema->fields[i];

		if (!in_version(f, r->version) || f->tagged)
			continue;
		err = read_field(r, f, obj);
		if (err)
			return err;
	}
	if (r->flexible) {
		err = read_tags(r, schema, obj);
		if (err)
			return err;
	}
	r->schema = outer;
	return 0;
}

int codec_decode(const struct schema *schema, int16_t version, bool flexible,
		 const uint8_t *p, size_t n, struct arena *arena, void **out, size_t *used,
		 struct codec_fault *fault)
{
	struct reader r = {
		.version = version, .flexible = flexible,
		.arena = arena, .schema = schema->name, .fault = fault,
	};
	void *obj = arena_alloc(arena, schema->size);
	int err;

	give(&r, p, n);
	if (!obj)
		return full(&r);
	err = read_struct(&r, schema, obj);
	if (err)
		return err;
	*out = obj;
	if (used)
		*used = (size_t)(r.p - r.begin);
	return 0;
}

int codec_decode_request(const struct api *api, int16_t version, const uint8_t *p, size_t n,
			 struct arena *arena, void **out, struct codec_fault *fault)
{
	return codec_decode(api->request, version, version >= api->flexible, p, n, arena, out,
			    NULL, fault);
}

int codec_read_header(const uint8_t *p, size_t n, struct codec_header *h,
		      struct codec_fault *fault)
{
	struct reader r = { .schema = "request header", .fault = fault };
	int64_t key, version, correlation;
	const struct api *api;
	int err;

	give(&r, p, n);
	err = read_int(&r, 2, &key);
	if (!err)
		err = read_int(&r, 2, &version);
	if (!err)
		err = read_int(&r, 4, &correlation);
	if (err)
		return err;
	*h = (struct codec_header){
		.key = (int16_t)key, .version = (int16_t)version,
		.correlation = (int32_t)correlation, .client_id = KSTR_NULL,
		.size = (size_t)(r.p - r.begin),
	};
	api = api_find(h->key);
	if (!api) {
		bad(&r, "no API has this key");
		return -ENOENT;
	}
	if (h->version < api->min || h->version > api->max) {
		bad(&r, "the API has no such version");
		return -ERANGE;
	}
	/* the client id keeps its old form in the flexible header, which only adds tags */
	r.field = "ClientId";
	err = read_string(&r, true, &h->client_id);
	if (!err && h->version >= api->flexible) {
		r.flexible = true;
		err = read_tags(&r, NULL, NULL);
	}
	h->size = (size_t)(r.p - r.begin);
	return err;
}

void codec_fault_text(const struct codec_fault *fault, char *text, size_t size)
{
	snprintf(text, size, "%s%s%s: %s, at byte %zu", fault->schema,
		 fault->field ? " " : "", fault->field ? fault->field : "", fault->why, fault->at);
}
