// SPDX-License-Identifier: BSD-2-Clause
/* speedscope's JSON: valid, balanced, in order, and with the times of the snapshot. */
#include <jansson.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

static json_t *load(const struct snapshot *s, const struct format_opts *o)
{
	_cleanup_free_ char *report = NULL;
	json_error_t error;
	json_t *ret;
	size_t size;

	report = report_new("speedscope", s, o, &size);
	cr_assert(report_harmless(report, size), "%s", report);
	ret = json_loadb(report, size, JSON_REJECT_DUPLICATES, &error);
	cr_assert(ret, "line %d: %s", error.line, error.text);
	return ret;
}

/* Frames open and close like parentheses and never back in time. Returns the time that is covered;
 * own[frame] gets each frame's own time. */
static json_int_t replay(json_t *profile, json_int_t *own, size_t nframes)
{
	json_t *events = json_object_get(profile, "events"), *e;
	json_int_t now = 0, stack[256];
	size_t depth = 0, i;

	json_array_foreach(events, i, e)
	{
		json_int_t at = json_integer_value(json_object_get(e, "at"));
		json_int_t frame = json_integer_value(json_object_get(e, "frame"));
		const char *type = json_string_value(json_object_get(e, "type"));

		cr_assert(at >= now && frame >= 0 && (size_t)frame < nframes);
		if (depth)
			own[stack[depth - 1]] += at - now;
		else
			cr_assert_eq(at, now, "a gap between outermost frames");
		now = at;
		if (type[0] == 'O') {
			cr_assert(depth < 256);
			stack[depth++] = frame;
		} else {
			cr_assert(depth > 0 && stack[depth - 1] == frame);
			depth--;
		}
	}
	cr_assert_eq(depth, 0);
	cr_assert_eq(now, json_integer_value(json_object_get(profile, "endValue")));
	return now;
}

static void assert_equals(const struct snapshot *s, enum snapshot_clock clock)
{
	struct format_opts o = {.clock = clock};
	json_t *j = load(s, &o), *profiles = json_object_get(j, "profiles"), *profile;
	_cleanup_free_ json_int_t *own = calloc(s->nfuncs + 1, sizeof(*own));
	size_t i;

	cr_assert(own);
	cr_assert_eq(json_array_size(profiles), s->nthreads);
	cr_assert_eq(json_array_size(json_object_get(json_object_get(j, "shared"), "frames")),
		     s->nfuncs);
	json_array_foreach(profiles, i, profile) replay(profile, own, s->nfuncs);
	for (uint32_t n = 0; n < s->nnodes; n++)
		if (s->nodes[n].func != SNAPSHOT_NONE)
			own[s->nodes[n].func] -= (json_int_t)s->nodes[n].self[clock];
	for (uint32_t f = 0; f < s->nfuncs; f++)
		cr_assert_eq(own[f], 0);
	json_decref(j);
}

Test(speedscope, lays_out_the_tree)
{
	for (unsigned int seed = 1; seed <= 50; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);

		assert_equals(s, SNAPSHOT_CPU);
		assert_equals(s, SNAPSHOT_WALL);
	}
	check_no_leaks();
}

Test(speedscope, has_what_its_reader_asks_for)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("thread 42 43 worker\nmain app.py:1 1 1000\n  f b.py:10 3 500\n"
			       "thread 42 44 idle\n");
	struct format_opts o = {.filter = {.tid = 43}};
	json_t *j = load(s, &o), *frame, *profile;

	cr_assert_str_eq(json_string_value(json_object_get(j, "$schema")),
			 "https://www.speedscope.app/file-format-schema.json");
	frame = json_array_get(json_object_get(json_object_get(j, "shared"), "frames"), 1);
	cr_assert_str_eq(json_string_value(json_object_get(frame, "name")), "f");
	cr_assert_str_eq(json_string_value(json_object_get(frame, "file")), "b.py");
	cr_assert_eq(json_integer_value(json_object_get(frame, "line")), 10);
	cr_assert_eq(json_array_size(json_object_get(j, "profiles")), 1);
	profile = json_array_get(json_object_get(j, "profiles"), 0);
	cr_assert_str_eq(json_string_value(json_object_get(profile, "type")), "evented");
	cr_assert_str_eq(json_string_value(json_object_get(profile, "unit")), "nanoseconds");
	cr_assert_str_eq(json_string_value(json_object_get(profile, "name")),
			 "worker (43 of 42, cpu)");
	cr_assert_eq(json_integer_value(json_object_get(profile, "endValue")), 1500);
	cr_assert(json_object_get(json_object_get(j, "pyprofd"), "targets"));
	json_decref(j);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

Test(speedscope, hostile_and_empty_snapshots_are_valid)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	_cleanup_(snapshot_freep) struct snapshot *empty = snapshot_build("thread 42 42 Main\n");

	assert_equals(s, SNAPSHOT_CPU);
	assert_equals(empty, SNAPSHOT_CPU);
}
