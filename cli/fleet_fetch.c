// SPDX-License-Identifier: BSD-2-Clause
/* Profiles of a fleet: see fleet_fetch.h. */
#include "fleet_fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "fleet_hours.h"
#include "fleet_sql.h"
#include "render.h"

#define ATTEMPTS 5
#define NS	 1e9

typedef void (*write_fn)(const struct question *q, FILE *out);
typedef int (*read_summary_fn)(const void *data, size_t n, struct answer_summary *ret,
			       struct diag *diag);
typedef int (*read_fn)(struct answer *a, const void *data, size_t n, struct diag *diag);

/* One question, whose answer adds to *ret. */
static int fetch_into(struct fleet_client *c, const struct question *q, write_fn write,
		      read_summary_fn read, struct answer_summary *ret, struct diag *diag)
{
	_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};
	_cleanup_(fleet_answer_deinit) struct fleet_answer answer = {0};
	int r = fleet_sql_open(&sql, diag);

	if (r < 0)
		return r;
	write(q, sql.out);
	r = fleet_sql_run(&sql, c, &answer, diag);
	return r < 0 ? r : read(answer.data, answer.n, ret, diag);
}

static int fetch_part(struct fleet_client *c, const struct question *q, write_fn write,
		      read_fn read, struct answer *a, struct diag *diag)
{
	_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};
	_cleanup_(fleet_answer_deinit) struct fleet_answer answer = {0};
	int r = fleet_sql_open(&sql, diag);

	if (r < 0)
		return r;
	write(q, sql.out);
	r = fleet_sql_run(&sql, c, &answer, diag);
	return r < 0 ? r : read(a, answer.data, answer.n, diag);
}

static int fetch_all(struct fleet_client *c, const struct question *q, struct answer *a,
		     struct diag *diag)
{
	static const struct {
		write_fn write;
		read_fn read;
	} parts[] = {
		{question_write_functions, answer_functions},
		{question_write_figures, answer_figures},
		{question_write_stacks, answer_stacks},
		{question_write_samples, answer_samples},
		{question_write_details, answer_details},
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = fetch_part(c, q, parts[i].write, parts[i].read, a, diag);
	return r;
}

static int build(struct fleet_client *c, const struct question *q, struct answer *a,
		 const struct answer_summary *before, bool *ret_again, struct diag *diag)
{
	struct answer_summary after = {0};
	struct fleet_hours hours = {.n = 0};
	int r = fetch_all(c, q, a, diag);

	if (r == 0)
		r = fetch_into(c, q, question_write_summary, answer_summary, &after, diag);
	*ret_again = after.intervals != before->intervals;
	if (r == 0 && q->nhours) {
		r = fleet_hours_find(c, q, &hours, diag);
		*ret_again = *ret_again || hours.used != q->hours_used;
		fleet_hours_deinit(&hours);
	}
	return r;
}

static int finish(struct answer *a, struct snapshot **ret, struct diag *diag)
{
	uint64_t unknown = 0;
	int r = answer_finish(a, ret, &unknown, diag);

	if (r == 0 && unknown)
		fprintf(stderr,
			"pyprofctl: the names of %" PRIu64 " stacks are missing; their figures are "
			"in (unknown)\n",
			unknown);
	return r;
}

/* *ret_again: profiles arrived meanwhile, so the parts may not belong together. */
static int fetch_once(struct fleet_client *c, const struct question *q, struct snapshot **ret,
		      bool *ret_again, struct diag *diag)
{
	_cleanup_(answer_freep) struct answer *a = NULL;
	struct answer_summary summary = {0};
	int r = fetch_into(c, q, question_write_summary, answer_summary, &summary, diag);

	if (r == 0)
		r = fetch_into(c, q, question_write_labels, answer_labels, &summary, diag);
	if (r == 0)
		r = answer_check(&summary, diag);
	if (r == 0)
		r = answer_new(&summary, &a, diag);
	if (r == 0)
		r = build(c, q, a, &summary, ret_again, diag);
	return r < 0 || *ret_again ? r : finish(a, ret, diag);
}

/* Adds the hours that can be used. */
static int set_hours(struct fleet_client *c, struct question *q, struct fleet_hours *hours,
		     struct diag *diag)
{
	int r = q->profiles_only ? 0 : fleet_hours_find(c, q, hours, diag);

