// SPDX-License-Identifier: BSD-2-Clause
/*
 * Timelines in Chrome's trace format: a begin (B) event for each frame that is entered and an end
 * (E) for each that is left, with the kind in `cat`. ts and tts (the thread's CPU time) are
 * microseconds with three decimals, so nanoseconds are exact. Gaps are instant (i) events of their
 * thread, the trigger is one of the whole trace.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/jsonout.h"
#include "timeline/rows.h"

static const char *separator(bool first)
{
	return first ? "\n" : ",\n";
}

static int describe(FILE *out, const struct timeline_names *n)
{
	fputs(",\"name\":", out);
	if (jsonout_string(out, n->name) < 0)
		return -ENOMEM;
	fputs(",\"args\":{\"file\":", out);
	if (jsonout_string(out, n->file) < 0)
		return -ENOMEM;
	fprintf(out, ",\"line\":%" PRId32, n->line);
	return 0;
}

static int describe_caller(FILE *out, const struct timeline_names *n)
{
	fputs(",\"caller\":", out);
	return jsonout_string(out, n->name);
}

static void head(FILE *out)
{
	fputs("{\"traceEvents\":[", out);
}

static char *put_us(char *at, const char *key, uint64_t ns)
{
	at = timeline_put_number(timeline_put(at, key), ns / 1000);
	*at++ = '.';
	*at++ = (char)('0' + ns / 100 % 10);
	*at++ = (char)('0' + ns / 10 % 10);
	*at++ = (char)('0' + ns % 10);
	return at;
}

static bool is_track(enum watch_kind kind)
{
	return kind == WATCH_LARGE || kind == WATCH_RESIDENT;
}

/* A point of a counter's track: of the process, in bytes. */
static char *put_point(char *at, const struct timeline_row *r)
{
	at = timeline_put(at, ",\"name\":\"memory: ");
	at = timeline_put(timeline_put(at, watch_kind_name(r->kind)), "\",\"args\":{\"bytes\":");
	return timeline_put(timeline_put_number(at, r->count), "}");
}

static char *put_mark(char *at, const struct timeline_row *r)
{
	if (is_track(r->kind))
		return put_point(at, r);
	at = timeline_put(at, ",\"s\":\"t\",\"name\":\"(");
	at = timeline_put(timeline_put(at, watch_kind_name(r->kind)), ")\"");
	if (!r->count)
		return at;
	at = timeline_put(at, r->kind == WATCH_MAP || r->kind == WATCH_UNMAP
				      ? ",\"args\":{\"bytes\":"
				      : ",\"args\":{\"calls and returns\":");
	return timeline_put(timeline_put_number(at, r->count), "}");
}

static char *row(char *at, const struct timeline_row *r, bool first)
{
	int step = watch_kind_step(r->kind);

	at = timeline_put(at, separator(first));
	at = timeline_put(at, step > 0		  ? "{\"ph\":\"B\""
			      : step		  ? "{\"ph\":\"E\""
			      : is_track(r->kind) ? "{\"ph\":\"C\""
						  : "{\"ph\":\"i\"");
	at = timeline_put(timeline_put(at, ",\"cat\":\""), watch_kind_name(r->kind));
	*at++ = '"';
	if (step > 0) {
		at = timeline_put(at, r->func ? r->func : ",\"name\":\"?\",\"args\":{\"line\":0");
		at = timeline_put(timeline_put(at, r->caller ? r->caller : ""), "}");
	} else if (!step) {
		at = put_mark(at, r);
	}
	at = timeline_put_number(timeline_put(at, ",\"pid\":"), r->pid);
	at = timeline_put_number(timeline_put(at, ",\"tid\":"), r->tid);
	return timeline_put(put_us(put_us(at, ",\"ts\":", r->ts), ",\"tts\":", r->cpu), "}");
}

static int name_of(FILE *out, uint32_t pid, uint32_t tid, const char *text, bool first)
{
	fprintf(out,
		"%s{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		",\"args\":{\"name\":",
		separator(first), tid ? "thread" : "process", pid, tid);
	if (jsonout_string(out, text) < 0)
		return -ENOMEM;
	fputs("}}", out);
	return 0;
}

static int mark(FILE *out, const struct timeline_mark *m, bool first)
{
	char times[96], *end = put_us(put_us(times, ",\"ts\":", m->ts), ",\"tts\":", m->cpu);

	*end = '\0';
	fprintf(out,
		"%s{\"ph\":\"i\",\"cat\":\"trigger\",\"s\":\"g\",\"pid\":%" PRIu32
		",\"tid\":%" PRIu32 "%s,\"name\":",
		separator(first), m->pid, m->tid, times);
	if (jsonout_string(out, m->what) < 0)
		return -ENOMEM;
	fputs(",\"args\":{\"condition\":", out);
	if (jsonout_string(out, m->condition) < 0)
		return -ENOMEM;
	fputs("}}", out);
	return 0;
}

static int tail(FILE *out, const struct timeline_end *end, bool first)
{
	(void)first;
	fputs("\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":", out);
	if (jsonout_value(out, json_incref(end->provenance)) < 0)
		return -ENOMEM;
	fputs("}\n", out);
	return 0;
}

const struct timeline_format timeline_chrome = {
	.name = "chrome",
	.extension = ".json",
	.describe = describe,
	.describe_caller = describe_caller,
	.head = head,
	.row = row,
	.name_of = name_of,
	.mark = mark,
	.tail = tail,
};
