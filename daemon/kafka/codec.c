// SPDX-License-Identifier: MIT
#include "codec.h"
#include "codec_internal.h"

#include <string.h>

struct any_array codec_array_get(const void *at)
{
	struct any_array a;

	memcpy(&a, at, sizeof(a));
	return a;
}

void codec_array_set(void *at, void *v, int32_t n)
{
	struct any_array a;

	memset(&a, 0, sizeof(a));
	a.v = v;
	a.n = n;
	memcpy(at, &a, sizeof(a));
}

size_t codec_value_size(const struct field *f)
{
	switch (f->type) {
	case FIELD_BOOL:
		return sizeof(bool);
	case FIELD_INT8:
		return sizeof(int8_t);
	case FIELD_INT16:
		return sizeof(int16_t);
	case FIELD_INT32:
		return sizeof(int32_t);
	case FIELD_INT64:
		return sizeof(int64_t);
	case FIELD_UUID:
		return sizeof(struct kuuid);
	case FIELD_STRING:
		return sizeof(struct kstr);
	case FIELD_RECORDS:
		return sizeof(struct krecords);
	case FIELD_STRUCT:
		return f->sub->size;
	}
	return 0;
}

const struct api *api_find(int16_t key)
{
	unsigned int i;

	for (i = 0; i < api_count; i++)
		if (api_table[i].key == key)
			return &api_table[i];
	return NULL;
}

struct kstr kstr_of(const char *s)
{
	return s ? (struct kstr){ s, (int32_t)strlen(s) } : KSTR_NULL;
}

bool kstr_eq(struct kstr a, struct kstr b)
{
	return a.n == b.n && (a.n <= 0 || !memcmp(a.p, b.p, (size_t)a.n));
}

bool kstr_is(struct kstr a, const char *s)
{
	return kstr_eq(a, kstr_of(s));
}

bool kuuid_is_zero(const struct kuuid *u)
{
	static const struct kuuid zero;

	return kuuid_eq(u, &zero);
}

bool kuuid_eq(const struct kuuid *a, const struct kuuid *b)
{
	return !memcmp(a->b, b->b, sizeof(a->b));
}

/* Defaults */

void codec_int_set(const struct field *f, void *at, int64_t v)
{
	int8_t i8 = (int8_t)v;
	int16_t i16 = (int16_t)v;
	int32_t i32 = (int32_t)v;
	bool b = v != 0;

	switch (f->type) {
	case FIELD_BOOL:
		memcpy(at, &b, sizeof(b));
		break;
	case FIELD_INT8:
		memcpy(at, &i8, sizeof(i8));
		break;
	case FIELD_INT16:
		memcpy(at, &i16, sizeof(i16));
		break;
	case FIELD_INT32:
		memcpy(at, &i32, sizeof(i32));
		break;
	default:
		memcpy(at, &v, sizeof(v));
		break;
	}
}

int64_t codec_int_get(const struct field *f, const void *at)
{
	int16_t i16;
	int32_t i32;
	int64_t i64;

	switch (f->type) {
	case FIELD_BOOL:
		return *(const bool *)at;
	case FIELD_INT8:
		return *(const int8_t *)at;
	case FIELD_INT16:
		memcpy(&i16, at, sizeof(i16));
		return i16;
	case FIELD_INT32:
		memcpy(&i32, at, sizeof(i32));
		return i32;
	default:
		memcpy(&i64, at, sizeof(i64));
		return i64;
	}
}

static void set_default(const struct field *f, void *at)
{
	struct krecords *r = at;
	struct kstr *s = at;

	if (f->array) {
		codec_array_set(at, NULL, (int32_t)f->def);
		return;
	}
	switch (f->type) {
	case FIELD_UUID:
		memset(at, 0, sizeof(struct kuuid));
		break;
	case FIELD_STRING:
		*s = (struct kstr){ NULL, (int32_t)f->def };
		break;
	case FIELD_RECORDS:
		*r = (struct krecords){ NULL, f->def, NULL };
		break;
	case FIELD_STRUCT:
		codec_init(f->sub, at);
		break;
	default:
		codec_int_set(f, at, f->def);
		break;
	}
}

void codec_init(const struct schema *schema, void *obj)
{
	unsigned int i;

	for (i = 0; i < schema->nfields; i++)
		set_default(&schema->fields[i], member(obj, &schema->fields[i]));
}

void *codec_new(struct arena *arena, const struct schema *schema)
{
	return codec_new_array(arena, schema, 1);
}

void *codec_new_array(struct arena *arena, const struct schema *schema, size_t n)
{
	char *p = arena_array(arena, n, schema->size);
	size_t i;

	if (p)
		for (i = 0; i < n; i++)
			codec_init(schema, p + i * schema->size);
	return p;
}

bool codec_is_default(const struct field *f, const void *at)
{
	unsigned int i;

	if (f->array)
		return codec_array_get(at).n == (int32_t)f->def;
	switch (f->type) {
	case FIELD_UUID:
		return kuuid_is_zero(at);
	case FIELD_STRING:
		return ((const struct kstr *)at)->n == f->def;
	case FIELD_RECORDS:
		return ((const struct krecords *)at)->n == f->def;
	case FIELD_STRUCT:
		for (i = 0; i < f->sub->nfields; i++)
			if (!codec_is_default(&f->sub->fields[i],
					member_const(at, &f->sub->fields[i])))
				return false;
		return true;
	default:
		return codec_int_get(f, at) == f->def;
	}
}

/* Comparison */

static bool value_equal(const struct field *f, const void *a, const void *b)
{
	const struct krecords *ra = a, *rb = b;

	switch (f->type) {
	case FIELD_UUID:
		return kuuid_eq(a, b);
	case FIELD_STRING:
		return kstr_eq(*(const struct kstr *)a, *(const struct kstr *)b);
	case FIELD_RECORDS:
		if (ra->n != rb->n || ra->extent != rb->extent)
			return false;
		return ra->extent || ra->n <= 0 || !memcmp(ra->p, rb->p, (size_t)ra->n);
	case FIELD_STRUCT:
		return codec_equal(f->sub, a, b);
	default:
		return codec_int_get(f, a) == codec_int_get(f, b);
	}
}

bool codec_equal(const struct schema *schema, const void *a, const void *b)
{
	unsigned int i;
	int32_t k;

	for (i = 0; i < schema->nfields; i++) {
		const struct field *f = &schema->fields[i];
		const void *ma = member_const(a, f), *mb = member_const(b, f);

		if (f->array) {
			struct any_array aa = codec_array_get(ma), ab = codec_array_get(mb);
			size_t size = codec_value_size(f);

			if (aa.n != ab.n)
				return false;
			for (k = 0; k < aa.n; k++)
				if (!value_equal(f, (char *)aa.v + (size_t)k * size,
						 (char *)ab.v + (size_t)k * size))
					return false;
		} else if (!value_equal(f, ma, mb)) {
			return false;
		}
	}
	return true;
}
