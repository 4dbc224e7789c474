// SPDX-License-Identifier: BSD-2-Clause
/* Saved snapshots: loading restores them; damaged files are refused. */
#include "snapshot/load.h"

#include <errno.h>
#include <string.h>

#include "base/wait.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "snapshot/lines.h"

static char *save(const struct snapshot *s, size_t *size)
{
	struct format_opts o = {.clock = s->clock};

	return report_new("json", s, &o, size);
}

static struct snapshot *parse(const char *data, size_t size)
{
	struct snapshot *ret = NULL;
	struct diag diag = {0};

	assert_diag_ok(snapshot_parse(data, size, "test", &ret, &diag), &diag);
	cr_assert(snapshot_valid(ret));
	return ret;
}

/* Saving, loading and saving again gives the same bytes. */
static void assert_round_trip(const struct snapshot *s)
{
	size_t size, again_size;
	_cleanup_free_ char *saved = save(s, &size);
	_cleanup_(snapshot_freep) struct snapshot *loaded = parse(saved, size);
	_cleanup_free_ char *again = save(loaded, &again_size);

	cr_assert_eq(size, again_size, "%s\n%s", saved, again);
	assert_bytes_eq(saved, again, size);
}

/* Lines of functions, and files whose lines are impossible. */
Test(load, lines)
{
	static const struct snapshot_line v[] = {{0, 1, 10, 100}, {4, 2, 20, 200}, {9, 1, 10, 100}};
	static const char *const damage[][2] = {{"[4,20,", "[9,20,"}, {"[4,20,", "[\"\",20,"}};
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 2 100000\n");
	struct snapshot *loaded;
	size_t size;
	char *saved, *at;

	s->targets[0].mode = MODE_SAMPLE;
	assert_ok(snapshot_add_lines(s, &s->funcs[0], v, 3));
	assert_round_trip(s);
	saved = save(s, &size);
	cr_assert(strstr(saved, "\"lines\":[[0,10,10,1],[4,20,14,2],[9,10,10,1]]"), "%s", saved);
	for (size_t i = 0; i < 2; i++) {
		_cleanup_free_ char *bad = NULL;
		struct diag diag = {0};

		at = strstr(saved, damage[i][0]);
		cr_assert(asprintf(&bad, "%.*s%s%s", (int)(at - saved), saved, damage[i][1],
				   at + strlen(damage[i][0])) > 0);
		assert_err(snapshot_parse(bad, strlen(bad), "test", &loaded, &diag), -EBADMSG);
	}
	free(saved);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/*
 * An unknown shortest call is null and remains null; a 0 written by an earlier version was never
 * measured, and becomes null.
 */
Test(load, unknown_extremes)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 2 100000\n");
	struct snapshot_node *n = &s->nodes[1];
	static const char unknown[] = "\"min\":{\"cpu\":null,\"wall\":7}",
			  written[] = "\"min\":{\"cpu\":0,\"wall\":7}";
	struct snapshot *loaded, *old;
	size_t size;
	char *saved, *at;

	n->min[SNAPSHOT_CPU] = SNAPSHOT_MIN_UNKNOWN;
	n->min[SNAPSHOT_WALL] = 7;
	n->max[SNAPSHOT_CPU] = n->max[SNAPSHOT_WALL] = 9;
	saved = save(s, &size);
	cr_assert(strstr(saved, unknown), "%s", saved);
	assert_round_trip(s);
	loaded = parse(saved, size);
	cr_assert_eq(loaded->nodes[1].min[SNAPSHOT_CPU], SNAPSHOT_MIN_UNKNOWN);
	cr_assert_eq(loaded->nodes[1].min[SNAPSHOT_WALL], 7);
	snapshot_free(loaded);
	while ((at = strstr(saved, unknown))) {
		memcpy(at, written, sizeof(written) - 1);
		memset(at + sizeof(written) - 1, ' ', sizeof(unknown) - sizeof(written));
	}
	old = parse(saved, size);
	cr_assert_eq(old->nodes[1].min[SNAPSHOT_CPU], SNAPSHOT_MIN_UNKNOWN);
	snapshot_free(old);
	free(saved);
	check_no_leaks();
}

