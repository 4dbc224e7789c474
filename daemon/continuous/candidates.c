// SPDX-License-Identifier: BSD-2-Clause
/* Processes that are too young to be looked at: see candidates.h. */
#include "continuous/candidates.h"

#include <stdlib.h>
#include <string.h>

void candidates_deinit(struct candidates *c)
{
	free(c->v);
	*c = (struct candidates){0};
}

static bool make_room(struct candidates *c)
{
	size_t room = c->room ? 2 * c->room : 64;
	struct candidate *v;

	if (c->n < c->room)
		return true;
	v = room <= CANDIDATES_MAX ? reallocarray(c->v, room, sizeof(*v)) : NULL;
	if (!v)
		return false;
	c->v = v;
	c->room = room;
	return true;
}

void candidates_add(struct candidates *c, const struct candidate *new)
{
	size_t at;

	(void)candidates_remove(c, new->pid, false);
	if (!make_room(c)) {
		c->overflow++;
		return;
	}
	/* Reports of different CPUs may be out of order. */
	for (at = c->n; at > 0 && c->v[at - 1].since_ns > new->since_ns; at--)
		c->v[at] = c->v[at - 1];
	c->v[at] = *new;
	c->n++;
}

static void remove_at(struct candidates *c, size_t at)
{
	c->n--;
	memmove(&c->v[at], &c->v[at + 1], (c->n - at) * sizeof(*c->v));
}

bool candidates_remove(struct candidates *c, pid_t pid, bool counted)
{
	/* Those that end are mostly young. */
	for (size_t i = c->n; i-- > 0;) {
		if (c->v[i].pid != pid)
			continue;
		remove_at(c, i);
		c->short_lived += counted;
		return true;
	}
	return false;
}

void candidates_gone(struct candidates *c, const struct candidate *who)
{
	c->short_lived += who->since_ns != 0;
}

bool candidates_take(struct candidates *c, uint64_t now_ns, uint64_t age_ns, struct candidate *ret)
{
	if (!c->n || c->v[0].since_ns + age_ns > now_ns)
		return false;
	*ret = c->v[0];
	remove_at(c, 0);
	return true;
}

uint64_t candidates_due(const struct candidates *c, uint64_t age_ns)
{
	return c->n ? c->v[0].since_ns + age_ns : CANDIDATES_LAST;
}

bool foreign_seen(struct foreign *f, const struct pyp_arrival_file *file)
{
	if (!file->ino)
		return false;
	for (size_t i = 0; i < FOREIGN_MAX; i++)
		if (f->v[i].file.ino == file->ino && f->v[i].file.dev == file->dev)
			return ++f->v[i].times == FOREIGN_TIMES;
	f->v[f->next].file = *file;
	f->v[f->next].times = 1;
	f->next = (f->next + 1) % FOREIGN_MAX;
	return false;
}
