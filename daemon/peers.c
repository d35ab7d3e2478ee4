// SPDX-License-Identifier: MIT
#include "peers.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * A table that cannot be made slow from outside: addresses are compared as bytes in a tree
 * that is balanced by random priorities (a treap), whatever order they come in.
 */
struct peer {
	struct peer *left, *right;
	unsigned int priority;
	uint8_t key[16];
	int64_t count;
};

struct peers {
	pthread_mutex_t lock;
	struct peer *root;
	unsigned int seed;
};

static void key_of(const struct sockaddr_storage *address, uint8_t key[16])
{
	memset(key, 0, 16);
	if (address->ss_family == AF_INET6) {
		memcpy(key, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
		return;
	}
	key[10] = key[11] = 0xff;
	memcpy(key + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
}

struct peers *peers_new(void)
{
	struct peers *peers = calloc(1, sizeof(*peers));

	if (!peers)
		return NULL;
	pthread_mutex_init(&peers->lock, NULL);
	peers->seed = (unsigned int)(uintptr_t)peers;
	return peers;
}

static void free_tree(struct peer *p)
{
	if (!p)
		return;
	free_tree(p->left);
	free_tree(p->right);
	free(p);
}

void peers_free(struct peers *peers)
{
	if (!peers)
		return;
	free_tree(peers->root);
	pthread_mutex_destroy(&peers->lock);
	free(peers);
}

static struct peer *join(struct peer *a, struct peer *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->priority > b->priority) {
		a->right = join(a->right, b);
		return a;
	}
	b->left = join(a, b->left);
	return b;
}

/* All keys of @p below @key into *@a, the others into *@b. */
static void split(struct peer *p, const uint8_t *key, struct peer **a, struct peer **b)
{
	if (!p) {
		*a = *b = NULL;
	} else if (memcmp(p->key, key, 16) < 0) {
		*a = p;
		split(p->right, key, &p->right, b);
	} else {
		*b = p;
		split(p->left, key, a, &p->left);
	}
}

static struct peer **find(struct peers *peers, const uint8_t *key)
{
	struct peer **at = &peers->root;

	while (*at) {
		int d = memcmp(key, (*at)->key, 16);

		if (!d)
			break;
		at = d < 0 ? &(*at)->left : &(*at)->right;
	}
	return at;
}

int peers_add(struct peers *peers, const struct sockaddr_storage *address, int64_t max)
{
	struct peer *p, *a, *b;
	uint8_t key[16];
	int ret = 0;

	key_of(address, key);
	pthread_mutex_lock(&peers->lock);
	p = *find(peers, key);
	if (p && p->count >= max) {
		ret = -1;
	} else if (p) {
		p->count++;
	} else if (max < 1 || !(p = calloc(1, sizeof(*p)))) {
		ret = -1;
	} else {
		memcpy(p->key, key, 16);
		p->count = 1;
		p->priority = rand_r(&peers->seed);
		split(peers->root, key, &a, &b);
		peers->root = join(join(a, p), b);
	}
	pthread_mutex_unlock(&peers->lock);
	return ret;
}

void peers_remove(struct peers *peers, const struct sockaddr_storage *address)
{
	struct peer **at, *p;
	uint8_t key[16];

	key_of(address, key);
	pthread_mutex_lock(&peers->lock);
	at = find(peers, key);
	p = *at;
	if (p && !--p->count) {
		*at = join(p->left, p->right);
		free(p);
	}
	pthread_mutex_unlock(&peers->lock);
}
