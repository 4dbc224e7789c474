/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids of functions and calling contexts: the first bytes of SHA-256 hashes, so that all machines
 * give the same function and the same stack the same id, and no target can choose names that share
 * the id of another program's function. Pure.
 */
#ifndef PYPROF_CLICKHOUSE_IDS_H
#define PYPROF_CLICKHOUSE_IDS_H

#include "snapshot/snapshot.h"

#define STACK_ID_BYTES 16

struct stack_id {
	uint8_t bytes[STACK_ID_BYTES];
};

/* The outermost context, which is outside any function. */
extern const struct stack_id stack_id_root;

/* Returns the id of a function's identity, see snapshot_func_equal(); never 0. */
uint64_t function_id(const struct snapshot_func *f);

/* Returns the id of the context that `parent` becomes by a call of the function. */
struct stack_id stack_id_child(const struct stack_id *parent, uint64_t function);

/*
 * The keys by which senders remember the rows of functions and stacks of a service and month
 * (records.h): name_key() needs the result of name_keys(), and the first 64 bits of the row's id.
 * 0: out of memory; such rows are not remembered.
 */
uint64_t name_keys(unsigned int kind, const char *service, uint32_t month);
uint64_t name_key(uint64_t keys, uint64_t id);

/* The first 64 bits, for hash maps. */
uint64_t stack_id_key(const struct stack_id *id);

#endif
