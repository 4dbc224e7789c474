// SPDX-License-Identifier: BSD-2-Clause
/* A snapshot's functions by identity: see known_funcs.h. Hash chains of indices. */
#include "profile/known_funcs.h"

#include <errno.h>
#include <string.h>

struct entry {
	uint64_t hash;
	uint32_t next; /* SNAPSHOT_NONE: end of the chain */
};

struct known_funcs {
	struct snapshot_room room; /* of entries */
	struct entry *entries;	   /* per function of the snapshot */
	uint32_t n;
	uint32_t *chains; /* per hash value: the first entry */
	uint32_t nchains; /* a power of two */
};

static struct func_identity identity_of(const struct snapshot_func *f)
{
	return (struct func_identity){
		.filename = f->filename,
		.name = f->name,
		.qualname = f->qualname,
		.firstlineno = f->firstlineno,
	};
}

/*
 * The hash includes `pseudo`, because a target's function can have the identity of a pseudo
 * function.
 */
static uint64_t hash_of(const struct func_identity *id, bool pseudo)
{
	return func_identity_hash(id) ^ (pseudo ? 1 : 0);
}

static void link_entry(struct known_funcs *k, uint32_t i)
{
	uint32_t *chain = &k->chains[k->entries[i].hash & (k->nchains - 1)];

	k->entries[i].next = *chain;
	*chain = i;
}

void known_funcs_add(struct snapshot *s)
{
	struct known_funcs *k = s->adding.known_funcs;
	struct func_identity id = identity_of(&s->funcs[k->n]);

	k->entries[k->n].hash = hash_of(&id, s->funcs[k->n].pseudo);
	link_entry(k, k->n++);
}

/*
 * At least one chain per function. The number doubles, so the total of all allocations stays small.
 */
static int reserve_chains(struct snapshot *s, struct known_funcs *k, uint32_t n)
{
	uint32_t nchains = k->nchains ? k->nchains : 256;

	while (nchains < n && nchains <= UINT32_MAX / 2)
		nchains *= 2;
	if (nchains == k->nchains)
		return 0;
	k->chains = snapshot_alloc(s, nchains, sizeof(*k->chains));
	if (!k->chains) {
		s->adding.known_funcs = NULL;
		return -ENOMEM;
	}
	k->nchains = nchains;
	memset(k->chains, 0xff, nchains * sizeof(*k->chains));
	for (uint32_t i = 0; i < k->n; i++)
		link_entry(k, i);
	return 0;
}

int known_funcs_prepare(struct snapshot *s, uint32_t n)
{
	struct known_funcs *k = s->adding.known_funcs;
	uint32_t total;

	if (__builtin_add_overflow(s->nfuncs, n, &total))
		return -ENOMEM;
	if (!k || k->n > s->nfuncs)
		k = s->adding.known_funcs = snapshot_alloc(s, 1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->entries =
		snapshot_grow(s, &k->room, k->entries, k->n, total - k->n, sizeof(*k->entries));
	if (!k->entries) {
		s->adding.known_funcs = NULL;
		return -ENOMEM;
	}
	if (reserve_chains(s, k, total) < 0)
		return -ENOMEM;
	while (k->n < s->nfuncs)
		known_funcs_add(s);
	return 0;
}

uint32_t known_funcs_find(const struct snapshot *s, const struct func_identity *id,
			  uint32_t variant, bool pseudo)
{
	const struct known_funcs *k = s->adding.known_funcs;
	uint64_t hash = hash_of(id, pseudo);
	uint32_t i = k->chains[hash & (k->nchains - 1)];

	for (; i != SNAPSHOT_NONE; i = k->entries[i].next) {
		const struct snapshot_func *f = &s->funcs[i];
		struct func_identity other = identity_of(f);

		if (k->entries[i].hash == hash && f->pseudo == pseudo && f->variant == variant &&
		    func_identity_equal(id, &other))
			return i;
	}
	return SNAPSHOT_NONE;
}
