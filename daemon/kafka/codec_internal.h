/* SPDX-License-Identifier: MIT */
#ifndef PLOG_CODEC_INTERNAL_H
#define PLOG_CODEC_INTERNAL_H

#include "codec.h"

/* What decoder and encoder share: how a field lies in its C struct. */

#define STRING_MAX 32767	/* bytes in a text */

/* How every KARRAY looks, whatever it holds. */
struct any_array {
	void *v;
	int32_t n;
};

/* Arrays are read and written through copies: their pointers are of other types. */
struct any_array codec_array_get(const void *at);
void codec_array_set(void *at, void *v, int32_t n);

/* Size of a value, or of an element if the field is an array, in the C struct. */
size_t codec_value_size(const struct field *f);

/* An integer or bool field at @at. A value must fit the field's type. */
void codec_int_set(const struct field *f, void *at, int64_t v);
int64_t codec_int_get(const struct field *f, const void *at);

/* Does the field at @at hold its default? Arrays: is the count that of the default? */
bool codec_is_default(const struct field *f, const void *at);

static inline bool in_version(const struct field *f, int16_t version)
{
	return version >= f->min && version <= f->max;
}

static inline bool null_allowed(const struct field *f, int16_t version)
{
	return f->nullable && version >= f->nullable - 1;
}

static inline void *member(void *obj, const struct field *f)
{
	return (char *)obj + f->offset;
}

static inline const void *member_const(const void *obj, const struct field *f)
{
	return (const char *)obj + f->offset;
}

#endif
