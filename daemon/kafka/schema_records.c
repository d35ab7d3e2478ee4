// SPDX-License-Identifier: MIT
#include "schema_table.h"

/* DeleteRecords */

#define S struct delete_records_request_partition
static const struct field delete_records_request_partition_fields[] = {
	INT32(partition_index, "PartitionIndex", 0, LAST),
	INT64(offset, "Offset", 0, LAST),
};
#undef S
SCHEMA(delete_records_request_partition, "DeleteRecordsPartition");

#define S struct delete_records_request_topic
static const struct field delete_records_request_topic_fields[] = {
	STRING(name, "Name", 0, LAST),
	ARRAY(partitions, "Partitions", delete_records_request_partition, 0, LAST),
};
#undef S
SCHEMA(delete_records_request_topic, "DeleteRecordsTopic");

#define S struct delete_records_request
static const struct field delete_records_request_fields[] = {
	ARRAY(topics, "Topics", delete_records_request_topic, 0, LAST),
	INT32(timeout_ms, "TimeoutMs", 0, LAST),
};
#undef S
SCHEMA(delete_records_request, "DeleteRecordsRequest");

#define S struct delete_records_response_partition
static const struct field delete_records_response_partition_fields[] = {
	INT32(partition_index, "PartitionIndex", 0, LAST),
	INT64(low_watermark, "LowWatermark", 0, LAST),
	INT16(error_code, "ErrorCode", 0, LAST),
};
#undef S
SCHEMA(delete_records_response_partition, "DeleteRecordsPartitionResult");

#define S struct delete_records_response_topic
static const struct field delete_records_response_topic_fields[] = {
	STRING(name, "Name", 0, LAST),
	ARRAY(partitions, "Partitions", delete_records_response_partition, 0, LAST),
};
#undef S
SCHEMA(delete_records_response_topic, "DeleteRecordsTopicResult");

#define S struct delete_records_response
static const struct field delete_records_response_fields[] = {
	INT32(throttle_time_ms, "ThrottleTimeMs", 0, LAST),
	ARRAY(topics, "Topics", delete_records_response_topic, 0, LAST),
};
#undef S
SCHEMA(delete_records_response, "DeleteRecordsResponse");
