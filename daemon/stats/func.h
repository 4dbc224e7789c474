/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions and their code objects. A function's identity is its filename, first line, name and, if
 * available, qualified name. Code objects are created and freed and their addresses are reused;
 * functions are permanent. Code objects with the same identity that live at the same time (two list
 * comprehensions on one line, before 3.11) are variants of one function. Reports add variants up,
 * but a call of one inside another is not a recursion, as in cProfile.
 *
 * The table owns all names. It limits the number of functions, of code addresses (four per
 * function) and the bytes of names; objects above a limit become FUNC_TRUNCATED.
 */
#ifndef PYPROF_STATS_FUNC_H
#define PYPROF_STATS_FUNC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "pyprof/bpf_abi.h"

/* Pseudo functions; always present. */
enum {
	FUNC_TRUNCATED = 0,
	FUNC_LOST = 1,
	FUNC_UNSEEN = 2,
	FUNC_UNREPORTED = 3, /* CPU time between context switches that the kernel did not report */
	FUNC_UNWALKED = 4,   /* waiting, if no stack of a wait like it was walked */
	FUNC_GC = 5,	     /* collections of generations 0, 1, 2, and of an unknown generation */
	FUNC_PSEUDO_MAX = FUNC_GC + PYP_GC_UNKNOWN + 1
};

struct func {
	uint32_t filename, name, qualname; /* string ids; qualname may be STRTAB_NONE */
	int32_t firstlineno;
	uint32_t variant; /* distinguishes functions with this identity; the first one has 0 */
	uint32_t flags;	  /* co_flags */
	bool instant;	  /* a C function whose calls are single events: see codes_instant() */
	uint32_t bound;	  /* number of code addresses currently bound to it */
	uint32_t codes;	  /* code objects that were ever bound to it */
	uint32_t next;	  /* another function with the same hash, or UINT32_MAX */
};

struct func_identity {
	const char *filename, *name, *qualname; /* qualname may be NULL */
	int32_t firstlineno;
};

struct funcs {
	struct func *list;
	uint32_t n, cap, limit;
	struct strtab strings;
	struct map by_identity; /* hash of the identity → first function with it */
	struct map by_code;	/* code address → function */
};

/*
 * string_bytes: limit on the bytes of names. Returns 0, or -ENOMEM (then there is nothing to
 * deinit).
 */
int funcs_init(struct funcs *f, uint32_t limit, uint64_t string_bytes);
void funcs_deinit(struct funcs *f);

/* The maximum number of variants; further code objects share the last one. */
#define FUNC_VARIANTS_MAX 16

/*
 * Returns the function with this identity (variant 0), which is added if it is new; FUNC_TRUNCATED
 * if a limit is reached.
 */
uint32_t funcs_intern(struct funcs *f, const struct func_identity *id);
/* Returns the identity of a function. Its strings are valid until the next funcs_intern. */
struct func_identity funcs_identity(const struct funcs *f, uint32_t func);

/* Returns whether the function is written in C. */
bool funcs_is_native(const struct funcs *f, uint32_t func);

/*
 * Binds a code address to the function with this identity: to a variant without a living code
 * object if there is one. Returns the function. *ret_bound (may be NULL) is false if there was no
 * room for the address.
 */
uint32_t funcs_bind(struct funcs *f, uint64_t code, const struct func_identity *id,
		    bool *ret_bound);
/*
 * Changes the identity of the function to which a code address is bound, which becomes a further
 * variant if there are others with that identity. Returns 0; -ENOENT if the address is unbound;
 * -EBUSY if the function has been that of several code objects; -ENOSPC if a limit is reached;
 * -ENOMEM. If it fails, nothing has changed.
 */
int funcs_rename(struct funcs *f, uint64_t code, const struct func_identity *id);
/* Unbinds the address of a freed code object. */
void funcs_forget(struct funcs *f, uint64_t code);
/* Unbinds all addresses. */
void funcs_forget_all(struct funcs *f);

static inline bool funcs_find(const struct funcs *f, uint64_t code, uint32_t *ret)
{
	return map_get(&f->by_code, code, ret);
}

static inline bool func_is_pseudo(uint32_t func)
{
	return func < FUNC_PSEUDO_MAX;
}

/* Returns the pseudo function for collections of a generation or of PYP_GC_UNKNOWN. */
static inline uint32_t func_of_gc(uint32_t generation)
{
	return FUNC_GC + (generation < PYP_GC_UNKNOWN ? generation : PYP_GC_UNKNOWN);
}

static inline bool func_is_gc(uint32_t func)
{
	return func >= FUNC_GC && func <= FUNC_GC + PYP_GC_UNKNOWN;
}

uint64_t func_identity_hash(const struct func_identity *id);
bool func_identity_equal(const struct func_identity *a, const struct func_identity *b);

#endif
