// SPDX-License-Identifier: BSD-2-Clause
/*
 * Resource counters and optional columns: to which function they are charged; views, saved files,
 * merging and folding preserve them.
 */
#include "base/counters.h"

#include <errno.h>

#include "format/format.h"
#include "harness/event_script.h"
#include "harness/reports.h"
#include "harness/test.h"
#include "profile/ended.h"
#include "snapshot/fold.h"
#include "snapshot/load.h"
#include "snapshot/merge.h"
#include "snapshot/pseudo.h"
#include "stats/reduce.h"
#include "stats/view.h"

/* Report the thread's counters: voluntary switches and bytes read; the others stay 0. */
static void counters(struct event_script *es, uint32_t tid, uint64_t vcsw, uint64_t rbytes)
{
	const uint64_t value[PYP_COUNTERS] = {
		[PYP_COUNTER_vcsw] = vcsw, [PYP_COUNTER_rbytes] = rbytes};
	struct event e = {.ts = 1000, .tid = tid, .type = PYP_REC_COUNTERS};

	e.u.counters.value = value;
	profile_event(event_script_profile(es), &e);
}

static struct event_script *script_new(void)
{
	struct event_script *es = event_script_new(NULL);
	const uint32_t kept = 1u << PYP_COUNTER_vcsw | 1u << PYP_COUNTER_rbytes;

	assert_ok(profile_keep_columns(event_script_profile(es), COLUMN_COUNTERS(kept)));
	return es;
}

/* "name self/cum self/cum" for each row: switches, bytes. */
static char *rows_of(const struct snapshot *s)
{
	_cleanup_(view_freep) struct view *v = NULL;
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_ok(view_build(s, NULL, &v));
	cr_assert(v->self[COLUMN_vcsw] && v->cum[COLUMN_rbytes] && !v->self[COLUMN_wbytes]);
	for (size_t i = 0; i < v->nrows; i++)
		fprintf(f, "%s %lu/%lu %lu/%lu\n", s->funcs[v->rows[i].func].name,
			v->self[COLUMN_vcsw][i], v->cum[COLUMN_vcsw][i], v->self[COLUMN_rbytes][i],
			v->cum[COLUMN_rbytes][i]);
	fclose(f);
	return text;
}

static void assert_rows(const struct snapshot *s, const char *expected)
{
	char *rows = rows_of(s);

	cr_assert_str_eq(rows, expected, "%s", rows);
	free(rows);
}

static const char expected[] = "f 1/6 100/700\n"
			       "g 5/5 600/600\n";

/* f calls g, which calls itself; the growth of each counter is charged to the running function. */
static struct snapshot *sample(void)
{
	struct event_script *es = script_new();
	struct snapshot *s;

	event_script_run(es, "T1 chain 1=f");
	counters(es, 1, 10, 1000); /* growth before the first reading is not charged */
	event_script_run(es, "T1 +1 enter 2 g 1");
	counters(es, 1, 12, 1200);
	event_script_run(es, "T1 +1 enter 3 g 2");
	counters(es, 1, 15, 1600);
	event_script_run(es, "T1 +1 leave 3; T1 +1 leave 2");
	counters(es, 1, 16, 1700);
	event_script_run(es, "T1 +1 leave 1");
	s = event_script_snapshot(es);
	event_script_free(es);
	return s;
}

Test(counters, are_charged_to_the_running_function)
{
	struct snapshot *s = sample();

	assert_rows(s, expected);
	snapshot_free(s);
	check_no_leaks();
}

