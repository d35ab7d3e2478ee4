/* SPDX-License-Identifier: MIT */
#ifndef PLOG_ERROR_H
#define PLOG_ERROR_H

#include <stdint.h>

/*
 * Kafka's error numbers: (name, number, what a person reads in a log line or in the
 * error_message of an answer that has nothing more exact to say).
 */
#define KAFKA_ERRORS(X) \
	X(UNKNOWN_SERVER_ERROR, -1, "the broker met an error that it did not expect") \
	X(NONE, 0, "no error") \
	X(OFFSET_OUT_OF_RANGE, 1, "the offset is outside the partition's log") \
	X(CORRUPT_MESSAGE, 2, "the batch fails its CRC or its size is wrong") \
	X(UNKNOWN_TOPIC_OR_PARTITION, 3, "this broker has no such topic or partition") \
	X(INVALID_FETCH_SIZE, 4, "the fetch size is not valid") \
	X(LEADER_NOT_AVAILABLE, 5, "the partition has no leader at the moment") \
	X(NOT_LEADER_OR_FOLLOWER, 6, "this broker does not hold the partition in that role") \
	X(REQUEST_TIMED_OUT, 7, "the request was not finished in its time") \
	X(BROKER_NOT_AVAILABLE, 8, "the broker is not available") \
	X(REPLICA_NOT_AVAILABLE, 9, "the replica is not available") \
	X(MESSAGE_TOO_LARGE, 10, "the batch is larger than max.message.bytes") \
	X(STALE_CONTROLLER_EPOCH, 11, "the controller has moved on") \
	X(OFFSET_METADATA_TOO_LARGE, 12, "the metadata of the offset is too long") \
	X(NETWORK_EXCEPTION, 13, "the connection ended before the answer") \
	X(COORDINATOR_LOAD_IN_PROGRESS, 14, "the coordinator is loading") \
	X(COORDINATOR_NOT_AVAILABLE, 15, "the coordinator is not available") \
	X(NOT_COORDINATOR, 16, "this broker is not the coordinator") \
	X(INVALID_TOPIC_EXCEPTION, 17, "the topic name is not valid") \
	X(RECORD_LIST_TOO_LARGE, 18, "the batch is larger than a segment may be") \
	X(NOT_ENOUGH_REPLICAS, 19, "fewer replicas are in sync than are required") \
	X(NOT_ENOUGH_REPLICAS_AFTER_APPEND, 20, \
	  "written, but fewer replicas are in sync than are required") \
	X(INVALID_REQUIRED_ACKS, 21, "acks must be -1, 0 or 1") \
	X(ILLEGAL_GENERATION, 22, "the group is in another generation") \
	X(INCONSISTENT_GROUP_PROTOCOL, 23, "the group uses other protocols") \
	X(INVALID_GROUP_ID, 24, "the group id is not valid") \
	X(UNKNOWN_MEMBER_ID, 25, "the group has no such member") \
	X(INVALID_SESSION_TIMEOUT, 26, "the session timeout is out of range") \
	X(REBALANCE_IN_PROGRESS, 27, "the group is rebalancing") \
	X(INVALID_COMMIT_OFFSET_SIZE, 28, "the offset commit is too large") \
	X(TOPIC_AUTHORIZATION_FAILED, 29, "not allowed on this topic") \
	X(GROUP_AUTHORIZATION_FAILED, 30, "not allowed on this group") \
	X(CLUSTER_AUTHORIZATION_FAILED, 31, "not allowed on this cluster") \
	X(INVALID_TIMESTAMP, 32, "a record's time is outside what the topic accepts") \
	X(UNSUPPORTED_SASL_MECHANISM, 33, "the SASL mechanism is not offered") \
	X(ILLEGAL_SASL_STATE, 34, "not a request for this state of the SASL handshake") \
	X(UNSUPPORTED_VERSION, 35, "this version of the API is not supported") \
	X(TOPIC_ALREADY_EXISTS, 36, "the topic exists already") \
	X(INVALID_PARTITIONS, 37, "the number of partitions is not valid") \
	X(INVALID_REPLICATION_FACTOR, 38, "the replication factor is not valid") \
	X(INVALID_REPLICA_ASSIGNMENT, 39, "the replica assignment is not valid") \
	X(INVALID_CONFIG, 40, "the configuration is not valid") \
	X(NOT_CONTROLLER, 41, "this broker is not the controller") \
	X(INVALID_REQUEST, 42, "the request contradicts itself") \
	X(UNSUPPORTED_FOR_MESSAGE_FORMAT, 43, "the message format cannot do this") \
	X(POLICY_VIOLATION, 44, "the policy of the broker or topic forbids this") \
	X(OUT_OF_ORDER_SEQUENCE_NUMBER, 45, "the sequence number is not the next one") \
	X(DUPLICATE_SEQUENCE_NUMBER, 46, "the sequence number was used before") \
	X(INVALID_PRODUCER_EPOCH, 47, "the producer's epoch is old") \
	X(INVALID_TXN_STATE, 48, "not possible in the state of the transaction") \
	X(INVALID_PRODUCER_ID_MAPPING, 49, "the producer id belongs to another transactional id") \
	X(INVALID_TRANSACTION_TIMEOUT, 50, "the transaction timeout is above the maximum") \
	X(CONCURRENT_TRANSACTIONS, 51, "another step of the transaction is running") \
	X(TRANSACTION_COORDINATOR_FENCED, 52, "the transaction coordinator is an old one") \
	X(TRANSACTIONAL_ID_AUTHORIZATION_FAILED, 53, "not allowed on this transactional id") \
	X(SECURITY_DISABLED, 54, "no security is configured") \
	X(OPERATION_NOT_ATTEMPTED, 55, "not tried, since another part of the request failed") \
	X(KAFKA_STORAGE_ERROR, 56, "the log's disk has failed") \
	X(LOG_DIR_NOT_FOUND, 57, "the log directory is not configured") \
	X(SASL_AUTHENTICATION_FAILED, 58, "the SASL authentication failed") \
	X(UNKNOWN_PRODUCER_ID, 59, "nothing is known about the producer id") \
	X(REASSIGNMENT_IN_PROGRESS, 60, "a reassignment is running") \
	X(DELEGATION_TOKEN_AUTH_DISABLED, 61, "delegation tokens are off") \
	X(DELEGATION_TOKEN_NOT_FOUND, 62, "no such delegation token") \
	X(DELEGATION_TOKEN_OWNER_MISMATCH, 63, "the delegation token is another owner's") \
	X(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, 64, "not allowed on this connection") \
	X(DELEGATION_TOKEN_AUTHORIZATION_FAILED, 65, "not allowed on this delegation token") \
	X(DELEGATION_TOKEN_EXPIRED, 66, "the delegation token has run out") \
	X(INVALID_PRINCIPAL_TYPE, 67, "the principal type is not supported") \
	X(NON_EMPTY_GROUP, 68, "the group has members") \
	X(GROUP_ID_NOT_FOUND, 69, "no such group") \
	X(FETCH_SESSION_ID_NOT_FOUND, 70, "no such fetch session") \
	X(INVALID_FETCH_SESSION_EPOCH, 71, "not the next epoch of the fetch session") \
	X(LISTENER_NOT_FOUND, 72, "the leader has no such listener") \
	X(TOPIC_DELETION_DISABLED, 73, "deleting topics is off") \
	X(FENCED_LEADER_EPOCH, 74, "the leader epoch is older than the broker's") \
	X(UNKNOWN_LEADER_EPOCH, 75, "the leader epoch is newer than the broker's") \
	X(UNSUPPORTED_COMPRESSION_TYPE, 76, "the compression is not possible in this version") \
	X(STALE_BROKER_EPOCH, 77, "the broker's epoch is old") \
	X(OFFSET_NOT_AVAILABLE, 78, "the new leader does not know its high watermark yet") \
	X(MEMBER_ID_REQUIRED, 79, "join again with the member id that is given here") \
	X(PREFERRED_LEADER_NOT_AVAILABLE, 80, "the preferred leader is not available") \
	X(GROUP_MAX_SIZE_REACHED, 81, "the group is full") \
	X(FENCED_INSTANCE_ID, 82, "another member has taken this group.instance.id") \
	X(ELIGIBLE_LEADERS_NOT_AVAILABLE, 83, "no replica may become leader") \
	X(ELECTION_NOT_NEEDED, 84, "the leader is the right one already") \
	X(NO_REASSIGNMENT_IN_PROGRESS, 85, "no reassignment is running") \
	X(GROUP_SUBSCRIBED_TO_TOPIC, 86, "the group reads this topic") \
	X(INVALID_RECORD, 87, "a record or its batch is not valid") \
	X(UNSTABLE_OFFSET_COMMIT, 88, "an offset commit is pending in a transaction") \
	X(THROTTLING_QUOTA_EXCEEDED, 89, "a quota is exceeded") \
	X(PRODUCER_FENCED, 90, "a newer producer has the same transactional id") \
	X(RESOURCE_NOT_FOUND, 91, "no such resource") \
	X(DUPLICATE_RESOURCE, 92, "the resource is named twice") \
	X(UNACCEPTABLE_CREDENTIAL, 93, "the credential is not acceptable") \
	X(INCONSISTENT_VOTER_SET, 94, "the voters differ") \
	X(INVALID_UPDATE_VERSION, 95, "the update version is not valid") \
	X(FEATURE_UPDATE_FAILED, 96, "the features could not be updated") \
	X(PRINCIPAL_DESERIALIZATION_FAILURE, 97, "the forwarded principal cannot be read") \
	X(SNAPSHOT_NOT_FOUND, 98, "no such snapshot") \
	X(POSITION_OUT_OF_RANGE, 99, "the position is outside the snapshot") \
	X(UNKNOWN_TOPIC_ID, 100, "this broker has no topic with that id") \
	X(DUPLICATE_BROKER_REGISTRATION, 101, "a broker with this id is registered") \
	X(BROKER_ID_NOT_REGISTERED, 102, "no broker with this id is registered") \
	X(INCONSISTENT_TOPIC_ID, 103, "the log belongs to another topic id") \
	X(INCONSISTENT_CLUSTER_ID, 104, "the request is for another cluster") \
	X(TRANSACTIONAL_ID_NOT_FOUND, 105, "no such transactional id") \
	X(FETCH_SESSION_TOPIC_ID_ERROR, 106, "the fetch session mixes names and ids of topics") \
	X(INELIGIBLE_REPLICA, 107, "the replica may not join the ISR") \
	X(NEW_LEADER_ELECTED, 108, "the change of the ISR has elected another leader") \
	X(OFFSET_MOVED_TO_TIERED_STORAGE, 109, "the offset is in tiered storage") \
	X(FENCED_MEMBER_EPOCH, 110, "the member's epoch is old") \
	X(UNRELEASED_INSTANCE_ID, 111, "the instance id is still in use") \
	X(UNSUPPORTED_ASSIGNOR, 112, "the assignor is not supported") \
	X(STALE_MEMBER_EPOCH, 113, "the member's epoch is not the current one") \
	X(MISMATCHED_ENDPOINT_TYPE, 114, "the request came to the wrong kind of endpoint") \
	X(UNSUPPORTED_ENDPOINT_TYPE, 115, "the kind of endpoint is not known") \
	X(UNKNOWN_CONTROLLER_ID, 116, "no such controller") \
	X(UNKNOWN_SUBSCRIPTION_ID, 117, "the subscription id is not the current one") \
	X(TELEMETRY_TOO_LARGE, 118, "the telemetry is too large") \
	X(INVALID_REGISTRATION, 119, "the registration is not valid") \
	X(TRANSACTION_ABORTABLE, 120, "the transaction has failed and must be aborted") \
	X(INVALID_RECORD_STATE, 121, "the record is in another state") \
	X(SHARE_SESSION_NOT_FOUND, 122, "no such share session") \
	X(INVALID_SHARE_SESSION_EPOCH, 123, "not the next epoch of the share session") \
	X(FENCED_STATE_EPOCH, 124, "the state's epoch is old") \
	X(INVALID_VOTER_KEY, 125, "the voter's key is not that of the receiver") \
	X(DUPLICATE_VOTER, 126, "the voter is one already") \
	X(VOTER_NOT_FOUND, 127, "no such voter") \
	X(INVALID_REGULAR_EXPRESSION, 128, "the regular expression is not valid") \
	X(REBOOTSTRAP_REQUIRED, 129, "the client must begin again from its bootstrap servers")

enum kafka_error {
#define X(name, number, text) KERR_##name = number,
	KAFKA_ERRORS(X)
#undef X
};

/* The name, as "INVALID_RECORD"; "UNKNOWN" for an unknown number. Never NULL. */
const char *error_name(int16_t error);

/* The sentence for people; "unknown error" for an unknown number. Never NULL. */
const char *error_text(int16_t error);

#endif
