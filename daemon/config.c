// SPDX-License-Identifier: MIT
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tools/libplog/topicconfig.h"
#include "say.h"

enum kind { INT, BOOL, TEXT, ENGINE };

struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	int64_t min, max, def;
	bool reload;		/* may change while the daemon runs */
	const char *synonym;	/* an older name of Kafka's */
};

#define KEY(name, kind, member, ...) { name, kind, offsetof(struct config, member), __VA_ARGS__ }

/* Ranges and defaults are Kafka's where the key is. */
static const struct key keys[] = {
	KEY("node.id", INT, node_id, 0, INT32_MAX, 0, false, "broker.id"),
	KEY("broker.rack", TEXT, rack, 0, 0, 0, true, NULL),
	KEY("log.dirs", TEXT, log_dir, 0, 0, 0, false, "log.dir"),
	KEY("plog.engine", ENGINE, engine, 0, 0, CONFIG_ENGINE_MODULE, false, NULL),
	KEY("num.network.threads", INT, network_threads, 1, 256, 0, false, NULL),
	KEY("num.io.threads", INT, io_threads, 1, 1024, 8, false, NULL),
	KEY("socket.listen.backlog.size", INT, listen_backlog, 1, INT32_MAX, 50, false, NULL),
	KEY("socket.send.buffer.bytes", INT, send_buffer, -1, INT32_MAX, 102400, false, NULL),
	KEY("socket.receive.buffer.bytes", INT, receive_buffer, -1, INT32_MAX, 102400, false,
	    NULL),
	KEY("socket.request.max.bytes", INT, request_max, 1, INT32_MAX, 104857600, true, NULL),
	KEY("queued.max.request.bytes", INT, request_memory, -1, INT64_MAX, -1, true, NULL),
	KEY("plog.request.arrival.ms", INT, request_arrival_ms, 100, INT32_MAX, 30000, true,
	    NULL),
	KEY("connections.max.idle.ms", INT, idle_max_ms, -1, INT64_MAX, 600000, true, NULL),
	KEY("max.connections", INT, connections_max, 0, INT32_MAX, INT32_MAX, true, NULL),
	KEY("max.connections.per.ip", INT, connections_max_per_ip, 0, INT32_MAX, INT32_MAX,
	    true, NULL),
	KEY("num.partitions", INT, num_partitions, 1, 65536, 1, true, NULL),
	KEY("default.replication.factor", INT, replication_factor, 1, INT16_MAX, 1, true, NULL),
	KEY("auto.create.topics.enable", BOOL, auto_create, 0, 0, true, true, NULL),
	KEY("delete.topic.enable", BOOL, delete_enable, 0, 0, true, true, NULL),
	KEY("fetch.max.bytes", INT, fetch_max, 1024, INT32_MAX, 57671680, true, NULL),
	KEY("max.incremental.fetch.session.cache.slots", INT, fetch_sessions, 0, INT32_MAX, 1000,
	    true, NULL),
	KEY("log.retention.check.interval.ms", INT, retention_check_ms, 1, INT64_MAX, 300000, true,
	    NULL),
	KEY("plog.drain.ms", INT, drain_ms, 0, INT32_MAX, 10000, true, NULL),
	KEY("plog.max.partitions", INT, max_partitions, 0, 1048576, 0, false, NULL),
	KEY("plog.max.waiters", INT, max_waiters, 0, 1048576, 0, false, NULL),
	KEY("plog.max.descriptors", INT, max_descriptors, 0, INT32_MAX, 0, false, NULL),
	KEY("plog.max.append.bytes", INT, max_append_bytes, 0, 67108864, 0, false, NULL),
};

#define NKEYS (sizeof(keys) / sizeof(keys[0]))

/* Read by hand below. */
static const char *const listener_keys[] = {
	"listeners", "advertised.listeners", "listener.security.protocol.map",
};

static int64_t *number_at(struct config *c, const struct key *key)
{
	return (int64_t *)((char *)c + key->offset);
}

