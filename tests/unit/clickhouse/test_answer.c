// SPDX-License-Identifier: BSD-2-Clause
/* Answers: a snapshot from them, and damaged ones, which are refused. */
#include "clickhouse/answer.h"

#include <errno.h>

#include "clickhouse/ids.h"
#include "clickhouse/rows.h"
#include "harness/test.h"

static struct answer_summary summary_of(const char *mode)
{
	struct answer_summary s = {.intervals = 2, .hosts = 2, .processes = 3, .end_ns = 10};

	snprintf(s.mode.min, sizeof(s.mode.min), "%s", mode);
	s.mode = (struct answer_range){0};
	snprintf(s.mode.min, sizeof(s.mode.min), "%s", mode);
	snprintf(s.mode.max, sizeof(s.mode.max), "%s", mode);
	snprintf(s.host.max, sizeof(s.host.max), "b");
	return s;
}

static void put_function(struct rows *r, uint64_t id, const char *name)
{
	rows_put_u64(r, id);
	rows_put_str(r, "a.py");
	rows_put_u32(r, 7);
	rows_put_str(r, name);
	rows_put_str(r, "");
	rows_put_u8(r, 0);
	rows_put_u32(r, 0);
	rows_put_u8(r, 0);
}

static void put_figure(struct rows *r, uint64_t function, const char *name, uint64_t value)
{
	rows_put_u64(r, function);
	rows_put_str(r, name);
	rows_put_u64(r, value);
	rows_put_u64(r, value);
	rows_put_double(r, 4.0);
}

static void put_sample(struct rows *r, const struct stack_id *stack, uint64_t ns)
{
	rows_put_bytes(r, stack->bytes, STACK_ID_BYTES);
	rows_put_u64(r, 3); /* calls */
	rows_put_u64(r, ns);
	rows_put_u64(r, 2 * ns);
}

static void put_detail(struct rows *r, const struct stack_id *stack, const char *name, uint64_t sum,
		       uint64_t max, uint64_t min)
{
	rows_put_bytes(r, stack->bytes, STACK_ID_BYTES);
	rows_put_str(r, name);
	rows_put_u64(r, sum);
	rows_put_u64(r, max);
	rows_put_u64(r, min);
}

#define PARTS 5

struct parts {
	struct rows of[PARTS]; /* functions, figures, stacks, samples, details */
};

enum { FUNCTIONS_PART, FIGURES_PART, STACKS_PART, SAMPLES_PART, DETAILS_PART };

static void parts_deinit(struct parts *p)
{
	for (int i = 0; i < PARTS; i++)
		rows_deinit(&p->of[i]);
}

static void parts_sizes(const struct parts *p, size_t n[PARTS])
{
	for (int i = 0; i < PARTS; i++)
		n[i] = p->of[i].n;
}

static struct parts build(void)
{
	struct stack_id outer = stack_id_child(&stack_id_root, 1),
			inner = stack_id_child(&outer, 2), lost = stack_id_child(&inner, 3);
	struct parts p = {0};

	put_function(&p.of[FUNCTIONS_PART], 1, "outer");
	put_function(&p.of[FUNCTIONS_PART], 2, "inner");
	put_figure(&p.of[FIGURES_PART], 0, "events", 12);
	put_figure(&p.of[FIGURES_PART], 0, "measured waits_gil", 2);
	put_figure(&p.of[FIGURES_PART], 0, "of a later version", 2);
	put_figure(&p.of[FIGURES_PART], 2, "variance_self_cpu", 0);
	put_figure(&p.of[FIGURES_PART], 2, "line_ns 9", 100);
	put_figure(&p.of[FIGURES_PART], 99, "line_ns 9", 100);
	rows_put_bytes(&p.of[STACKS_PART], inner.bytes, STACK_ID_BYTES);
	rows_put_varint(&p.of[STACKS_PART], 2);
	rows_put_u64(&p.of[STACKS_PART], 1);
	rows_put_u64(&p.of[STACKS_PART], 2);
	put_sample(&p.of[SAMPLES_PART], &stack_id_root, 0);
	put_sample(&p.of[SAMPLES_PART], &inner, 1000);
	put_sample(&p.of[SAMPLES_PART], &lost, 10);
	put_detail(&p.of[DETAILS_PART], &inner, "waits_gil", 500, 300, 200);
	put_detail(&p.of[DETAILS_PART], &inner, "waits_io", 500, 300, 200); /* not measured */
	put_detail(&p.of[DETAILS_PART], &inner, "min_cpu", 14, 9, 5);
	put_detail(&p.of[DETAILS_PART], &inner, "max_wall", 14, 9, 5);
	put_detail(&p.of[DETAILS_PART], &inner, "yields", 4, 4, 4);
	put_detail(&p.of[DETAILS_PART], &inner, "of a later version", 1, 1, 1);
	put_detail(&p.of[DETAILS_PART], &lost, "inflight", 2, 2, 2);
	return p;
}

static int read_all(const struct parts *p, const size_t n[PARTS], struct snapshot **ret,
		    uint64_t *ret_unknown)
{
	static int (*const read[PARTS])(struct answer * a, const void *data, size_t n,
					struct diag *diag) = {
		answer_functions, answer_figures, answer_stacks, answer_samples, answer_details};
	struct answer_summary summary = summary_of("trace");
	struct diag diag = {0};
	struct answer *a = NULL;
	int err = answer_new(&summary, &a, &diag);

	*ret = NULL;
	for (int i = 0; i < PARTS && !err; i++)
		err = read[i](a, p->of[i].data, n[i], &diag);
	if (!err)
		err = answer_finish(a, ret, ret_unknown, &diag);
	answer_free(a);
	return err;
}

