/* SPDX-License-Identifier: MIT */
#ifndef PLOG_SCHEMA_TABLE_H
#define PLOG_SCHEMA_TABLE_H

#include <stddef.h>

#include "schema.h"

/*
 * Rows of a table. S is the C struct of the table at hand (each table defines it before and
 * undefines it after); @m is its member, @n Kafka's name, @lo and @hi the versions. What
 * follows are NULL_FROM, TAG, DEFAULT and IGNORABLE as needed. A member of another size or
 * kind than the row says does not compile.
 */
#define LAST VERSION_MAX
#define NULL_FROM(version) .nullable = (version) + 1
#define TAG(number) .tagged = (number) + 1
#define DEFAULT(value) .def = (value)
#define DEFAULT_NULL .def = -1
#define IGNORABLE .ignorable = true

#define KIND(m, type) _Generic(((S *)0)->m, type: 0)
#define ELEMENT(m, type) _Generic(((S *)0)->m.v, type *: 0)
#define ROW(m, n, t, lo, hi, check, ...) \
	{ .name = (n), .type = (t), .min = (lo), .max = (hi), \
	  .offset = offsetof(S, m) + (check), ##__VA_ARGS__ }

#define BOOL(m, n, lo, hi, ...) ROW(m, n, FIELD_BOOL, lo, hi, KIND(m, bool), ##__VA_ARGS__)
#define INT8(m, n, lo, hi, ...) ROW(m, n, FIELD_INT8, lo, hi, KIND(m, int8_t), ##__VA_ARGS__)
#define INT16(m, n, lo, hi, ...) ROW(m, n, FIELD_INT16, lo, hi, KIND(m, int16_t), ##__VA_ARGS__)
#define INT32(m, n, lo, hi, ...) ROW(m, n, FIELD_INT32, lo, hi, KIND(m, int32_t), ##__VA_ARGS__)
#define INT64(m, n, lo, hi, ...) ROW(m, n, FIELD_INT64, lo, hi, KIND(m, int64_t), ##__VA_ARGS__)
#define UUID(m, n, lo, hi, ...) ROW(m, n, FIELD_UUID, lo, hi, KIND(m, struct kuuid), ##__VA_ARGS__)
#define STRING(m, n, lo, hi, ...) \
	ROW(m, n, FIELD_STRING, lo, hi, KIND(m, struct kstr), ##__VA_ARGS__)
#define RECORDS(m, n, lo, hi, ...) \
	ROW(m, n, FIELD_RECORDS, lo, hi, KIND(m, struct krecords), ##__VA_ARGS__)
#define STRUCT(m, n, s, lo, hi, ...) \
	ROW(m, n, FIELD_STRUCT, lo, hi, KIND(m, struct s), .sub = &schema_##s, ##__VA_ARGS__)
#define ARRAY_INT32(m, n, lo, hi, ...) \
	ROW(m, n, FIELD_INT32, lo, hi, ELEMENT(m, int32_t), .array = true, ##__VA_ARGS__)
#define ARRAY_STRING(m, n, lo, hi, ...) \
	ROW(m, n, FIELD_STRING, lo, hi, ELEMENT(m, struct kstr), .array = true, ##__VA_ARGS__)
#define ARRAY(m, n, s, lo, hi, ...) \
	ROW(m, n, FIELD_STRUCT, lo, hi, ELEMENT(m, struct s), .array = true, \
	    .sub = &schema_##s, ##__VA_ARGS__)

/* The schema of struct @s from the rows in s_fields. */
#define SCHEMA(s, kafka_name) \
	const struct schema schema_##s = { \
		.name = (kafka_name), .fields = s##_fields, \
		.nfields = sizeof(s##_fields) / sizeof(s##_fields[0]), \
		.size = sizeof(struct s), \
	}

#endif
