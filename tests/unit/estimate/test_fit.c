// SPDX-License-Identifier: BSD-2-Clause
/*
 * Combining windows and samples: wrongly measured costs are corrected, each source determines the
 * figures that it knows more precisely, and no input leads to invalid figures.
 */
#include <math.h>

#include "harness/test.h"
#include "estimate/fit.h"

enum { CALLER, CALLEE, LOOP, ROWS };

/* True shares of 0.2, 0.3 and 0.5; hits take twice the program's own time. */
static const double truth[ROWS] = {0.2, 0.3, 0.5};
static const double hits[ROWS] = {1, 1, 0};

struct watched {
	double claimed; /* factor by which the measured costs are too high */
	double spread;	/* by which windows differ, as a share of the total */
	double samples;
	double hits; /* reduced by this factor */
};

static void make(struct fit_row *rows, const struct watched *w)
{
	for (int i = 0; i < ROWS; i++) {
		double taken = 1e9 * hits[i] * (w->hits > 0 ? w->hits : 1);

		rows[i] = (struct fit_row){
			.own = 1e9 * truth[i] + (1 - w->claimed) * taken,
			.taken = w->claimed * taken,
			.variance = w->spread * w->spread * 1e18,
			.samples = w->samples * truth[i],
		};
	}
}

Test(fit, finds_the_factor)
{
	struct fit_row rows[ROWS];

	for (int percent = 80; percent <= 120; percent += 10) {
		double claimed = percent / 100.0;
		struct fit fit;

		make(rows, &(struct watched){.claimed = claimed, .spread = 0.01, .samples = 5000});
		fit = fit_solve(rows, ROWS);
		cr_assert_float_eq(fit.factor * claimed, 1, 0.02, "%.1f: %.3f", claimed,
				   fit.factor);
		cr_assert_eq(fit.samples, 5000);
	}
}

Test(fit, nothing_without_samples)
{
	struct fit_row rows[ROWS];
	struct fit fit;

	make(rows, &(struct watched){.claimed = 1.2, .spread = 0.01});
	fit = fit_solve(rows, ROWS);
	cr_assert_eq(fit.factor, 1);
	cr_assert_eq(rows[CALLER].part, 0);
	fit = fit_solve(rows, 0);
	cr_assert_eq(fit.factor, 1);
}

Test(fit, few_samples_change_little)
{
	struct fit_row rows[ROWS];

	make(rows, &(struct watched){.claimed = 1.1, .spread = 0.01, .samples = 3});
	rows[CALLER].samples = 0;
	cr_assert(fabs(fit_solve(rows, ROWS).factor - 1) < 0.06);
	make(rows, &(struct watched){.claimed = 1.1, .spread = 0.01, .samples = 3, .hits = 0.1});
	fit_solve(rows, ROWS);
	for (int i = 0; i < ROWS; i++)
		cr_assert(rows[i].part < 0.01, "%d: %.3f", i, rows[i].part);
}

/*
 * If hits take little time, windows are more precise; if they take most of the time, samples are.
 */
Test(fit, each_decides_where_it_knows_more)
{
	struct fit_row rows[ROWS];

	make(rows, &(struct watched){.claimed = 1, .spread = 0.001, .samples = 2000, .hits = 0.05});
	fit_solve(rows, ROWS);
	for (int i = 0; i < ROWS; i++)
		cr_assert(rows[i].part < 0.3, "%d: %.3f", i, rows[i].part);
	make(rows, &(struct watched){.claimed = 1, .spread = 0.001, .samples = 2000});
	fit_solve(rows, ROWS);
	cr_assert(rows[CALLER].part > 0.7, "%.3f", rows[CALLER].part);
	make(rows, &(struct watched){.claimed = 1, .spread = 0.05, .samples = 100000});
	fit_solve(rows, ROWS);
	for (int i = 0; i < ROWS; i++) {
		cr_assert(rows[i].part > 0.9, "%d: %.3f", i, rows[i].part);
		cr_assert_leq(rows[i].spread, sqrt(0.5 * 0.5 / 100000) + 1e-4);
	}
}

/* A slowdown that may have been as long as what is left: samples decide, with their error. */
Test(fit, an_unknown_slowdown)
{
	struct fit_row rows[ROWS];
	double known;

	make(rows, &(struct watched){.claimed = 1, .spread = 0.001, .samples = 2000, .hits = 0.05});
	fit_solve(rows, ROWS);
	known = rows[CALLER].spread;
	make(rows, &(struct watched){.claimed = 1, .spread = 0.001, .samples = 2000, .hits = 0.05});
	for (int i = 0; i < ROWS; i++)
		rows[i].unknown = rows[i].own;
	fit_solve(rows, ROWS);
	for (int i = 0; i < ROWS; i++)
		cr_assert(rows[i].part > 0.9, "%d: %.3f", i, rows[i].part);
	cr_assert_gt(rows[CALLER].spread, 2 * known);
}

Test(fit, whatever_comes_in)
{
	struct fit_row rows[ROWS];
	static const double odd[] = {0, -1e9, 1e-300, 1e20, 5};
	const size_t n = sizeof(odd) / sizeof(*odd);

	for (size_t i = 0; i < n * n * n * n; i++) {
		struct fit fit;

		make(rows, &(struct watched){.claimed = 1, .spread = 0.01, .samples = 100});
		rows[CALLER].own = odd[i % n];
		rows[CALLEE].taken = fabs(odd[i / n % n]);
		rows[LOOP].samples = fabs(odd[i / n / n % n]);
		rows[LOOP].variance = odd[i / n / n / n];
		rows[CALLER].unknown = fabs(odd[i % n]);
		fit = fit_solve(rows, ROWS);
		cr_assert(fit.factor >= 0.7 && fit.factor <= 1.3, "%zu: %g", i, fit.factor);
		for (int k = 0; k < ROWS; k++)
			cr_assert(rows[k].part >= 0 && rows[k].part <= 1 && rows[k].spread >= 0,
				  "%zu: %g, %g", i, rows[k].part, rows[k].spread);
	}
}

/* All windows missed it, so they agree that it takes no time. */
Test(fit, what_no_window_has_is_for_samples)
{
	struct fit_row rows[] = {
		{.own = 1e6, .taken = 1e6, .variance = 1e8, .samples = 970},
		{.own = 0, .variance = 0, .samples = 30},
	};

	fit_solve(rows, 2);
	cr_assert_gt(rows[1].part, 0.5);
	cr_assert_gt(rows[1].spread, 0.003, "%f", rows[1].spread);
}

/* Hits seem to have taken more than all the time. */
Test(fit, nothing_is_left_in_windows)
{
	struct fit_row rows[] = {
		{.own = 1e6, .taken = 50e6, .variance = 1e8, .samples = 100},
		{.own = -3e6, .taken = 50e6, .variance = 1e8, .samples = 900},
	};
	struct fit fit = fit_solve(rows, 2);

	cr_assert_eq(fit.factor, 1);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(rows[i].part, 1);
		cr_assert_float_eq(rows[i].spread, 0.0095, 0.0005, "%f", rows[i].spread);
	}
}
