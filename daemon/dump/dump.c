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

static void tasks_free(struct dump_tasks *t)
{
	for (size_t i = 0; i < t->n; i++) {
		frames_free(t->v[i].frames, t->v[i].n);
		free(t->v[i].awaits);
		free(t->v[i].name);
	}
	free(t->v);
}

void dump_free(struct dump *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nthreads; i++) {
		frames_free(d->threads[i].frames, d->threads[i].n);
		free(d->threads[i].python_name);
	}
	tasks_free(&d->tasks);
	tasks_free(&d->greenlets);
	free(d->threads);
	free(d->cmdline);
	free(d->version);
	free(d->file);
	free(d);
}
