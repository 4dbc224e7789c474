/* SPDX-License-Identifier: BSD-2-Clause */
/* What rebuild.c does for rebuild_chain.c */
#ifndef PYPROF_STACK_REBUILD_PRIV_H
#define PYPROF_STACK_REBUILD_PRIV_H

#include "stack/rebuild.h"

/* Push a frame that was entered at an unknown time: no call is counted. */
void rebuild_push(struct rebuild *rb, struct thread *th, const struct chain_frame *f);
/* End the innermost activation of the current stack, which is not empty. */
void rebuild_pop(struct rebuild *rb, struct thread *th);

/* Park the current stack, and make an empty one current. */
void rebuild_park_for_new(struct rebuild *rb, struct thread *th);
/* Park the current stack, and make the one that is parked in this slot current. */
void rebuild_switch_to(struct rebuild *rb, struct thread *th, uint32_t slot);

#endif
