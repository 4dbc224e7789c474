// SPDX-License-Identifier: BSD-2-Clause
/* Arbitrary saved snapshots: every snapshot that loads must be consistent, and every format must be
 * able to write it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/format.h"
#include "snapshot/load.h"
#include "snapshot/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_all(const struct snapshot *s)
{
	_cleanup_fclose_ FILE *out = fopen("/dev/null", "w");
	struct format_opts o = {0};

	for (const struct format *f = formats; out && f->name; f++)
		format_write(f, s, &o, out, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL, *merged = NULL;
	struct diag diag = {0};

	if (snapshot_parse((const char *)data, size, "input", &s, &diag) < 0) {
		if (s || !diag.err ||
		    (diag.exit != PYP_EXIT_FAILURE && diag.exit != PYP_EXIT_USAGE))
			abort();
		return 0;
	}
	if (!snapshot_valid(s) ||
	    snapshot_merge((const struct snapshot *[]){s, s}, 2, &merged) < 0 ||
	    !snapshot_valid(merged))
		abort();
	write_all(s);
	return 0;
}
