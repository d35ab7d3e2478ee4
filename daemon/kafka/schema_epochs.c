// SPDX-License-Identifier: MIT
#include "schema_table.h"

#define S struct offset_for_leader_epoch_request_partition
static const struct field offset_for_leader_epoch_request_partition_fields[] = {
	INT32(partition, "Partition", 0, LAST),
	INT32(current_leader_epoch, "CurrentLeaderEpoch", 2, LAST, DEFAULT(-1), IGNORABLE),
	INT32(leader_epoch, "LeaderEpoch", 0, LAST),
};
#undef S
SCHEMA(offset_for_leader_epoch_request_partition, "OffsetForLeaderPartition");

#define S struct offset_for_leader_epoch_request_topic
static const struct field offset_for_leader_epoch_request_topic_fields[] = {
	STRING(topic, "Topic", 0, LAST),
	ARRAY(partitions, "Partitions", offset_for_leader_epoch_request_partition, 0, LAST),
};
#undef S
SCHEMA(offset_for_leader_epoch_request_topic, "OffsetForLeaderTopic");

#define S struct offset_for_leader_epoch_request
static const struct field offset_for_leader_epoch_request_fields[] = {
	INT32(replica_id, "ReplicaId", 3, LAST, DEFAULT(-2), IGNORABLE),
	ARRAY(topics, "Topics", offset_for_leader_epoch_request_topic, 0, LAST),
};
#undef S
SCHEMA(offset_for_leader_epoch_request, "OffsetForLeaderEpochRequest");

#define S struct offset_for_leader_epoch_response_partition
static const struct field offset_for_leader_epoch_response_partition_fields[] = {
	INT16(error_code, "ErrorCode", 0, LAST),
	INT32(partition, "Partition", 0, LAST),
	INT32(leader_epoch, "LeaderEpoch", 1, LAST, DEFAULT(-1), IGNORABLE),
	INT64(end_offset, "EndOffset", 0, LAST, DEFAULT(-1)),
};
#undef S
SCHEMA(offset_for_leader_epoch_response_partition, "EpochEndOffset");

#define S struct offset_for_leader_epoch_response_topic
static const struct field offset_for_leader_epoch_response_topic_fields[] = {
	STRING(topic, "Topic", 0, LAST),
	ARRAY(partitions, "Partitions", offset_for_leader_epoch_response_partition, 0, LAST),
};
#undef S
SCHEMA(offset_for_leader_epoch_response_topic, "OffsetForLeaderTopicResult");

#define S struct offset_for_leader_epoch_response
static const struct field offset_for_leader_epoch_response_fields[] = {
	INT32(throttle_time_ms, "ThrottleTimeMs", 2, LAST, IGNORABLE),
	ARRAY(topics, "Topics", offset_for_leader_epoch_response_topic, 0, LAST),
};
#undef S
SCHEMA(offset_for_leader_epoch_response, "OffsetForLeaderEpochResponse");
