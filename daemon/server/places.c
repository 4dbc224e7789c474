// SPDX-License-Identifier: BSD-2-Clause
/* The places for connections: see places.h. */
#include "server/places.h"

#include <stddef.h>

#define STRANGERS_SHARE 5 /* one place in so many is for those who may not use the daemon */
#define ONE_STRANGER	3 /* of which one of them may take one in so many */

static bool is_stranger(const struct places *p, uid_t uid)
{
	return uid != 0 && uid != p->owner;
}

static unsigned int places_of_strangers(const struct places *p)
{
	return p->max / STRANGERS_SHARE;
}

unsigned int places_of(const struct places *p, uid_t uid)
{
	unsigned int strangers = places_of_strangers(p), others = p->max - strangers;

	if (is_stranger(p, uid))
		return (strangers + ONE_STRANGER - 1) / ONE_STRANGER;
	return p->owner == 0 ? others : others / 2;
}

static unsigned int taken_by(const struct places *p, uid_t uid)
{
	unsigned int n = 0;

	for (const struct place *c = p->first; c; c = c->next)
		n += !c->dropped && c->uid == uid;
	return n;
}

static unsigned int taken_by_strangers(const struct places *p)
{
	unsigned int n = 0;

	for (const struct place *c = p->first; c; c = c->next)
		n += !c->dropped && is_stranger(p, c->uid);
	return n;
}

/* Idle ones, and those whose request is not complete, give way before those that are answered. */
static bool gives_way_before(const struct place *a, const struct place *b)
{
	return a->answering != b->answering ? b->answering : a->begun_ns < b->begun_ns;
}

static struct place *first_of_user(const struct places *p, const struct place *entering)
{
	struct place *ret = NULL;

	for (struct place *c = p->first; c; c = c->next)
		if (c != entering && !c->dropped && c->uid == entering->uid &&
		    (!ret || gives_way_before(c, ret)))
			ret = c;
	return ret;
}

/* Of the stranger who has most places. */
static struct place *first_of_strangers(const struct places *p, const struct place *entering)
{
	struct place *ret = NULL;
	unsigned int most = 0;

	for (struct place *c = p->first; c; c = c->next) {
		unsigned int n = taken_by(p, c->uid);

		if (c == entering || c->dropped || !is_stranger(p, c->uid) || n < most)
			continue;
		if (n > most || gives_way_before(c, ret))
			ret = c;
		most = n;
	}
	return ret;
}

struct place *places_enter(struct places *p, struct place *entering)
{
	struct place *out;

	entering->next = p->first;
	p->first = entering;
	if (taken_by(p, entering->uid) > places_of(p, entering->uid))
		out = first_of_user(p, entering);
	else if (is_stranger(p, entering->uid) && taken_by_strangers(p) > places_of_strangers(p))
		out = first_of_strangers(p, entering);
	else
		return NULL;
	return out ? out : entering;
}

void places_leave(struct places *p, struct place *leaving)
{
	struct place **at = &p->first;

	while (*at != leaving)
		at = &(*at)->next;
	*at = leaving->next;
}
