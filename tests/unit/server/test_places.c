// SPDX-License-Identifier: BSD-2-Clause
/* server/places: how many connections each user may have, and which are dropped for others. */
#include "server/places.h"

#include "harness/test.h"

#define OWNER 500
#define MAX   60 /* 12 of strangers, of which one may take 4; 24 of root; 24 of the owner */
#define MANY  200

static struct places places;
static struct place all[MANY];
static unsigned int n;

static void start(unsigned int max, uid_t owner)
{
	places = (struct places){.max = max, .owner = owner};
	n = 0;
}

/* One of this user, later than all others. What was dropped is closed at once, as it is said. */
static struct place *enter(uid_t uid, struct place **ret_out)
{
	struct place *one = &all[n], *out;

	cr_assert(n < MANY);
	*one = (struct place){.uid = uid, .begun_ns = ++n};
	out = places_enter(&places, one);
	if (out)
		out->dropped = true;
	if (ret_out)
		*ret_out = out;
	return one;
}

static unsigned int taken_by(uid_t uid)
{
	unsigned int sum = 0;

	for (const struct place *c = places.first; c; c = c->next)
		sum += !c->dropped && c->uid == uid;
	return sum;
}

Test(places, shares)
{
	start(MAX, OWNER);
	cr_assert_eq(places_of(&places, 0), 24);
	cr_assert_eq(places_of(&places, OWNER), 24);
	cr_assert_eq(places_of(&places, 1), 4);
	start(MAX, 0);
	cr_assert_eq(places_of(&places, 0), 48);
	cr_assert_eq(places_of(&places, 1), 4);
}

Test(places, a_user_crowds_itself_only)
{
	const uid_t users[] = {0, OWNER, 1};

	start(MAX, OWNER);
	for (size_t i = 0; i < 3; i++) {
		struct place *first = enter(users[i], NULL), *out;

		for (unsigned int more = 1; more < places_of(&places, users[i]); more++) {
			enter(users[i], &out);
			cr_assert_null(out);
		}
		enter(users[i], &out);
		cr_assert_eq(out, first);
	}
	cr_assert_eq(taken_by(0), 24);
	cr_assert_eq(taken_by(OWNER), 24);
	cr_assert_eq(taken_by(1), 4);
}

/* One user each: the oldest of them gives way, never one of the users who may ask. */
Test(places, many_strangers)
{
	struct place *root, *owner, *out;

	start(MAX, OWNER);
	root = enter(0, NULL);
	owner = enter(OWNER, NULL);
	for (uid_t uid = 1000; uid < 1012; uid++) {
		enter(uid, &out);
		cr_assert_null(out);
	}
	for (uid_t uid = 1012; uid < 1100; uid++) {
		enter(uid, &out);
		cr_assert(out && out->uid == uid - 12);
	}
	cr_assert(!root->dropped && !owner->dropped);
}

/* Of strangers the one with most places gives way: a flood does not push out another's only one. */
Test(places, greedy_stranger)
{
	struct place *other, *out;

	start(MAX, OWNER);
	other = enter(1, NULL);
	for (uid_t uid = 2; uid < 5; uid++)
		for (int i = 0; i < 4; i++)
			enter(uid, NULL);
	cr_assert(!other->dropped);
	enter(5, &out);
	cr_assert(out && out != other && out->uid != 5);
}

Test(places, idle_ones_first)
{
	struct place *answering, *idle, *out;

	start(MAX, OWNER);
	answering = enter(1, NULL);
	answering->answering = true;
	idle = enter(1, NULL);
	enter(1, NULL);
	enter(1, NULL);
	enter(1, &out);
	cr_assert_eq(out, idle);
	for (struct place *c = places.first; c; c = c->next)
		c->answering = true;
	enter(1, NULL)->answering = true;
	enter(1, &out);
	cr_assert_neq(out, answering, "it gave way before");
	cr_assert(answering->dropped);
}

Test(places, those_that_left_do_not_count)
{
	struct place *first, *out;

	start(MAX, OWNER);
	first = enter(1, NULL);
	for (int i = 0; i < 3; i++)
		enter(1, NULL);
	places_leave(&places, first);
	enter(1, &out);
	cr_assert_null(out);
	cr_assert_eq(taken_by(1), 4);
}

/* So few places that there is none for strangers: they are let in, and go at once. */
Test(places, few)
{
	struct place *one, *out;

	start(2, OWNER);
	one = enter(1, &out);
	cr_assert_eq(out, one);
	enter(0, &out);
	cr_assert_null(out);
	enter(OWNER, &out);
	cr_assert_null(out);
}
