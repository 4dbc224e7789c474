// SPDX-License-Identifier: BSD-2-Clause
/* Limits on connections: see places.h. */
#include "server/places.h"

#include <stddef.h>

#define DISALLOWED_SHARE                                                                           \
	5		 /* 1/5 of the connections are for users who are not allowed to use the
			   * daemon */
#define ONE_DISALLOWED 3 /* one such user gets at most 1/3 of these */

static bool is_disallowed(const struct places *p, uid_t uid)
{
	return p->by_host || (uid != 0 && uid != p->owner);
}

static unsigned int places_of_disallowed(const struct places *p)
{
	return p->by_host ? p->max : p->max / DISALLOWED_SHARE;
}

unsigned int places_of(const struct places *p, uid_t uid)
{
	unsigned int disallowed = places_of_disallowed(p), others = p->max - disallowed;

	if (p->by_host)
		return (p->max + 1) / 2;
	if (is_disallowed(p, uid))
		return (disallowed + ONE_DISALLOWED - 1) / ONE_DISALLOWED;
	return p->owner == 0 ? others : others / 2;
}

static unsigned int taken_by(const struct places *p, uid_t uid)
{
	unsigned int n = 0;

	for (const struct place *c = p->first; c; c = c->next)
		n += !c->dropped && c->uid == uid;
	return n;
}

static unsigned int taken_by_disallowed(const struct places *p)
{
	unsigned int n = 0;

	for (const struct place *c = p->first; c; c = c->next)
		n += !c->dropped && is_disallowed(p, c->uid);
	return n;
}

/* Close idle and incomplete requests before those being answered, then the oldest. */
static bool closes_before(const struct place *a, const struct place *b)
{
	return a->answering != b->answering ? b->answering : a->begun_ns < b->begun_ns;
}

static struct place *first_of_user(const struct places *p, const struct place *entering)
{
	struct place *ret = NULL;

	for (struct place *c = p->first; c; c = c->next)
		if (c != entering && !c->dropped && c->uid == entering->uid &&
		    (!ret || closes_before(c, ret)))
			ret = c;
	return ret;
}

/* The first connection to close, of the disallowed user with the most connections. */
static struct place *first_of_disallowed(const struct places *p, const struct place *entering)
{
	struct place *ret = NULL;
	unsigned int most = 0;

	for (struct place *c = p->first; c; c = c->next) {
		unsigned int n = taken_by(p, c->uid);

		if (c == entering || c->dropped || !is_disallowed(p, c->uid) || n < most)
			continue;
		if (n > most || closes_before(c, ret))
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
	else if (is_disallowed(p, entering->uid) &&
		 taken_by_disallowed(p) > places_of_disallowed(p))
		out = first_of_disallowed(p, entering);
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
