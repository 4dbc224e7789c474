// SPDX-License-Identifier: BSD-2-Clause
/* What continuous mode may cost: see budget.h. */
#include "continuous/budget.h"

void budget_init(struct budget *b, double share, uint64_t now_ns, uint64_t cpu_ns)
{
	*b = (struct budget){
		.share = share,
		.saved_ns = (double)BUDGET_FIRST_NS,
		.now_ns = now_ns,
		.cpu_ns = cpu_ns,
		.turn_ns = now_ns,
		.turn_cpu_ns = cpu_ns,
		.skip = 1,
	};
}

/* Twice as many samples must still fit, with a margin, before more are taken again. */
#define RAISE_BELOW 0.4

/* Only the samples' part decides: attaching is limited by what is saved. */
static bool turn(struct budget *b, uint64_t sampling_ns)
{
	const double time = (double)(b->now_ns - b->turn_ns);
	const double all = (double)(b->cpu_ns - b->turn_cpu_ns);
	const double samples = (double)(sampling_ns - b->turn_sampling_ns);
	const uint32_t before = b->skip;

	b->used = all / time;
	if (samples > b->share * time && b->skip < BUDGET_SKIP_MAX) {
		b->skip *= 2;
		b->lowered++;
	} else if (samples < RAISE_BELOW * b->share * time && b->skip > 1) {
		b->skip /= 2;
	}
	b->turn_ns = b->now_ns;
	b->turn_cpu_ns = b->cpu_ns;
	b->turn_sampling_ns = sampling_ns;
	return b->skip != before;
}

uint64_t budget_own(struct budget *b, uint64_t all_ns, uint64_t own_ns, bool others)
{
	const uint64_t all = all_ns - b->all_ns, own = own_ns - b->own_ns;

	if ((others || b->others) && all > own)
		b->others_ns += all - own;
	b->all_ns = all_ns;
	b->own_ns = own_ns;
	b->others = others;
	return all_ns - b->others_ns;
}

bool budget_update(struct budget *b, uint64_t now_ns, uint64_t cpu_ns, uint64_t sampling_ns)
{
	if (now_ns <= b->now_ns || cpu_ns < b->cpu_ns)
		return false;
	/* What the first scan did not take is spent by processes that come later. */
	if (b->saved_ns < (double)BUDGET_SAVE_NS)
		b->saved_ns += b->share * (double)(now_ns - b->now_ns);
	b->saved_ns -= (double)(cpu_ns - b->cpu_ns);
	b->now_ns = now_ns;
	b->cpu_ns = cpu_ns;
	return now_ns - b->turn_ns >= BUDGET_TURN_NS && turn(b, sampling_ns);
}

bool budget_allows(const struct budget *b)
{
	return b->saved_ns > 0;
}
