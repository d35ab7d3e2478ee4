// SPDX-License-Identifier: MIT
#include "seen.h"

int seen_init(struct seen *s, struct arena *arena, uint32_t n)
{
	uint64_t size = 4;

	while (size < 2 * (uint64_t)n)
		size *= 2;
	s->slots = arena_array(arena, size, sizeof(*s->slots));
	s->mask = (uint32_t)(size - 1);
	return s->slots ? 0 : -1;
}

uint32_t seen_note(struct seen *s, const void *key, uint32_t at)
{
	uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);

	for (uint32_t i = (uint32_t)(hash >> 32) & s->mask;; i = (i + 1) & s->mask) {
		struct seen_slot *slot = &s->slots[i];

		if (slot->key == key)
			return slot->at;
		if (slot->key)
			continue;
		slot->key = key;
		slot->at = at;
		return at;
	}
}
