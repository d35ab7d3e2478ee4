// SPDX-License-Identifier: MIT
#include "schema_table.h"

/* Metadata */

#define S struct metadata_request_topic
static const struct field metadata_request_topic_fields[] = {
	UUID(topic_id, "TopicId", 10, LAST, IGNORABLE),
	STRING(name, "Name", 0, LAST, NULL_FROM(10)),
};
#undef S
SCHEMA(metadata_request_topic, "MetadataRequestTopic");

#define S struct metadata_request
static const struct field metadata_request_fields[] = {
	ARRAY(topics, "Topics", metadata_request_topic, 0, LAST, NULL_FROM(1)),
	BOOL(allow_auto_topic_creation, "AllowAutoTopicCreation", 4, LAST, DEFAULT(true)),
	BOOL(include_cluster_authorized_operations, "IncludeClusterAuthorizedOperations", 8, 10),
	BOOL(include_topic_authorized_operations, "IncludeTopicAuthorizedOperations", 8, LAST),
};
#undef S
SCHEMA(metadata_request, "MetadataRequest");

#define S struct metadata_broker
static const struct field metadata_broker_fields[] = {
	INT32(node_id, "NodeId", 0, LAST),
	STRING(host, "Host", 0, LAST),
	INT32(port, "Port", 0, LAST),
	STRING(rack, "Rack", 1, LAST, NULL_FROM(1), DEFAULT_NULL, IGNORABLE),
};
#undef S
SCHEMA(metadata_broker, "MetadataResponseBroker");

#define S struct metadata_partition
static const struct field metadata_partition_fields[] = {
	INT16(error_code, "ErrorCode", 0, LAST),
	INT32(partition_index, "PartitionIndex", 0, LAST),
	INT32(leader_id, "LeaderId", 0, LAST),
	INT32(leader_epoch, "LeaderEpoch", 7, LAST, DEFAULT(-1), IGNORABLE),
	ARRAY_INT32(replica_nodes, "ReplicaNodes", 0, LAST),
	ARRAY_INT32(isr_nodes, "IsrNodes", 0, LAST),
	ARRAY_INT32(offline_replicas, "OfflineReplicas", 5, LAST, IGNORABLE),
};
#undef S
SCHEMA(metadata_partition, "MetadataResponsePartition");

#define S struct metadata_topic
static const struct field metadata_topic_fields[] = {
	INT16(error_code, "ErrorCode", 0, LAST),
	STRING(name, "Name", 0, LAST, NULL_FROM(12)),
	UUID(topic_id, "TopicId", 10, LAST, IGNORABLE),
	BOOL(is_internal, "IsInternal", 1, LAST, IGNORABLE),
	ARRAY(partitions, "Partitions", metadata_partition, 0, LAST),
	INT32(topic_authorized_operations, "TopicAuthorizedOperations", 8, LAST,
	      DEFAULT(INT32_MIN)),
};
#undef S
SCHEMA(metadata_topic, "MetadataResponseTopic");

#define S struct metadata_response
static const struct field metadata_response_fields[] = {
	INT32(throttle_time_ms, "ThrottleTimeMs", 3, LAST, IGNORABLE),
	ARRAY(brokers, "Brokers", metadata_broker, 0, LAST),
	STRING(cluster_id, "ClusterId", 2, LAST, NULL_FROM(2), DEFAULT_NULL, IGNORABLE),
	INT32(controller_id, "ControllerId", 1, LAST, DEFAULT(-1), IGNORABLE),
	ARRAY(topics, "Topics", metadata_topic, 0, LAST),
	INT32(cluster_authorized_operations, "ClusterAuthorizedOperations", 8, 10,
	      DEFAULT(INT32_MIN)),
	INT16(error_code, "ErrorCode", 13, LAST, IGNORABLE),
};
#undef S
SCHEMA(metadata_response, "MetadataResponse");

/* ApiVersions */

#define S struct api_versions_request
static const struct field api_versions_request_fields[] = {
	STRING(client_software_name, "ClientSoftwareName", 3, LAST, IGNORABLE),
	STRING(client_software_version, "ClientSoftwareVersion", 3, LAST, IGNORABLE),
};
#undef S
SCHEMA(api_versions_request, "ApiVersionsRequest");

#define S struct api_versions_range
static const struct field api_versions_range_fields[] = {
	INT16(api_key, "ApiKey", 0, LAST),
	INT16(min_version, "MinVersion", 0, LAST),
	INT16(max_version, "MaxVersion", 0, LAST),
};
#undef S
SCHEMA(api_versions_range, "ApiVersion");

#define S struct api_versions_supported_feature
static const struct field api_versions_supported_feature_fields[] = {
	STRING(name, "Name", 3, LAST),
	INT16(min_version, "MinVersion", 3, LAST),
	INT16(max_version, "MaxVersion", 3, LAST),
};
#undef S
SCHEMA(api_versions_supported_feature, "SupportedFeatureKey");

#define S struct api_versions_finalized_feature
static const struct field api_versions_finalized_feature_fields[] = {
	STRING(name, "Name", 3, LAST),
	INT16(max_version_level, "MaxVersionLevel", 3, LAST),
	INT16(min_version_level, "MinVersionLevel", 3, LAST),
};
#undef S
SCHEMA(api_versions_finalized_feature, "FinalizedFeatureKey");

#define S struct api_versions_response
static const struct field api_versions_response_fields[] = {
	INT16(error_code, "ErrorCode", 0, LAST),
	ARRAY(api_keys, "ApiKeys", api_versions_range, 0, LAST),
	INT32(throttle_time_ms, "ThrottleTimeMs", 1, LAST, IGNORABLE),
	ARRAY(supported_features, "SupportedFeatures", api_versions_supported_feature, 3, LAST,
	      TAG(0), IGNORABLE),
	INT64(finalized_features_epoch, "FinalizedFeaturesEpoch", 3, LAST, TAG(1), DEFAULT(-1),
	      IGNORABLE),
	ARRAY(finalized_features, "FinalizedFeatures", api_versions_finalized_feature, 3, LAST,
	      TAG(2), IGNORABLE),
	BOOL(zk_migration_ready, "ZkMigrationReady", 3, LAST, TAG(3), IGNORABLE),
};
#undef S
SCHEMA(api_versions_response, "ApiVersionsResponse");
