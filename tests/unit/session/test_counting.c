// SPDX-License-Identifier: BSD-2-Clause
/* session/counting: before the first thread has ended. The kernel's sums are the test's. */
#include "session/counting.h"

#include "harness/test.h"

int probe_counts(const struct probe *p, struct probe_count **ret, size_t *ret_n)
{
	(void)p;
	*ret = NULL;
	*ret_n = 0;
	return 0;
}

void probe_counts_drop(const struct probe *p, const struct pyp_edge *edge)
{
	(void)p, (void)edge;
}

static void drain(void *ctx)
{
	(*(unsigned int *)ctx)++;
}

/* Under the sanitizers: no memmove() of an array that there is not. */
Test(counting, nothing_has_ended)
{
	struct counting c = {0};
	unsigned int drained = 0;
	struct profile *p = profile_new(NULL, NULL, NULL);
	const struct counting_sync how = {.profile = p, .drain = drain, .ctx = &drained};

	counting_sync(&c, &how);
	counting_clear(&c, NULL, p);
	cr_assert(drained == 1 && !c.exits && c.nexits == 0);
	counting_deinit(&c);
	profile_free(p);
	check_no_leaks();
}