Test(load, what_was_saved)
{
	for (unsigned int seed = 1; seed <= 30; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);

		s->clock = seed % 2 ? SNAPSHOT_CPU : SNAPSHOT_WALL;
		s->funcs[0].pseudo = true;
		s->funcs[s->nfuncs - 1].variant = 3;
		s->targets[0].losses[seed % PYP_LOSS_MAX] = seed;
		s->targets[0].truncated = seed;
		s->targets[0].unmatched = 2 * seed;
		s->targets[0].cost.known = seed & 1;
		if (seed & 1)
			s->targets[0].cost.before[COST_LEAVE] = seed;
		s->targets[0].missed_switches = 5 * seed;
		s->targets[0].corrected = seed & 1;
		s->targets[0].subtracted[SNAPSHOT_WALL] = 3 * seed;
		s->targets[0].clamped = 4 * seed;
		s->nodes[s->nnodes - 1].inflight = 3;
		s->targets[0].mechanism = seed & 1 ? "a link" : NULL;
		s->targets[0].self_test = seed & 2 ? "passed" : NULL;
		s->targets[0].warnings = seed & 4 ? "a JIT" : NULL;
		s->targets[0].mode = (enum mode)(seed % 3);
		if (s->targets[0].mode == MODE_SAMPLE)
			s->targets[0].estimate =
				(struct snapshot_estimate){99, 10101010, seed, seed, seed};
		assert_round_trip(s);
	}
	check_no_leaks();
}

/* Of a target, every number differs from all others. */
static void fill_target(struct snapshot *s, struct snapshot_target *t)
{
	uint64_t n = 100;

	t->estimate = (struct snapshot_estimate){99, n++, n++, n++, n++};
	t->builtins = t->misses_calls = t->corrected = true;
	t->parent = (uint32_t)n++;
	t->folded = (uint32_t)n++;
	t->execs = (uint32_t)n++;
	t->fork_gap_ns = n++;
	t->exec_gap_ns = n++;
	t->follows = true;
	t->children = (struct snapshot_children){n++, n++, n++, n++};
	for (const struct snapshot_fact *f = snapshot_facts; f->key; f++)
		*snapshot_fact(t, f) = n++;
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		t->losses[i] = n++;
	t->cost.known = true;
	for (int k = 0; k < COST_KINDS; k++) {
		t->cost.before[k] = (uint32_t)n++;
		t->cost.after[k] = (uint32_t)n++;
	}
	t->cost_scale = 1.25;
	t->overhead_ns = n++;
	t->own_cpu_ns = n++;
	t->subtracted[SNAPSHOT_CPU] = n++;
	t->subtracted[SNAPSHOT_WALL] = n++;
	t->clamped = n++;
	t->windows = (struct snapshot_windows){.sampled = true,
					       .max_overhead = (uint32_t)n++,
					       .n = n++,
					       .span_ns = n++,
					       .seen_cpu_ns = n++,
					       .all_cpu_ns = n++,
					       .samples = n++,
					       .samples_factor = 1.5,
					       .failed = n++,
					       .unsampled = "no timers"};
	t->waits = (struct snapshot_waits){.measured = true,
					   .gil_known = true,
					   .walked = true,
					   .walks = n++,
					   .pairs_dropped = n++};
	t->waits.other = snapshot_alloc(s, 2, sizeof(*t->waits.other));
	t->waits.nother = 2;
	t->waits.other[0] = (struct snapshot_call){"quotactl", n++, n++};
	t->waits.other[1] = (struct snapshot_call){"unknown", n++, n++};
}

