// SPDX-License-Identifier: BSD-2-Clause
/* Adjusting probe costs to the machine's present speed: see cost.h. */
#include "base/cost.h"

#include <math.h>

/* A scale above this, or below its inverse, is a measuring error, not a busy machine. */
#define SCALE_MAX 4.0

/*
 * A hit took 515 and 606 ns in undisturbed virtual machines, and up to 1100 while others used them;
 * half of that is before the clock is read.
 */
#define GUESS_NS 600.0

struct cost cost_guess(double hit_ns)
{
	const double hit = hit_ns > 0 ? hit_ns : GUESS_NS;
	struct cost c = {.known = true};

	for (int k = 0; k < COST_KINDS; k++) {
		c.before[k] = (uint32_t)hit / 2;
		c.after[k] = (uint32_t)hit - c.before[k];
	}
	return c;
}

double cost_scale(const struct cost *c, uint64_t latencies_ns, uint64_t latencies)
{
	double scale;

	if (!c->known || !c->latency_ps || latencies < COST_LATENCIES)
		return 1;
	scale = 1e3 * (double)latencies_ns / (double)latencies / c->latency_ps;
	return fmin(SCALE_MAX, fmax(1 / SCALE_MAX, scale));
}

static uint32_t scaled(uint32_t ns, double scale)
{
	double to = ns * scale + 0.5;

	return to < UINT32_MAX ? (uint32_t)to : UINT32_MAX;
}

static uint32_t between(uint32_t from, uint32_t to, double part)
{
	return scaled(1, (1 - part) * from + part * to);
}

struct cost cost_learn(const struct cost *before, const struct cost *measured, double part)
{
	struct cost ret = *measured, then;

	if (!measured->known || !measured->latency_ps)
		return measured->known ? *measured : *before;
	if (!before->known || !before->latency_ps)
		return *measured;
	then = cost_scaled(before, (double)measured->latency_ps / before->latency_ps);
	for (int k = 0; k < COST_KINDS; k++) {
		ret.before[k] = between(then.before[k], measured->before[k], part);
		ret.after[k] = between(then.after[k], measured->after[k], part);
	}
	return ret;
}

/*
 * Hits that take up to SLOW_NS are of usual traps, also while others use the machine; those that
 * take twice as long are of slow ones. (Traps of nested virtual machines took 6000 ns, for hours,
 * on machines where they usually take 300.)
 */
#define SLOW_NS 1000.0

double cost_slowness(double hit_ns)
{
	return fmin(1, fmax(0, hit_ns / SLOW_NS - 1));
}

/* Fraction of a hit's cost (measured on 16 programs, 3.11.2) */
#define COLD_PART 0.18

double cost_cold(double hit_ns)
{
	return COLD_PART * hit_ns;
}

/*
 * A mark's hit takes SITE_MORE less than a site's, where traps are usual or slow: 280 to 330 ns
 * where a site took 515, 380 to 410 where it took 606. No less was measured than MARK_LEAST, and no
 * more than MARK_MOST of usual traps, also where others used the machine and a site was measured as
 * up to 1100.
 */
#define SITE_MORE  215.0
#define MARK_LEAST 280.0
#define MARK_MOST  410.0

double cost_mark(const struct cost *c)
{
	const double site = cost_hit(c, COST_ENTER), slow = cost_slowness(site);
	const double usual = fmin(MARK_MOST, fmax(MARK_LEAST, site - SITE_MORE));
	const double hit = (1 - slow) * usual + slow * (site - SITE_MORE);

	return hit + cost_cold(hit);
}

/* Measured on six programs in a virtual machine: 310 to 360 ns for hits of 6000 ns, 480 for 7500; else 0. */
#define SLOW_PART 0.07

double cost_each(double hit_ns)
{
	return SLOW_PART * fmax(0, hit_ns - SLOW_NS);
}

double cost_cold_slowdown(double cold_ns, double n, double ns)
{
	if (n <= 0 || cold_ns <= 0)
		return 0;
	return n * cold_ns * (1 - exp(-ns / n / cold_ns));
}

double cost_cold_slope(double cold_ns, double n, double ns)
{
	return n > 0 && cold_ns > 0 ? exp(-ns / n / cold_ns) : 0;
}

/* A quarter of the time, and of a long interval 2 us more: with system calls 2,000 ns were measured. */
#define COLD_PART_OF_TIME 0.25
#define COLD_MOST	  2000.0

double cost_cold_error(double cold_ns, double n, double ns)
{
	const double longer = n > 0 ? fmax(0, ns / n - cold_ns) : 0;

	return hypot(COLD_PART_OF_TIME * ns, n * COLD_MOST * (1 - exp(-longer / COLD_MOST)));
}

/* Newton's method from below; it converges because the slope decreases. */
double cost_undisturbed(double cold_ns, double n, double ns, double times)
{
	double x = 0;

	for (int i = 0; i < 8; i++)
		x += (ns - x - times * cost_cold_slowdown(cold_ns, n, x)) /
		     (1 + times * cost_cold_slope(cold_ns, n, x));
	return fmax(0, x);
}

struct cost cost_scaled(const struct cost *c, double scale)
{
	struct cost ret = *c;

	for (int k = 0; k < COST_KINDS; k++) {
		ret.before[k] = scaled(c->before[k], scale);
		ret.after[k] = scaled(c->after[k], scale);
	}
	return ret;
}

uint64_t cost_taken(const struct cost *c, const struct cost_ends *own,
		    const struct cost_ends *callees)
{
	return own->calls * c->after[COST_ENTER] + own->leaves * c->before[COST_LEAVE] +
	       own->yields * c->before[COST_YIELD] + callees->calls * c->before[COST_ENTER] +
	       callees->leaves * c->after[COST_LEAVE] + callees->yields * c->after[COST_YIELD] +
	       callees->instants * (c->before[COST_ENTER] + c->after[COST_ENTER]);
}
