/* SPDX-License-Identifier: MIT */
#ifndef PLOG_SCHEMA_H
#define PLOG_SCHEMA_H

#include "codec.h"

/*
 * The messages of the APIs that plogd speaks, as C structs, one for each level. Names are
 * Kafka's in our spelling. A comment gives the versions of a field that not all have; the
 * tables in schema*.c are what the codec goes by.
 *
 * To add an API: its structs here, its tables in a schema_*.c, one row in api_table[].
 */
enum api_key {
	API_PRODUCE = 0,
	API_FETCH = 1,
	API_LIST_OFFSETS = 2,
	API_METADATA = 3,
	API_FIND_COORDINATOR = 10,
	API_API_VERSIONS = 18,
	API_CREATE_TOPICS = 19,
	API_DELETE_TOPICS = 20,
	API_DELETE_RECORDS = 21,
	API_OFFSET_FOR_LEADER_EPOCH = 23,
};

/* Where a client finds a broker: Produce 10+ and Fetch 16+ hand these out with a new leader. */
struct node_endpoint {
	int32_t node_id;
	struct kstr host;
	int32_t port;
	struct kstr rack;		/* may be null */
};

struct leader_id_and_epoch {
	int32_t leader_id;		/* -1 */
	int32_t leader_epoch;		/* -1 */
};

/* Produce */

struct produce_request_partition {
	int32_t index;
	struct krecords records;	/* may be null */
};

struct produce_request_topic {
	struct kstr name;		/* to 12 */
	struct kuuid topic_id;		/* 13+ */
	KARRAY(struct produce_request_partition) partitions;
};

struct produce_request {
	struct kstr transactional_id;	/* 3+, may be null */
	int16_t acks;			/* -1, 0, 1 */
	int32_t timeout_ms;
	KARRAY(struct produce_request_topic) topics;
};

struct produce_record_error {
	int32_t batch_index;		/* of the record in the batch */
	struct kstr message;		/* may be null */
};

struct produce_response_partition {
	int32_t index;
	int16_t error_code;
	int64_t base_offset;
	int64_t log_append_time_ms;	/* 2+; -1 on a CreateTime topic */
	int64_t log_start_offset;	/* 5+; -1 */
	KARRAY(struct produce_record_error) record_errors;	/* 8+ */
	struct kstr error_message;	/* 8+, may be null */
	struct leader_id_and_epoch current_leader;	/* 10+, tagged */
};

struct produce_response_topic {
	struct kstr name;		/* to 12 */
	struct kuuid topic_id;		/* 13+ */
	KARRAY(struct produce_response_partition) partitions;
};

struct produce_response {
	KARRAY(struct produce_response_topic) topics;
	int32_t throttle_time_ms;	/* 1+ */
	KARRAY(struct node_endpoint) node_endpoints;	/* 10+, tagged */
};

/* Fetch */

struct fetch_request_partition {
	int32_t partition;
	int32_t current_leader_epoch;	/* 9+; -1 */
	int64_t fetch_offset;
	int32_t last_fetched_epoch;	/* 12+; -1 */
	int64_t log_start_offset;	/* 5+; -1, only followers set it */
	int32_t partition_max_bytes;
	struct kuuid replica_directory_id;	/* 17+, tagged, followers */
	int64_t high_watermark;		/* 18+, tagged, followers; INT64_MAX */
};

struct fetch_request_topic {
	struct kstr topic;		/* to 12 */
	struct kuuid topic_id;		/* 13+ */
	KARRAY(struct fetch_request_partition) partitions;
};

struct fetch_forgotten_topic {
	struct kstr topic;		/* 7 to 12 */
	struct kuuid topic_id;		/* 13+ */
	KARRAY(int32_t) partitions;
};

struct fetch_replica_state {
	int32_t replica_id;		/* -1 */
	int64_t replica_epoch;		/* -1 */
};

struct fetch_request {
	struct kstr cluster_id;		/* 12+, tagged, may be null */
	int32_t replica_id;		/* to 14; -1 is a consumer */
	struct fetch_replica_state replica_state;	/* 15+, tagged */
	int32_t max_wait_ms;
	int32_t min_bytes;
	int32_t max_bytes;		/* INT32_MAX */
	int8_t isolation_level;		/* 0 uncommitted, 1 committed */
	int32_t session_id;		/* 7+; 0 */
	int32_t session_epoch;		/* 7+; -1 is sessionless */
	KARRAY(struct fetch_request_topic) topics;
	KARRAY(struct fetch_forgotten_topic) forgotten_topics;	/* 7+ */
	struct kstr rack_id;		/* 11+ */
};

