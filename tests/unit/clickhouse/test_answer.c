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

/* Samples with one measured column, waits_gil */
static void put_sample(struct rows *r, const struct stack_id *stack, uint64_t ns)
{
	rows_put_bytes(r, stack->bytes, STACK_ID_BYTES);
	rows_put_u64(r, 3); /* calls */
	rows_put_u64(r, 0);
	rows_put_u64(r, 0);
	rows_put_u64(r, ns);
	rows_put_u64(r, 2 * ns);
	for (int i = 0; i < 4; i++)
		rows_put_u64(r, i < 2 ? 5 : 9); /* min, max */
	rows_put_u64(r, ns / 2);
}

struct parts {
	struct rows functions, figures, stacks, samples;
};

static void parts_deinit(struct parts *p)
{
	rows_deinit(&p->functions);
	rows_deinit(&p->figures);
	rows_deinit(&p->stacks);
	rows_deinit(&p->samples);
}

static struct parts build(void)
{
	struct stack_id outer = stack_id_child(&stack_id_root, 1),
			inner = stack_id_child(&outer, 2), lost = stack_id_child(&inner, 3);
	struct parts p = {0};

	put_function(&p.functions, 1, "outer");
	put_function(&p.functions, 2, "inner");
	put_figure(&p.figures, 0, "events", 12);
	put_figure(&p.figures, 0, "measured waits_gil", 2);
	put_figure(&p.figures, 0, "of a later version", 2);
	put_figure(&p.figures, 2, "variance_self_cpu", 0);
	put_figure(&p.figures, 2, "line_ns 9", 100);
	put_figure(&p.figures, 99, "line_ns 9", 100);
	rows_put_bytes(&p.stacks, inner.bytes, STACK_ID_BYTES);
	rows_put_varint(&p.stacks, 2);
	rows_put_u64(&p.stacks, 1);
	rows_put_u64(&p.stacks, 2);
	put_sample(&p.samples, &stack_id_root, 0);
	put_sample(&p.samples, &inner, 1000);
	put_sample(&p.samples, &lost, 10);
	return p;
}

static int read_all(const struct parts *p, const size_t n[4], struct snapshot **ret,
		    uint64_t *ret_unknown)
{
	struct answer_summary summary = summary_of("trace");
	struct diag diag = {0};
	struct answer *a = NULL;
	int err = answer_new(&summary, &a, &diag);

	*ret = NULL;
	if (!err)
		err = answer_functions(a, p->functions.data, n[0], &diag);
	if (!err)
		err = answer_figures(a, p->figures.data, n[1], &diag);
	if (!err)
		err = answer_stacks(a, p->stacks.data, n[2], &diag);
	if (!err)
		err = answer_samples(a, p->samples.data, n[3], &diag);
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
	const size_t n[] = {p.functions.n, p.figures.n, p.stacks.n, p.samples.n};
	const struct snapshot_node *inner, *unknown;
	struct snapshot *s;
	uint64_t lost = 0;

	assert_ok(read_all(&p, n, &s, &lost));
	inner = node_named(s, "inner");
	unknown = node_named(s, "(unknown)");
	cr_assert(inner && unknown && node_named(s, "outer"));
	cr_assert_eq(lost, 1);
	cr_assert_eq(inner->self[SNAPSHOT_CPU], 1000);
	cr_assert_eq(inner->self[SNAPSHOT_WALL], 2000);
	cr_assert_eq(inner->min[SNAPSHOT_CPU], 5);
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
	const size_t all[] = {p.functions.n, p.figures.n, p.stacks.n, p.samples.n};
	int refused = 0;

	for (int part = 0; part < 4; part++)
		for (size_t n = 0; n < all[part]; n++) {
			size_t some[] = {all[0], all[1], all[2], all[3]};
			struct snapshot *s;
			uint64_t lost;

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
	const size_t all[] = {p.functions.n, p.figures.n, p.stacks.n, p.samples.n};
	struct rows *const rows[] = {&p.functions, &p.figures, &p.stacks, &p.samples};

	for (int part = 0; part < 4; part++)
		for (size_t i = 0; i < all[part]; i++) {
			uint8_t before = rows[part]->data[i];
			struct snapshot *s;
			uint64_t lost;

			rows[part]->data[i] = 0xff;
			if (read_all(&p, all, &s, &lost) == 0)
				cr_assert(snapshot_valid(s));
			snapshot_free(s);
			rows[part]->data[i] = before;
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
	assert_ok(answer_summary(NULL, 0, &s, NULL));
	cr_assert_eq(s.intervals, 0);
	rows_deinit(&r);
	check_no_leaks();
}
