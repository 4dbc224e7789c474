// SPDX-License-Identifier: BSD-2-Clause
/* Bodies of inserts: rows by table, without names that are known; damaged requests are refused. */
#include "push/inserts.h"

#include <errno.h>

#include "clickhouse/records.h"
#include "harness/gunzip.h"
#include "harness/test.h"

#define KEYS 40u

static struct known none;

static void put(struct rows *r, enum tables_kind kind, uint64_t key, char c, size_t n)
{
	size_t begin = record_begin(r, kind, key);

	for (size_t i = 0; i < n; i++)
		rows_put_u8(r, (uint8_t)c);
	record_end(r, begin);
}

/* An interval with names [first, first + n); the rows are "f…", "s…" and "p…". */
static void put_interval(struct rows *r, uint64_t first, uint64_t n)
{
	for (uint64_t i = first; i < first + n; i++) {
		put(r, TABLES_FUNCTIONS, 1000 + i, 'f', i);
		put(r, TABLES_STACKS, 2000 + i, 's', 1);
	}
	put(r, TABLES_PROFILES, 0, 'p', 100000);
}

static void zip(const struct rows *r, struct push_zip *to)
{
	uint8_t *data;
	size_t n;

	assert_ok(push_gzip(r->data, r->n, &data, &n));
	to->data = realloc(to->data, to->n + n);
	cr_assert(to->data);
	memcpy(to->data + to->n, data, n);
	to->n += n;
	free(data);
}

static void expect(const struct inserts *in, enum tables_kind kind, uint64_t rows, size_t bytes)
{
	uint8_t *body;
	size_t n = 0;

	cr_assert_eq(in->of[kind].rows, rows, "%d: %llu rows", kind,
		     (unsigned long long)in->of[kind].rows);
	if (!rows) {
		cr_assert_null(in->of[kind].body.data);
		return;
	}
	body = gunzip(in->of[kind].body.data, in->of[kind].body.n, &n);
	cr_assert_eq(n, bytes, "%d: %zu bytes", kind, n);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(body[i], "fsp"[kind]);
	free(body);
}

Test(inserts, names_that_are_known_are_left_out)
{
	struct push_zip zipped = {.n = 0};
	struct known known = {.until_ns = 0};
	struct rows r = {0};
	struct inserts in;

	put_interval(&r, 0, KEYS);
	zip(&r, &zipped);
	assert_ok(inserts_read(&in, zipped.data, zipped.n, &known));
	expect(&in, TABLES_FUNCTIONS, KEYS, KEYS * (KEYS - 1) / 2);
	expect(&in, TABLES_STACKS, KEYS, KEYS);
	expect(&in, TABLES_PROFILES, 1, 100000);
	cr_assert_eq(in.nkeys, 2 * KEYS);
	known_add(&known, in.keys, in.nkeys);
	inserts_deinit(&in);
	assert_ok(inserts_read(&in, zipped.data, zipped.n, &known));
	expect(&in, TABLES_FUNCTIONS, 0, 0);
	expect(&in, TABLES_STACKS, 0, 0);
	expect(&in, TABLES_PROFILES, 1, 100000);
	inserts_deinit(&in);
	known_deinit(&known);
	rows_deinit(&r);
	free(zipped.data);
	check_no_leaks();
}

/* Several streams are one request; a name of two intervals is inserted once. */
Test(inserts, batches_are_one_insert)
{
	struct push_zip zipped = {.n = 0};
	struct inserts in;

	for (uint64_t i = 0; i < 5; i++) {
		struct rows r = {0};

		put_interval(&r, i, KEYS);
		zip(&r, &zipped);
		rows_deinit(&r);
	}
	assert_ok(inserts_read(&in, zipped.data, zipped.n, &none));
	expect(&in, TABLES_STACKS, KEYS + 4, KEYS + 4);
	expect(&in, TABLES_PROFILES, 5, 500000);
	inserts_deinit(&in);
	free(zipped.data);
	check_no_leaks();
}

Test(inserts, damaged_requests_are_refused)
{
	struct push_zip zipped = {.n = 0};
	struct rows r = {0};
	struct inserts in;

	put_interval(&r, 0, 3);
	zip(&r, &zipped);
	for (size_t n = 0; n < zipped.n; n++) {
		assert_err(inserts_read(&in, zipped.data, n, &none), -EBADMSG);
		inserts_deinit(&in);
	}
	free(zipped.data);
	zipped = (struct push_zip){.n = 0};
	r.n--; /* the last record is not complete */
	zip(&r, &zipped);
	assert_err(inserts_read(&in, zipped.data, zipped.n, &none), -EBADMSG);
	inserts_deinit(&in);
	free(zipped.data);
	zipped = (struct push_zip){.n = 0};
	r.data[0] = TABLES_KINDS;
	zip(&r, &zipped);
	assert_err(inserts_read(&in, zipped.data, zipped.n, &none), -EBADMSG);
	inserts_deinit(&in);
	free(zipped.data);
	rows_deinit(&r);
	check_no_leaks();
}

/* What does not fit is forgotten with the rest: then it is inserted again. */
Test(known, is_bounded_and_forgets)
{
	struct known k = {.until_ns = 0};
	const uint64_t day = KNOWN_LIFETIME_NS;

	for (uint64_t i = 1; i <= KNOWN_MAX; i++)
		known_add(&k, &i, 1);
	cr_assert(known_has(&k, 1) && known_has(&k, KNOWN_MAX) && !known_has(&k, 0));
	known_add(&k, (const uint64_t[]){KNOWN_MAX + 1}, 1);
	cr_assert_eq(k.keys.n, 0);
	known_expire(&k, 5, 0);
	known_add(&k, (const uint64_t[]){7, 0, 8}, 3);
	known_expire(&k, day / 2, UINT32_MAX);
	cr_assert(known_has(&k, 7) && known_has(&k, 8) && !known_has(&k, 0));
	known_expire(&k, day / 2 + 5, UINT32_MAX);
	cr_assert(!known_has(&k, 7));
	known_add(&k, (const uint64_t[]){7}, 1);
	known_expire(&k, 3 * day / 2 - UINT64_C(10000000000), 0);
	cr_assert(known_has(&k, 7), "almost a day later");
	known_expire(&k, 3 * day / 2 + 5, 0);
	cr_assert(!known_has(&k, 7));
	known_deinit(&k);
	check_no_leaks();
}