static void fill_rest(struct snapshot *s)
{
	struct histogram_sum some = {.count = 5};
	uint64_t n = 1000;

	some.n[40] = 2;
	some.n[80] = 3;
	s->coros = snapshot_alloc(s, SNAPSHOT_CORO_KINDS, sizeof(*s->coros));
	s->ncoros = SNAPSHOT_CORO_KINDS;
	for (int i = 0; i < SNAPSHOT_CORO_KINDS; i++)
		s->coros[i] = (struct snapshot_coro){42,    1,	 (enum snapshot_coro_kind)i,
						     i & 1, n++, n++,
						     n++,   n++, {n++, n++},
						     n++,   n++, n++,
						     n++,   n++};
	s->gil_pairs = snapshot_alloc(s, 1, sizeof(*s->gil_pairs));
	s->gil_pairs[0] = (struct snapshot_gil_pair){42, 1, SNAPSHOT_NONE, n++};
	s->ngil_pairs = 1;
	s->measured = COLUMN_COUNTERS((1u << PYP_COUNTERS) - 1) | COLUMN_WAITS |
		      column_group("memory") | COLUMN_BIT(COLUMN_gil_held_ns);
	assert_ok(snapshot_reserve_columns(s, s->measured, s->nnodes));
	s->wholes = snapshot_alloc(s, s->nnodes, sizeof(*s->wholes));
	s->wholes[2] = (struct snapshot_whole){1e15, 2, 1e30, 4.25, 5};
	for (uint32_t i = 0; i < s->nnodes; i++) {
		for (int c = 0; c < COLUMNS; c++)
			if (s->columns[c])
				s->columns[c][i] = n++;
		s->nodes[i].min[0] = n++, s->nodes[i].min[1] = n++;
		s->nodes[i].max[0] = n++, s->nodes[i].max[1] = n++;
		s->nodes[i].inflight = (uint32_t)n++;
	}
	for (uint32_t i = 0; i < s->nfuncs; i++)
		for (int k = 0; k < SNAPSHOT_FIGURES; k++, n++)
			s->funcs[i].variance[k] = k == (int)i ? -1 : (double)(n * n);
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		assert_ok(snapshot_add_durations(s, &s->funcs[1], c, &some, 1000 + (uint64_t)c));
	s->threads[1].folded = n++;
	s->threads[1].entry = "f";
	s->funcs[0].variant = INT32_MAX;
	s->nodes[2].inflight = UINT32_MAX - 1;
	s->taken_unix_ns = INT64_MAX;
}

static const char *const full = "target 42\nthread 42 43 worker\nmain a.py:1 2 100000\n"
				"  f a.py:2147483647 1 5\nthread 42 0 rows\n"
				"f a.py:2147483647 3 9\n";

Test(load, everything)
{
	for (int mode = 0; mode < 4; mode++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(full), *l = NULL;
		_cleanup_free_ char *saved = NULL;
		size_t size;

		fill_target(s, &s->targets[0]);
		fill_rest(s);
		if (mode < 3)
			s->targets[0].mode = (enum mode)mode;
		else
			s->folded = s->stripped = true, s->builtins_of = "len";
		assert_round_trip(s);
		saved = save(s, &size);
		l = parse(saved, size);
		cr_assert_eq(l->taken_unix_ns, INT64_MAX);
		cr_assert(l->folded == s->folded && l->stripped == s->stripped);
		cr_assert(!l->builtins_of == (mode < 3));
		cr_assert_eq(l->nodes[2].inflight, UINT32_MAX - 1);
		cr_assert(l->threads[1].folded && strcmp(l->threads[1].entry, "f") == 0);
		cr_assert_eq(l->ncoros, SNAPSHOT_CORO_KINDS);
		cr_assert_eq(l->coros[3].kind, SNAPSHOT_GREENLET);
		cr_assert_eq(l->coros[3].max, s->coros[3].max);
		cr_assert(l->gil_pairs[0].ns == s->gil_pairs[0].ns &&
			  l->gil_pairs[0].waiter == SNAPSHOT_NONE);
		cr_assert_eq(l->measured, s->measured);
		cr_assert_eq(snapshot_figure(l, COLUMN_pools, 4), s->columns[COLUMN_pools][4]);
		cr_assert_eq(l->targets[0].windows.all_cpu_ns, s->targets[0].windows.all_cpu_ns);
		cr_assert_eq(l->targets[0].waits.nother, 2);
		cr_assert_eq(l->targets[0].children.failed, s->targets[0].children.failed);
		cr_assert_eq(l->funcs[1].durations[1].max, 1001);
		cr_assert_eq(memcmp(l->wholes, s->wholes, s->nnodes * sizeof(*s->wholes)), 0);
	}
	check_no_leaks();
}

