// SPDX-License-Identifier: MIT
/*
 * The symbols of a module that is about to go. kmemleak names a place by its
 * address at the time of the report, and the report comes after the removal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "init.h"

struct symbol {
	unsigned long address;
	char name[64];
};

static struct symbol *symbols;
static size_t count;

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

void symbols_keep(const char *module)
{
	char line[512], tag[80];
	FILE *f = fopen("/proc/kallsyms", "re");

	snprintf(tag, sizeof(tag), "\t[%s]\n", module);
	while (f && fgets(line, sizeof(line), f)) {
		struct symbol s, *grown;

		if (!strstr(line, tag) || sscanf(line, "%lx %*c %63s", &s.address, s.name) != 2)
			continue;
		if (!(count & (count - 1))) {
			grown = realloc(symbols, (count ? 2 * count : 1) * sizeof(*symbols));
			if (!grown)
				break;
			symbols = grown;
		}
		symbols[count++] = s;
	}
	if (f)
		fclose(f);
	if (count)
		qsort(symbols, count, sizeof(*symbols), by_address);
}

void symbols_name(const char *line, char *named, size_t size)
{
	const char *hex = strstr(line, " 0x");
	size_t low = 0, high = count;
	unsigned long address;

	snprintf(named, size, "%s", line);
	if (!hex || !count)
		return;
	address = strtoul(hex, NULL, 16);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* No function is as long as this: the address is another module's. */
	if (!low || address - symbols[low - 1].address > 65536)
		return;
	snprintf(named, size, "%.*s %s+0x%lx", (int)(hex - line), line, symbols[low - 1].name,
		 address - symbols[low - 1].address);
}
