// SPDX-License-Identifier: MIT
#include "schema_table.h"

#define S struct fetch_request_partition
static const struct field fetch_request_partition_fields[] = {
	INT32(partition, "Partition", 0, LAST),
	INT32(current_leader_epoch, "CurrentLeaderEpoch", 9, LAST, DEFAULT(-1), IGNORABLE),
	INT64(fetch_offset, "FetchOffset", 0, LAST),
	INT32(last_fetched_epoch, "LastFetchedEpoch", 12, LAST, DEFAULT(-1)),
	INT64(log_start_offset, "LogStartOffset", 5, LAST, DEFAULT(-1), IGNORABLE),
	INT32(partition_max_bytes, "PartitionMaxBytes", 0, LAST),
	UUID(replica_directory_id, "ReplicaDirectoryId", 17, LAST, TAG(0), IGNORABLE),
	INT64(high_watermark, "HighWatermark", 18, LAST, TAG(1), DEFAULT(INT64_MAX), IGNORABLE),
};
#undef S
SCHEMA(fetch_request_partition, "FetchPartition");

#define S struct fetch_request_topic
static const struct field fetch_request_topic_fields[] = {
	STRING(topic, "Topic", 0, 12, IGNORABLE),
	UUID(topic_id, "TopicId", 13, LAST, IGNORABLE),
	ARRAY(partitions, "Partitions", fetch_request_partition, 0, LAST),
};
#undef S
SCHEMA(fetch_request_topic, "FetchTopic");

#define S struct fetch_forgotten_topic
static const struct field fetch_forgotten_topic_fields[] = {
	STRING(topic, "Topic", 7, 12, IGNORABLE),
	UUID(topic_id, "TopicId", 13, LAST, IGNORABLE),
	ARRAY_INT32(partitions, "Partitions", 7, LAST),
};
#undef S
SCHEMA(fetch_forgotten_topic, "ForgottenTopic");

#define S struct fetch_replica_state
static const struct field fetch_replica_state_fields[] = {
	INT32(replica_id, "ReplicaId", 15, LAST, DEFAULT(-1)),
	INT64(replica_epoch, "ReplicaEpoch", 15, LAST, DEFAULT(-1)),
};
#undef S
static SCHEMA(fetch_replica_state, "ReplicaState");

#define S struct fetch_request
static const struct field fetch_request_fields[] = {
	STRING(cluster_id, "ClusterId", 12, LAST, TAG(0), NULL_FROM(12), DEFAULT_NULL, IGNORABLE),
	INT32(replica_id, "ReplicaId", 0, 14, DEFAULT(-1)),
	STRUCT(replica_state, "ReplicaState", fetch_replica_state, 15, LAST, TAG(1)),
	INT32(max_wait_ms, "MaxWaitMs", 0, LAST),
	INT32(min_bytes, "MinBytes", 0, LAST),
	INT32(max_bytes, "MaxBytes", 3, LAST, DEFAULT(INT32_MAX), IGNORABLE),
	INT8(isolation_level, "IsolationLevel", 4, LAST, IGNORABLE),
	INT32(session_id, "SessionId", 7, LAST, IGNORABLE),
	INT32(session_epoch, "SessionEpoch", 7, LAST, DEFAULT(-1), IGNORABLE),
	ARRAY(topics, "Topics", fetch_request_topic, 0, LAST),
	ARRAY(forgotten_topics, "ForgottenTopicsData", fetch_forgotten_topic, 7, LAST),
	STRING(rack_id, "RackId", 11, LAST, IGNORABLE),
};
#undef S
SCHEMA(fetch_request, "FetchRequest");

#define S struct fetch_diverging_epoch
static const struct field fetch_diverging_epoch_fields[] = {
	INT32(epoch, "Epoch", 12, LAST, DEFAULT(-1)),
	INT64(end_offset, "EndOffset", 12, LAST, DEFAULT(-1)),
};
#undef S
static SCHEMA(fetch_diverging_epoch, "EpochEndOffset");

#define S struct fetch_snapshot_id
static const struct field fetch_snapshot_id_fields[] = {
	INT64(end_offset, "EndOffset", 0, LAST, DEFAULT(-1)),
	INT32(epoch, "Epoch", 0, LAST, DEFAULT(-1)),
};
#undef S
static SCHEMA(fetch_snapshot_id, "SnapshotId");

#define S struct fetch_aborted_transaction
static const struct field fetch_aborted_transaction_fields[] = {
	INT64(producer_id, "ProducerId", 4, LAST),
	INT64(first_offset, "FirstOffset", 4, LAST),
};
#undef S
SCHEMA(fetch_aborted_transaction, "AbortedTransaction");

#define S struct fetch_response_partition
static const struct field fetch_response_partition_fields[] = {
	INT32(partition_index, "PartitionIndex", 0, LAST),
	INT16(error_code, "ErrorCode", 0, LAST),
	INT64(high_watermark, "HighWatermark", 0, LAST),
	INT64(last_stable_offset, "LastStableOffset", 4, LAST, DEFAULT(-1), IGNORABLE),
	INT64(log_start_offset, "LogStartOffset", 5, LAST, DEFAULT(-1), IGNORABLE),
	STRUCT(diverging_epoch, "DivergingEpoch", fetch_diverging_epoch, 12, LAST, TAG(0)),
	STRUCT(current_leader, "CurrentLeader", leader_id_and_epoch, 12, LAST, TAG(1)),
	STRUCT(snapshot_id, "SnapshotId", fetch_snapshot_id, 12, LAST, TAG(2)),
	ARRAY(aborted_transactions, "AbortedTransactions", fetch_aborted_transaction, 4, LAST,
	      NULL_FROM(4), IGNORABLE),
	INT32(preferred_read_replica, "PreferredReadReplica", 11, LAST, DEFAULT(-1)),
	RECORDS(records, "Records", 0, LAST, NULL_FROM(0)),
};
#undef S
SCHEMA(fetch_response_partition, "PartitionData");

#define S struct fetch_response_topic
static const struct field fetch_response_topic_fields[] = {
	STRING(topic, "Topic", 0, 12, IGNORABLE),
	UUID(topic_id, "TopicId", 13, LAST, IGNORABLE),
	ARRAY(partitions, "Partitions", fetch_response_partition, 0, LAST),
};
#undef S
SCHEMA(fetch_response_topic, "FetchableTopicResponse");

#define S struct fetch_response
static const struct field fetch_response_fields[] = {
	INT32(throttle_time_ms, "ThrottleTimeMs", 1, LAST, IGNORABLE),
	INT16(error_code, "ErrorCode", 7, LAST, IGNORABLE),
	INT32(session_id, "SessionId", 7, LAST),
	ARRAY(topics, "Responses", fetch_response_topic, 0, LAST),
	ARRAY(node_endpoints, "NodeEndpoints", node_endpoint, 16, LAST, TAG(0)),
};
#undef S
SCHEMA(fetch_response, "FetchResponse");