/* The longest waits; reasons that do not exist. */
Test(load, waits)
{
	static struct snapshot_wait v[] = {
		{.pid = 42, .tid = 43, .why = WAIT_lock, .ns = 9, .end_ns = 20, .fd = SNAPSHOT_NONE},
		{.pid = 42,
		 .tid = 43,
		 .why = WAIT_other,
		 .ns = 7,
		 .end_ns = 10,
		 .syscall = "read",
		 .fd = 3}};
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("thread 42 43 worker\nmain app.py:1 1 1000\n");
	struct snapshot *loaded;
	struct diag diag = {0};
	size_t size;
	char *saved;

	s->measured = COLUMN_WAITS;
	s->waits = v;
	s->nwaits = 2;
	assert_round_trip(s);
	saved = save(s, &size);
	loaded = parse(saved, size);
	cr_assert(loaded->nwaits == 2 && loaded->waits[1].fd == 3 &&
		  loaded->waits[0].why == WAIT_lock);
	snapshot_free(loaded);
	memcpy(strstr(saved, "\"reason\":\"lock\"") + strlen("\"reason\":\""), "LOCK", 4);
	assert_err(snapshot_parse(saved, size, "test", &loaded, &diag), -EBADMSG);
	free(saved);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

Test(load, fields)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("thread 42 43 worker\n"
			       "main app.py:1 1 1000 2000\n");
	_cleanup_(snapshot_freep) struct snapshot *l = NULL;
	_cleanup_free_ char *saved = NULL;
	size_t size;

	s->clock = SNAPSHOT_WALL;
	saved = save(s, &size);
	l = parse(saved, size);
	cr_assert_eq(l->clock, SNAPSHOT_WALL);
	cr_assert_str_eq(l->host, "testhost");
	cr_assert_eq(l->taken_unix_ns, s->taken_unix_ns);
	cr_assert_eq(l->targets[0].start_unix_ns, s->targets[0].start_unix_ns);
	cr_assert_str_eq(l->targets[0].build_id, "0123456789abcdef");
	cr_assert_str_eq(l->threads[0].name, "worker");
	cr_assert_eq(l->threads[0].total[SNAPSHOT_WALL], s->threads[0].total[SNAPSHOT_WALL]);
	cr_assert_eq(l->nodes[1].self[SNAPSHOT_WALL], 2000);
	cr_assert_eq(l->nodes[0].min[SNAPSHOT_CPU], UINT64_MAX);
	cr_assert_null(l->funcs[0].qualname);
}

/* Bytes that are not UTF-8 are replaced when saving; after that nothing changes. */
Test(load, hostile_names)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	size_t size;
	_cleanup_free_ char *saved = save(s, &size);
	_cleanup_(snapshot_freep) struct snapshot *l = parse(saved, size);

	cr_assert_eq(l->nfuncs, s->nfuncs);
	cr_assert_str_eq(l->funcs[0].name, hostile_names[0]);
	cr_assert_eq(strlen(l->funcs[l->nfuncs - 2].name), 10240);
	assert_round_trip(l);
}

static const char *const example = "target 42\nthread 42 43 worker\n"
				   "main app.py:1 1 1000\n"
				   "  f app.py:10 3 2000 2500\n"
				   "thread 42 44 other\n"
				   "main app.py:1 1 1000\n";

static void assert_refused(const char *data, size_t size, int err, enum pyp_exit exit)
{
	struct snapshot *s = NULL;
	struct diag diag = {0};
	int r = snapshot_parse(data, size, "test", &s, &diag);

	cr_assert(r == err && !s, "%d, not %d: %.*s", r, err, (int)size, data);
	cr_assert(diag.exit == exit && diag.msg[0] && diag.hint[0], "%s; %s", diag.msg, diag.hint);
}

Test(load, truncated_anywhere)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	size_t size, head = strlen("{\"format\":\"pyprofd-snapshot\",\"version\":");
	_cleanup_free_ char *saved = save(s, &size);

	/* The last character is a line feed, which is optional. */
	for (size_t n = 0; n < size - 1; n++) {
		/* A copy of this size, so that a sanitizer detects reads beyond it. */
		_cleanup_free_ char *copy = malloc(n + 1);

		cr_assert(copy);
		memcpy(copy, saved, n);
		assert_refused(copy, n, n < head ? -EINVAL : -EBADMSG,
			       n < head ? PYP_EXIT_USAGE : PYP_EXIT_FAILURE);
	}
	check_no_leaks();
}

