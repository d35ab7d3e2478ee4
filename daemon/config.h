/* SPDX-License-Identifier: MIT */
#ifndef PLOG_CONFIG_H
#define PLOG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "../tools/libplog/properties.h"

/*
 * The daemon's configuration: a file of Kafka's server.properties keys. Once read, a struct
 * config never changes; a reload makes a new one and the old one is kept, because any thread
 * may still look at it.
 */
#define CONFIG_LISTENERS_MAX 16

struct config_listener {
	char name[64];		/* as in listeners: "PLAINTEXT", "EXTERNAL" */
	char host[256];		/* as written; empty and 0.0.0.0 and :: are every address */
	uint16_t port;		/* 0: any free one */
	/* what Metadata tells; host empty: the address that the client came to */
	char advertised_host[256];
	int32_t advertised_port;	/* 0: the port that is listened on */
};

enum config_engine {
	CONFIG_ENGINE_MODULE,
	CONFIG_ENGINE_PROCESS,
};

struct config {
	struct config *previous;	/* the one that a reload has replaced */

	struct config_listener listeners[CONFIG_LISTENERS_MAX];
	unsigned int nlisteners;

	int64_t node_id;
	char *rack;		/* broker.rack; NULL if not set */
	char *log_dir;
	char *log_dir_key;	/* the key that it stood under, for messages */
	int64_t engine;		/* enum config_engine */

	int64_t network_threads;
	int64_t io_threads;
	int64_t listen_backlog;
	int64_t send_buffer;	/* bytes; -1: the system's */
	int64_t receive_buffer;
	int64_t request_max;	/* bytes of one request */
	int64_t request_memory;	/* bytes of all requests that are held; -1: by rule */
	int64_t request_arrival_ms; /* how long a request may take to arrive, see conn.h */
	int64_t idle_max_ms;	/* -1: for ever */
	int64_t connections_max;
	int64_t connections_max_per_ip;

	int64_t num_partitions;
	int64_t replication_factor;
	bool auto_create;
	bool delete_enable;
	int64_t fetch_max;	/* bytes of one Fetch answer */
	int64_t fetch_sessions;	/* most incremental fetch sessions */
	int64_t retention_check_ms; /* how often retention looks at every log */
	int64_t drain_ms;	/* how long the end waits for requests in flight */

	/* limits of the instance, 0: as they are */
	int64_t max_partitions;
	int64_t max_waiters;
	int64_t max_descriptors;
	int64_t max_append_bytes;

	struct properties properties;	/* as read, for topicconfig and broker-describe */
	struct properties topic_defaults; /* by topic key */
};

/*
 * Read the file @path, or take only defaults if @path is NULL, and then the @noverrides
 * strings "key=value" over it.
 * 0 and *@out; or -EINVAL, -ENOENT, -ENOMEM, ..., with a sentence in @err that names file,
 * line, key and what is allowed. A key that is not known is a line of warning and no error.
 */
int config_read(const char *path, const char *const *overrides, unsigned int noverrides,
		struct config **out, struct plog_error *err);

/* Free @config and all that came before it. NULL is fine. */
void config_free(struct config *config);

/*
 * Compare what cannot change while the daemon runs: for each such key that differs one line
 * of warning, and @next gets the value of @now. The number of them.
 */
unsigned int config_keep(struct config *next, const struct config *now);

/* Of @request_memory, -1 replaced by what it means. */
uint64_t config_request_memory(const struct config *config);

/* Is @host one that stands for every address of the machine? */
bool config_host_any(const char *host);

#endif
