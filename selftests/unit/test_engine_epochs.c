// SPDX-License-Identifier: MIT
/* The list of leader epochs by itself, by Kafka's rules. */
#include "engine.h"

#include <linux/slab.h>

#include "../../kmod/engine.h"
#include "../../kmod/epoch.h"

static void assign(struct plog_epoch_builder *b, s32 epoch, s64 start, const char *want)
{
	char text[1024] = "";
	size_t len = 0;

	assert_int_equal(plog_epoch_assign(b, epoch, start), 0);
	for (u32 i = 0; i < b->list->count; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%d:%lld", i ? " " : "",
				b->list->entry[i].epoch, (long long)b->list->entry[i].start);
	assert_string_equal(text, want);
}

static void test_assign(void **state)
{
	struct plog_epoch_builder b = { 0 };

	(void)state;
	assign(&b, 0, 0, "0:0");
	assign(&b, 0, 5, "0:0");
	assign(&b, 1, 0, "1:0");	/* nothing was written in 0 */
	assign(&b, 3, 10, "1:0 3:10");
	assign(&b, 3, 8, "1:0 3:8");	/* the same, but earlier */
	assign(&b, 4, 20, "1:0 3:8 4:20");
	assign(&b, 5, 30, "1:0 3:8 4:20 5:30");
	assign(&b, 3, 25, "1:0 3:25");	/* what is not below both goes */
	assign(&b, 9, 0, "9:0");
	assert_int_equal(plog_epoch_assign(&b, -1, 0), -EINVAL);
	assert_int_equal(plog_epoch_assign(&b, 10, -1), -EINVAL);
	plog_epoch_drop(&b);
}

static void test_cut_and_trim(void **state)
{
	struct plog_epoch_builder b = { 0 };
	struct plog_epochs *list;

	(void)state;
	assign(&b, 0, 0, "0:0");
	assign(&b, 2, 100, "0:0 2:100");
	assign(&b, 5, 250, "0:0 2:100 5:250");
	plog_epoch_cut(&b, 251);
	assign(&b, 5, 250, "0:0 2:100 5:250");
	plog_epoch_cut(&b, 250);
	assign(&b, 2, 100, "0:0 2:100");
	assign(&b, 5, 250, "0:0 2:100 5:250");
	plog_epoch_trim(&b, 99);
	assign(&b, 5, 250, "0:99 2:100 5:250");
	plog_epoch_trim(&b, 100);
	assign(&b, 5, 250, "2:100 5:250");
	plog_epoch_trim(&b, 400);
	assign(&b, 6, 401, "5:400 6:401");
	plog_epoch_cut(&b, 0);
	list = plog_epoch_finish(&b);
	assert_null(list);
	assert_int_equal(plog_epoch_last(list), -1);
	assert_int_equal(plog_epoch_last_start(list), -1);
	plog_epoch_cut(&b, 0);
	plog_epoch_trim(&b, 0);
}

static void test_cap(void **state)
{
	struct plog_epoch_builder b = { 0 };
	struct plog_epochs *list;
	s32 asked = 7;

	(void)state;
	for (int i = 0; i < 3 * PLOG_EPOCHS_MAX; i++)
		assert_int_equal(plog_epoch_assign(&b, i, 10 * i), 0);
	list = plog_epoch_finish(&b);
	assert_int_equal(list->count, PLOG_EPOCHS_MAX);
	assert_int_equal(plog_epoch_last(list), 3 * PLOG_EPOCHS_MAX - 1);
	assert_int_equal(list->entry[0].epoch, 2 * PLOG_EPOCHS_MAX);
	/* of what was forgotten: the start of the oldest that is known */
	assert_int_equal(plog_epoch_end_of(list, 0, 1 << 20, &asked), 20 * PLOG_EPOCHS_MAX);
	assert_int_equal(asked, 7);
	/* and one more takes the oldest out */
	assert_int_equal(plog_epoch_begin(&b, list), 0);
	kvfree(list);
	assert_int_equal(plog_epoch_assign(&b, 1 << 20, 1 << 20), 0);
	list = plog_epoch_finish(&b);
	assert_int_equal(list->count, PLOG_EPOCHS_MAX);
	assert_int_equal(list->entry[0].epoch, 2 * PLOG_EPOCHS_MAX + 1);
	kvfree(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_assign), cmocka_unit_test(test_cut_and_trim),
		cmocka_unit_test(test_cap),
	};

	return cmocka_run_group_tests_name("engine epochs", tests, NULL, NULL);
}
