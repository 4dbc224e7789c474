// SPDX-License-Identifier: BSD-2-Clause
/* The longest waits: see longest_text.h. */
#include "longest_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/wait.h"
#include "find/descriptor.h"
#include "format/names.h"
#include "format/restrict.h"
#include "format/waits_text.h"

struct rows {
	const struct snapshot *s;
	char **names;  /* per function, as in pstats */
	bool *matches; /* per function */
	uint32_t *order;
	uint32_t n;
};

static void rows_deinit(struct rows *r)
{
	for (uint32_t i = 0; r->names && i < r->s->nfuncs; i++)
		free(r->names[i]);
	free(r->names);
	free(r->matches);
	free(r->order);
}

static int name_functions(struct rows *r)
{
	const struct snapshot *s = r->s;

	r->names = calloc((size_t)s->nfuncs + 1, sizeof(*r->names));
	r->matches = malloc(((size_t)s->nfuncs + 1) * sizeof(*r->matches));
	r->order = calloc((size_t)s->nwaits + 1, sizeof(*r->order));
	if (!r->names || !r->matches || !r->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nwaits; i++) {
		const uint32_t func = s->waits[i].func;
		const struct snapshot_func *f;

		if (func == SNAPSHOT_NONE || r->names[func])
			continue;
		f = &s->funcs[func];
		r->names[func] = name_std(f->filename, f->firstlineno, f->name);
		if (!r->names[func])
			return -ENOMEM;
	}
	return 0;
}

static int match(struct rows *r, const struct longest_opts *o, struct diag *diag)
{
	const uint32_t nfuncs = r->s->nfuncs;
	_cleanup_free_ bool *one = calloc((size_t)nfuncs + 1, sizeof(*one));

	if (!one)
		return -ENOMEM;
	memset(r->matches, true, ((size_t)nfuncs + 1) * sizeof(*r->matches));
	for (int i = 0; i < o->npatterns; i++) {
		int err = restrict_names(o->patterns[i], r->names, nfuncs, one, diag);

		if (err < 0)
			return err;
		for (uint32_t k = 0; k < nfuncs; k++)
			r->matches[k] &= one[k];
		r->matches[nfuncs] = false; /* outside Python: no name matches */
	}
	return 0;
}

static int by_length(const void *a, const void *b, void *ctx)
{
	const struct snapshot *s = ctx;
	const uint64_t x = s->waits[*(const uint32_t *)a].ns, y = s->waits[*(const uint32_t *)b].ns;

	return (x < y) - (x > y);
}

static void choose(struct rows *r, uint64_t limit)
{
	const struct snapshot *s = r->s;

	for (uint32_t i = 0; i < s->nwaits; i++) {
		const uint32_t func = s->waits[i].func;

		if (r->matches[func == SNAPSHOT_NONE ? s->nfuncs : func])
			r->order[r->n++] = i;
	}
	if (r->n)
		qsort_r(r->order, r->n, sizeof(*r->order), by_length, (void *)s);
	if (r->n > limit)
		r->n = (uint32_t)limit;
}

static const struct snapshot_target *target_of(const struct snapshot *s, uint32_t pid)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (s->targets[i].pid == pid)
			return &s->targets[i];
	return NULL;
}

/* The time of day at which it ended; "" if the process's start is not known. */
static void put_time(const struct snapshot *s, const struct snapshot_wait *w, FILE *out)
{
	const struct snapshot_target *t = target_of(s, w->pid);
	uint64_t ns;
	struct tm tm;
	time_t seconds;
	char text[16] = "";

	if (t && t->start_unix_ns && w->end_ns >= t->start_ns) {
		ns = t->start_unix_ns + (w->end_ns - t->start_ns);
		seconds = (time_t)(ns / CLOCK_NS_PER_S);
		if (localtime_r(&seconds, &tm))
			strftime(text, sizeof(text), "%H:%M:%S", &tm);
	}
	fprintf(out, " %8s", text);
}

static void put_what(const struct snapshot_wait *w, const struct longest_opts *o, FILE *out)
{
	char text[DESCRIPTOR_MAX];

	if (!w->syscall && w->fd == SNAPSHOT_NONE)
		return;
	fprintf(out, "%31s %s", "", w->syscall ? w->syscall : "descriptor");
	if (w->fd != SNAPSHOT_NONE) {
		fprintf(out, " of descriptor %" PRIu32, w->fd);
		if (o->describe && o->describe((pid_t)w->pid, w->fd, text, sizeof(text))) {
			fputs(", now ", out);
			name_print(out, text, NAME_COLUMNS);
		}
	}
	fputc('\n', out);
}

static void put_wait(const struct rows *r, const struct snapshot_wait *w,
		     const struct longest_opts *o, FILE *out)
{
	const char *name = w->func == SNAPSHOT_NONE ? NULL : r->names[w->func];

	fprintf(out, "%10.6f", (double)w->ns / (double)CLOCK_NS_PER_S);
	put_time(r->s, w, out);
	fprintf(out, " %-8s %7" PRIu32 ":%-7" PRIu32 " ", wait_name((enum wait_reason)w->why),
		w->pid, w->tid);
	name_print(out, name ? name : "(outside Python)", NAME_COLUMNS);
	fputc('\n', out);
	put_what(w, o, out);
}

int longest_text(const struct snapshot *s, const struct longest_opts *o, FILE *out,
		 struct diag *diag)
{
	_cleanup_(rows_deinit) struct rows r = {.s = s};
	int err;

	if (!(s->measured & COLUMN_WAITS))
		return waits_not_measured(diag);
	err = name_functions(&r);
	if (!err)
		err = match(&r, o, diag);
	if (err < 0)
		return err == -ENOMEM ? diag_errno(diag, ENOMEM, "cannot list waits") : err;
	choose(&r, o->limit);
	fprintf(out, "   The %" PRIu32 " longest waits (at most %u for each reason)\n\n", r.n,
		WAIT_LONGEST);
	if (r.n)
		fprintf(out, "%10s %8s %-8s %7s:%-7s %s\n", "seconds", "ended", "reason", "process",
			"thread", "function, and what it waited for");
	for (uint32_t i = 0; i < r.n; i++)
		put_wait(&r, &s->waits[r.order[i]], o, out);
	return 0;
}
