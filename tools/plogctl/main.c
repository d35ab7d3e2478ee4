// SPDX-License-Identifier: MIT
/* plogctl: the table of commands. */
#include "plogctl.h"

#include <signal.h>
#include <string.h>

const struct command commands[] = {
	{
		.group = "instance", .verb = "set", .usage = "[--data-dir DIR] [OPTION...]",
		.summary = "serve the topics of a data directory",
		.text = "Locks DIR, hands it to the module and puts every partition found there\n"
			"into service, then waits until all are online. A directory of Apache\n"
			"Kafka is adopted. Setting the same directory again puts into service\n"
			"what is not yet. The other options alone change what runs.",
		.options = instance_set_options, .run = instance_set,
	}, {
		.group = "instance", .verb = "show", .usage = "",
		.summary = "what is served, and by which module and daemon",
		.run = instance_show,
	}, {
		.group = "instance", .verb = "stop", .usage = "[--timeout SECONDS]",
		.summary = "close all partitions cleanly and let go of the data directory",
		.options = instance_stop_options, .run = instance_stop,
	}, {
		.group = "topic", .verb = "create", .usage = "NAME [OPTION...]",
		.summary = "make a topic",
		.text = "With a daemon (plogd) running, it makes the topic; without, plogctl\n"
			"does. Partition N appears as /dev/plog/NAME/N.",
		.options = topic_create_options, .args_min = 1, .args_max = 1,
		.run = topic_create,
	}, {
		.group = "topic", .verb = "list", .usage = "",
		.summary = "all topics, with partitions and size",
		.run = topic_list,
	}, {
		.group = "topic", .verb = "describe", .usage = "NAME [--all]",
		.summary = "a topic's partitions, owner and configuration",
		.text = "Configuration keys that nothing acts on yet are marked \"stored\".",
		.options = topic_describe_options, .args_min = 1, .args_max = 1,
		.run = topic_describe,
	}, {
		.group = "topic", .verb = "alter", .usage = "NAME OPTION...",
		.summary = "change a topic's configuration, owner or number of partitions",
		.text = "The number of partitions can only grow. With --partition N, --owner and\n"
			"--mode are of that partition only.",
		.options = topic_alter_options, .args_min = 1, .args_max = 1,
		.run = topic_alter,
	}, {
		.group = "topic", .verb = "delete", .usage = "NAME",
		.summary = "remove a topic with all its records",
		.args_min = 1, .args_max = 1, .run = topic_delete,
	}, {
		.group = "topic", .verb = "configs", .usage = "[KEY]",
		.summary = "the configuration keys that a topic can have",
		.args_max = 1, .run = topic_configs,
	}, {
		.group = "partition", .verb = "show", .usage = "[TOPIC [PARTITION]]",
		.summary = "partitions with state and offsets",
		.args_max = 2, .run = partition_show,
	}, {
		.group = "partition", .verb = "roll", .usage = "TOPIC PARTITION",
		.summary = "begin a new segment",
		.text = "Nothing happens while the last one is still empty.",
		.args_min = 2, .args_max = 2, .run = partition_roll,
	}, {
		.group = "partition", .verb = "delete-records",
		.usage = "TOPIC PARTITION OFFSET|high-watermark",
		.summary = "let a log start later",
		.text = "What lies below OFFSET cannot be read any more. The new start is on stable\n"
			"storage when this returns, and never moves back. Not for internal topics\n"
			"and those whose cleanup.policy has no \"delete\".",
		.args_min = 3, .args_max = 3, .run = partition_delete_records,
	}, {
		.group = "segment", .verb = "list", .usage = "TOPIC PARTITION",
		.summary = "the segments of a partition",
		.args_min = 2, .args_max = 2, .run = segment_list,
	}, {
		.group = "epoch", .verb = "list", .usage = "TOPIC PARTITION",
		.summary = "the leader epochs of a partition, and where they begin",
		.args_min = 2, .args_max = 2, .run = epoch_list,
	}, {
		.group = "segment", .verb = "retired", .usage = "[TOPIC [PARTITION]]",
		.summary = "segments that left a log and whose files are still there",
		.text = "delayed: file.delete.delay.ms is not over. held: somebody reads it. ready:\n"
			"to be deleted. emptied: the same, and the module has given the room back,\n"
			"as no daemon is there. taken: being deleted.",
		.args_max = 2, .run = segment_retired,
	}, {
		.group = "segment", .verb = "clean", .usage = "[TOPIC [PARTITION]]",
		.summary = "delete files of retired segments, without a daemon",
		.text = "A daemon does so by itself.",
		.args_max = 2, .run = segment_clean,
	}, {
		.group = "retention", .verb = "run", .usage = "[TOPIC [PARTITION]]",
		.summary = "let go now what retention does not keep",
		.text = "Otherwise the module looks every --retention-check-ms of \"instance set\".\n"
			"Goes on in the background.",
		.args_max = 2, .run = retention_run,
	}, {
		.group = "stats", .usage = "[TOPIC [PARTITION]] [--interval SECONDS [--count N]]",
		.summary = "counters since the partitions were opened",
		.text = "With --interval prints, again and again, what was counted meanwhile.",
		.options = stats_options, .args_max = 2, .run = stats_show,
	}, {
		.group = "monitor", .usage = "[--count N] [--timeout SECONDS]",
		.summary = "events as they come, one line each",
		.text = "With --json, one JSON object a line.",
		.options = monitor_options, .run = monitor,
	}, {
		.group = "version", .usage = "",
		.summary = "versions of plogctl and the module",
		.run = version_show,
	}, {
		.group = "help", .usage = "[COMMAND...]",
		.summary = "this text, or a command's",
		.args_max = 2, .run = help_show,
	},
	{ 0 }
};

volatile bool interrupted;

static void on_signal(int signal)
{
	(void)signal;
	interrupted = true;
}

void interrupt_catch(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int version_show(struct ctl *ctl)
{
	struct instance_info info = { 0 };
	struct plog_error err = { "" };
	struct net *net = NULL;
	int ret;

	ret = net_open(&net, &err);
	if (!ret)
		ret = kernel_instance_get(net, &info, &err);
	net_close(net);
	if (ctl->json) {
		struct json_object *o = json_new();

		json_text(o, "plogctl", PLOGCTL_VERSION);
		if (!ret)
			json_text(o, "module", info.version);
		json_print(o, false);
		return EXIT_OK;
	}
	line("plogctl", "%s", PLOGCTL_VERSION);
	line("module", "%s", ret ? "not loaded" : info.version);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	struct ctl ctl = { 0 };
	int status;

	status = options_parse(&ctl, argc, argv);
	if (status < 0)
		status = ctl.command->run(&ctl);
	options_release(&ctl);
	if ((fflush(stdout) || ferror(stdout)) && status == EXIT_OK) {
		warn("cannot write the output");
		status = EXIT_FAILED;
	}
	return status;
}
