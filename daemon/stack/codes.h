/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From code announcements to functions: puts together the STRING and CODE records of a code object
 * and asks the resolver for what is missing. Owns the functions.
 */
#ifndef PYPROF_STACK_CODES_H
#define PYPROF_STACK_CODES_H

#include <stdint.h>

#include "base/code_names.h"
#include "event/event.h"
#include "stack/natives.h"
#include "stats/func.h"

/* Announcements in progress: at most one per thread, and few threads at a time. */
#define CODES_PENDING 64
#define CODES_STRINGS 3

/* Called for a code object whose strings could not be read in BPF, and for one that was never
 * announced: read it from the target's memory. Fills *ret with malloc'd UTF-8 that the caller takes
 * over; returns 0 or a negative errno. */
typedef int (*codes_resolve_fn)(void *ctx, uint64_t code, struct code_names *ret);

struct codes_pending {
	uint64_t code;
	uint32_t tid;
	char *str[CODES_STRINGS]; /* by enum pyp_string_which; NULL: not (yet) known */
	bool cut[CODES_STRINGS];  /* it goes on, but did not fit a record */
};

struct codes {
	struct funcs funcs;
	codes_resolve_fn resolve; /* may be NULL */
	void *ctx;
	struct codes_pending pending[CODES_PENDING];
	uint32_t npending;
	uint32_t evict;	     /* whose turn it is when all are in use */
	uint64_t unreadable; /* code objects without readable names */
	struct natives natives;
};

/* The caps are as for funcs_init(). 0 or -ENOMEM. */
int codes_init(struct codes *c, uint32_t max_funcs, uint64_t max_string_bytes,
	       codes_resolve_fn resolve, void *ctx);
void codes_deinit(struct codes *c);

void codes_string(struct codes *c, uint32_t tid, const struct event_string *s);
void codes_code(struct codes *c, uint32_t tid, uint64_t code, int32_t firstlineno, uint32_t flags);
void codes_free(struct codes *c, uint64_t code);
/* A C function, from now on at this address, by the name that cProfile gives it. */
void codes_method(struct codes *c, const struct event_method *m);
/* The thread has gone: drop what it did not finish. */
void codes_thread_exit(struct codes *c, uint32_t tid);
/* Forget all addresses and all that is in progress. */
void codes_forget(struct codes *c);

/*
 * The C function at this address, where its calls are one event, an entry without an end: a variant of
 * its own, as such calls cost less.
 */
uint32_t codes_instant(struct codes *c, uint64_t method);

/* The C function that an instruction at this address is of, by what the file says that is mapped there. */
uint32_t codes_native(struct codes *c, uint64_t address);

/* The function of a code object that was never announced; binds it. */
uint32_t codes_unknown(struct codes *c, uint64_t code);

static inline uint32_t codes_func(struct codes *c, uint64_t code)
{
	uint32_t func;

	return funcs_find(&c->funcs, code, &func) ? func : codes_unknown(c, code);
}

#endif
