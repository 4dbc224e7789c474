// SPDX-License-Identifier: BSD-2-Clause
/*
 * Timelines as CSV (RFC 4180). time: ns since the start of the recording; cpu: the thread's CPU
 * time in ns. CSV has no comments, so the last row, with event `end`, has the provenance as JSON in
 * its name column. Dropped events are a row at their place, with their number in the name column.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "format/names.h"
#include "timeline/rows.h"

static int describe(FILE *out, const struct timeline_names *n)
{
	name_print_csv(out, n->name);
	fputc(',', out);
	name_print_csv(out, n->file);
	fprintf(out, ",%" PRId32, n->line);
	return 0;
}

static int describe_caller(FILE *out, const struct timeline_names *n)
{
	name_print_csv(out, n->name);
	return 0;
}

static void head(FILE *out)
{
	fputs("time,thread,event,name,file,line,caller,cpu,pid\r\n", out);
}

static char *row(char *at, const struct timeline_row *r, bool first)
{
	(void)first;
	at = timeline_put(timeline_put_number(at, r->ts), ",");
	at = timeline_put(timeline_put_number(at, r->tid), ",");
	at = timeline_put(timeline_put(at, watch_kind_name(r->kind)), ",");
	if (r->count)
		at = timeline_put(timeline_put_number(at, r->count), ",,");
	else
		at = timeline_put(at, r->func ? r->func : ",,");
	at = timeline_put(timeline_put(at, ","), r->caller ? r->caller : "");
	at = timeline_put_number(timeline_put(at, ","), r->cpu);
	return timeline_put(timeline_put_number(timeline_put(at, ","), r->pid), "\r\n");
}

static int mark(FILE *out, const struct timeline_mark *m, bool first)
{
	(void)first;
	fprintf(out, "%" PRIu64 ",%" PRIu32 ",trigger,", m->ts, m->tid);
	name_print_csv(out, m->what);
	fprintf(out, ",,,,%" PRIu64 ",%" PRIu32 "\r\n", m->cpu, m->pid);
	return 0;
}

static int tail(FILE *out, const struct timeline_end *end, bool first)
{
	_cleanup_free_ char *text = json_dumps(end->provenance, JSON_COMPACT | JSON_ENSURE_ASCII);

	(void)first;
	if (!text)
		return -ENOMEM;
	fprintf(out, "%" PRIu64 ",0,end,", end->ts);
	name_print_csv(out, text);
	fputs(",,,,0,0\r\n", out);
	return 0;
}

const struct timeline_format timeline_csv = {
	.name = "csv",
	.extension = ".csv",
	.describe = describe,
	.describe_caller = describe_caller,
	.head = head,
	.row = row,
	.mark = mark,
	.tail = tail,
};
