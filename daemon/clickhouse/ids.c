// SPDX-License-Identifier: BSD-2-Clause
/* Ids: see ids.h. Numbers are hashed in little-endian order, strings after their length. */
#include "clickhouse/ids.h"

#include <endian.h>
#include <openssl/sha.h>
#include <string.h>

#include "clickhouse/rows.h"

const struct stack_id stack_id_root = {{0}};

static uint64_t first_u64(const uint8_t *bytes)
{
	uint64_t v;

	memcpy(&v, bytes, sizeof(v));
	return le64toh(v);
}

static uint64_t hash_u64(const void *data, size_t n)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];

	SHA256(data, n, digest);
	return first_u64(digest);
}

/* 0 means "no function". Without memory all functions would share that id: callers check err. */
uint64_t function_id(const struct snapshot_func *f)
{
	struct rows r = {0};
	uint64_t id = 0;

	rows_put_u32(&r, (uint32_t)f->firstlineno);
	rows_put_u32(&r, f->variant);
	rows_put_u8(&r, f->pseudo);
	rows_put_u8(&r, f->qualname != NULL);
	rows_put_str(&r, f->filename);
	rows_put_str(&r, f->name);
	rows_put_str(&r, f->qualname);
	if (!r.err)
		id = hash_u64(r.data, r.n);
	rows_deinit(&r);
	return id ? id : 1;
}

struct stack_id stack_id_child(const struct stack_id *parent, uint64_t function)
{
	uint8_t digest[SHA256_DIGEST_LENGTH], data[STACK_ID_BYTES + sizeof(function)];
	struct stack_id ret;

	function = htole64(function);
	memcpy(data, parent->bytes, STACK_ID_BYTES);
	memcpy(data + STACK_ID_BYTES, &function, sizeof(function));
	SHA256(data, sizeof(data), digest);
	memcpy(ret.bytes, digest, STACK_ID_BYTES);
	return ret;
}

uint64_t name_keys(unsigned int kind, const char *service, uint32_t month)
{
	struct rows r = {0};
	uint64_t ret = 0;

	rows_put_u32(&r, kind);
	rows_put_u32(&r, month);
	rows_put_str(&r, service);
	if (!r.err)
		ret = hash_u64(r.data, r.n);
	rows_deinit(&r);
	return ret;
}

/* 0 would not be remembered. */
uint64_t name_key(uint64_t keys, uint64_t id)
{
	const uint64_t data[] = {htole64(keys), htole64(id)};

	return keys ? hash_u64(data, sizeof(data)) : 0;
}

uint64_t stack_id_key(const struct stack_id *id)
{
	return first_u64(id->bytes);
}
