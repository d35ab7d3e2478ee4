// SPDX-License-Identifier: MIT
#include "fill.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct filler {
	struct arena *arena;
	int16_t version;
	bool full;
};

static void plain(const char *name, char *out)
{
	size_t n = 0;

	for (; *name; name++)
		out[n++] = (char)tolower((unsigned char)*name);
	if (n > 2 && !memcmp(out + n - 2, "ms", 2))
		n -= 2;
	out[n] = 0;
}

static uint32_t number(const char *name, uint32_t k)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h ^ k * 0x9e3779b1u;
}

static void fill_struct(struct filler *fl, const struct schema *schema, void *obj, uint32_t k);

static void fill_one(struct filler *fl, const struct field *f, const char *name, void *at,
		     uint32_t k)
{
	bool null = f->nullable && fl->version >= f->nullable - 1 && !f->array &&
		    (k % 2 || !fl->full);
	uint32_t h = fl->full ? number(name, k) : 0;
	size_t n = strlen(name), j;
	char *text;

	switch (f->type) {
	case FIELD_BOOL:
		*(bool *)at = h & 1;
		break;
	case FIELD_INT8:
		*(int8_t *)at = (int8_t)(h % 100);
		break;
	case FIELD_INT16:
		*(int16_t *)at = (int16_t)(h % (n >= 9 && !strcmp(name + n - 9, "errorcode") ?
					       80 : 20000));
		break;
	case FIELD_INT32:
		*(int32_t *)at = (int32_t)(h & 0x7fffffff);
		break;
	case FIELD_INT64:
		*(int64_t *)at = (int64_t)h * 1000;
		break;
	case FIELD_UUID:
		for (j = 0; j < 16; j++)
			((struct kuuid *)at)->b[j] =
				fl->full ? (uint8_t)((h >> 8 * (j % 4)) ^ j) : 0;
		break;
	case FIELD_STRING:
		text = arena_printf(fl->arena, "%s-%u", name, k);
		*(struct kstr *)at = null ? KSTR_NULL : kstr_of(fl->full ? text : "");
		break;
	case FIELD_RECORDS:
		text = arena_printf(fl->arena, "%s%s%u", name, name, k);
		*(struct krecords *)at = (struct krecords){ (uint8_t *)text, -1, NULL };
		if (!null)
			((struct krecords *)at)->n = fl->full ? (int64_t)strlen(text) : 0;
		break;
	case FIELD_STRUCT:
		fill_struct(fl, f->sub, at, k);
		break;
	}
}

static size_t element_size(const struct field *f)
{
	switch (f->type) {
	case FIELD_INT32:
		return sizeof(int32_t);
	case FIELD_STRING:
		return sizeof(struct kstr);
	default:
		return f->sub->size;
	}
}

static void fill_struct(struct filler *fl, const struct schema *schema, void *obj, uint32_t k)
{
	KARRAY(char) array;
	unsigned int i;
	uint32_t e;
	char name[64];

	codec_init(schema, obj);
	for (i = 0; i < schema->nfields; i++) {
		const struct field *f = &schema->fields[i];
		char *at = (char *)obj + f->offset;

		if (fl->version < f->min || fl->version > f->max || (f->tagged && !fl->full))
			continue;
		plain(f->name, name);
		if (!f->array) {
			fill_one(fl, f, name, at, k);
			continue;
		}
		memset(&array, 0, sizeof(array));
		if (f->nullable && fl->version >= f->nullable - 1 && (k % 2 || !fl->full)) {
			array.n = -1;
		} else if (fl->full) {
			array.n = 2;
			array.v = arena_array(fl->arena, 2, element_size(f));
			for (e = 0; e < 2; e++)
				fill_one(fl, f, name, array.v + e * element_size(f),
					 2 * k + 1 + e);
		}
		memcpy(at, &array, sizeof(array));
	}
}

void *fill(struct arena *arena, const struct schema *schema, int16_t version, bool full)
{
	struct filler fl = { arena, version, full };
	void *obj = arena_alloc(arena, schema->size);

	fill_struct(&fl, schema, obj, 0);
	return obj;
}