static bool *bool_at(struct config *c, const struct key *key)
{
	return (bool *)((char *)c + key->offset);
}

static char **text_at(struct config *c, const struct key *key)
{
	return (char **)((char *)c + key->offset);
}

/* "file:12: key=value": where the operator has to look. */
static int wrong(struct plog_error *err, const char *path, const struct property *p,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static int wrong(struct plog_error *err, const char *path, const struct property *p,
		 const char *fmt, ...)
{
	char why[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (p->line && path)
		return plog_error_set(err, -EINVAL, "%s:%u: %s=%.100s: %s", path, p->line, p->key,
				      p->value, why);
	return plog_error_set(err, -EINVAL, "%s=%.100s: %s", p->key, p->value, why);
}

static int parse_number(const char *text, int64_t *out)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	if (!*text)
		return -1;
	errno = 0;
	*out = strtoll(text, &end, 10);
	while (isspace((unsigned char)*end))
		end++;
	return errno || *end ? -1 : 0;
}

static int set_key(struct config *c, const struct key *key, const struct property *p,
		   const char *path, struct plog_error *err)
{
	int64_t n;

	switch (key->kind) {
	case INT:
		if (parse_number(p->value, &n))
			return wrong(err, path, p, "must be a whole number from %" PRId64
				     " to %" PRId64, key->min, key->max);
		if (n < key->min || n > key->max)
			return wrong(err, path, p, "out of range: must be from %" PRId64
				     " to %" PRId64, key->min, key->max);
		*number_at(c, key) = n;
		return 0;
	case BOOL:
		if (!strcasecmp(p->value, "true"))
			*bool_at(c, key) = true;
		else if (!strcasecmp(p->value, "false"))
			*bool_at(c, key) = false;
		else
			return wrong(err, path, p, "must be true or false");
		return 0;
	case ENGINE:
		if (!strcmp(p->value, "module"))
			*number_at(c, key) = CONFIG_ENGINE_MODULE;
		else if (!strcmp(p->value, "process"))
			*number_at(c, key) = CONFIG_ENGINE_PROCESS;
		else
			return wrong(err, path, p, "must be module or process");
		return 0;
	case TEXT:
		if (!*p->value)
			return wrong(err, path, p, "must not be empty; leave the key out");
		free(*text_at(c, key));
		*text_at(c, key) = strdup(p->value);
		if (!*text_at(c, key))
			return plog_error_set(err, -ENOMEM, "out of memory");
		return 0;
	}
	return -EINVAL;
}

static bool known_elsewhere(const char *name)
{
	size_t n, count;
	const struct topicconfig_key *rows = topicconfig_keys(&count);

	for (n = 0; n < sizeof(listener_keys) / sizeof(listener_keys[0]); n++)
		if (!strcmp(name, listener_keys[n]))
			return true;
	for (n = 0; n < count; n++) {
		/* a list of names, each perhaps with :FACTOR behind it */
		const char *s = rows[n].server;
		size_t len = strlen(name);

		while (s && *s) {
			size_t word = strcspn(s, " ");
			size_t bare = strcspn(s, " :");

			if (bare == len && !strncmp(s, name, len))
				return true;
			s += word;
			s += strspn(s, " ");
		}
	}
	return false;
}

static void warn_unknown(const struct config *c, const char *path)
{
	for (size_t i = 0; i < c->properties.count; i++) {
		const struct property *p = &c->properties.entries[i];
		bool known = known_elsewhere(p->key);

		for (size_t k = 0; !known && k < NKEYS; k++)
			known = !strcmp(p->key, keys[k].name) ||
				(keys[k].synonym && !strcmp(p->key, keys[k].synonym));
		if (known)
			continue;
		if (p->line && path)
			say(SAY_WARN, "config", "%s:%u: plogd has no key %s; it has no effect",
			    path, p->line, p->key);
		else
			say(SAY_WARN, "config", "plogd has no key %s; it has no effect", p->key);
	}
}

/* ---- listeners ---- */

bool config_host_any(const char *host)
{
	return !*host || !strcmp(host, "0.0.0.0") || !strcmp(host, "::");
}

/* Security protocol of a listener's name, by the map or by being one itself. */
static bool is_plaintext(const char *map, const char *name)
{
	size_t len = strlen(name);

	if (!map)
		return !strcmp(name, "PLAINTEXT");
	while (*map) {
		size_t word;

		map += strspn(map, ", \t");
		word = strcspn(map, ", \t");
		if (word > len && !strncmp(map, name, len) && map[len] == ':')
			return word - len - 1 == 9 && !strncmp(map + len + 1, "PLAINTEXT", 9);
		map += word;
	}
	return false;
}

/* One NAME://HOST:PORT of @len bytes at @s. 0, or -1 if it is none. */
static int parse_endpoint(const char *s, size_t len, char *name, size_t name_size, char *host,
			  size_t host_size, int64_t *port)
{
	const char *sep = memmem(s, len, "://", 3), *h, *colon;
	char digits[8] = "";
	size_t n, hlen;

	if (!sep || sep == s || (size_t)(sep - s) >= name_size)
		return -1;
	for (n = 0; s + n < sep; n++) {
		if (!isalnum((unsigned char)s[n]) && !strchr("_-.", s[n]))
			return -1;
		name[n] = toupper((unsigned char)s[n]);
	}
	name[n] = 0;
	h = sep + 3;
	colon = memrchr(h, ':', s + len - h);
	if (!colon || (size_t)(s + len - colon - 1) >= sizeof(digits) || colon + 1 == s + len)
		return -1;
	memcpy(digits, colon + 1, s + len - colon - 1);
	if (!isdigit((unsigned char)*digits) || parse_number(digits, port) || *port > 65535)
		return -1;
	hlen = colon - h;
	if (hlen >= 2 && h[0] == '[' && h[hlen - 1] == ']') {
		h++;
		hlen -= 2;
	} else if (memchr(h, ':', hlen)) {
		return -1;
	}
	if (hlen >= host_size)
		return -1;
	memcpy(host, h, hlen);
	host[hlen] = 0;
	return 0;
}

static int read_listeners(struct config *c, const char *path, struct plog_error *err)
{
	static const struct property fallback = {
		.key = (char *)"listeners", .value = (char *)"PLAINTEXT://:9092",
	};
	const struct property *p = properties_find(&c->properties, "listeners");
	const struct property *adv = properties_find(&c->properties, "advertised.listeners");
	const char *map = properties_get(&c->properties, "listener.security.protocol.map");
	const char *s;
	int64_t port;

	if (!p)
		p = &fallback;
	for (s = p->value; *s; ) {
		struct config_listener *l = &c->listeners[c->nlisteners];
		size_t len;

		s += strspn(s, ", \t");
		len = strcspn(s, ", \t");
		if (!len)
			break;
		if (c->nlisteners == CONFIG_LISTENERS_MAX)
			return wrong(err, path, p, "at most %d listeners", CONFIG_LISTENERS_MAX);
		if (parse_endpoint(s, len, l->name, sizeof(l->name), l->host, sizeof(l->host),
				   &port))
			return wrong(err, path, p, "each listener is NAME://HOST:PORT, as in "
				     "PLAINTEXT://127.0.0.1:9092; an IPv6 address in brackets");
		l->port = port;
		if (!is_plaintext(map, l->name))
			return wrong(err, path, p, "listener %s: plogd speaks PLAINTEXT only; a "
				     "listener of another name needs %s:PLAINTEXT in "
				     "listener.security.protocol.map", l->name, l->name);
		for (unsigned int i = 0; i < c->nlisteners; i++)
			if (!strcmp(c->listeners[i].name, l->name))
				return wrong(err, path, p, "the name %s stands there twice",
					     l->name);
		if (!config_host_any(l->host))
			strcpy(l->advertised_host, l->host);
		c->nlisteners++;
		s += len;
	}
	if (!c->nlisteners)
		return wrong(err, path, p, "at least one listener is needed");

	for (s = adv ? adv->value : ""; *s; ) {
		char name[64], host[256];
		unsigned int i;
		size_t len;

		s += strspn(s, ", \t");
		len = strcspn(s, ", \t");
		if (!len)
			break;
		if (parse_endpoint(s, len, name, sizeof(name), host, sizeof(host), &port))
			return wrong(err, path, adv, "each listener is NAME://HOST:PORT, as in "
				     "PLAINTEXT://broker.example:9092");
		if (config_host_any(host))
			return wrong(err, path, adv, "listener %s: name an address that clients "
				     "can reach, not %s", name, *host ? host : "an empty one");
		for (i = 0; i < c->nlisteners; i++)
			if (!strcmp(c->listeners[i].name, name))
				break;
		if (i == c->nlisteners)
			return wrong(err, path, adv, "listeners has no %s", name);
		strcpy(c->listeners[i].advertised_host, host);
		c->listeners[i].advertised_port = port;
		s += len;
	}
	return 0;
}

/* ---- the whole ---- */

static int set_override(struct config *c, const char *text, struct plog_error *err)
{
	const char *eq = strchr(text, '=');
	char key[256];

	if (!eq || eq == text || (size_t)(eq - text) >= sizeof(key))
		return plog_error_set(err, -EINVAL, "--set %s: must be KEY=VALUE", text);
	memcpy(key, text, eq - text);
	key[eq - text] = 0;
	if (properties_set(&c->properties, key, eq + 1))
		return plog_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int read_keys(struct config *c, const char *path, struct plog_error *err)
{
	for (size_t k = 0; k < NKEYS; k++) {
		const struct key *key = &keys[k];
		const struct property *p = properties_find(&c->properties, key->name);
		int ret;

		if (key->kind == BOOL)
			*bool_at(c, key) = key->def;
		else if (key->kind != TEXT)
			*number_at(c, key) = key->def;
		if (!p && key->synonym)
			p = properties_find(&c->properties, key->synonym);
		if (!p)
			continue;
		ret = set_key(c, key, p, path, err);
		if (ret)
			return ret;
	}
	return 0;
}

static int check(struct config *c, const char *path, struct plog_error *err)
{
	const struct property *p;

	p = properties_find(&c->properties, "log.dirs");
	if (!p)
		p = properties_find(&c->properties, "log.dir");
	c->log_dir_key = strdup(p ? p->key : "log.dirs");
	if (!c->log_dir)
		c->log_dir = strdup("/var/lib/plog");
	if (!c->log_dir || !c->log_dir_key)
		return plog_error_set(err, -ENOMEM, "out of memory");
	if (p && strchr(p->value, ','))
		return wrong(err, path, p, "plogd keeps its logs in one directory: name one");
	p = properties_find(&c->properties, "default.replication.factor");
	if (c->replication_factor > 1)
		return wrong(err, path, p, "this broker is alone: must be 1");
	p = properties_find(&c->properties, "queued.max.request.bytes");
	if (p && c->request_memory != -1 && c->request_memory < c->request_max)
		return wrong(err, path, p, "must be -1, or at least socket.request.max.bytes "
			     "(%" PRId64 ")", c->request_max);
	p = properties_find(&c->properties, "plog.max.append.bytes");
	if (p && c->max_append_bytes && c->max_append_bytes < 1024)
		return wrong(err, path, p, "must be 0 (as it is), or from 1024 on");
	p = properties_find(&c->properties, "connections.max.idle.ms");
	if (p && c->idle_max_ms >= 0 && c->idle_max_ms < 100)
		return wrong(err, path, p, "must be -1 (for ever) or at least 100");
	if (!c->network_threads) {
		long cpus = sysconf(_SC_NPROCESSORS_ONLN);

		c->network_threads = cpus < 1 ? 1 : cpus > 16 ? 16 : cpus;
	}
	return 0;
}

/* The line that a server key stands on, in front of what topicconfig says about it. */
static int topic_defaults(struct config *c, const char *path, struct plog_error *err)
{
	struct plog_error why = { "" };
	int ret = topicconfig_server_defaults(&c->properties, &c->topic_defaults, &why);

	if (!ret)
		return 0;
	for (size_t i = 0; i < c->properties.count; i++) {
		const struct property *p = &c->properties.entries[i];

		if (p->line && path && strstr(why.text, p->key) && known_elsewhere(p->key))
			return plog_error_set(err, ret, "%s:%u: %s", path, p->line, why.text);
	}
	return plog_error_set(err, ret, "%s%s%s", path ? path : "", path ? ": " : "", why.text);
}

int config_read(const char *path, const char *const *overrides, unsigned int noverrides,
		struct config **out, struct plog_error *err)
{
	struct config *c = calloc(1, sizeof(*c));
	int ret = 0;

	if (!c)
		return plog_error_set(err, -ENOMEM, "out of memory");
	properties_init(&c->properties);
	properties_init(&c->topic_defaults);
	if (path)
		ret = properties_read(&c->properties, AT_FDCWD, path, err);
	for (unsigned int i = 0; !ret && i < noverrides; i++)
		ret = set_override(c, overrides[i], err);
	if (!ret)
		ret = read_keys(c, path, err);
	if (!ret)
		ret = check(c, path, err);
	if (!ret)
		ret = read_listeners(c, path, err);
	if (!ret)
		ret = topic_defaults(c, path, err);
	if (ret) {
		config_free(c);
		return ret;
	}
	warn_unknown(c, path);
	*out = c;
	return 0;
}

void config_free(struct config *c)
{
	while (c) {
		struct config *previous = c->previous;

		for (size_t k = 0; k < NKEYS; k++)
			if (keys[k].kind == TEXT)
				free(*text_at(c, &keys[k]));
		free(c->log_dir_key);
		properties_clear(&c->properties);
		properties_clear(&c->topic_defaults);
		free(c);
		c = previous;
	}
}

static unsigned int keep_key(struct config *next, const struct config *now, const struct key *key)
{
	struct config *old = (struct config *)now;

	if (key->kind == TEXT) {
		char **a = text_at(next, key), **b = text_at(old, key), *copy;

		if ((!*a && !*b) || (*a && *b && !strcmp(*a, *b)))
			return 0;
		copy = *b ? strdup(*b) : NULL;
		if (*b && !copy)
			return 1;
		free(*a);
		*a = copy;
		return 1;
	}
	if (key->kind == BOOL) {
		if (*bool_at(next, key) == *bool_at(old, key))
			return 0;
		*bool_at(next, key) = *bool_at(old, key);
		return 1;
	}
	if (*number_at(next, key) == *number_at(old, key))
		return 0;
	*number_at(next, key) = *number_at(old, key);
	return 1;
}

unsigned int config_keep(struct config *next, const struct config *now)
{
	unsigned int kept = 0;

	for (size_t k = 0; k < NKEYS; k++)
		if (!keys[k].reload && keep_key(next, now, &keys[k])) {
			say(SAY_WARN, "config", "%s has changed in the file; it takes effect at "
			    "the next start only", keys[k].name);
			kept++;
		}
	for (unsigned int i = 0; i < now->nlisteners || i < next->nlisteners; i++) {
		const struct config_listener *a = &next->listeners[i], *b = &now->listeners[i];

		if (next->nlisteners == now->nlisteners && !strcmp(a->name, b->name) &&
		    !strcmp(a->host, b->host) && a->port == b->port)
			continue;
		say(SAY_WARN, "config", "listeners has changed in the file; it takes effect at the "
		    "next start only");
		memcpy(next->listeners, now->listeners, sizeof(next->listeners));
		next->nlisteners = now->nlisteners;
		kept++;
		break;
	}
	return kept;
}

uint64_t config_request_memory(const struct config *c)
{
	/* room for two of the largest requests, and for the small ones of many clients */
	if (c->request_memory < 0)
		return 2 * (uint64_t)c->request_max + (64 << 20);
	return c->request_memory;
}
