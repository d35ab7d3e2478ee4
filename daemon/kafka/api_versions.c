// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <stdio.h>

#include "../conn.h"
#include "../request.h"
#include "../say.h"
#include "error.h"
#include "schema.h"

/* Letters, digits, and between them - and . */
static bool looks_like_name(struct kstr s)
{
	if (s.n < 1 || s.n > 255)
		return false;
	for (int32_t i = 0; i < s.n; i++) {
		unsigned char c = s.p[i];

		if (isalnum(c) && c < 128)
			continue;
		if ((c != '-' && c != '.') || !i || i == s.n - 1)
			return false;
	}
	return true;
}

void handle_api_versions(struct request *req)
{
	const struct api_versions_request *body = req->body;
	struct api_versions_response *answer;
	struct api_versions_range *ranges;

	answer = codec_new(&req->arena, &schema_api_versions_response);
	ranges = codec_new_array(&req->arena, &schema_api_versions_range, api_count);
	if (!answer || !ranges) {
		request_fail(req, "out of memory");
		return;
	}
	if (req->header.version >= 3) {
		if (!looks_like_name(body->client_software_name) ||
		    !looks_like_name(body->client_software_version)) {
			say(SAY_DEBUG, "request", "%s: ApiVersions: the client's name or version "
			    "is not one", req->conn->peer);
			answer->error_code = KERR_INVALID_REQUEST;
			request_answer(req, answer);
			return;
		}
		snprintf(req->conn->software, sizeof(req->conn->software), "%.*s/%.*s",
			 body->client_software_name.n > 40 ? 40 : body->client_software_name.n,
			 body->client_software_name.p,
			 body->client_software_version.n > 20 ? 20 :
			 body->client_software_version.n,
			 body->client_software_version.p);
	}
	for (unsigned int i = 0; i < api_count; i++) {
		ranges[i].api_key = api_table[i].key;
		ranges[i].min_version = api_table[i].min;
		ranges[i].max_version = api_table[i].max;
	}
	answer->api_keys.v = ranges;
	answer->api_keys.n = api_count;
	request_answer(req, answer);
}
