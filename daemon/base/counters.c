// SPDX-License-Identifier: BSD-2-Clause
/* Resource counters by name: see counters.h. */
#include "base/counters.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/column.h"

#define BIT(name) (1u << PYP_COUNTER_##name)

static const char *const known[PYP_COUNTERS] = {
#define PYP_X(name, field) [PYP_COUNTER_##name] = #name,
	PYP_COUNTERS_X(PYP_X)
#undef PYP_X
};

static const struct {
	const char *name;
	uint32_t bits;
} groups[] = {
	{"switches", BIT(vcsw) | BIT(ivcsw)}, {"faults", BIT(minflt) | BIT(majflt)},
	{"io", BIT(rbytes) | BIT(wbytes)},    {"all", (1u << PYP_COUNTERS) - 1},
	{"memory", COUNTERS_MEMORY},
};

static uint32_t bits_of(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (strlen(groups[i].name) == n && memcmp(groups[i].name, name, n) == 0)
			return groups[i].bits;
	for (size_t i = 0; i < PYP_COUNTERS; i++)
		if (strlen(known[i]) == n && memcmp(known[i], name, n) == 0)
			return 1u << i;
	return 0;
}

int counters_parse(const char *list, uint32_t *ret, struct diag *diag)
{
	uint32_t bits = 0;

	for (const char *p = list;; p++) {
		size_t n = strcspn(p, ",");
		uint32_t more = bits_of(p, n);

		if (!more)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
					"vcsw ivcsw minflt majflt rbytes wbytes; switches faults "
					"io all; memory",
					"unknown resource counter '%.*s'", n < 64 ? (int)n : 64, p);
		bits |= more;
		p += n;
		if (!*p)
			break;
	}
	*ret = bits;
	return 0;
}

uint64_t counters_columns(uint32_t bits)
{
	return COLUMN_COUNTERS(bits) | (bits & COUNTERS_MEMORY ? column_group("memory") : 0);
}

const char *counters_list(uint32_t bits, char *buf, size_t size)
{
	size_t n = 0;

	*buf = '\0';
	for (size_t i = 0; i < PYP_COUNTERS && n < size; i++)
		if (bits & 1u << i)
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "," : "", known[i]);
	if (bits & COUNTERS_MEMORY && n < size)
		(void)snprintf(buf + n, size - n, "%smemory", n ? "," : "");
	return buf;
}
