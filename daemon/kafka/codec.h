/* SPDX-License-Identifier: MIT */
#ifndef PLOG_CODEC_H
#define PLOG_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "buf.h"

/*
 * One codec for every message of Kafka's protocol. A message is a table of fields
 * (struct schema); the decoder and the encoder walk the table between bytes and a C struct.
 * The tables and the structs are in schema.h.
 */

/* Text: not terminated, @n is -1 for null. Decoded ones point into the request's bytes. */
struct kstr {
	const char *p;
	int32_t n;
};

/* A topic id. */
struct kuuid {
	uint8_t b[16];
};

/*
 * Record data: @n is -1 for null. Decoded ones point into the request's bytes. To encode,
 * either @p points to the bytes, or @extent (with @n > 0) stands for @n bytes that are
 * elsewhere: the encoder then writes the length and calls buf_put_extent().
 */
struct krecords {
	const uint8_t *p;
	int64_t n;
	void *extent;
};

/* An array: @n is -1 for null. */
#define KARRAY(type) struct { type *v; int32_t n; }

#define KSTR_NULL ((struct kstr){ NULL, -1 })
#define KSTR_LIT(s) ((struct kstr){ "" s, (int32_t)sizeof(s) - 1 })

/* A kstr over the C string @s; null if @s is NULL. */
struct kstr kstr_of(const char *s);

/* Equal as bytes; null equals only null. */
bool kstr_eq(struct kstr a, struct kstr b);

/* Is the text equal to the C string @s? */
bool kstr_is(struct kstr a, const char *s);

bool kuuid_is_zero(const struct kuuid *u);
bool kuuid_eq(const struct kuuid *a, const struct kuuid *b);

enum field_type {
	FIELD_BOOL,
	FIELD_INT8,
	FIELD_INT16,
	FIELD_INT32,
	FIELD_INT64,
	FIELD_UUID,
	FIELD_STRING,
	FIELD_RECORDS,
	FIELD_STRUCT,
};

/* The highest version of a field that has no end. */
#define VERSION_MAX INT8_MAX

struct field {
	const char *name;
	enum field_type type;	/* of the elements if @array */
	bool array;
	bool ignorable;		/* may be left out of a version that lacks it, whatever it holds */
	int8_t min, max;	/* versions that have the field, inclusive */
	int8_t nullable;	/* null is allowed from version nullable - 1; 0: never */
	int8_t tagged;		/* travels under tag number tagged - 1; 0: in line */
	uint16_t offset;	/* in the C struct */
	int64_t def;		/* default; for a string or an array -1 is null, 0 empty */
	const struct schema *sub;	/* of FIELD_STRUCT */
};

struct schema {
	const char *name;
	const struct field *fields;
	unsigned int nfields;
	size_t size;		/* of the C struct */
};

/* An API: what is offered to clients, and its two messages. */
struct api {
	int16_t key;
	const char *name;
	int16_t min, max;	/* versions that ApiVersions advertises and the codec knows */
	int16_t served;		/* lowest version really served: Produce says 0 but serves 3 */
	int16_t flexible;	/* from this version on: compact lengths and tagged fields */
	bool plain_header;	/* the answer's header is version 0 always (ApiVersions) */
	const struct schema *request;
	const struct schema *response;
};

/* All APIs, ordered by key. */
extern const struct api api_table[];
extern const unsigned int api_count;

/* The API of @key, or NULL. */
const struct api *api_find(int16_t key);

/* Why bytes could not be decoded: for the log line. */
struct codec_fault {
	const char *schema;	/* never NULL after an error */
	const char *field;	/* NULL: the header, or between fields */
	const char *why;
	size_t at;		/* bytes into what was given */
};

struct codec_header {
	int16_t key;
	int16_t version;
	int32_t correlation;
	struct kstr client_id;	/* may be null */
	size_t size;		/* bytes of the header: the body follows */
};

/*
 * Read the header of a request from its @n bytes at @p (the length prefix not among them).
 * 0, or
 *  -EPROTO  cut short or malformed; nothing in @h is valid;
 *  -ENOENT  no API has this key; key, version and correlation are valid;
 *  -ERANGE  the API has no such version; key, version and correlation are valid.
 */
int codec_read_header(const uint8_t *p, size_t n, struct codec_header *h,
		      struct codec_fault *fault);

/*
 * Decode a body of @schema in @version from the @n bytes at @p into a struct that @arena
 * holds (*@out); texts and records point into @p. Fields that the version lacks have their
 * defaults. *@used (may be NULL) is what the message took: bytes after it are no error here.
 * 0, -EPROTO for malformed bytes, -ENOMEM when the arena is full.
 */
int codec_decode(const struct schema *schema, int16_t version, bool flexible,
		 const uint8_t *p, size_t n, struct arena *arena, void **out, size_t *used,
		 struct codec_fault *fault);

/* codec_decode() of @api's request. */
int codec_decode_request(const struct api *api, int16_t version, const uint8_t *p, size_t n,
			 struct arena *arena, void **out, struct codec_fault *fault);

/*
 * Append a whole answer to @b: length, header, body. Fields that the version lacks are left
 * out silently. On 0 the extents of @body belong to @b. Otherwise nothing was appended, @body
 * keeps its extents, and the error is
 *  -EINVAL     null in a field that cannot be null in this version, or a text above 32767 bytes;
 *  -EMSGSIZE   beyond the buffer's limit or 2^31-1 bytes;
 *  -ENOMEM.
 */
int codec_encode_response(struct buf *b, const struct api *api, int16_t version,
			  int32_t correlation, const void *body);

/*
 * Append a whole request to @b. As above, and -EPROTO if a field that may not be ignored
 * holds something but @version has no place for it.
 */
int codec_encode_request(struct buf *b, const struct api *api, int16_t version,
			 int32_t correlation, struct kstr client_id, const void *body);

/* Append a body alone; @strict as for requests. Errors and extents as above. */
int codec_encode(struct buf *b, const struct schema *schema, int16_t version, bool flexible,
		 bool strict, const void *body);

/* Set every field of the struct at @obj to its default. */
void codec_init(const struct schema *schema, void *obj);

/* A struct, or @n of them in a row, in @arena with every field at its default. NULL: full. */
void *codec_new(struct arena *arena, const struct schema *schema);
void *codec_new_array(struct arena *arena, const struct schema *schema, size_t n);

/* Is every field of the two structs equal, by value? For tests. */
bool codec_equal(const struct schema *schema, const void *a, const void *b);

/* One line about @fault into @text: "Metadata topics: count 9 does not fit ... at byte 12". */
void codec_fault_text(const struct codec_fault *fault, char *text, size_t size);

#endif