/* In each byte two or three of its bits, all eight of them in turn */
Test(load, flipped_bits)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	size_t size, loaded = 0;
	_cleanup_free_ char *saved = save(s, &size);

	for (size_t i = 0; i < size * 8; i += 3) {
		struct snapshot *l = NULL;
		struct diag diag = {0};

		saved[i / 8] ^= (char)(1 << i % 8);
		if (snapshot_parse(saved, size, "test", &l, &diag) == 0) {
			cr_assert(snapshot_valid(l));
			loaded++;
		} else {
			cr_assert(!l && diag.msg[0]);
			cr_assert(diag.exit == PYP_EXIT_FAILURE || diag.exit == PYP_EXIT_USAGE);
		}
		snapshot_free(l);
		saved[i / 8] ^= (char)(1 << i % 8);
	}
	/* Some changes only replace digits or letters by other valid ones. */
	cr_assert(loaded > 0);
	check_no_leaks();
}

/* Returns the saved example with one piece of text replaced. */
static char *edited(const char *from, const char *to, size_t *size)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	_cleanup_free_ char *saved = save(s, size);
	char *at = strstr(saved, from), *ret;

	cr_assert(at, "there is no %s", from);
	ret = calloc(*size + strlen(to) + 1, 1);
	cr_assert(ret);
	memcpy(ret, saved, (size_t)(at - saved));
	*size = (size_t)sprintf(ret + (at - saved), "%s%s", to, at + strlen(from)) +
		(size_t)(at - saved);
	return ret;
}

static void assert_edit_refused(const char *from, const char *to, int err, enum pyp_exit exit)
{
	size_t size;
	_cleanup_free_ char *data = edited(from, to, &size);

	assert_refused(data, size, err, exit);
}

Test(load, wrong_in_every_way)
{
	static const char *const edits[][2] = {
		{"\"parent\":0", "\"parent\":7"}, /* beyond the end */
		{"\"parent\":0", "\"parent\":1"}, /* itself */
		{"\"parent\":0", "\"parent\":-1"},
		{"\"parent\":0", "\"parent\":4294967295"}, /* SNAPSHOT_NONE */
		{"\"parent\":0", "\"parent\":null"},	   /* two roots */
		{"\"parent\":0", "\"parent\":1e3"},
		{"\"parent\":0", "\"parent\":99999999999999999999"},
		{"\"func\":0", "\"func\":2"},
		{"\"func\":0", "\"func\":\"0\""},
		{"\"thread\":0", "\"thread\":9"},
		{"\"thread\":0", "\"thread\":1"},
		{"\"calls\":1", "\"calls\":-1"},
		{"\"calls\":1", "\"cells\":1"},
		{"\"self\":{", "\"self\":[{"},
		{"\"self\":{\"cpu\"", "\"self\":{\"c\""},
		{"\"calls\":1,", "\"calls\":1,\"whole\":7,"},
		{"\"calls\":1,", "\"calls\":1,\"whole\":[1,1,1,1],"},
		{"\"calls\":1,", "\"calls\":1,\"whole\":[1,1,1,1,null],"},
		{"\"calls\":1,", "\"calls\":1,\"whole\":[1,1,1,1,\"1\"],"},
		{"\"calls\":1,", "\"calls\":1,\"whole\":[1,-1,1,1,1],"},
		{"\"calls\":1,", "\"calls\":1,\"whole\":[1,1,1e31,1,1],"},
		{"\"calls\":1,", "\"calls\":1,\"whole\":[1,1,1,1e999,1],"},
		{"\"calls\":1,\"inflight\":0", "\"calls\":1,\"inflight\":4294967296"},
		{"\"calls\":1,\"inflight\":0", "\"calls\":1,\"inflight\":4294967295"},
		{"\"line\":1,", "\"line\":2147483648,"},
		{"\"line\":1,", "\"line\":-2147483649,"},
		{"\"line\":1,", "\"line\":1,\"variant\":2147483648,"},
		{"\"line\":1,", "\"lime\":1,"},
		{"\"line\":1,", "\"line\":null,"},
		{"\"name\":\"main\"", "\"name\":\"ma\\u0000in\""},
		{"\"name\":\"main\"", "\"name\":\"\\ud800\""},
		{"\"name\":\"main\"", "\"name\":\"\xff\""},
		{"\"name\":\"main\"", "\"name\":7"},
		{"\"alive\":true", "\"alive\":1"},
		{"\"nodes\":[", "\"nodes\":{"},
		{"\"nodes\":[", "\"nodes\":[7,"},
		{"\"nodes\":[", "\"nodes\":[,"},
		{"\"nodes\":[", "\"threads\":[],\"nodes\":["},
		{"\"nodes\":[", "\"knots\":["},
		{"\"clock\":\"cpu\"", "\"clock\":\"sun\""},
		{"\"clock\":\"cpu\"", "\"clock\":null"},
		{"\"version\":1", "\"version\":-1"},
		{"\"version\":1", "\"version\":{}"},
		{"\"losses\":{\"lost_events\":0", "\"losses\":{\"lost_events\":-1"},
		{"\"overhead_ns\":0", "\"overhead_ns\":-1"},
		{"\"own_cpu_ns\":0", "\"own_cpu_ns\":0.5"},
		{"\n}\n", ",\"columns\":{}\n}\n"}, /* after the contexts */
		{"\n}\n", ",\"columns\"\n}\n"},
		{"\n}\n", ",7:8\n}\n"},
		{"\n}\n", ",\"coroutines\":[{\"kind\":\"hen\",\"pid\":1}]\n}\n"},
		{"\n}\n", "\n}}\n"},
		{"\n}\n", "\n]\n"},
	};

	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++)
		assert_edit_refused(edits[i][0], edits[i][1], -EBADMSG, PYP_EXIT_FAILURE);
	check_no_leaks();
}

