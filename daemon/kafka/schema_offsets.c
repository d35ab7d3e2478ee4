// SPDX-License-Identifier: MIT
#include "schema_table.h"

#define S struct list_offsets_request_partition
static const struct field list_offsets_request_partition_fields[] = {
	INT32(partition_index, "PartitionIndex", 0, LAST),
	INT32(current_leader_epoch, "CurrentLeaderEpoch", 4, LAST, DEFAULT(-1), IGNORABLE),
	INT64(timestamp, "Timestamp", 0, LAST),
};
#undef S
SCHEMA(list_offsets_request_partition, "ListOffsetsPartition");

#define S struct list_offsets_request_topic
static const struct field list_offsets_request_topic_fields[] = {
	STRING(name, "Name", 0, LAST),
	ARRAY(partitions, "Partitions", list_offsets_request_partition, 0, LAST),
};
#undef S
SCHEMA(list_offsets_request_topic, "ListOffsetsTopic");

#define S struct list_offsets_request
static const struct field list_offsets_request_fields[] = {
	INT32(replica_id, "ReplicaId", 0, LAST),
	INT8(isolation_level, "IsolationLevel", 2, LAST),
	ARRAY(topics, "Topics", list_offsets_request_topic, 0, LAST),
	INT32(timeout_ms, "TimeoutMs", 10, LAST, IGNORABLE),
};
#undef S
SCHEMA(list_offsets_request, "ListOffsetsRequest");

#define S struct list_offsets_response_partition
static const struct field list_offsets_response_partition_fields[] = {
	INT32(partition_index, "PartitionIndex", 0, LAST),
	INT16(error_code, "ErrorCode", 0, LAST),
	INT64(timestamp, "Timestamp", 1, LAST, DEFAULT(-1)),
	INT64(offset, "Offset", 1, LAST, DEFAULT(-1)),
	INT32(leader_epoch, "LeaderEpoch", 4, LAST, DEFAULT(-1)),
};
#undef S
SCHEMA(list_offsets_response_partition, "ListOffsetsPartitionResponse");

#define S struct list_offsets_response_topic
static const struct field list_offsets_response_topic_fields[] = {
	STRING(name, "Name", 0, LAST),
	ARRAY(partitions, "Partitions", list_offsets_response_partition, 0, LAST),
};
#undef S
SCHEMA(list_offsets_response_topic, "ListOffsetsTopicResponse");

#define S struct list_offsets_response
static const struct field list_offsets_response_fields[] = {
	INT32(throttle_time_ms, "ThrottleTimeMs", 2, LAST, IGNORABLE),
	ARRAY(topics, "Topics", list_offsets_response_topic, 0, LAST),
};
#undef S
SCHEMA(list_offsets_response, "ListOffsetsResponse");
