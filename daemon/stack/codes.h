/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps code addresses to functions: assembles the STRING and CODE records of a code object and asks
 * the resolver for missing names. Owns the table of functions.
 */
#ifndef PYPROF_STACK_CODES_H
#define PYPROF_STACK_CODES_H

#include <stdint.h>

#include "base/code_names.h"
#include "event/event.h"
#include "stack/natives.h"
#include "stats/func.h"

/*
 * Maximum numbers of incomplete announcements: in all, and of one thread. A probe's program can be
 * interrupted by a sample, or by another thread; a program that then walks the thread's stack
 * announces code objects in between, also the same one.
 */
#define CODES_PENDING 256
#define CODES_NESTED  4
#define CODES_STRINGS 3

/*
 * Reads the names of a code object from the target's memory. Called if the BPF program could not
 * read its strings, and for code objects that were never announced. Fills *ret with malloc'd UTF-8
 * strings that the caller frees. announced_ns: the time of its record, 0: never; if it has been freed
 * since then, the names are another one's. Returns 0 or a negative errno.
 */
typedef int (*codes_resolve_fn)(void *ctx, uint64_t code, uint64_t announced_ns,
				struct code_names *ret);

struct codes_pending {
	uint64_t code;
	uint32_t tid;
	char *str[CODES_STRINGS]; /* indexed by enum pyp_string_which; NULL: unknown so far */
	bool cut[CODES_STRINGS];  /* the string is longer than its record */
	bool sent[CODES_STRINGS]; /* its record was received, perhaps as unreadable */
};

struct codes {
	struct funcs funcs;
	codes_resolve_fn resolve; /* may be NULL */
	void *ctx;
	struct codes_pending pending[CODES_PENDING];
	uint32_t npending;
	uint64_t unreadable; /* code objects without readable names */
	struct natives natives;
};

/* The limits are those of funcs_init(). Returns 0 or -ENOMEM. */
int codes_init(struct codes *c, uint32_t max_funcs, uint64_t max_string_bytes,
	       codes_resolve_fn resolve, void *ctx);
void codes_deinit(struct codes *c);

void codes_string(struct codes *c, uint32_t tid, const struct event_string *s);
/* ts: the time of the record */
void codes_code(struct codes *c, uint64_t ts, uint32_t tid, uint64_t code, int32_t firstlineno,
		uint32_t flags);
/*
 * The names of a code object that is about to be freed and had unreadable ones: its function is
 * renamed, with all that was recorded for it.
 */
void codes_late(struct codes *c, uint32_t tid, uint64_t code, int32_t firstlineno, uint32_t flags);
void codes_free(struct codes *c, uint64_t code);
/* Binds a C function to the address of its PyMethodDef, with the name that cProfile gives it. */
void codes_method(struct codes *c, const struct event_method *m);
/* Drops the incomplete announcements of a thread that has exited. */
void codes_thread_exit(struct codes *c, uint32_t tid);
/* Unbinds all addresses and drops all incomplete announcements. */
void codes_forget(struct codes *c);

/*
 * Returns the variant of the C function at this address for calls that are single events, an entry
 * without an end. It is separate because such calls have a lower probe cost.
 */
uint32_t codes_instant(struct codes *c, uint64_t method);

/* Returns the C function for an instruction address, named after the file mapped there. */
uint32_t codes_native(struct codes *c, uint64_t address);

/* Returns the function of a code object that was never announced, and binds it to the address. */
uint32_t codes_unknown(struct codes *c, uint64_t code);

static inline uint32_t codes_func(struct codes *c, uint64_t code)
{
	uint32_t func;

	return funcs_find(&c->funcs, code, &func) ? func : codes_unknown(c, code);
}

#endif
