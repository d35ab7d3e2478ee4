/* SPDX-License-Identifier: MIT */
#ifndef CHECK_H
#define CHECK_H

#include "cm.h"

#include "log/records.h"

/* What test files about records share. Each test begins with an empty arena and these rules. */
#define NOW 2000000

extern struct arena arena;
extern struct records_rules rules;

int check_setup(void **state);
int check_teardown(void **state);

/*
 * Check a copy of @n bytes in one go and in small steps, which must agree. @c has the answer
 * of the first, good until the next call. If it is accepted, *@after (may be NULL) is the
 * batch as corrected, to be freed. What is refused must be left as it was.
 */
int16_t check(const uint8_t *p, size_t n, struct records_check *c, uint8_t **after);

#define REFUSED(p, n, code) do { \
	struct records_check c_; \
	int16_t got_ = check(p, n, &c_, NULL); \
	if (got_ != (code)) \
		fail_msg("line %d: error %d (%s) and not %d", __LINE__, got_, \
			 c_.text ? c_.text : "-", (int)(code)); \
} while (0)

/* A number of @n bytes, most significant first. */
uint64_t be(const uint8_t *p, unsigned int n);

#endif
