// SPDX-License-Identifier: MIT
/* OffsetForLeaderEpoch: where did a leader epoch end? (KIP-101, KIP-320) */
#include <errno.h>

#include "../../uapi/linux/plog.h"
#include "../broker/broker.h"
#include "../broker/topics.h"
#include "../conn.h"
#include "../log/log.h"
#include "../request.h"
#include "error.h"
#include "schema.h"

static int16_t answer_log(struct log *log,
			  const struct offset_for_leader_epoch_request_partition *in,
			  struct offset_for_leader_epoch_response_partition *out)
{
	int32_t epoch = in->leader_epoch;
	struct log_state state;
	int64_t end;
	int ret;

	if (log_state(log, &state))
		return KERR_UNKNOWN_TOPIC_OR_PARTITION;
	if (state.state == PLOG_PARTITION_OPENING)
		return KERR_NOT_LEADER_OR_FOLLOWER;
	if (state.state != PLOG_PARTITION_ONLINE && state.state != PLOG_PARTITION_FENCED)
		return KERR_KAFKA_STORAGE_ERROR;
	if (in->current_leader_epoch >= 0 && in->current_leader_epoch < state.leader_epoch)
		return KERR_FENCED_LEADER_EPOCH;
	if (in->current_leader_epoch > state.leader_epoch)
		return KERR_UNKNOWN_LEADER_EPOCH;
	if (state.flags & PLOG_STATE_REPLICATED && !(state.flags & PLOG_STATE_LEADER))
		return KERR_NOT_LEADER_OR_FOLLOWER;
	ret = log_epoch_end(log, &epoch, &end);
	if (ret)
		return log_error(ret);
	out->leader_epoch = epoch;
	out->end_offset = end;
	return 0;
}

static int16_t answer(struct broker *b, struct kstr name,
		      const struct offset_for_leader_epoch_request_partition *in,
		      struct offset_for_leader_epoch_response_partition *out)
{
	struct topic *topic = topics_find(b->topics, name);
	int16_t error = KERR_UNKNOWN_TOPIC_OR_PARTITION;
	struct log *log;

	if (topic && in->partition >= 0 && (uint32_t)in->partition < topic->partitions) {
		log = topic->logs[in->partition];
		error = log ? answer_log(log, in, out) : KERR_KAFKA_STORAGE_ERROR;
	}
	topic_put(topic);
	return error;
}

void handle_offset_for_leader_epoch(struct request *req)
{
	const struct offset_for_leader_epoch_request *body = req->body;
	struct offset_for_leader_epoch_response *all;
	int32_t topics = body->topics.n < 0 ? 0 : body->topics.n;

	all = codec_new(&req->arena, &schema_offset_for_leader_epoch_response);
	if (!all)
		goto fail;
	all->topics.n = topics;
	all->topics.v = codec_new_array(&req->arena,
					&schema_offset_for_leader_epoch_response_topic, topics);
	if (!all->topics.v)
		goto fail;
	for (int32_t t = 0; t < topics; t++) {
		const struct offset_for_leader_epoch_request_topic *in = &body->topics.v[t];
		struct offset_for_leader_epoch_response_topic *out = &all->topics.v[t];
		int32_t count = in->partitions.n < 0 ? 0 : in->partitions.n;

		out->topic = in->topic;
		out->partitions.n = count;
		out->partitions.v = codec_new_array(&req->arena,
			&schema_offset_for_leader_epoch_response_partition, count);
		if (!out->partitions.v)
			goto fail;
		for (int32_t i = 0; i < count; i++) {
			struct offset_for_leader_epoch_response_partition *one =
				&out->partitions.v[i];

			one->partition = in->partitions.v[i].partition;
			one->leader_epoch = -1;
			one->end_offset = -1;
			one->error_code = answer(request_broker(req), in->topic,
						 &in->partitions.v[i], one);
		}
	}
	request_answer(req, all);
	return;
fail:
	request_fail(req, "OffsetForLeaderEpoch names more partitions than a request may hold in "
		     "memory");
}