struct fetch_diverging_epoch {
	int32_t epoch;			/* -1 */
	int64_t end_offset;		/* -1 */
};

struct fetch_snapshot_id {
	int64_t end_offset;		/* -1 */
	int32_t epoch;			/* -1 */
};

struct fetch_aborted_transaction {
	int64_t producer_id;
	int64_t first_offset;
};

struct fetch_response_partition {
	int32_t partition_index;
	int16_t error_code;
	int64_t high_watermark;
	int64_t last_stable_offset;	/* -1 */
	int64_t log_start_offset;	/* 5+; -1 */
	struct fetch_diverging_epoch diverging_epoch;	/* 12+, tagged */
	struct leader_id_and_epoch current_leader;	/* 12+, tagged */
	struct fetch_snapshot_id snapshot_id;		/* 12+, tagged */
	KARRAY(struct fetch_aborted_transaction) aborted_transactions;	/* may be null */
	int32_t preferred_read_replica;	/* 11+; -1 */
	struct krecords records;	/* may be null; may be an extent */
};

struct fetch_response_topic {
	struct kstr topic;		/* to 12 */
	struct kuuid topic_id;		/* 13+ */
	KARRAY(struct fetch_response_partition) partitions;
};

struct fetch_response {
	int32_t throttle_time_ms;
	int16_t error_code;		/* 7+ */
	int32_t session_id;		/* 7+ */
	KARRAY(struct fetch_response_topic) topics;
	KARRAY(struct node_endpoint) node_endpoints;	/* 16+, tagged */
};

/* ListOffsets */

/* Timestamps that stand for a place and not for a time. */
enum list_offsets_timestamp {
	LIST_OFFSETS_LATEST = -1,
	LIST_OFFSETS_EARLIEST = -2,
	LIST_OFFSETS_MAX_TIMESTAMP = -3,	/* 7+ */
	LIST_OFFSETS_EARLIEST_LOCAL = -4,	/* 8+ */
	LIST_OFFSETS_LATEST_TIERED = -5,	/* 9+ */
	LIST_OFFSETS_EARLIEST_PENDING_UPLOAD = -6,	/* 11+, KIP-1023 */
};

struct list_offsets_request_partition {
	int32_t partition_index;
	int32_t current_leader_epoch;	/* 4+; -1 */
	int64_t timestamp;		/* ms, or an enum list_offsets_timestamp */
};

struct list_offsets_request_topic {
	struct kstr name;
	KARRAY(struct list_offsets_request_partition) partitions;
};

struct list_offsets_request {
	int32_t replica_id;		/* -1 is a consumer */
	int8_t isolation_level;		/* 2+ */
	KARRAY(struct list_offsets_request_topic) topics;
	int32_t timeout_ms;		/* 10+ */
};

struct list_offsets_response_partition {
	int32_t partition_index;
	int16_t error_code;
	int64_t timestamp;		/* -1 */
	int64_t offset;			/* -1 */
	int32_t leader_epoch;		/* 4+; -1 */
};

struct list_offsets_response_topic {
	struct kstr name;
	KARRAY(struct list_offsets_response_partition) partitions;
};

struct list_offsets_response {
	int32_t throttle_time_ms;	/* 2+ */
	KARRAY(struct list_offsets_response_topic) topics;
};

/* Metadata */

struct metadata_request_topic {
	struct kuuid topic_id;		/* 10+ */
	struct kstr name;		/* may be null from 10 */
};

struct metadata_request {
	/* all topics: empty in version 0, null from 1 */
	KARRAY(struct metadata_request_topic) topics;
	bool allow_auto_topic_creation;	/* 4+; true */
	bool include_cluster_authorized_operations;	/* 8 to 10 */
	bool include_topic_authorized_operations;	/* 8+ */
};

struct metadata_broker {
	int32_t node_id;
	struct kstr host;
	int32_t port;
	struct kstr rack;		/* 1+, may be null */
};

struct metadata_partition {
	int16_t error_code;
	int32_t partition_index;
	int32_t leader_id;
	int32_t leader_epoch;		/* 7+; -1 */
	KARRAY(int32_t) replica_nodes;
	KARRAY(int32_t) isr_nodes;
	KARRAY(int32_t) offline_replicas;	/* 5+ */
};

struct metadata_topic {
	int16_t error_code;
	struct kstr name;		/* may be null from 12 */
	struct kuuid topic_id;		/* 10+ */
	bool is_internal;		/* 1+ */
	KARRAY(struct metadata_partition) partitions;
	int32_t topic_authorized_operations;	/* 8+; INT32_MIN is "not asked for" */
};

