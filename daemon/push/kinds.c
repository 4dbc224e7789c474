// SPDX-License-Identifier: BSD-2-Clause
/* The kinds of receivers: see kinds.h. */
#include "push/kinds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "push/clickhouse.h"
#include "push/otlp.h"
#include "push/pyroscope.h"

const struct push_kind *const push_kinds[] = {&push_pyroscope, &push_otlp, &push_clickhouse, NULL};

const struct push_kind *push_kind_find(const char *name, struct diag *diag)
{
	char hint[128] = "one of:";
	size_t n = strlen(hint);

	for (const struct push_kind *const *k = push_kinds; *k; k++) {
		if (strcmp((*k)->name, name) == 0)
			return *k;
		n += (size_t)snprintf(hint + n, sizeof(hint) - n, " %s+https://…", (*k)->name);
	}
	diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "'%s' is not a kind of receiver", name);
	return NULL;
}
