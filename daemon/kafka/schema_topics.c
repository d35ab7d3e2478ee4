// SPDX-License-Identifier: MIT
#include "schema_table.h"

/* CreateTopics */

#define S struct create_topics_assignment
static const struct field create_topics_assignment_fields[] = {
	INT32(partition_index, "PartitionIndex", 0, LAST),
	ARRAY_INT32(broker_ids, "BrokerIds", 0, LAST),
};
#undef S
SCHEMA(create_topics_assignment, "CreatableReplicaAssignment");

#define S struct create_topics_config
static const struct field create_topics_config_fields[] = {
	STRING(name, "Name", 0, LAST),
	STRING(value, "Value", 0, LAST, NULL_FROM(0)),
};
#undef S
SCHEMA(create_topics_config, "CreatableTopicConfig");

#define S struct create_topics_request_topic
static const struct field create_topics_request_topic_fields[] = {
	STRING(name, "Name", 0, LAST),
	INT32(num_partitions, "NumPartitions", 0, LAST),
	INT16(replication_factor, "ReplicationFactor", 0, LAST),
	ARRAY(assignments, "Assignments", create_topics_assignment, 0, LAST),
	ARRAY(configs, "Configs", create_topics_config, 0, LAST),
};
#undef S
SCHEMA(create_topics_request_topic, "CreatableTopic");

#define S struct create_topics_request
static const struct field create_topics_request_fields[] = {
	ARRAY(topics, "Topics", create_topics_request_topic, 0, LAST),
	INT32(timeout_ms, "timeoutMs", 0, LAST, DEFAULT(60000)),
	BOOL(validate_only, "validateOnly", 1, LAST),
};
#undef S
SCHEMA(create_topics_request, "CreateTopicsRequest");

#define S struct create_topics_result_config
static const struct field create_topics_result_config_fields[] = {
	STRING(name, "Name", 5, LAST),
	STRING(value, "Value", 5, LAST, NULL_FROM(5)),
	BOOL(read_only, "ReadOnly", 5, LAST),
	INT8(config_source, "ConfigSource", 5, LAST, DEFAULT(-1), IGNORABLE),
	BOOL(is_sensitive, "IsSensitive", 5, LAST),
};
#undef S
SCHEMA(create_topics_result_config, "CreatableTopicConfigs");

#define S struct create_topics_response_topic
static const struct field create_topics_response_topic_fields[] = {
	STRING(name, "Name", 0, LAST),
	UUID(topic_id, "TopicId", 7, LAST, IGNORABLE),
	INT16(error_code, "ErrorCode", 0, LAST),
	STRING(error_message, "ErrorMessage", 1, LAST, NULL_FROM(0), IGNORABLE),
	INT16(topic_config_error_code, "TopicConfigErrorCode", 5, LAST, TAG(0), IGNORABLE),
	INT32(num_partitions, "NumPartitions", 5, LAST, DEFAULT(-1), IGNORABLE),
	INT16(replication_factor, "ReplicationFactor", 5, LAST, DEFAULT(-1), IGNORABLE),
	ARRAY(configs, "Configs", create_topics_result_config, 5, LAST, NULL_FROM(5), IGNORABLE),
};
#undef S
SCHEMA(create_topics_response_topic, "CreatableTopicResult");

#define S struct create_topics_response
static const struct field create_topics_response_fields[] = {
	INT32(throttle_time_ms, "ThrottleTimeMs", 2, LAST, IGNORABLE),
	ARRAY(topics, "Topics", create_topics_response_topic, 0, LAST),
};
#undef S
SCHEMA(create_topics_response, "CreateTopicsResponse");

/* DeleteTopics */

#define S struct delete_topics_state
static const struct field delete_topics_state_fields[] = {
	STRING(name, "Name", 6, LAST, NULL_FROM(6), DEFAULT_NULL),
	UUID(topic_id, "TopicId", 6, LAST),
};
#undef S
SCHEMA(delete_topics_state, "DeleteTopicState");

#define S struct delete_topics_request
static const struct field delete_topics_request_fields[] = {
	ARRAY(topics, "Topics", delete_topics_state, 6, LAST),
	ARRAY_STRING(topic_names, "TopicNames", 0, 5, IGNORABLE),
	INT32(timeout_ms, "TimeoutMs", 0, LAST),
};
#undef S
SCHEMA(delete_topics_request, "DeleteTopicsRequest");

#define S struct delete_topics_response_topic
static const struct field delete_topics_response_topic_fields[] = {
	STRING(name, "Name", 0, LAST, NULL_FROM(6)),
	UUID(topic_id, "TopicId", 6, LAST, IGNORABLE),
	INT16(error_code, "ErrorCode", 0, LAST),
	STRING(error_message, "ErrorMessage", 5, LAST, NULL_FROM(5), DEFAULT_NULL, IGNORABLE),
};
#undef S
SCHEMA(delete_topics_response_topic, "DeletableTopicResult");

#define S struct delete_topics_response
static const struct field delete_topics_response_fields[] = {
	INT32(throttle_time_ms, "ThrottleTimeMs", 1, LAST, IGNORABLE),
	ARRAY(topics, "Responses", delete_topics_response_topic, 0, LAST),
};
#undef S
SCHEMA(delete_topics_response, "DeleteTopicsResponse");
