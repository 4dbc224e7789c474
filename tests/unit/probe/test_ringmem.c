// SPDX-License-Identifier: BSD-2-Clause
#include "probe/ringmem.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "harness/test.h"

#define KEY 0x9e3779b97f4a7c15ull

/* A ring, and a writer that does what bpf/ring.bpf.h does. */
struct fixture {
	struct pyp_ring_pos pos;
	struct ringmem mem;
	uint8_t *data;
};

static struct fixture ring_of(uint64_t bytes)
{
	struct fixture f = {.data = calloc(1, ringmem_size(bytes))};

	cr_assert(f.data);
	f.mem = (struct ringmem){.data = f.data, .bytes = bytes, .key = KEY};
	return f;
}

/* Claims space; returns the place of the header, marked as busy, or NULL if the ring is full. */
static uint64_t *claim(struct fixture *f, size_t size)
{
	uint64_t bytes = PYP_RING_BYTES(size), at, *header;

	at = __atomic_load_n(&f->pos.written, __ATOMIC_RELAXED);
	do {
		uint64_t read = __atomic_load_n(&f->pos.read, __ATOMIC_ACQUIRE);

		if ((int64_t)(at + bytes - read) > (int64_t)f->mem.bytes)
			return NULL;
	} while (!__atomic_compare_exchange_n(&f->pos.written, &at, at + bytes, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	header = (uint64_t *)(void *)(f->data +
				      ((at & (f->mem.bytes - 1)) >> PYP_RING_SHIFT) *
					      ringmem_chunk_size(f->mem.bytes) +
				      (at & ringmem_mask(f->mem.bytes)));
	__atomic_store_n(header, PYP_RING_HEADER(at, bytes | PYP_RING_BUSY, KEY), __ATOMIC_RELAXED);
	return header;
}

static void submit(uint64_t *header)
{
	__atomic_store_n(header, *header ^ PYP_RING_BUSY, __ATOMIC_RELEASE);
}

static bool put(struct fixture *f, uint8_t value, size_t size)
{
	uint64_t *header = claim(f, size);

	if (!header)
		return false;
	memset(header + 1, value, size);
	submit(header);
	return true;
}

static const uint8_t *next(struct fixture *f, size_t *bytes)
{
	f->mem.pos = &f->pos;
	return ringmem_record(&f->mem, ringmem_read(&f->mem), ringmem_written(&f->mem), bytes);
}

static void expect_next(struct fixture *f, uint8_t value, size_t size)
{
	size_t bytes = 0;
	const uint8_t *record = next(f, &bytes);

	cr_assert(record);
	cr_assert_eq(bytes, PYP_RING_BYTES(size));
	for (size_t i = 0; i < size; i++)
		cr_assert_eq(record[i], value);
	ringmem_release(&f->mem, ringmem_read(&f->mem) + bytes);
}

Test(ringmem, sizes)
{
	cr_assert_eq(ringmem_chunks(4096), 1);
	cr_assert_eq(ringmem_chunk_size(4096), 4096 + PYP_RING_SLACK);
	cr_assert_eq(ringmem_chunks(PYP_RING_CHUNK), 1);
	cr_assert_eq(ringmem_chunks(16u << 20), 8);
	cr_assert_eq(ringmem_mask(16u << 20), PYP_RING_CHUNK - 1);
	cr_assert_eq(ringmem_size(16u << 20), 8 * (PYP_RING_CHUNK + PYP_RING_SLACK));
	cr_assert_leq(ringmem_chunk_size(16u << 20), 4u << 20, "the limit of older kernels");
	check_no_leaks();
}

/* Records of many sizes cross the ends of chunks and of the ring in many places. */
Test(ringmem, what_is_written_is_read)
{
	static const size_t sizes[] = {16, 40, 24, 96, 536, 512, 16384, 40, 49152, 24};
	const uint64_t rings[] = {4096, 65536, PYP_RING_CHUNK, 4u << 20};

	for (size_t k = 0; k < sizeof(rings) / sizeof(*rings); k++) {
		struct fixture f = ring_of(rings[k]);
		uint64_t laps = rings[k] > 65536 ? 3 : 20;

		for (unsigned int i = 0;
		     ringmem_written(&(struct ringmem){.pos = &f.pos}) < laps * rings[k]; i++) {
			size_t size = sizes[i % (sizeof(sizes) / sizeof(*sizes))];

			cr_assert_eq(put(&f, (uint8_t)i, size), size + 8 <= rings[k]);
			if (size + 8 <= rings[k])
				expect_next(&f, (uint8_t)i, size);
		}
		free(f.data);
	}
	check_no_leaks();
}

Test(ringmem, a_full_ring_takes_nothing)
{
	struct fixture f = ring_of(4096);
	unsigned int n = 0;
	size_t bytes;

	while (put(&f, (uint8_t)n, 56))
		n++;
	cr_assert_eq(n, 4096 / 64);
	expect_next(&f, 0, 56);
	cr_assert(put(&f, (uint8_t)n, 56));
	cr_assert(!put(&f, 0, 56));
	for (unsigned int i = 1; i <= n; i++)
		expect_next(&f, (uint8_t)i, 56);
	cr_assert_null(next(&f, &bytes));
	free(f.data);
	check_no_leaks();
}

/* A writer that was interrupted: nothing behind its record is read before it has finished. */
Test(ringmem, the_reader_waits_for_a_busy_record)
{
	struct fixture f = ring_of(4096);
	uint64_t *first = claim(&f, 40);
	size_t bytes;

	cr_assert(put(&f, 2, 40));
	cr_assert_null(next(&f, &bytes));
	memset(first + 1, 1, 40);
	submit(first);
	expect_next(&f, 1, 40);
	expect_next(&f, 2, 40);
	free(f.data);
	check_no_leaks();
}

/* Old contents are no header: neither those of the previous lap nor what a target may write. */
Test(ringmem, old_contents_are_no_header)
{
	struct fixture f = ring_of(4096);
	size_t bytes;

	for (unsigned int i = 0; i < 4096 / 64; i++) {
		put(&f, (uint8_t)i, 56);
		expect_next(&f, (uint8_t)i, 56);
	}
	f.pos.written += 64; /* claimed; the header is not written yet */
	cr_assert_null(next(&f, &bytes), "the header of the previous lap");
	*(uint64_t *)(void *)f.data = PYP_RING_HEADER(4096, 64, 0);
	cr_assert_null(next(&f, &bytes), "a header without the key");
	*(uint64_t *)(void *)f.data = PYP_RING_HEADER(4096, 65528, KEY);
	cr_assert_null(next(&f, &bytes), "too large");
	*(uint64_t *)(void *)f.data = PYP_RING_HEADER(4096, 0, KEY);
	cr_assert_null(next(&f, &bytes), "too small");
	*(uint64_t *)(void *)f.data = PYP_RING_HEADER(4096, 64, KEY);
	cr_assert(next(&f, &bytes));
	free(f.data);
	check_no_leaks();
}

#define WRITERS 4
#define EACH	20000u

struct writer {
	struct fixture *f;
	uint64_t id;
};

static void *write_many(void *ctx)
{
	struct writer *w = ctx;

	for (uint64_t i = 0; i < EACH;) {
		uint64_t *header = claim(w->f, 40);

		if (!header) {
			sched_yield();
			continue;
		}
		for (int k = 1; k <= 5; k++)
			header[k] = w->id << 32 | i;
		submit(header);
		i++;
	}
	return NULL;
}

Test(ringmem, writers_in_parallel)
{
	struct fixture f = ring_of(65536);
	struct writer w[WRITERS];
	uint64_t seen[WRITERS] = {0};
	pthread_t threads[WRITERS];
	const uint64_t *record;
	size_t bytes;

	f.mem.pos = &f.pos;
	for (uint64_t i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){&f, i};
		assert_ok(-pthread_create(&threads[i], NULL, write_many, &w[i]));
	}
	for (uint64_t n = 0; n < WRITERS * EACH;) {
		record = (const uint64_t *)(const void *)next(&f, &bytes);
		if (!record) {
			sched_yield();
			continue;
		}
		cr_assert(record[0] >> 32 < WRITERS);
		cr_assert_eq((uint32_t)record[0], seen[record[0] >> 32]++);
		for (int k = 1; k < 5; k++)
			cr_assert_eq(record[k], record[0]);
		ringmem_release(&f.mem, ringmem_read(&f.mem) + bytes);
		n++;
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	free(f.data);
	check_no_leaks();
}
