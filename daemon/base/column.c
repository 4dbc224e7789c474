// SPDX-License-Identifier: BSD-2-Clause
/* The table of optional figures: see column.h. */
#include "base/column.h"

#include <stdio.h>
#include <string.h>

const struct column column_table[COLUMNS] = {
#define PYP_X(id, name_, group_, text_, unit_, merge_)                                             \
	[COLUMN_##id] = {name_, group_, text_, unit_, merge_},
	COLUMN_TABLE(PYP_X)
#undef PYP_X
};

const char *const column_units[] = {
	[COLUMN_NS] = "ns", [COLUMN_COUNT] = "count", [COLUMN_BYTES] = "bytes"};

static bool same_group(int a, int b)
{
	return strcmp(column_table[a].group, column_table[b].group) == 0;
}

int column_group_next(uint64_t set, int first, int *end)
{
	while (first < COLUMNS && !(set >> first & 1))
		first++;
	*end = first;
	while (*end < COLUMNS && same_group(first, *end))
		++*end;
	return first;
}

uint64_t column_group(const char *group)
{
	uint64_t set = 0;

	for (int c = 0; c < COLUMNS; c++)
		if (strcmp(column_table[c].group, group) == 0)
			set |= COLUMN_BIT(c);
	return set;
}

int column_find(const char *group, const char *name)
{
	int c = 0;

	while (c < COLUMNS && (strcmp(column_table[c].group, group) != 0 ||
			       strcmp(column_table[c].name, name) != 0))
		c++;
	return c;
}

const char *column_key(int column, char buf[COLUMN_KEY_MAX])
{
	const struct column *c = &column_table[column];

	snprintf(buf, COLUMN_KEY_MAX, "%s%s%s", c->group, *c->group ? "_" : "", c->name);
	return buf;
}
