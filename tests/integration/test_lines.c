// SPDX-License-Identifier: BSD-2-Clause
/*
 * Self time by line: a program measures the CPU time of three of its lines itself, and the samples
 * agree with it; in mode sample on every interpreter, beside calls on the newest.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "snapshot/lines.h"

#define RATE	997u
#define SAMPLES 1000u
/*
 * The number of standard errors allowed: 1000 samples of a share of 20 % and more exceed it with a
 * probability below 1.3e-8 (binomial), and 40 shares are compared.
 */
#define ERRORS 5.8

static const struct snapshot_func *func_named(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, name) == 0)
			return &s->funcs[i];
	return NULL;
}

static double samples_of(const struct snapshot_func *f, const char *number)
{
	uint64_t line;

	assert_ok(parse_u64(number, 1, INT32_MAX, &line));
	for (uint32_t i = 0; i < f->nlines; i++)
		if ((uint64_t)f->lines[i].line == line)
			return (double)f->lines[i].samples;
	return 0;
}

static double sum_of(const json_t *spent)
{
	const char *key;
	json_t *value;
	double sum = 0;

	json_object_foreach((json_t *)spent, key, value) sum += json_number_value(value);
	return sum;
}

/* Returns the largest difference of a line's share from the program's own measurement, in standard
 * errors. */
static double compare(const struct snapshot_func *f, const json_t *spent, const char *label)
{
	double n = (double)snapshot_lines_sum(f).samples, all = sum_of(spent), worst = 0;
	const char *key;
	json_t *value;

	cr_assert_gt(n, 0.8 * SAMPLES, "%s", label);
	json_object_foreach((json_t *)spent, key, value)
	{
		double share = json_number_value(value) / all;
		double seen = samples_of(f, key) / n;
		double off = fabs(seen - share) / sqrt(share * (1 - share) / n);

		fprintf(stderr, "%s  line %s: %.2f %% of %.0f samples, measured %.2f %%\n", label,
			key, 100 * seen, n, 100 * share);
		worst = off > worst ? off : worst;
	}
	return worst;
}

static bool has_samples(struct traced *t)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot(t);

	return s->targets[0].estimate.samples >= SAMPLES;
}

static double run(const struct interpreter *py, struct mode_choice mode)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct traced t;
	char label[32];
	json_t *spent;
	double worst;

	snprintf(label, sizeof(label), "%d.%d %s", py->major, py->minor, mode_names[mode.mode]);
	traced_start(&t, py->exe, "lines.py", NULL);
	t.mode = mode;
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	while (!has_samples(&t)) {
		cr_assert(!patience_over(), "waited for samples");
		traced_work(&t, PATIENCE_MOMENT_MS);
	}
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	spent = json_loads(t.result, 0, NULL);
	cr_assert_eq(json_object_size(spent), 3, "%s", t.result);
	cr_assert(func_named(s, "work"), "%s", label);
	cr_assert_eq(s->targets[0].lines_dropped, 0);
	worst = compare(func_named(s, "work"), spent, label);
	json_decref(spent);
	traced_finish(&t);
	return worst;
}

static void check(const struct interpreter *py, struct mode_choice mode)
{
	cr_assert_leq(run(py, mode), ERRORS, "%s", py->exe);
}

Test(lines, known_shares)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v);

	for (size_t i = 0; i < n; i++)
		check(&v[i], (struct mode_choice){MODE_SAMPLE, RATE});
	check_no_leaks();
}

Test(lines, beside_calls)
{
	struct interpreter py = traced_newest();

	check(&py, (struct mode_choice){MODE_COUNT, RATE});
	check(&py, (struct mode_choice){MODE_TRACE, RATE});
	check_no_leaks();
}
