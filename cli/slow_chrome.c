// SPDX-License-Identifier: BSD-2-Clause
/*
 * Slow calls in Chrome's trace format: see slow_chrome.h. Frames that are open after the last step,
 * because the call still runs or later steps are missing, end with the call.
 */
#include "slow_chrome.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define TEXT_MAX 1024

struct writer {
	FILE *out;
	const json_t *functions;
	uint64_t first_ns; /* Unix time of the earliest call */
	json_int_t pid;
	size_t track;
	bool any;
};

static uint64_t number_of(const json_t *o, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(o, key));

	return n > 0 ? (uint64_t)n : 0;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* A JSON string, cut to a bounded length */
static void put_text(const struct writer *w, const char *s)
{
	json_t *text = json_sprintf("%.*s", TEXT_MAX, s);

	/* If it was cut inside of a character, it is no UTF-8. */
	if (!text || json_dumpf(text, w->out, JSON_ENCODE_ANY) < 0)
		fputs("\"?\"", w->out);
	json_decref(text);
}

static void put_event(struct writer *w, const char *kind)
{
	fprintf(w->out, "%s\n{\"ph\":\"%s\",\"pid\":%" JSON_INTEGER_FORMAT ",\"tid\":%zu",
		w->any ? "," : "", kind, w->pid, w->track);
	w->any = true;
}

static void put_time(const struct writer *w, uint64_t ns)
{
	fprintf(w->out, ",\"ts\":%" PRIu64 ".%03u", ns / 1000, (unsigned int)(ns % 1000));
}

static void put_name(struct writer *w, const char *what, const char *name)
{
	put_event(w, "M");
	fprintf(w->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
	put_text(w, name);
	fputs("}}", w->out);
}

static void put_begin(struct writer *w, uint64_t at_ns, const json_t *function)
{
	put_event(w, "B");
	put_time(w, at_ns);
	fputs(",\"name\":", w->out);
	put_text(w, text_of(function, "name"));
	fputs(",\"args\":{\"file\":", w->out);
	put_text(w, text_of(function, "file"));
	fprintf(w->out, ",\"line\":%" PRIu64 "}}", number_of(function, "line"));
}

static void put_end(struct writer *w, uint64_t at_ns)
{
	put_event(w, "E");
	put_time(w, at_ns);
	fputc('}', w->out);
}

/* Times never go back, and no frame ends that did not begin. */
static void put_steps(struct writer *w, const json_t *call, uint64_t start_ns)
{
	uint64_t at = start_ns, end = start_ns + number_of(call, "wall_ns"), open = 0;
	json_t *step;
	size_t i;

	json_array_foreach(json_object_get(call, "steps"), i, step)
	{
		json_int_t ns = json_integer_value(json_array_get(step, 0));
		const json_t *function = json_array_get(step, 1);

		if (ns > 0 && start_ns + (uint64_t)ns > at)
			at = start_ns + (uint64_t)ns;
		if (function) {
			put_begin(w, at,
				  json_array_get(w->functions,
						 (size_t)json_integer_value(function)));
			open++;
		} else if (open) {
			put_end(w, at);
			open--;
		}
	}
	for (; open; open--)
		put_end(w, at > end ? at : end);
}

static void put_call(struct writer *w, const json_t *call)
{
	const uint64_t start = number_of(call, "start_unix_ns");
	const json_t *node = json_array_get(json_object_get(call, "nodes"), 0);
	const json_t *function = json_array_get(
		w->functions, (size_t)json_integer_value(json_object_get(node, "function")));
	char name[TEXT_MAX];

	w->pid = json_integer_value(json_object_get(call, "pid"));
	snprintf(name, sizeof(name), "#%zu %.200s, %.1f ms, thread %" PRIu64 " %.100s", w->track,
		 text_of(function, "name"), (double)number_of(call, "wall_ns") / 1e6,
		 number_of(call, "tid"), text_of(call, "thread"));
	put_name(w, "thread_name", name);
	put_steps(w, call, start > w->first_ns ? start - w->first_ns : 0);
}

static uint64_t first_start(const json_t *calls)
{
	uint64_t first = UINT64_MAX;
	json_t *call;
	size_t i;

	json_array_foreach(calls, i, call)
	{
		uint64_t start = number_of(call, "start_unix_ns");

		if (start < first)
			first = start;
	}
	return first;
}

/* All but the calls, with what is missing */
static int put_other(const struct writer *w, const json_t *result)
{
	_cleanup_(json_decrefp) json_t *other = json_copy((json_t *)result);

	if (!other)
		return -ENOMEM;
	json_object_del(other, "calls");
	json_object_del(other, "functions");
	if (json_dumpf(other, w->out, JSON_COMPACT) < 0)
		fputs("{}", w->out);
	return 0;
}

int slow_chrome(const json_t *result, FILE *out)
{
	const json_t *calls = json_object_get(result, "calls");
	struct writer w = {.out = out,
			   .functions = json_object_get(result, "functions"),
			   .first_ns = first_start(calls)};
	json_t *call;
	size_t i;
	int r;

	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", out);
	json_array_foreach(calls, i, call)
	{
		w.track = i + 1;
		put_call(&w, call);
	}
	fputs("\n],\"otherData\":", out);
	r = put_other(&w, result);
	fputs("}\n", out);
	return r;
}
