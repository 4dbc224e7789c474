// SPDX-License-Identifier: BSD-2-Clause
/* The state of continuous mode as text: see render.h. */
#include <inttypes.h>
#include <stdio.h>

#include "render.h"

static uint64_t count_of(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void print_count(const json_t *o, const char *key, const char *text, FILE *out)
{
	const uint64_t n = count_of(o, key);

	if (n)
		fprintf(out, ", %" PRIu64 " %s", n, text);
}

static double mib_of(const json_t *o, const char *key)
{
	return (double)count_of(o, key) / (1 << 20);
}

static void print_processes(const json_t *p, FILE *out)
{
	fprintf(out, "continuous: %" PRIu64 " processes sampled", count_of(p, "sampled"));
	print_count(p, "attaching", "being attached", out);
	print_count(p, "waiting", "waiting", out);
	print_count(p, "left_out", "left out", out);
	print_count(p, "short_lived", "ended before they were looked at", out);
	print_count(p, "over_limit", "over the limit", out);
	if (count_of(p, "refused")) {
		print_count(p, "refused", "refused, the last one: ", out);
		render_clipped(text_of(p, "last_refusal"), 0, out);
	}
	putc('\n', out);
}

static void print_disk(const json_t *disk, FILE *out)
{
	if (!json_is_object(disk))
		return;
	fputs("  on disk in ", out);
	render_clipped(text_of(disk, "directory"), 0, out);
	fprintf(out, ": %" PRIu64 " files, %.1f of %.1f MiB", count_of(disk, "files"),
		mib_of(disk, "bytes"), mib_of(disk, "max_bytes"));
	print_count(disk, "removed", "older ones removed", out);
	print_count(disk, "merged", "merged", out);
	print_count(disk, "not_merged", "spans could not be merged", out);
	print_count(disk, "failed", "could not be written", out);
	putc('\n', out);
	if (*text_of(disk, "error")) {
		fputs("  ", out);
		render_clipped(text_of(disk, "error"), 0, out);
		putc('\n', out);
	}
}

void render_continuous(const json_t *c, FILE *out)
{
	const json_t *memory = json_object_get(c, "memory");

	if (!json_is_object(c))
		return;
	print_processes(json_object_get(c, "processes"), out);
	fprintf(out, "  %.1f samples/s, intervals of %.0f s; %.2f %% of a core used, of %.2f %%",
		json_number_value(json_object_get(c, "rate_hz")),
		(double)count_of(c, "interval_ns") / 1e9,
		json_number_value(json_object_get(c, "cpu_percent")),
		json_number_value(json_object_get(c, "cpu_budget_percent")));
	print_count(c, "rate_lowered", "times lowered to keep to that", out);
	print_count(c, "left_out_cuts", "cuts left out: these intervals are longer", out);
	fprintf(out, "\n  in memory: %" PRIu64 " intervals, %.1f of %.1f MiB",
		count_of(memory, "intervals"), mib_of(memory, "bytes"),
		mib_of(memory, "max_bytes"));
	print_count(memory, "dropped", "removed for newer ones", out);
	print_count(c, "lost_intervals", "lost", out);
	putc('\n', out);
	print_disk(json_object_get(c, "disk"), out);
}
