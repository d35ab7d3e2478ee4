// SPDX-License-Identifier: MIT
#include "codec.h"
#include "codec_internal.h"

#include <endian.h>
#include <errno.h>

/*
 * Encoding walks twice: first to count and to find what cannot be encoded, then, with the
 * room reserved, to write. So a failure leaves nothing half written.
 */
struct writer {
	struct buf *b;		/* NULL while counting */
	size_t bytes;		/* counted: in memory */
	uint64_t extent_bytes;	/* counted: elsewhere */
	unsigned int extents;
	int16_t version;
	bool flexible, strict;
};

static void write_bytes(struct writer *w, const void *p, size_t n)
{
	if (w->b)
		buf_put(w->b, p, n);
	w->bytes += n;
}

static void write_int(struct writer *w, unsigned int bytes, int64_t v)
{
	uint64_t be = htobe64((uint64_t)v);

	write_bytes(w, (char *)&be + 8 - bytes, bytes);
}

static void write_uvarint(struct writer *w, uint32_t v)
{
	uint32_t rest = v;

	if (w->b)
		buf_put_uvarint(w->b, v);
	do {
		w->bytes++;
		rest >>= 7;
	} while (rest);
}

static int write_length(struct writer *w, unsigned int bytes, bool nullable, int64_t n)
{
	if (n < -1 || (n == -1 && !nullable))
		return -EINVAL;
	if (w->flexible)
		write_uvarint(w, (uint32_t)(n + 1));
	else
		write_int(w, bytes, n);
	return 0;
}

static int write_string(struct writer *w, bool nullable, const struct kstr *s)
{
	int err;

	if (s->n > STRING_MAX)
		return -EINVAL;
	err = write_length(w, 2, nullable, s->n);
	if (!err && s->n > 0)
		write_bytes(w, s->p, (size_t)s->n);
	return err;
}

static int write_records(struct writer *w, bool nullable, const struct krecords *r)
{
	int err;

	if (r->n > INT32_MAX)
		return -EMSGSIZE;
	if (r->extent && r->n <= 0)
		return -EINVAL;
	err = write_length(w, 4, nullable, r->n);
	if (err || r->n <= 0)
		return err;
	if (!r->extent) {
		write_bytes(w, r->p, (size_t)r->n);
		return 0;
	}
	if (w->b)
		buf_put_extent(w->b, r->extent, (uint64_t)r->n);
	w->extents++;
	w->extent_bytes += (uint64_t)r->n;
	return 0;
}

static int write_struct(struct writer *w, const struct schema *schema, const void *obj);

static int write_value(struct writer *w, const struct field *f, const void *at)
{
	static const unsigned char width[] = {
		[FIELD_BOOL] = 1, [FIELD_INT8] = 1, [FIELD_INT16] = 2,
		[FIELD_INT32] = 4, [FIELD_INT64] = 8,
	};

	switch (f->type) {
	case FIELD_UUID:
		write_bytes(w, at, sizeof(struct kuuid));
		return 0;
	case FIELD_STRING:
		return write_string(w, !f->array && null_allowed(f, w->version), at);
	case FIELD_RECORDS:
		return write_records(w, null_allowed(f, w->version), at);
	case FIELD_STRUCT:
		return write_struct(w, f->sub, at);
	default:
		write_int(w, width[f->type], codec_int_get(f, at));
		return 0;
	}
}

static int write_field(struct writer *w, const struct field *f, const void *obj)
{
	const void *at = member_const(obj, f);
	struct any_array a;
	size_t size;
	int32_t i;
	int err;

	if (!f->array)
		return write_value(w, f, at);
	a = codec_array_get(at);
	err = write_length(w, 4, null_allowed(f, w->version), a.n);
	if (err)
		return err;
	if (a.n > 0 && !a.v)
		return -EINVAL;
	size = codec_value_size(f);
	for (i = 0; i < a.n; i++) {
		err = write_value(w, f, (char *)a.v + (size_t)i * size);
		if (err)
			return err;
	}
	return 0;
}

