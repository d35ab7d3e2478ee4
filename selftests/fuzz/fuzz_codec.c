// SPDX-License-Identifier: MIT
/*
 * Any bytes as any message: what decodes must encode, decode again to the same content and
 * encode to the same bytes; what does not must say where and why.
 *
 * Input: API (its key, or anything), version, flags, bytes. Flag 1: an answer, not a request.
 * Flag 2: the bytes begin with a request's header, and API and version come from there.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/schema.h"

#define ARENA_LIMIT (4 << 20)
#define BUF_LIMIT (16 << 20)

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void message(const struct schema *schema, int16_t version, bool flexible,
		    const uint8_t *p, size_t n)
{
	struct codec_fault fault = { 0 };
	struct arena first, second;
	struct buf a, b;
	void *x, *y;
	size_t used;
	char text[256];
	int err;

	arena_init(&first, ARENA_LIMIT);
	arena_init(&second, ARENA_LIMIT);
	buf_init(&a, BUF_LIMIT, NULL);
	buf_init(&b, BUF_LIMIT, NULL);
	err = codec_decode(schema, version, flexible, p, n, &first, &x, &used, &fault);
	if (err) {
		must(err == -EPROTO || err == -ENOMEM);
		must(fault.schema && fault.why && fault.at <= n);
		codec_fault_text(&fault, text, sizeof(text));
		goto out;
	}
	must(used <= n);
	/* nothing that a version lacks comes out of it, so the strict form must do */
	must(!codec_encode(&a, schema, version, flexible, true, x));
	must(a.len <= BUF_LIMIT);
	must(!codec_decode(schema, version, flexible, a.data, a.len, &second, &y, &used, &fault));
	must(used == a.len);
	must(codec_equal(schema, x, y));
	must(!codec_encode(&b, schema, version, flexible, true, y));
	must(a.len == b.len && (!a.len || !memcmp(a.data, b.data, a.len)));
out:
	buf_free(&a);
	buf_free(&b);
	arena_free(&first);
	arena_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const struct api *api;
	int16_t version;

	if (n < 3)
		return 0;
	if (p[2] & 2) {
		struct codec_fault fault = { 0 };
		struct codec_header h;
		int err = codec_read_header(p + 3, n - 3, &h, &fault);

		must(!err || err == -EPROTO || err == -ENOENT || err == -ERANGE);
		if (err)
			return 0;
		must(h.size <= n - 3);
		api = api_find(h.key);
		message(api->request, h.version, h.version >= api->flexible, p + 3 + h.size,
			n - 3 - h.size);
		return 0;
	}
	api = api_find(p[0]);
	if (!api)
		api = &api_table[p[0] % api_count];
	version = p[1];
	if (version < api->min || version > api->max)
		version = (int16_t)(api->min + p[1] % (api->max - api->min + 1));
	message(p[2] & 1 ? api->response : api->request, version, version >= api->flexible,
		p + 3, n - 3);
	return 0;
}