static const struct snapshot_node *node_named(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].func != SNAPSHOT_NONE &&
		    strcmp(s->funcs[s->nodes[i].func].name, name) == 0)
			return &s->nodes[i];
	return NULL;
}

Test(answer, becomes_a_snapshot)
{
	struct parts p = build();
	const struct snapshot_node *inner, *unknown;
	struct snapshot *s;
	size_t n[PARTS];
	uint64_t lost = 0;

	parts_sizes(&p, n);
	assert_ok(read_all(&p, n, &s, &lost));
	inner = node_named(s, "inner");
	unknown = node_named(s, "(unknown)");
	cr_assert(inner && unknown && node_named(s, "outer"));
	cr_assert_eq(lost, 1);
	cr_assert_eq(inner->yields, 4);
	cr_assert_eq(unknown->inflight, 2);
	cr_assert_eq(inner->self[SNAPSHOT_CPU], 1000);
	cr_assert_eq(inner->self[SNAPSHOT_WALL], 2000);
	cr_assert_eq(inner->min[SNAPSHOT_CPU], 5);
	cr_assert_eq(inner->min[SNAPSHOT_WALL], UINT64_MAX);
	cr_assert_eq(inner->max[SNAPSHOT_WALL], 9);
	cr_assert_eq(unknown->self[SNAPSHOT_CPU], 10);
	cr_assert_eq(snapshot_figure(s, COLUMN_gil, (uint32_t)(inner - s->nodes)), 500);
	cr_assert_eq(s->measured, COLUMN_BIT(COLUMN_gil));
	cr_assert_eq(s->targets[0].events, 12);
	cr_assert_eq(s->funcs[inner->func].nlines, 1);
	cr_assert(snapshot_error(&s->funcs[inner->func], SNAPSHOT_TOT_CPU) == 2.0);
	cr_assert_str_eq(s->host, "2 hosts");
	snapshot_free(s);
	parts_deinit(&p);
	check_no_leaks();
}

/* Cut off anywhere, an answer is an error or a valid snapshot, never a crash. */
Test(answer, that_is_cut_off_is_refused)
{
	struct parts p = build();
	size_t all[PARTS];
	int refused = 0;

	parts_sizes(&p, all);
	for (int part = 0; part < PARTS; part++)
		for (size_t n = 0; n < all[part]; n++) {
			size_t some[PARTS];
			struct snapshot *s;
			uint64_t lost;

			memcpy(some, all, sizeof(some));
			some[part] = n;
			if (read_all(&p, some, &s, &lost) < 0)
				refused++;
			else
				cr_assert(snapshot_valid(s));
			snapshot_free(s);
		}
	cr_assert_gt(refused, 400);
	parts_deinit(&p);
	check_no_leaks();
}

Test(answer, with_bytes_changed_does_no_harm)
{
	struct parts p = build();
	size_t all[PARTS];

	parts_sizes(&p, all);
	for (int part = 0; part < PARTS; part++)
		for (size_t i = 0; i < all[part]; i++) {
			uint8_t before = p.of[part].data[i];
			struct snapshot *s;
			uint64_t lost;

			p.of[part].data[i] = 0xff;
			if (read_all(&p, all, &s, &lost) == 0)
				cr_assert(snapshot_valid(s));
			snapshot_free(s);
			p.of[part].data[i] = before;
		}
	parts_deinit(&p);
	check_no_leaks();
}

Test(answer, of_different_modes_is_refused)
{
	struct answer_summary s = summary_of("trace");
	struct diag diag = {0};

	assert_ok(answer_check(&s, &diag));
	snprintf(s.mode.max, sizeof(s.mode.max), "sample");
	assert_err(answer_check(&s, &diag), -EINVAL);
	cr_assert(strstr(diag.hint, "--where 'mode=sample'"), "%s", diag.hint);
	diag_clear(&diag);
	s.intervals = 0;
	assert_err(answer_check(&s, &diag), -ENOENT);
}

Test(answer, summaries_and_lists_are_read)
{
	struct answer_summary s;
	struct answer_value *list = NULL;
	struct diag diag = {0};
	struct rows r = {0};
	size_t n = 0;

	for (int i = 0; i < 2; i++) {
		rows_put_str(&r, i ? "b" : "a");
		for (uint64_t k = 1; k <= 5; k++)
			rows_put_u64(&r, k);
	}
	assert_diag_ok(answer_values(r.data, r.n, &list, &n, &diag), &diag);
	cr_assert(n == 2 && list[1].wall_ns == 5 && list[0].hosts == 1);
	cr_assert_str_eq(list[1].value, "b");
	free(list);
	assert_err(answer_values(r.data, r.n - 1, &list, &n, NULL), -EBADMSG);
	assert_err(answer_summary(r.data, r.n, &s, NULL), -EBADMSG);
	assert_err(answer_summary(r.data, 39, &s, NULL), -EBADMSG);
	assert_ok(answer_summary(NULL, 0, &s, NULL));
	cr_assert_eq(s.intervals, 0);
	rows_deinit(&r);
	for (int i = 0; i < 3; i++) {
		rows_put_str(&r, i == 0 ? "mode" : i == 1 ? "kernel" : "something else");
		rows_put_str(&r, "a");
		rows_put_str(&r, "b");
	}
	assert_ok(answer_labels(r.data, r.n, &s, NULL));
	cr_assert(strcmp(s.mode.min, "a") == 0 && strcmp(s.kernel.max, "b") == 0);
	assert_err(answer_labels(r.data, r.n - 1, &s, NULL), -EBADMSG);
	rows_deinit(&r);
	check_no_leaks();
}
