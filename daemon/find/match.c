// SPDX-License-Identifier: BSD-2-Clause
/* Finding processes by what people call them: see match.h. */
#include "find/match.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "find/listeners.h"

/* What separates words of a command line: "gunicorn: master [shop.wsgi:app]" */
#define SEPARATORS " \t:=,;()[]{}'\""

/* Is the word, of n bytes, name or name with this ending? */
static bool is_with(const char *word, size_t n, const char *name, const char *ending)
{
	size_t m = strlen(name);

	return n >= m && memcmp(word, name, m) == 0 &&
	       (n == m || (n == m + strlen(ending) && memcmp(word + m, ending, n - m) == 0));
}

/* Is it the word, or its last component? */
static bool is_word(const char *word, size_t n, const char *name)
{
	const char *slash;

	if (is_with(word, n, name, ".py"))
		return true;
	slash = memrchr(word, '/', n);
	return slash && is_with(slash + 1, n - (size_t)(slash + 1 - word), name, ".py");
}

static bool has_word(const char *command, const char *separators, const char *name)
{
	for (const char *p = command; *p;) {
		size_t n = strcspn(p, separators);

		if (n && is_word(p, n, name))
			return true;
		p += n + (p[n] != '\0');
	}
	return false;
}

static bool is_unit(const struct process *p, const char *unit)
{
	return p->place.unit[0] && is_with(p->place.unit, strlen(p->place.unit), unit, ".service");
}

void match_name(const struct processes *l, const char *name, bool *hit)
{
	for (size_t i = 0; *name && i < l->n; i++) {
		const struct process *p = &l->v[i];

		if (has_word(p->command, " ", name) || has_word(p->command, SEPARATORS, name) ||
		    is_unit(p, name))
			hit[i] = true;
	}
}

void match_unit(const struct processes *l, const char *unit, bool *hit)
{
	for (size_t i = 0; *unit && i < l->n; i++)
		if (is_unit(&l->v[i], unit))
			hit[i] = true;
}

void match_container(const struct processes *l, const char *container, bool *hit)
{
	size_t n = strlen(container);

	for (size_t i = 0; n && i < l->n; i++) {
		const char *id = l->v[i].place.container;

		if (strcmp(id, container) == 0 ||
		    (n >= MATCH_ID_MIN && strncmp(id, container, n) == 0))
			hit[i] = true;
	}
}

size_t match_port(const struct processes *l, unsigned int port, bool *hit)
{
	struct listeners known = {.n = 0};
	size_t denied = 0;

	for (size_t i = 0; i < l->n; i++) {
		int r = listeners_check(l->v[i].pid, port, &known);

		if (r > 0)
			hit[i] = true;
		else if (r < 0)
			denied++;
	}
	return denied;
}

/* ---- families ---- */

static size_t index_of(const struct processes *l, pid_t pid)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].pid == pid)
			return i;
	return l->n;
}

/* Does process i descend from one that is hit? The list is not from one moment, so the parents could
 * form a circle: it takes no more than l->n steps. */
static bool has_ancestor(const struct processes *l, size_t i, const bool *hit)
{
	const size_t self = i;

	for (size_t steps = 0; steps < l->n; steps++) {
		size_t parent = index_of(l, l->v[i].parent);

		if (parent == l->n || parent == self)
			return false;
		if (hit[parent])
			return true;
		i = parent;
	}
	return false;
}

size_t match_drop_children(const struct processes *l, bool *hit)
{
	/* Children whose own ancestors were cleared would be kept: mark all first. */
	_cleanup_free_ bool *drop = calloc(l->n + 1, sizeof(*drop));
	size_t n = 0;

	for (size_t i = 0; drop && i < l->n; i++)
		drop[i] = hit[i] && has_ancestor(l, i, hit);
	for (size_t i = 0; i < l->n; i++) {
		hit[i] = hit[i] && !(drop && drop[i]);
		n += hit[i];
	}
	return n;
}
