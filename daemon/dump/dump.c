// SPDX-License-Identifier: BSD-2-Clause
/* Frees a dump: see dump.h. */
#include "dump/dump.h"

#include <stdlib.h>

static void frames_free(struct dump_frame *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].filename);
		free(v[i].name);
		python_locals_deinit(&v[i].locals);
	}
	free(v);
}

void dump_free(struct dump *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nthreads; i++) {
		frames_free(d->threads[i].frames, d->threads[i].n);
		free(d->threads[i].python_name);
	}
	for (size_t i = 0; i < d->ntasks; i++) {
		frames_free(d->tasks[i].frames, d->tasks[i].n);
		free(d->tasks[i].awaits);
		free(d->tasks[i].name);
	}
	free(d->tasks);
	free(d->threads);
	free(d->cmdline);
	free(d->version);
	free(d->file);
	free(d);
}