struct metadata_response {
	int32_t throttle_time_ms;	/* 3+ */
	KARRAY(struct metadata_broker) brokers;
	struct kstr cluster_id;		/* 2+, may be null */
	int32_t controller_id;		/* 1+; -1 */
	KARRAY(struct metadata_topic) topics;
	int32_t cluster_authorized_operations;	/* 8 to 10; INT32_MIN is "not asked for" */
	int16_t error_code;		/* 13+ */
};

/* FindCoordinator */

struct find_coordinator_request {
	struct kstr key;
	int8_t key_type;		/* 1+; 0 group, 1 transaction */
};

struct find_coordinator_response {
	int32_t throttle_time_ms;	/* 1+ */
	int16_t error_code;
	struct kstr error_message;	/* 1+, may be null */
	int32_t node_id;
	struct kstr host;
	int32_t port;
};

/* ApiVersions */

struct api_versions_request {
	struct kstr client_software_name;	/* 3+ */
	struct kstr client_software_version;	/* 3+ */
};

struct api_versions_range {
	int16_t api_key;
	int16_t min_version;
	int16_t max_version;
};

struct api_versions_supported_feature {
	struct kstr name;
	int16_t min_version;
	int16_t max_version;
};

struct api_versions_finalized_feature {
	struct kstr name;
	int16_t max_version_level;
	int16_t min_version_level;
};

struct api_versions_response {
	int16_t error_code;
	KARRAY(struct api_versions_range) api_keys;
	int32_t throttle_time_ms;	/* 1+ */
	KARRAY(struct api_versions_supported_feature) supported_features;	/* 3+, tagged */
	int64_t finalized_features_epoch;	/* 3+, tagged; -1 */
	KARRAY(struct api_versions_finalized_feature) finalized_features;	/* 3+, tagged */
	bool zk_migration_ready;	/* 3+, tagged */
};

/* CreateTopics */

struct create_topics_assignment {
	int32_t partition_index;
	KARRAY(int32_t) broker_ids;
};

struct create_topics_config {
	struct kstr name;
	struct kstr value;		/* may be null */
};

struct create_topics_request_topic {
	struct kstr name;
	int32_t num_partitions;		/* -1: the broker's default, or by assignments */
	int16_t replication_factor;	/* -1 likewise */
	KARRAY(struct create_topics_assignment) assignments;
	KARRAY(struct create_topics_config) configs;
};

struct create_topics_request {
	KARRAY(struct create_topics_request_topic) topics;
	int32_t timeout_ms;		/* 60000 */
	bool validate_only;
};

struct create_topics_result_config {
	struct kstr name;
	struct kstr value;		/* may be null */
	bool read_only;
	int8_t config_source;		/* -1; 1 topic, 4 static broker, 5 default */
	bool is_sensitive;
};

struct create_topics_response_topic {
	struct kstr name;
	struct kuuid topic_id;		/* 7+ */
	int16_t error_code;
	struct kstr error_message;	/* may be null */
	int16_t topic_config_error_code;	/* 5+, tagged */
	int32_t num_partitions;		/* 5+; -1 */
	int16_t replication_factor;	/* 5+; -1 */
	KARRAY(struct create_topics_result_config) configs;	/* 5+, may be null */
};

struct create_topics_response {
	int32_t throttle_time_ms;
	KARRAY(struct create_topics_response_topic) topics;
};

/* DeleteTopics */

struct delete_topics_state {
	struct kstr name;		/* null: by id */
	struct kuuid topic_id;
};

struct delete_topics_request {
	KARRAY(struct delete_topics_state) topics;	/* 6+ */
	KARRAY(struct kstr) topic_names;		/* to 5 */
	int32_t timeout_ms;
};

struct delete_topics_response_topic {
	struct kstr name;		/* may be null from 6 */
	struct kuuid topic_id;		/* 6+ */
	int16_t error_code;
	struct kstr error_message;	/* 5+, may be null */
};

struct delete_topics_response {
	int32_t throttle_time_ms;
	KARRAY(struct delete_topics_response_topic) topics;
};

/* DeleteRecords */

#define DELETE_RECORDS_HIGH_WATERMARK (-1)

struct delete_records_request_partition {
	int32_t partition_index;
	int64_t offset;			/* the new log start, or DELETE_RECORDS_HIGH_WATERMARK */
};

struct delete_records_request_topic {
	struct kstr name;
	KARRAY(struct delete_records_request_partition) partitions;
};

struct delete_records_request {
	KARRAY(struct delete_records_request_topic) topics;
	int32_t timeout_ms;
};