/* Tagged fields that are not at their default, by rising tag: the tables have them so. */
static int write_tags(struct writer *w, const struct schema *schema, const void *obj)
{
	uint32_t count = 0;
	unsigned int i;
	int err;

	for (i = 0; i < schema->nfields; i++) {
		const struct field *f = &schema->fields[i];

		if (f->tagged && in_version(f, w->version) &&
		    !codec_is_default(f, member_const(obj, f)))
			count++;
	}
	write_uvarint(w, count);
	for (i = 0; i < schema->nfields; i++) {
		const struct field *f = &schema->fields[i];
		struct writer measure = {
			.version = w->version, .flexible = w->flexible, .strict = w->strict,
		};

		if (!f->tagged || !in_version(f, w->version) ||
		    codec_is_default(f, member_const(obj, f)))
			continue;
		err = write_field(&measure, f, obj);
		if (err)
			return err;
		if (measure.extents || measure.bytes > INT32_MAX)
			return -EMSGSIZE;
		write_uvarint(w, (uint32_t)f->tagged - 1);
		write_uvarint(w, (uint32_t)measure.bytes);
		err = write_field(w, f, obj);
		if (err)
			return err;
	}
	return 0;
}

static int write_struct(struct writer *w, const struct schema *schema, const void *obj)
{
	unsigned int i;
	int err;

	for (i = 0; i < schema->nfields; i++) {
		const struct field *f = &schema->fields[i];

		if (!in_version(f, w->version)) {
			if (w->strict && !f->ignorable &&
			    !codec_is_default(f, member_const(obj, f)))
				return -EPROTO;
			continue;
		}
		if (f->tagged)
			continue;
		err = write_field(w, f, obj);
		if (err)
			return err;
	}
	return w->flexible ? write_tags(w, schema, obj) : 0;
}

/* What goes before a body. */
struct frame {
	bool request;
	bool tags;		/* the header ends with (no) tagged fields */
	int16_t key, version;
	int32_t correlation;
	struct kstr client_id;
};

static int write_frame(struct writer *w, const struct frame *f, uint64_t size,
		       const struct schema *schema, const void *body)
{
	bool flexible = w->flexible;
	int err = 0;

	if (f) {
		write_int(w, 4, (int64_t)size);
		if (f->request) {
			write_int(w, 2, f->key);
			write_int(w, 2, f->version);
		}
		write_int(w, 4, f->correlation);
		if (f->request) {
			w->flexible = false;
			err = write_string(w, true, &f->client_id);
			w->flexible = flexible;
		}
		if (f->tags)
			write_uvarint(w, 0);
	}
	return err ? err : write_struct(w, schema, body);
}

static int encode(struct buf *b, const struct frame *f, const struct schema *schema,
		  int16_t version, bool flexible, bool strict, const void *body)
{
	struct writer w = { .version = version, .flexible = flexible, .strict = strict };
	uint64_t size;
	int err;

	if (buf_error(b))
		return buf_error(b);
	err = write_frame(&w, f, 0, schema, body);
	if (err)
		return err;
	size = w.bytes + w.extent_bytes - (f ? 4 : 0);
	if (size > INT32_MAX)
		return -EMSGSIZE;
	err = buf_reserve(b, w.bytes, w.extents);
	if (err) {
		b->error = 0;	/* nothing was written: the buffer is as good as before */
		return err;
	}
	w = (struct writer){ .b = b, .version = version, .flexible = flexible, .strict = strict };
	return write_frame(&w, f, size, schema, body);
}

int codec_encode(struct buf *b, const struct schema *schema, int16_t version, bool flexible,
		 bool strict, const void *body)
{
	return encode(b, NULL, schema, version, flexible, strict, body);
}

int codec_encode_response(struct buf *b, const struct api *api, int16_t version,
			  int32_t correlation, const void *body)
{
	bool flexible = version >= api->flexible;
	struct frame f = { .correlation = correlation, .tags = flexible && !api->plain_header };

	return encode(b, &f, api->response, version, flexible, false, body);
}

int codec_encode_request(struct buf *b, const struct api *api, int16_t version,
			 int32_t correlation, struct kstr client_id, const void *body)
{
	bool flexible = version >= api->flexible;
	struct frame f = {
		.request = true, .tags = flexible, .key = api->key, .version = version,
		.correlation = correlation, .client_id = client_id,
	};

	return encode(b, &f, api->request, version, flexible, true, body);
}
