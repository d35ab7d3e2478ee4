// SPDX-License-Identifier: MIT
#include "../request.h"
#include "error.h"
#include "schema.h"

/*
 * There are no groups and no transactions yet, and so no coordinator: the answer says so. It
 * is offered all the same, because librdkafka before 2.11 tests for it to learn whether a
 * broker takes lz4, and silently stops compressing otherwise.
 */
void handle_find_coordinator(struct request *req)
{
	struct find_coordinator_response *answer;

	answer = codec_new(&req->arena, &schema_find_coordinator_response);
	if (!answer) {
		request_fail(req, "out of memory");
		return;
	}
	answer->error_code = KERR_COORDINATOR_NOT_AVAILABLE;
	answer->error_message = KSTR_LIT("this broker has no group or transaction coordinator");
	answer->node_id = -1;
	answer->port = -1;
	request_answer(req, answer);
}