/* Where the damage is */
Test(load, places)
{
	static const char *const edits[][3] = {
		{"\"parent\":0", "\"parent\":-1", "element 1 of nodes): \"parent\" is not"},
		{"\"parent\":1", "\"parent\":-1", "element 2 of nodes): \"parent\" is not"},
		{"\"clock\":\"cpu\"", "\"clock\":\"sun\"", "): \"clock\" is neither"},
		{"\n}\n", "\n]\n", "): unterminated object"},
	};

	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		size_t size;
		_cleanup_free_ char *data = edited(edits[i][0], edits[i][1], &size);
		struct snapshot *s = NULL;
		struct diag diag = {0};

		assert_err(snapshot_parse(data, size, "test", &s, &diag), -EBADMSG);
		cr_assert(strstr(diag.msg, edits[i][2]), "%s", diag.msg);
		cr_assert_eq(!strstr(diag.msg, "element"), i >= 2, "%s", diag.msg);
	}
	check_no_leaks();
}

Test(load, other_files)
{
	_cleanup_free_ char *deep = malloc(1000000);

	assert_edit_refused("pyprofd-snapshot", "pyprofd-diff", -EINVAL, PYP_EXIT_USAGE);
	assert_edit_refused("\"version\":1", "\"version\":3", -ENOTSUP, PYP_EXIT_FAILURE);
	assert_refused("", 0, -EINVAL, PYP_EXIT_USAGE);
	assert_refused("null", 4, -EINVAL, PYP_EXIT_USAGE);
	assert_refused("\0\0\0", 3, -EINVAL, PYP_EXIT_USAGE);
	cr_assert(deep);
	memset(deep, '[', 1000000);
	assert_refused(deep, 1000000, -EINVAL, PYP_EXIT_USAGE);
	memcpy(deep, "{\"format\":\"pyprofd-snapshot\",\"version\":1,\"x\":", 46);
	assert_refused(deep, 1000000, -EBADMSG, PYP_EXIT_FAILURE);
}

/* Older files have no modes; older programs must not read another mode's file as a trace. */
Test(load, modes)
{
	size_t size;
	_cleanup_free_ char *old = edited("\"mode\":\"trace\",", "", &size);
	_cleanup_(snapshot_freep) struct snapshot *s = parse(old, size);
	_cleanup_free_ char *traced = NULL, *counted = NULL;

	cr_assert_eq(s->targets[0].mode, MODE_TRACE);
	traced = save(s, &size);
	cr_assert(strstr(traced, "\"version\":1,"));
	s->targets[0].mode = MODE_COUNT;
	counted = save(s, &size);
	cr_assert(strstr(counted, "\"version\":2,") && strstr(counted, "\"mode\":\"count\""));
	assert_edit_refused("\"mode\":\"trace\"", "\"mode\":\"guess\"", -EBADMSG, PYP_EXIT_FAILURE);
	assert_edit_refused("\"mode\":\"trace\"", "\"mode\":3", -EBADMSG, PYP_EXIT_FAILURE);
	assert_edit_refused("\"mode\":\"trace\"", "\"mode\":\"sample\"", -EBADMSG,
			    PYP_EXIT_FAILURE);
}

