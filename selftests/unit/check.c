// SPDX-License-Identifier: MIT
#include "check.h"

#include <stdlib.h>
#include <string.h>

struct arena arena;
struct records_rules rules;

int check_setup(void **state)
{
	(void)state;
	arena_init(&arena, 1 << 20);
	records_rules_init(&rules, NOW);
	return 0;
}

int check_teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

int16_t check(const uint8_t *p, size_t n, struct records_check *c, uint8_t **after)
{
	uint8_t *one = malloc(n ? n : 1), *two = malloc(n ? n : 1);
	struct records_check steps;
	unsigned int calls = 0;

	arena_reset(&arena);
	if (n) {
		memcpy(one, p, n);
		memcpy(two, p, n);
	}
	records_check_init(c, one, n, &rules, &arena);
	assert_int_equal(records_check_run(c, UINT64_MAX), 1);
	assert_int_equal(records_check_run(c, UINT64_MAX), 1);
	records_check_end(c);
	records_check_init(&steps, two, n, &rules, &arena);
	while (!records_check_run(&steps, 100))
		assert_true(++calls < 10000000);
	records_check_end(&steps);
	assert_int_equal(c->error, steps.error);
	assert_int_equal(c->nbad, steps.nbad);
	assert_true(!c->error == !c->text);
	if (c->text)
		assert_string_equal(c->text, c->line);
	assert_memory_equal(one, two, n);
	/* what is refused is left as it was */
	if (c->error && n)
		assert_memory_equal(one, p, n);
	if (after)
		*after = one;
	else
		free(one);
	free(two);
	return c->error;
}

uint64_t be(const uint8_t *p, unsigned int n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}