struct delete_records_response_partition {
	int32_t partition_index;
	int64_t low_watermark;		/* -1 with an error */
	int16_t error_code;
};

struct delete_records_response_topic {
	struct kstr name;
	KARRAY(struct delete_records_response_partition) partitions;
};

struct delete_records_response {
	int32_t throttle_time_ms;
	KARRAY(struct delete_records_response_topic) topics;
};

/* OffsetForLeaderEpoch */

struct offset_for_leader_epoch_request_partition {
	int32_t partition;
	int32_t current_leader_epoch;	/* -1 */
	int32_t leader_epoch;		/* asked for */
};

struct offset_for_leader_epoch_request_topic {
	struct kstr topic;
	KARRAY(struct offset_for_leader_epoch_request_partition) partitions;
};

struct offset_for_leader_epoch_request {
	int32_t replica_id;		/* 3+; -1 is a consumer, -2 asks for itself */
	KARRAY(struct offset_for_leader_epoch_request_topic) topics;
};

struct offset_for_leader_epoch_response_partition {
	int16_t error_code;
	int32_t partition;
	int32_t leader_epoch;		/* the largest not above the one asked for; -1 */
	int64_t end_offset;		/* where the next one begins; -1 */
};

struct offset_for_leader_epoch_response_topic {
	struct kstr topic;
	KARRAY(struct offset_for_leader_epoch_response_partition) partitions;
};

struct offset_for_leader_epoch_response {
	int32_t throttle_time_ms;
	KARRAY(struct offset_for_leader_epoch_response_topic) topics;
};

/* The tables. A struct inside a message has its own, for codec_new_array(). */
extern const struct schema schema_node_endpoint;
extern const struct schema schema_leader_id_and_epoch;

extern const struct schema schema_produce_request;
extern const struct schema schema_produce_request_topic;
extern const struct schema schema_produce_request_partition;
extern const struct schema schema_produce_response;
extern const struct schema schema_produce_response_topic;
extern const struct schema schema_produce_response_partition;
extern const struct schema schema_produce_record_error;

extern const struct schema schema_fetch_request;
extern const struct schema schema_fetch_request_topic;
extern const struct schema schema_fetch_request_partition;
extern const struct schema schema_fetch_forgotten_topic;
extern const struct schema schema_fetch_response;
extern const struct schema schema_fetch_response_topic;
extern const struct schema schema_fetch_response_partition;
extern const struct schema schema_fetch_aborted_transaction;

extern const struct schema schema_list_offsets_request;
extern const struct schema schema_list_offsets_request_topic;
extern const struct schema schema_list_offsets_request_partition;
extern const struct schema schema_list_offsets_response;
extern const struct schema schema_list_offsets_response_topic;
extern const struct schema schema_list_offsets_response_partition;

extern const struct schema schema_metadata_request;
extern const struct schema schema_metadata_request_topic;
extern const struct schema schema_metadata_response;
extern const struct schema schema_metadata_broker;
extern const struct schema schema_metadata_topic;
extern const struct schema schema_metadata_partition;

extern const struct schema schema_find_coordinator_request;
extern const struct schema schema_find_coordinator_response;

extern const struct schema schema_api_versions_request;
extern const struct schema schema_api_versions_response;
extern const struct schema schema_api_versions_range;
extern const struct schema schema_api_versions_supported_feature;
extern const struct schema schema_api_versions_finalized_feature;

extern const struct schema schema_create_topics_request;
extern const struct schema schema_create_topics_request_topic;
extern const struct schema schema_create_topics_assignment;
extern const struct schema schema_create_topics_config;
extern const struct schema schema_create_topics_response;
extern const struct schema schema_create_topics_response_topic;
extern const struct schema schema_create_topics_result_config;

extern const struct schema schema_offset_for_leader_epoch_request;
extern const struct schema schema_offset_for_leader_epoch_request_topic;
extern const struct schema schema_offset_for_leader_epoch_request_partition;
extern const struct schema schema_offset_for_leader_epoch_response;
extern const struct schema schema_offset_for_leader_epoch_response_topic;
extern const struct schema schema_offset_for_leader_epoch_response_partition;

extern const struct schema schema_delete_topics_request;
extern const struct schema schema_delete_topics_state;
extern const struct schema schema_delete_topics_response;
extern const struct schema schema_delete_topics_response_topic;

extern const struct schema schema_delete_records_request;
extern const struct schema schema_delete_records_request_topic;
extern const struct schema schema_delete_records_request_partition;
extern const struct schema schema_delete_records_response;
extern const struct schema schema_delete_records_response_topic;
extern const struct schema schema_delete_records_response_partition;

#endif