/* In pstats, C functions have the file "~" and no line; pseudo functions are not C functions. */
Test(load, c_functions)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 2 100000\n"
			       "  <built-in~method~builtins.len> ~:0 3 500\n");
	_cleanup_(snapshot_freep) struct snapshot *loaded = NULL;
	_cleanup_free_ char *saved = NULL;
	size_t size, native = 0;

	cr_assert_eq(snapshot_builtins(s), SNAPSHOT_BUILTINS_NONE);
	s->targets[0].builtins = true;
	assert_round_trip(s);
	saved = save(s, &size);
	cr_assert(strstr(saved, "\"builtins\":true") && strstr(saved, "\"native\":true"));
	loaded = parse(saved, size);
	cr_assert_eq(snapshot_builtins(loaded), SNAPSHOT_BUILTINS_ALL);
	for (uint32_t i = 0; i < loaded->nfuncs; i++)
		native += snapshot_func_is_native(&loaded->funcs[i]);
	cr_assert_eq(native, 1);
	loaded->funcs[0].pseudo = loaded->funcs[1].pseudo = true;
	cr_assert(!snapshot_func_is_native(&loaded->funcs[1]));
}

/* Members added by a later version, without other changes, are ignored. */
Test(load, unknown_members_are_passed_over)
{
	static const char *const edits[][2] = {
		{"\"nodes\":[", "\"more\":{\"a\":[1,2,{}]},\"nodes\":["},
		{"\"calls\":1", "\"calls\":1,\"colour\":\"red\""},
		{"\"overhead_ns\":0,\"own_cpu_ns\":0,", ""},
		{"\"lost_events\":0,", ""},
		{"\"resyncs\":0,", ""},
	};

	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		size_t size;
		_cleanup_free_ char *data = edited(edits[i][0], edits[i][1], &size);
		_cleanup_(snapshot_freep) struct snapshot *s = parse(data, size);

		cr_assert_eq(s->nnodes, 5);
	}
	check_no_leaks();
}

/* Columns of a later version have no names here. */
Test(load, unknown_columns)
{
	static const char known[] = "\"counters\":[\"vcsw\"]", more[] = ",\"more\":[\"x\",7]";
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example), *l = NULL;
	_cleanup_free_ char *saved = NULL, *later = NULL;
	size_t size;
	char *at;

	s->measured = COLUMN_BIT(COLUMN_vcsw);
	assert_ok(snapshot_reserve_columns(s, s->measured, s->nnodes));
	s->columns[COLUMN_vcsw][1] = 5;
	saved = save(s, &size);
	at = strstr(saved, known);
	cr_assert(at, "%s", saved);
	at += strlen(known);
	cr_assert(asprintf(&later, "%.*s%s%s", (int)(at - saved), saved, more, at) > 0);
	l = parse(later, strlen(later));
	cr_assert(l->measured == s->measured && snapshot_columns(l) == s->measured);
	cr_assert_eq(snapshot_figure(l, COLUMN_vcsw, 1), 5);
}

/* One is longer than what is read at a time, several times. */
Test(load, from_files)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(1), *l = NULL;
	char *longer = snapshot_alloc(s, 600001, 1);
	struct format_opts o = {0};
	struct diag diag = {0};
	char *dir = temp_dir_new(), path[256];

	report_save("json", s, &o, dir, "saved.json");
	snprintf(path, sizeof(path), "%s/saved.json", dir);
	assert_diag_ok(snapshot_load(path, &l, &diag), &diag);
	cr_assert_eq(l->nnodes, s->nnodes);
	snapshot_free(TAKE_PTR(l));
	memset(longer, 'x', 600000);
	s->targets[0].cmdline = longer;
	report_save("json", s, &o, dir, "saved.json");
	assert_diag_ok(snapshot_load(path, &l, &diag), &diag);
	cr_assert_str_eq(l->targets[0].cmdline, longer);
	assert_err(snapshot_load(dir, &l, &diag), -EISDIR);
	diag_clear(&diag);
	snprintf(path, sizeof(path), "%s/missing.json", dir);
	assert_err(snapshot_load(path, &l, &diag), -ENOENT);
	cr_assert(strstr(diag.msg, "missing.json"));
	temp_dir_remove(dir);
}
