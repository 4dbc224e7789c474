// SPDX-License-Identifier: BSD-2-Clause
/* A list of intervals as text: see history_table.h. */
#include "history_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "render.h"

#define NS 1000000000u

struct row {
	const char *host, *service, *pid, *python;
	uint64_t from, to, intervals, samples, cpu_ns;
};

struct rows {
	struct row *v;
	size_t n;
};

static uint64_t count_of(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *label_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(json_object_get(o, "labels"), key));

	return s ? s : "";
}

static struct row row_of(const json_t *o)
{
	const uint64_t merged = count_of(o, "merged");

	return (struct row){.host = label_of(o, "host"),
			    .service = label_of(o, "service"),
			    .pid = label_of(o, "pid"),
			    .python = label_of(o, "python"),
			    .from = count_of(o, "start_unix_ns"),
			    .to = count_of(o, "end_unix_ns"),
			    .intervals = merged ? merged : 1,
			    .samples = count_of(o, "samples"),
			    .cpu_ns = count_of(o, "cpu_ns")};
}

static bool is_same(const struct row *a, const struct row *b)
{
	return strcmp(a->pid, b->pid) == 0 && strcmp(a->service, b->service) == 0 &&
	       strcmp(a->host, b->host) == 0;
}

static struct row *find(struct rows *rows, const struct row *r)
{
	for (size_t i = rows->n; i-- > 0;)
		if (is_same(&rows->v[i], r))
			return &rows->v[i];
	return NULL;
}

static void add(struct rows *rows, const struct row *r, bool each)
{
	struct row *same = each ? NULL : find(rows, r);

	if (!same) {
		rows->v[rows->n++] = *r;
		return;
	}
	same->from = r->from < same->from ? r->from : same->from;
	same->to = r->to > same->to ? r->to : same->to;
	same->intervals += r->intervals;
	same->samples += r->samples;
	same->cpu_ns += r->cpu_ns;
}

static int by_cpu(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->cpu_ns < y->cpu_ns) - (x->cpu_ns > y->cpu_ns);
}

static const char *time_text(uint64_t unix_ns, char out[24])
{
	const time_t t = (time_t)(unix_ns / NS);
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(out, 24, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(out, 24, "?");
	return out;
}

static void print(const struct row *r, FILE *out)
{
	char from[24], to[24];

	fprintf(out, "%s  %s %9llu %8llu %9.2f  ", time_text(r->from, from),
		time_text(r->to, to) + sizeof("2026-11-26"), (unsigned long long)r->intervals,
		(unsigned long long)r->samples, (double)r->cpu_ns / NS);
	fprintf(out, "%7s %-8s ", r->pid, r->python);
	render_clipped(r->service, 0, out);
	if (*r->host) {
		fputs(" on ", out);
		render_clipped(r->host, 0, out);
	}
	putc('\n', out);
}

void history_table(const json_t *list, bool each, FILE *out)
{
	const json_t *intervals = json_object_get(list, "intervals");
	_cleanup_free_ struct row *v = calloc(json_array_size(intervals) + 1, sizeof(*v));
	struct rows rows = {.v = v};
	const json_t *o;
	size_t i;

	if (!v)
		return;
	json_array_foreach(intervals, i, o)
	{
		const struct row r = row_of(o);

		add(&rows, &r, each);
	}
	if (!rows.n) {
		fputs("no intervals\n", out);
		return;
	}
	if (!each)
		qsort(v, rows.n, sizeof(*v), by_cpu);
	fputs("FROM                 TO       INTERVALS  SAMPLES   CPU (s)      PID PYTHON   "
	      "SERVICE\n",
	      out);
	for (i = 0; i < rows.n; i++)
		print(&v[i], out);
}
