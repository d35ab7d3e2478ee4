// SPDX-License-Identifier: MIT
#include "schema.h"

/* key, name, versions offered, the lowest served, the first flexible one */
const struct api api_table[] = {
	/*
	 * Produce 0 to 2 carry the old message formats and are refused; they are offered all
	 * the same, because librdkafka before 2.11 silently stops compressing otherwise.
	 */
	{ API_PRODUCE, "Produce", 0, 13, 3, 9, false,
	  &schema_produce_request, &schema_produce_response },
	{ API_FETCH, "Fetch", 4, 18, 4, 12, false,
	  &schema_fetch_request, &schema_fetch_response },
	{ API_LIST_OFFSETS, "ListOffsets", 1, 11, 1, 6, false,
	  &schema_list_offsets_request, &schema_list_offsets_response },
	{ API_METADATA, "Metadata", 0, 13, 0, 9, false,
	  &schema_metadata_request, &schema_metadata_response },
	/* librdkafka to 2.0 compresses with lz4 only if this is offered, groups or not */
	{ API_FIND_COORDINATOR, "FindCoordinator", 0, 2, 0, 3, false,
	  &schema_find_coordinator_request, &schema_find_coordinator_response },
	/* a client must be able to read this answer before it knows any version */
	{ API_API_VERSIONS, "ApiVersions", 0, 4, 0, 3, true,
	  &schema_api_versions_request, &schema_api_versions_response },
	{ API_CREATE_TOPICS, "CreateTopics", 2, 7, 2, 5, false,
	  &schema_create_topics_request, &schema_create_topics_response },
	{ API_DELETE_TOPICS, "DeleteTopics", 1, 6, 1, 4, false,
	  &schema_delete_topics_request, &schema_delete_topics_response },
	{ API_DELETE_RECORDS, "DeleteRecords", 0, 2, 0, 2, false,
	  &schema_delete_records_request, &schema_delete_records_response },
	{ API_OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 2, 4, 2, 4, false,
	  &schema_offset_for_leader_epoch_request, &schema_offset_for_leader_epoch_response },
};

const unsigned int api_count = sizeof(api_table) / sizeof(api_table[0]);
