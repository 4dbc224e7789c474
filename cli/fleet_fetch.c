// SPDX-License-Identifier: BSD-2-Clause
/* Profiles of a fleet: see fleet_fetch.h. */
#include "fleet_fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "render.h"

#define ATTEMPTS 5
#define NS	 1e9

/* A question as text; finish() closes it. */
struct text {
	char *data;
	size_t n;
	FILE *out;
};

static void text_deinit(struct text *t)
{
	fclosep(&t->out);
	free(t->data);
}

static int text_open(struct text *t, struct diag *diag)
{
	t->out = open_memstream(&t->data, &t->n);
	return t->out ? 0 : diag_errno(diag, errno, "cannot ask the database");
}

static int ask(struct fleet_client *c, struct text *t, struct fleet_answer *ret, struct diag *diag)
{
	int r = ferror(t->out) ? -ENOMEM : 0;

	if (fclose(TAKE_PTR(t->out)) != 0 || r < 0)
		return diag_errno(diag, ENOMEM, "cannot ask the database");
	return fleet_run(c, t->data, t->n, ret, diag);
}

typedef void (*write_fn)(const struct question *q, FILE *out);
typedef int (*read_fn)(struct answer *a, const void *data, size_t n, struct diag *diag);

static int fetch_summary(struct fleet_client *c, const struct question *q,
			 struct answer_summary *ret, struct diag *diag)
{
	_cleanup_(text_deinit) struct text t = {0};
	_cleanup_(fleet_answer_deinit) struct fleet_answer answer = {0};
	int r = text_open(&t, diag);

	if (r < 0)
		return r;
	question_write_summary(q, t.out);
	r = ask(c, &t, &answer, diag);
	return r < 0 ? r : answer_summary(answer.data, answer.n, ret, diag);
}

static int fetch_part(struct fleet_client *c, const struct question *q, write_fn write,
		      read_fn read, struct answer *a, struct diag *diag)
{
	_cleanup_(text_deinit) struct text t = {0};
	_cleanup_(fleet_answer_deinit) struct fleet_answer answer = {0};
	int r = text_open(&t, diag);

	if (r < 0)
		return r;
	if (write)
		write(q, t.out);
	else
		question_write_samples(q, answer_columns(a), t.out);
	r = ask(c, &t, &answer, diag);
	return r < 0 ? r : read(a, answer.data, answer.n, diag);
}

static int fetch_all(struct fleet_client *c, const struct question *q, struct answer *a,
		     struct diag *diag)
{
	static const struct {
		write_fn write; /* NULL: samples, of the columns that were measured */
		read_fn read;
	} parts[] = {
		{question_write_functions, answer_functions},
		{question_write_figures, answer_figures},
		{question_write_stacks, answer_stacks},
		{NULL, answer_samples},
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
		r = fetch_part(c, q, parts[i].write, parts[i].read, a, diag);
	return r;
}

/* *ret_again: profiles arrived meanwhile, so the parts may not belong together. */
static int fetch_once(struct fleet_client *c, const struct question *q, struct snapshot **ret,
		      bool *ret_again, struct diag *diag)
{
	_cleanup_(answer_freep) struct answer *a = NULL;
	struct answer_summary summary = {0}, after = {0};
	uint64_t unknown;
	int r = fetch_summary(c, q, &summary, diag);

	if (r == 0)
		r = answer_check(&summary, diag);
	if (r == 0)
		r = answer_new(&summary, &a, diag);
	if (r == 0)
		r = fetch_all(c, q, a, diag);
	if (r == 0)
		r = fetch_summary(c, q, &after, diag);
	if (r < 0)
		return r;
	*ret_again = after.intervals != summary.intervals;
	if (*ret_again)
		return 0;
	r = answer_finish(a, ret, &unknown, diag);
	if (r == 0 && unknown)
		fprintf(stderr,
			"pyprofctl: the names of %" PRIu64 " stacks are missing; their figures are "
			"in (unknown)\n",
			unknown);
	return r;
}

int fleet_fetch(struct fleet_client *c, const struct question *q, struct snapshot **ret,
		struct diag *diag)
{
	bool again = true;
	int r = 0;

	for (int i = 0; i < ATTEMPTS && again && r == 0; i++)
		r = fetch_once(c, q, ret, &again, diag);
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
	_cleanup_(text_deinit) struct text t = {0};
	_cleanup_(fleet_answer_deinit) struct fleet_answer answer = {0};
	_cleanup_free_ struct answer_value *list = NULL;
	size_t n = 0;
	int r = text_open(&t, diag);

	if (r < 0)
		return r;
	question_write_values(q, label, t.out);
	r = ask(c, &t, &answer, diag);
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
