/* SPDX-License-Identifier: MIT */
#ifndef FILL_H
#define FILL_H

#include "kafka/codec.h"

/*
 * A struct of @schema with content that follows from the names of its fields, as golden.py
 * has it: @full with two elements in each array, else nothing but zeros and nulls. Fields
 * that @version lacks have their defaults. Everything is in @arena.
 */
void *fill(struct arena *arena, const struct schema *schema, int16_t version, bool full);

#endif