	q->hours = hours->ranges;
	q->nhours = hours->n;
	q->hours_used = hours->used;
	return r;
}

int fleet_fetch(struct fleet_client *c, const struct question *q, struct snapshot **ret,
		struct diag *diag)
{
	bool again = true;
	int r = 0;

	for (int i = 0; i < ATTEMPTS && again && r == 0; i++) {
		_cleanup_(fleet_hours_deinit) struct fleet_hours hours = {.n = 0};
		struct question with = *q;

		r = set_hours(c, &with, &hours, diag);
		if (r == 0)
			r = fetch_once(c, &with, ret, &again, diag);
	}
	if (r < 0 || !again)
		return r;
	return diag_set(diag, -EAGAIN, PYP_EXIT_FAILURE, "end the span earlier with --to",
			"profiles of this span arrive faster than they can be added up");
}

/* ---- lists ---- */

static void print_table(const struct answer_value *list, size_t n, const char *label, FILE *out)
{
	fprintf(out, "%8s %10s %10s %14s %14s  %s\n", "hosts", "processes", "profiles",
		"CPU seconds", "wall seconds", label);
	for (size_t i = 0; i < n; i++) {
		const struct answer_value *v = &list[i];

		fprintf(out, "%8" PRIu64 " %10" PRIu64 " %10" PRIu64 " %14.3f %14.3f  ", v->hosts,
			v->processes, v->intervals, (double)v->cpu_ns / NS,
			(double)v->wall_ns / NS);
		render_clipped(v->value, 0, out);
		fputc('\n', out);
	}
}

static int print_json(const struct answer_value *list, size_t n, const char *label, FILE *out)
{
	json_t *array = json_array();
	int r;

	for (size_t i = 0; i < n; i++) {
		const struct answer_value *v = &list[i];

		json_array_append_new(
			array, json_pack("{s:s%, s:I, s:I, s:I, s:I, s:I}", label, v->value,
					 strlen(v->value), "hosts", (json_int_t)v->hosts,
					 "processes", (json_int_t)v->processes, "profiles",
					 (json_int_t)v->intervals, "cpu_ns", (json_int_t)v->cpu_ns,
					 "wall_ns", (json_int_t)v->wall_ns));
	}
	r = array ? json_dumpf(array, out, JSON_INDENT(2) | JSON_ENSURE_ASCII) : -1;
	fputc('\n', out);
	json_decref(array);
	return r;
}

int fleet_print_values(struct fleet_client *c, const struct question *q, const char *label,
		       bool json, FILE *out, struct diag *diag)
{
	_cleanup_(fleet_sql_deinit) struct fleet_sql sql = {0};
	_cleanup_(fleet_answer_deinit) struct fleet_answer answer = {0};
	_cleanup_(fleet_hours_deinit) struct fleet_hours hours = {.n = 0};
	_cleanup_free_ struct answer_value *list = NULL;
	struct question with = *q;
	size_t n = 0;
	int r = fleet_sql_open(&sql, diag);

	if (r == 0 && question_label_in_hours(label))
		r = set_hours(c, &with, &hours, diag);
	if (r < 0)
		return r;
	question_write_values(&with, label, sql.out);
	r = fleet_sql_run(&sql, c, &answer, diag);
	if (r == 0)
		r = answer_values(answer.data, answer.n, &list, &n, diag);
	if (r < 0)
		return r;
	if (!json)
		print_table(list, n, label, out);
	else if (print_json(list, n, label, out) < 0)
		return diag_errno(diag, EIO, "cannot write the list");
	return 0;
}
