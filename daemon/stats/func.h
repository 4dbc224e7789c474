/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions and the code objects that stand for them. A function is its identity: filename, first
 * line, name and, where there is one, qualified name. Code objects come and go, and their addresses
 * are reused; functions stay. Code objects of the same identity that are alive at the same time (two
 * list comprehensions on one line, before 3.11) are variants of one function: reports add them up,
 * but a call of one inside the other is no recursion, as in cProfile.
 *
 * Owns all names. Capped in functions, in code addresses (four per function) and in bytes of names;
 * what does not fit is FUNC_TRUNCATED.
 */
#ifndef PYPROF_STATS_FUNC_H
#define PYPROF_STATS_FUNC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "pyprof/bpf_abi.h"

/* Pseudo functions, always present. */
enum {
	FUNC_TRUNCATED = 0,
	FUNC_LOST = 1,
	FUNC_UNSEEN = 2,
	FUNC_UNREPORTED = 3, /* CPU time between context switches that the kernel did not report */
	FUNC_GC = 4,	     /* collections of generation 0, 1, 2, and of one that is not known */
	FUNC_PSEUDO_MAX = FUNC_GC + PYP_GC_UNKNOWN + 1
};

struct func {
	uint32_t filename, name, qualname; /* string ids; qualname may be STRTAB_NONE */
	int32_t firstlineno;
	uint32_t variant; /* 0, 1, …: which of those with this identity */
	uint32_t flags;	  /* co_flags */
	bool instant;	  /* a C function whose calls are one event: see codes_instant() */
	uint32_t bound;	  /* code addresses that stand for it now */
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

/* 0 or -ENOMEM (then there is nothing to deinit). */
int funcs_init(struct funcs *f, uint32_t limit, uint64_t string_bytes);
void funcs_deinit(struct funcs *f);

/* Variants of one function that are told apart; more of them share the last one. */
#define FUNC_VARIANTS_MAX 16

/* The function with this identity (variant 0), added if it is new; FUNC_TRUNCATED if it does not
 * fit. */
uint32_t funcs_intern(struct funcs *f, const struct func_identity *id);
/* Its identity; strings are valid until the next funcs_intern. */
struct func_identity funcs_identity(const struct funcs *f, uint32_t func);

/* Is it written in C? */
bool funcs_is_native(const struct funcs *f, uint32_t func);

/*
 * This code address stands for the function with this identity from now on: for a variant that no
 * other living code object stands for, if there is one. Returns it; *ret_bound is false if the
 * address itself did not fit (may be NULL).
 */
uint32_t funcs_bind(struct funcs *f, uint64_t code, const struct func_identity *id,
		    bool *ret_bound);
/* The code object is gone: its address means nothing any more. */
void funcs_forget(struct funcs *f, uint64_t code);
/* No address means anything any more. */
void funcs_forget_all(struct funcs *f);

static inline bool funcs_find(const struct funcs *f, uint64_t code, uint32_t *ret)
{
	return map_get(&f->by_code, code, ret);
}

static inline bool func_is_pseudo(uint32_t func)
{
	return func < FUNC_PSEUDO_MAX;
}

/* The function that collections of a generation, or PYP_GC_UNKNOWN, are calls of. */
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
