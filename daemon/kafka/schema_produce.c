// SPDX-License-Identifier: MIT
#include "schema_table.h"

#define S struct produce_request_partition
static const struct field produce_request_partition_fields[] = {
	INT32(index, "Index", 0, LAST),
	RECORDS(records, "Records", 0, LAST, NULL_FROM(0)),
};
#undef S
SCHEMA(produce_request_partition, "PartitionProduceData");

#define S struct produce_request_topic
static const struct field produce_request_topic_fields[] = {
	STRING(name, "Name", 0, 12, IGNORABLE),
	UUID(topic_id, "TopicId", 13, LAST, IGNORABLE),
	ARRAY(partitions, "PartitionData", produce_request_partition, 0, LAST),
};
#undef S
SCHEMA(produce_request_topic, "TopicProduceData");

#define S struct produce_request
static const struct field produce_request_fields[] = {
	STRING(transactional_id, "TransactionalId", 3, LAST, NULL_FROM(3), DEFAULT_NULL),
	INT16(acks, "Acks", 0, LAST),
	INT32(timeout_ms, "TimeoutMs", 0, LAST),
	ARRAY(topics, "TopicData", produce_request_topic, 0, LAST),
};
#undef S
SCHEMA(produce_request, "ProduceRequest");

#define S struct leader_id_and_epoch
static const struct field leader_id_and_epoch_fields[] = {
	INT32(leader_id, "LeaderId", 10, LAST, DEFAULT(-1)),
	INT32(leader_epoch, "LeaderEpoch", 10, LAST, DEFAULT(-1)),
};
#undef S
SCHEMA(leader_id_and_epoch, "LeaderIdAndEpoch");

#define S struct node_endpoint
static const struct field node_endpoint_fields[] = {
	INT32(node_id, "NodeId", 10, LAST),
	STRING(host, "Host", 10, LAST),
	INT32(port, "Port", 10, LAST),
	STRING(rack, "Rack", 10, LAST, NULL_FROM(10), DEFAULT_NULL),
};
#undef S
SCHEMA(node_endpoint, "NodeEndpoint");

#define S struct produce_record_error
static const struct field produce_record_error_fields[] = {
	INT32(batch_index, "BatchIndex", 8, LAST),
	STRING(message, "BatchIndexErrorMessage", 8, LAST, NULL_FROM(8), DEFAULT_NULL),
};
#undef S
SCHEMA(produce_record_error, "BatchIndexAndErrorMessage");

#define S struct produce_response_partition
static const struct field produce_response_partition_fields[] = {
	INT32(index, "Index", 0, LAST),
	INT16(error_code, "ErrorCode", 0, LAST),
	INT64(base_offset, "BaseOffset", 0, LAST),
	INT64(log_append_time_ms, "LogAppendTimeMs", 2, LAST, DEFAULT(-1), IGNORABLE),
	INT64(log_start_offset, "LogStartOffset", 5, LAST, DEFAULT(-1), IGNORABLE),
	ARRAY(record_errors, "RecordErrors", produce_record_error, 8, LAST, IGNORABLE),
	STRING(error_message, "ErrorMessage", 8, LAST, NULL_FROM(8), DEFAULT_NULL, IGNORABLE),
	STRUCT(current_leader, "CurrentLeader", leader_id_and_epoch, 10, LAST, TAG(0)),
};
#undef S
SCHEMA(produce_response_partition, "PartitionProduceResponse");

#define S struct produce_response_topic
static const struct field produce_response_topic_fields[] = {
	STRING(name, "Name", 0, 12, IGNORABLE),
	UUID(topic_id, "TopicId", 13, LAST, IGNORABLE),
	ARRAY(partitions, "PartitionResponses", produce_response_partition, 0, LAST),
};
#undef S
SCHEMA(produce_response_topic, "TopicProduceResponse");

#define S struct produce_response
static const struct field produce_response_fields[] = {
	ARRAY(topics, "Responses", produce_response_topic, 0, LAST),
	INT32(throttle_time_ms, "ThrottleTimeMs", 1, LAST, IGNORABLE),
	ARRAY(node_endpoints, "NodeEndpoints", node_endpoint, 10, LAST, TAG(0)),
};
#undef S
SCHEMA(produce_response, "ProduceResponse");