Test(counters, of_a_gap_are_lost)
{
	struct event_script *es = script_new();
	struct snapshot *s;

	event_script_run(es, "T1 enter 1 f");
	counters(es, 1, 1, 0);
	event_script_run(es, "T1 +5 chain resync 1=f");
	counters(es, 1, 4, 0);
	event_script_run(es, "T1 enter 2 g 1");
	counters(es, 1, 9, 0);
	event_script_run(es, "T1 leave 2");
	s = event_script_snapshot(es);
	assert_rows(s, "(lost) 3/3 0/0\nf 0/5 0/0\ng 5/5 0/0\n");
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

Test(counters, clearing_and_pauses)
{
	struct event_script *es = script_new();
	struct snapshot *s;

	event_script_run(es, "T1 enter 1 f");
	counters(es, 1, 1, 0);
	event_script_run(es, "+5 clear");
	counters(es, 1, 3, 0);
	event_script_run(es, "+5 end; +5 begin; T1 chain 1=f");
	counters(es, 1, 100, 0); /* growth in the pause is not charged */
	event_script_run(es, "T1 +1 enter 2 g 1");
	counters(es, 1, 101, 0);
	event_script_run(es, "T1 +1 leave 2");
	s = event_script_snapshot(es);
	assert_rows(s, "f 2/3 0/0\ng 1/1 0/0\n");
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

Test(counters, saved_and_put_together)
{
	struct snapshot *s = sample(), *loaded = NULL, *merged = NULL, *folded = NULL;
	const struct snapshot *two[2];
	struct format_opts o = {0};
	struct diag diag = {0};
	size_t n;
	char *text = report_new("json", s, &o, &n);

	assert_diag_ok(snapshot_parse(text, n, "saved", &loaded, &diag), &diag);
	cr_assert_eq(loaded->measured, s->measured);
	assert_rows(loaded, expected);
	two[0] = s;
	two[1] = loaded;
	assert_ok(snapshot_merge(two, 2, &merged));
	cr_assert_eq(merged->measured, s->measured);
	assert_rows(merged, "f 2/12 200/1400\ng 10/10 1200/1200\n");
	assert_ok(reduce_snapshot(s, &(struct reduce_opts){.only_my_code = true}, &folded));
	assert_rows(folded, expected);
	free(text);
	snapshot_free(folded);
	snapshot_free(merged);
	snapshot_free(loaded);
	snapshot_free(s);
	check_no_leaks();
}

/* Snapshots gain contexts, and later lose all but two, after the counters were recorded. */
Test(counters, contexts_that_come_later)
{
	struct event_script *es = script_new();
	struct snapshot *s, *sum = NULL;

	event_script_run(es, "T1 chain 2=f; T1 +5 leave 2");
	counters(es, 1, 1, 10);
	event_script_run(es, "T1 +5 out; T1 +5 in");
	counters(es, 1, 4, 20);
	event_script_run(es, "T1 +5 enter 1 f");
	counters(es, 1, 4, 25);
	event_script_run(es, "T1 +5 leave 1");
	s = event_script_snapshot(es);
	assert_ok(snapshot_pseudo(s));
	cr_assert(snapshot_valid(s));
	assert_rows(s, "f 0/0 5/5\n<outside> 3/3 10/10\n");
	s->ntargets = 1;
	assert_ok(snapshot_fold(&sum, s, 1));
	assert_rows(sum, "(truncated) 3/3 15/15\n");
	snapshot_free(sum);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

Test(counters, in_reports)
{
	struct snapshot *s = sample();
	struct format_opts o = {0};
	char *text = report_new("csv", s, &o, NULL);

	cr_assert(strstr(text, ",end_unix_ns,counters_vcsw_self,counters_vcsw_cum,"
			       "counters_rbytes_self,counters_rbytes_cum,duration_cpu_p50_ns,"));
	cr_assert(strstr(text, ",1,6,100,700,") && strstr(text, ",5,5,600,600,"), "%s", text);
	free(text);
	text = report_new("counters", s, &o, NULL);
	cr_assert(strstr(text, "(vcsw): 6\n"), "%s", text);
	cr_assert(strstr(text, "        2          600          600  "), "%s", text);
	cr_assert(!strstr(text, "page faults"), "%s", text);
	free(text);
	text = report_new("text", s, &o, NULL);
	cr_assert(!strstr(text, "vcsw"));
	free(text);
	snapshot_free(s);
	check_no_leaks();
}

/* Counters are not enabled: there are no columns, and the report of counters is an error. */
Test(counters, not_kept)
{
	struct event_script *es = event_script_new(NULL);
	struct format_opts o = {0};
	struct diag diag = {0};
	struct snapshot *s;
	FILE *out = fopen("/dev/null", "w");
	char *text;

	event_script_run(es, "T1 enter 1 f");
	counters(es, 1, 1, 0);
	event_script_run(es, "T1 leave 1");
	s = event_script_snapshot(es);
	cr_assert(!s->measured && !snapshot_columns(s));
	text = report_new("csv", s, &o, NULL);
	cr_assert(!strstr(text, "vcsw"));
	free(text);
	cr_assert(format_write(format_find("counters"), s, &o, out, &diag) < 0 &&
		  diag.exit == PYP_EXIT_FAILURE);
	fclose(out);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

Test(counters, lists)
{
	struct diag diag = {0};
	uint32_t bits = 0;

	assert_ok(counters_parse("all", &bits, NULL));
	cr_assert_eq(bits, (1u << PYP_COUNTERS) - 1);
	assert_ok(counters_parse("vcsw,io", &bits, NULL));
	cr_assert_eq(bits,
		     1u << PYP_COUNTER_vcsw | 1u << PYP_COUNTER_rbytes | 1u << PYP_COUNTER_wbytes);
	for (int k = 0; k < PYP_COUNTERS; k++) {
		assert_ok(counters_parse(column_table[COLUMN_vcsw + k].name, &bits, NULL));
		cr_assert_eq(bits, 1u << k);
	}
	for (const char *const *bad =
		     (const char *const[]){"", ",", "vcsw,", "bogus", "vcs", "all ", NULL};
	     *bad; bad++) {
		diag_clear(&diag);
		cr_assert(counters_parse(*bad, &bits, &diag) == -EINVAL &&
				  diag.exit == PYP_EXIT_USAGE,
			  "%s", *bad);
	}
}

TestSuite(memory_columns);

static void memory(struct event_script *es, int64_t resident, int64_t mapped)
{
	struct event e = {.ts = 1000, .tid = 1, .type = PYP_REC_MEMORY};

	e.u.memory.resident = resident;
	e.u.memory.mapped = mapped;
	profile_event(event_script_profile(es), &e);
}

/* Growth and shrinking are charged to the running function; f calls g. */
Test(memory_columns, are_charged_to_the_running_function)
{
	struct event_script *es = event_script_new(NULL);
	struct format_opts o = {0};
	struct snapshot *s;
	char *text;

	assert_ok(
		profile_keep_columns(event_script_profile(es), counters_columns(COUNTERS_MEMORY)));
	event_script_run(es, "T1 chain 1=f");
	memory(es, 131072, 262144);
	event_script_run(es, "T1 +1 enter 2 g 1");
	memory(es, 1 << 20, 1 << 20);
	memory(es, -65536, 0);
	memory(es, 0, 262144);
	event_script_run(es, "T1 +1 leave 2");
	memory(es, -(1 << 20), -(1 << 20));
	event_script_run(es, "T1 +1 leave 1");
	s = event_script_snapshot(es);
	cr_assert_eq(s->measured, column_group("memory"));
	text = report_new("memory", s, &o, NULL);
	cr_assert(strstr(text, "grown 1152 KiB, given back 1088 KiB"), "%s", text);
	cr_assert(strstr(text, "       1024          64        +960        1280           0       2"
			       "           0       0  "),
		  "%s", text);
	cr_assert(strstr(text, "        128        1024        -896         256        1024       1"
			       "           0       0  "),
		  "%s", text);
	free(text);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

static void block(struct event_script *es, uint64_t address, uint64_t size, uint16_t arg)
{
	struct event e = {.ts = 1000, .tid = 1, .type = PYP_REC_BLOCK, .arg = arg};

	e.u.block.address = address;
	e.u.block.size = size;
	profile_event(event_script_profile(es), &e);
}

static uint64_t own(const struct view *v, const char *name, int column)
{
	for (size_t i = 0; i < v->nrows; i++)
		if (strcmp(v->snapshot->funcs[v->rows[i].func].name, name) == 0)
			return v->self[column][i];
	return UINT64_MAX;
}

#define MIB (UINT64_C(1) << 20)

/* Whoever unmaps a block, it is live in the function that has mapped it. */
Test(memory_columns, live_blocks)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;
	struct view *v;

	assert_ok(
		profile_keep_columns(event_script_profile(es), counters_columns(COUNTERS_MEMORY)));
	event_script_run(es, "T1 chain 1=f");
	block(es, 100 * MIB, 8 * MIB, 0);
	event_script_run(es, "T1 +1 enter 2 g 1");
	block(es, 200 * MIB, MIB, 0);
	block(es, 300 * MIB, MIB, 0);
	block(es, 100 * MIB, MIB, PYP_BLOCK_UNMAP);	  /* its start */
	block(es, 103 * MIB, MIB, PYP_BLOCK_UNMAP);	  /* from its middle */
	block(es, 107 * MIB, 100 * MIB, PYP_BLOCK_UNMAP); /* its end, and all of another */
	block(es, 500 * MIB, 3 * MIB, PYP_BLOCK_UNMAP);	  /* unknown */
	block(es, 300 * MIB, 4096, PYP_BLOCK_UNMAP);	  /* a small part */
	event_script_run(es, "T1 +1 leave 2");
	event_script_run(es, "T1 +1 leave 1");
	s = event_script_snapshot(es);
	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(own(v, "f", COLUMN_mapped), 8 * MIB);
	cr_assert_eq(own(v, "f", COLUMN_live), 5 * MIB);
	cr_assert_eq(own(v, "f", COLUMN_large), 1);
	cr_assert_eq(own(v, "f", COLUMN_unmapped), 0);
	cr_assert_eq(own(v, "g", COLUMN_live), MIB - 4096);
	cr_assert_eq(own(v, "g", COLUMN_large), 2);
	cr_assert_eq(own(v, "g", COLUMN_unmapped), 105 * MIB);
	view_free(v);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

/* While tracing is off, blocks are unmapped unseen: at its next start, nothing is live. */
Test(memory_columns, live_blocks_end_with_tracing)
{
	struct event_script *es = event_script_new(NULL);
	struct profile *p = event_script_profile(es);
	struct snapshot *s;
	struct view *v;

	assert_ok(profile_keep_columns(p, counters_columns(COUNTERS_MEMORY)));
	event_script_run(es, "T1 chain 1=f");
	block(es, 100 * MIB, 8 * MIB, 0);
	profile_end(p, 2000);
	s = event_script_snapshot(es);
	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(own(v, "f", COLUMN_live), 8 * MIB);
	view_free(v);
	snapshot_free(s);
	profile_begin(p, 3000);
	s = event_script_snapshot(es);
	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(own(v, "f", COLUMN_live), 0);
	cr_assert_eq(own(v, "f", COLUMN_mapped), 8 * MIB);
	view_free(v);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

static void stack_of(struct event_script *es, const uint64_t *codes, uint32_t n)
{
	struct event e = {.ts = 1000, .tid = 1, .type = PYP_REC_SAMPLE};

	e.u.sample = (struct event_sample){.count = n,
					   .flags = PYP_SAMPLE_LAST | PYP_SAMPLE_MEMORY,
					   .offset = PYP_SAMPLE_NO_OFFSET,
					   .codes = codes};
	profile_event(event_script_profile(es), &e);
}

/* Figures of the only context with a function of this name; NULL: of the root. */
static uint64_t figure_of(const struct snapshot *s, const char *name, int column)
{
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (name ? s->nodes[i].func != SNAPSHOT_NONE &&
				    strcmp(s->funcs[s->nodes[i].func].name, name) == 0
			 : s->nodes[i].func == SNAPSHOT_NONE)
			return snapshot_figure(s, column, i);
	return UINT64_MAX;
}

static void thread_block(struct event_script *es, uint32_t tid, uint64_t address, uint16_t arg)
{
	struct event e = {.ts = 1000, .tid = tid, .type = PYP_REC_BLOCK, .arg = arg};

	e.u.block.address = address;
	e.u.block.size = MIB;
	profile_event(event_script_profile(es), &e);
}

/* Blocks outlive their threads, whose contexts are merged; the first two are unmapped after that. */
Test(memory_columns, blocks_of_ended_threads)
{
	const uint32_t n = ENDED_APART + 10;
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;
	uint64_t sum = 0;

	assert_ok(
		profile_keep_columns(event_script_profile(es), counters_columns(COUNTERS_MEMORY)));
	for (uint32_t tid = 1; tid <= n; tid++) {
		event_script_run(es, "T1 enter 1 f");
		thread_block(es, 1, tid * MIB, 0);
		event_script_run(es, "T1 leave 1; T1 +1 exit");
	}
	event_script_run(es, "T1 enter 1 g");
	thread_block(es, 1, MIB, PYP_BLOCK_UNMAP);
	thread_block(es, 1, 2 * MIB, PYP_BLOCK_UNMAP);
	s = event_script_snapshot(es);
	cr_assert_lt(s->nthreads, n);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		cr_assert_leq(snapshot_figure(s, COLUMN_live, i), n * MIB, "node %u", i);
		sum += snapshot_figure(s, COLUMN_live, i);
	}
	cr_assert_eq(sum, (n - 2) * MIB);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

/* After a loss, it is not known which function changed the memory, until the stack is. */
Test(memory_columns, after_a_loss)
{
	struct event_script *es = event_script_new(NULL);
	struct event e = {.ts = 1000, .tid = 1, .type = PYP_REC_MEMORY, .arg = PYP_MEMORY_LOST};
	struct snapshot *s;

	assert_ok(
		profile_keep_columns(event_script_profile(es), counters_columns(COUNTERS_MEMORY)));
	memory(es, 4096, 0); /* of a thread that is not known */
	event_script_run(es, "T1 enter 1 f");
	e.u.memory.resident = 8192;
	e.u.memory.pools = 3;
	profile_event(event_script_profile(es), &e);
	e.arg = 0;
	e.u.memory.resident = 0;
	e.u.memory.mapped = -12288;
	e.u.memory.pools = 4;
	profile_event(event_script_profile(es), &e);
	event_script_run(es, "T1 +5 chain resync 1=f");
	memory(es, 16384, 0);
	block(es, MIB, MIB, PYP_MEMORY_LOST);
	event_script_run(es, "T1 +1 leave 1");
	memory(es, 32768, 65536);
	s = event_script_snapshot(es);
	cr_assert_eq(figure_of(s, "(lost)", COLUMN_grown), 8192 + 16384);
	cr_assert_eq(figure_of(s, "(lost)", COLUMN_pools), 3);
	cr_assert_eq(figure_of(s, "(lost)", COLUMN_mapped), MIB);
	cr_assert_eq(figure_of(s, "f", COLUMN_pools), 4);
	cr_assert_eq(figure_of(s, "f", COLUMN_unmapped), 12288);
	cr_assert_eq(figure_of(s, "f", COLUMN_grown), 0);
	cr_assert_eq(figure_of(s, "f", COLUMN_shrunk), 0);
	cr_assert_eq(figure_of(s, NULL, COLUMN_grown), 32768);
	cr_assert_eq(figure_of(s, NULL, COLUMN_mapped), 65536);
	cr_assert_eq(figure_of(s, NULL, COLUMN_large), 1);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

struct heard {
	char text[512];
	size_t at;
};

static bool hear(void *ctx, const struct watch_event *e)
{
	struct heard *h = ctx;

	if (e->kind >= WATCH_MAP)
		h->at += (size_t)snprintf(h->text + h->at, sizeof(h->text) - h->at, "%s %lu, ",
					  watch_kind_name(e->kind), e->count >> 10);
	return true;
}

static bool hears(void *ctx)
{
	(void)ctx;
	return true;
}

/* In KiB: what is mapped and unmapped in large blocks, how much of these there is, and all of the memory. */
Test(memory_columns, are_watched)
{
	struct event_script *es = event_script_new(NULL);
	struct profile *p = event_script_profile(es);
	struct event e = {.ts = 1000, .tid = 1, .type = PYP_REC_MEMORY};
	struct heard h = {.at = 0};
	const struct watcher w = {.fn = hear, .ready = hears, .ctx = &h, .until_ns = UINT64_MAX};

	assert_ok(profile_watch(p, &w));
	event_script_run(es, "T1 enter 1 f");
	block(es, 100 * MIB, 8 * MIB, 0); /* not measured yet */
	assert_ok(profile_keep_columns(p, counters_columns(COUNTERS_MEMORY)));
	e.u.memory.resident = 4096;
	e.u.memory.total = 7 * MIB;
	profile_event(p, &e);
	e.u.memory.total = 0;
	profile_event(p, &e);
	e.u.memory.resident = 0;
	e.u.memory.mapped = 4096;
	e.u.memory.total = 9 * MIB;
	profile_event(p, &e);
	block(es, 200 * MIB, MIB, 0);
	block(es, 200 * MIB, 4096, PYP_BLOCK_UNMAP);
	block(es, 300 * MIB, PYP_BLOCK_MIN, PYP_BLOCK_UNMAP);
	block(es, 200 * MIB, MIB, PYP_BLOCK_UNMAP);
	profile_end(p, 2000);
	block(es, 200 * MIB, MIB, 0);
	cr_assert_str_eq(
		h.text, "resident 7168, map 1024, large 1024, large 1020, unmap 128, unmap 1024, ");
	profile_unwatch(p, 3000);
	event_script_free(es);
	check_no_leaks();
}

/* Outside of mode trace, a change waits for its stack; without one it belongs to no function. */
Test(memory_columns, with_stacks)
{
	struct event_script *es = event_script_new(NULL);
	struct profile *p = event_script_profile(es);
	struct event e = {.ts = 1000, .tid = 1, .type = PYP_REC_MEMORY, .arg = PYP_MEMORY_STACK};
	static const uint64_t none;
	uint64_t lost = 0, outside = 0;
	struct snapshot *s;

	assert_ok(profile_keep_columns(p, counters_columns(COUNTERS_MEMORY)));
	profile_traces_calls(p, false);
	e.u.memory.resident = 65536;
	profile_event(p, &e);
	stack_of(es, &none, 0);
	e.u.memory.resident = 131072;
	profile_event(p, &e); /* its stack is missing */
	block(es, 100 * MIB, MIB, PYP_MEMORY_STACK);
	stack_of(es, &none, 0);
	stack_of(es, &none, 0);			    /* of nothing */
	block(es, 100 * MIB, MIB, PYP_BLOCK_UNMAP); /* without a stack */
	s = event_script_snapshot(es);
	cr_assert_eq(s->nthreads, 1);
	for (uint32_t i = 0; i < s->nnodes; i++)
		*(s->nodes[i].parent == SNAPSHOT_NONE ? &outside : &lost) +=
			snapshot_figure(s, COLUMN_grown, i);
	cr_assert(outside == 65536 && lost == 131072, "%lu %lu", (unsigned long)outside,
		  (unsigned long)lost);
	cr_assert_eq(snapshot_figure(s, COLUMN_mapped, s->threads[0].root), MIB);
	cr_assert_eq(snapshot_figure(s, COLUMN_live, s->threads[0].root), 0);
	cr_assert_eq(figure_of(s, "(lost)", COLUMN_unmapped), MIB);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

Test(memory_columns, by_name)
{
	char text[64];
	uint32_t bits = 0;

	assert_ok(counters_parse("vcsw,memory", &bits, NULL));
	cr_assert_eq(bits, 1u << PYP_COUNTER_vcsw | COUNTERS_MEMORY);
	cr_assert_str_eq(counters_list(bits, text, sizeof(text)), "vcsw,memory");
	cr_assert_eq(counters_columns(bits), COLUMN_BIT(COLUMN_vcsw) | column_group("memory"));
}
