/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of rebuild.c for rebuild_chain.c. */
#ifndef PYPROF_STACK_REBUILD_PRIV_H
#define PYPROF_STACK_REBUILD_PRIV_H

#include "stack/rebuild.h"

/* Pushes a frame that was entered at an unknown time. No call is counted. */
void rebuild_push(struct rebuild *rb, struct thread *th, const struct chain_frame *f);
/* Ends the innermost activation of the current stack, which must not be empty. */
void rebuild_pop(struct rebuild *rb, struct thread *th);

/* Parks the current stack and makes an empty one current. */
void rebuild_park_for_new(struct rebuild *rb, struct thread *th);
/* Parks the current stack and makes the parked stack in this slot current. */
void rebuild_switch_to(struct rebuild *rb, struct thread *th, uint32_t slot);

#endif
