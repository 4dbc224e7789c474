// SPDX-License-Identifier: BSD-2-Clause
/* Costs at another time than that of their measurement: see cost.h. */
#include "base/cost.h"

/* Farther off it is something else than a busy machine. */
#define SCALE_MIN 0.25
#define SCALE_MAX 4.0

double cost_scale(const struct cost *c, uint64_t gauges_ns, uint64_t gauges)
{
	double scale;

	if (!c->known || !c->gauge_ps || gauges < COST_GAUGES)
		return 1;
	scale = 1e3 * (double)gauges_ns / (double)gauges / c->gauge_ps;
	if (scale < SCALE_MIN)
		return SCALE_MIN;
	return scale > SCALE_MAX ? SCALE_MAX : scale;
}

static uint32_t scaled(uint32_t ns, double scale)
{
	double to = ns * scale + 0.5;

	return to < UINT32_MAX ? (uint32_t)to : UINT32_MAX;
}

/* The newest one's part. */
#define LEARN 0.25

struct cost cost_learn(const struct cost *before, const struct cost *measured)
{
	struct cost ret = *measured;
	double to;

	if (!measured->known || !measured->gauge_ps)
		return measured->known ? *measured : *before;
	if (!before->known || !before->gauge_ps)
		return *measured;
	to = (double)measured->gauge_ps / before->gauge_ps;
	for (int k = 0; k < COST_KINDS; k++) {
		ret.before[k] = scaled(1, LEARN * measured->before[k] +
						  (1 - LEARN) * to * before->before[k]);
		ret.after[k] =
			scaled(1, LEARN * measured->after[k] + (1 - LEARN) * to * before->after[k]);
	}
	return ret;
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
