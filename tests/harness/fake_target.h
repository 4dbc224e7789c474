/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target that is not a Python process: a child process of the test with a few known instructions
 * to probe, and memory shared with the test, in which the test makes frames, code objects and
 * strings as in CPython 3.13. The test controls which functions the child executes.
 */
#ifndef PYPROF_TESTS_HARNESS_FAKE_TARGET_H
#define PYPROF_TESTS_HARNESS_FAKE_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "plan/plan.h"
#include "python/layout.h"

/* Owners of frames, and co_flags of code that is not counted */
enum { FAKE_OWNER_THREAD = 0, FAKE_OWNER_GENERATOR = 1, FAKE_OWNER_ENTRY = 3 };
#define FAKE_SKIP_FLAGS 0x2000000u

/*
 * The probed functions. Each executes its site once and does nothing else. The comments give the
 * instruction and the location of the pointer.
 */
void fake_enter(uint64_t frame, uint64_t real); /* je, not taken if real; rdi */
void fake_throw(uint64_t frame);		/* jmp; r8 */
void fake_leave(uint64_t frame);		/* push; rsi */
void fake_yield(uint64_t tstate);		/* nop; [r11 + FAKE_TS_FRAME] */
void fake_code_free(uint64_t code);		/* call; rdi */
#define FAKE_TS_FRAME 72

enum { FAKE_ENTER, FAKE_THROW, FAKE_LEAVE, FAKE_YIELD, FAKE_CODE_FREE, FAKE_SITES };

/* One site per general register, numbered as x86 encodes them, each a LEAVE. */
#define FAKE_REGS 16

struct fake_target {
	pid_t pid;
	int to, from;	/* pipes */
	char via[32];	/* how to attach */
	uint8_t *arena; /* shared, at the same address in the child */
	size_t used;
	const struct layout *layout; /* 3.13's */
};

void fake_target_start(struct fake_target *t);
void fake_target_stop(struct fake_target *t); /* kills the child */

/* Make the child execute fn(t, a, b), and wait until it has returned. */
typedef void (*fake_fn)(struct fake_target *t, uint64_t a, uint64_t b);
void fake_target_run(struct fake_target *t, fake_fn fn, uint64_t a, uint64_t b);
/* As fake_target_run(), for a function that does not return. */
void fake_target_send(struct fake_target *t, fake_fn fn, uint64_t a, uint64_t b);

/* As fake_target_run(), for the probed functions. */
void fake_target_enter(struct fake_target *t, uint64_t frame);
void fake_target_leave(struct fake_target *t, uint64_t frame);
void fake_target_pairs(struct fake_target *t, uint64_t frame, uint64_t n);
void fake_target_leave_regs(struct fake_target *t, uint64_t frame); /* all of them, in order */

/* The plan of all sites (site number = FAKE_*), and of the 16 registers' sites. */
void fake_target_plan(struct plan *ret);
void fake_target_reg_plan(struct plan *ret);

/* The current byte of process pid at a site; 0xcc is a breakpoint. */
uint8_t fake_site_byte(pid_t pid, const struct plan_site *site);

/* Objects in the arena; each returns its address. */
uint64_t fake_alloc(struct fake_target *t, size_t size, size_t align);
uint64_t fake_str(struct fake_target *t, const char *ascii);
uint64_t fake_str_kind(struct fake_target *t, unsigned int kind, const void *units, size_t n);
uint64_t fake_code(struct fake_target *t, const char *file, const char *name, uint32_t flags,
		   int32_t firstlineno);
uint64_t fake_frame(struct fake_target *t, uint64_t code, uint64_t previous, uint8_t owner);
void fake_put64(uint64_t addr, uint64_t value);

#endif
