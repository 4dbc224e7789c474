// SPDX-License-Identifier: BSD-2-Clause
/* What processes of a program know of its opcodes: one finds it out, the others wait for that. */
#include "harness/test.h"
#include "session/progress.h"

static const uint8_t some[] = {3, 5, 8};

static struct plan plan;

static struct opcodes *of_plan(uint64_t vaddr, unsigned int n)
{
	plan.marks[0].vaddr = vaddr;
	plan.nmarks = n;
	return opcodes_of(NULL, &plan);
}

Test(opcodes, are_of_a_plan)
{
	struct opcodes *o = of_plan(4096, 172), *other, *third;

	cr_assert(o && opcodes_of(o, &plan) == o);
	cr_assert_eq(opcodes_share(o), o);
	plan.nmarks++;
	other = opcodes_of(o, &plan);
	cr_assert(other && other != o && o->users == 1);
	cr_assert_eq(opcodes_share(other), other);
	plan.marks[0].vaddr++;
	third = opcodes_of(other, &plan);
	cr_assert(third && third != other && other->users == 1);
	opcodes_free(o);
	opcodes_free(other);
	opcodes_free(third);
	check_no_leaks();
}

Test(opcodes, one_finds_out)
{
	struct opcodes *o = of_plan(4096, 172);
	int one, other;

	cr_assert(opcodes_ask(o, &one));
	cr_assert_not(opcodes_ask(o, &other));
	cr_assert(opcodes_ask(o, &one), "it may go on");
	opcodes_learn(o, &other, some, 3);
	opcodes_drop(o, &other);
	cr_assert_not(o->known, "from another one");
	cr_assert_not(opcodes_ask(o, &other));
	opcodes_learn(o, &one, some, 3);
	cr_assert(o->known && o->n == 3 && o->v[2] == 8);
	cr_assert_not(opcodes_ask(o, &other), "there is no need");
	opcodes_free(o);
}

/* It has ended, or was idle: the next one asks. */
Test(opcodes, one_gives_up)
{
	struct opcodes *o = of_plan(4096, 172);
	int one, other;

	cr_assert(opcodes_ask(o, &one));
	opcodes_drop(o, &one);
	cr_assert(opcodes_ask(o, &other));
	opcodes_learn(o, &other, some, 0);
	cr_assert_not(o->known, "none is rare");
	cr_assert(opcodes_ask(o, &one));
	opcodes_free(o);
}

Test(opcodes, live_as_long_as_their_users)
{
	struct opcodes *o = of_plan(4096, 172);

	cr_assert_eq(opcodes_share(o), o);
	opcodes_free(o);
	cr_assert_eq(o->users, 1);
	opcodes_free(o);
	opcodes_free(NULL);
	cr_assert_null(opcodes_share(NULL));
}
