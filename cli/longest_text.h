/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest waits of a profile as text, two lines for each. Pure, but for what describe() does. */
#ifndef PYPROFCTL_LONGEST_TEXT_H
#define PYPROFCTL_LONGEST_TEXT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/diag.h"
#include "snapshot/snapshot.h"

struct longest_opts {
	uint64_t limit;
	char *const *patterns; /* regular expressions over names of functions: all must match */
	int npatterns;
	/* What a descriptor is now; NULL: only its number. */
	bool (*describe)(pid_t pid, uint32_t fd, char *out, size_t size);
};

/* Returns 0, -ENODATA if waits were not measured, -EINVAL for a wrong pattern, or -ENOMEM. */
int longest_text(const struct snapshot *s, const struct longest_opts *o, FILE *out,
		 struct diag *diag);

#endif
