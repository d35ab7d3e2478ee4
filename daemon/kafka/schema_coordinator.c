// SPDX-License-Identifier: MIT
#include "schema_table.h"

#define S struct find_coordinator_request
static const struct field find_coordinator_request_fields[] = {
	STRING(key, "Key", 0, LAST),
	INT8(key_type, "KeyType", 1, LAST),
};
#undef S
SCHEMA(find_coordinator_request, "FindCoordinatorRequest");

#define S struct find_coordinator_response
static const struct field find_coordinator_response_fields[] = {
	INT32(throttle_time_ms, "ThrottleTimeMs", 1, LAST, IGNORABLE),
	INT16(error_code, "ErrorCode", 0, LAST),
	STRING(error_message, "ErrorMessage", 1, LAST, NULL_FROM(1), IGNORABLE),
	INT32(node_id, "NodeId", 0, LAST),
	STRING(host, "Host", 0, LAST),
	INT32(port, "Port", 0, LAST),
};
#undef S
SCHEMA(find_coordinator_response, "FindCoordinatorResponse");
