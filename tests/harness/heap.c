// SPDX-License-Identifier: BSD-2-Clause
/* Laying out CPython objects in a buffer: see heap.h. */
#include "harness/heap.h"

#include "harness/test.h"

struct heap *heap_new(const struct layout *l)
{
	struct heap *h = calloc(1, sizeof(*h));

	cr_assert(h && l);
	h->layout = l;
	return h;
}

struct memory heap_memory(const struct heap *h)
{
	return memory_buffer(h->bytes, sizeof(h->bytes), HEAP_BASE);
}

uint64_t heap_alloc(struct heap *h, size_t n)
{
	uint64_t addr = HEAP_BASE + h->used;

	cr_assert(n < HEAP_SIZE && h->used + n < HEAP_SIZE, "the test's heap is too small");
	h->used += (n + 15) & ~(size_t)15;
	return addr;
}

void heap_put(struct heap *h, uint64_t addr, const void *data, size_t n)
{
	cr_assert(addr >= HEAP_BASE && addr - HEAP_BASE + n <= HEAP_SIZE);
	if (n)
		memcpy(h->bytes + (addr - HEAP_BASE), data, n);
}

void heap_u64(struct heap *h, uint64_t addr, uint64_t v)
{
	heap_put(h, addr, &v, sizeof(v));
}

void heap_u32(struct heap *h, uint64_t addr, uint32_t v)
{
	heap_put(h, addr, &v, sizeof(v));
}

uint64_t heap_str(struct heap *h, unsigned int kind, const void *units, size_t n)
{
	const struct pyp_layout *b = &h->layout->bpf;
	size_t bytes = n * (kind ? kind : 1);
	uint64_t s = heap_alloc(h, b->str_compact_data + bytes + 4);

	heap_u64(h, s + b->str_length, n);
	heap_u32(h, s + b->str_state,
		 ((kind ? kind : 1) | 1u << 3 | (kind ? 0u : 1u << 4)) << b->str_kind_shift);
	heap_put(h, s + (kind ? b->str_compact_data : b->str_ascii_data), units, bytes);
	return s;
}

uint64_t heap_ascii(struct heap *h, const char *s)
{
	return heap_str(h, 0, s, strlen(s));
}

uint64_t heap_code(struct heap *h, const char *filename, const char *name, int line, uint32_t flags)
{
	const struct pyp_layout *b = &h->layout->bpf;
	uint64_t code = heap_alloc(h, 256);
	char qualname[256];

	heap_u32(h, code + b->code_flags, flags);
	heap_u32(h, code + b->code_firstlineno, (uint32_t)line);
	heap_u64(h, code + b->code_filename, heap_ascii(h, filename));
	heap_u64(h, code + b->code_name, heap_ascii(h, name));
	snprintf(qualname, sizeof(qualname), "Q.%s", name);
	if (b->code_qualname != LAYOUT_NONE)
		heap_u64(h, code + b->code_qualname, heap_ascii(h, qualname));
	return code;
}

uint64_t heap_frame(struct heap *h, uint64_t code, uint64_t previous, uint8_t owner)
{
	const struct pyp_layout *b = &h->layout->bpf;
	uint64_t frame = heap_alloc(h, 128);

	heap_u64(h, frame + b->frame_code, code);
	heap_u64(h, frame + b->frame_previous, previous);
	if (b->frame_owner != LAYOUT_NONE)
		heap_put(h, frame + b->frame_owner, &owner, 1);
	return frame;
}

uint64_t heap_tstate(struct heap *h, uint64_t frame, uint64_t native_id, uint64_t next)
{
	const struct layout *l = h->layout;
	uint64_t ts = heap_alloc(h, 512), cframe;

	heap_u64(h, ts + l->ts_next, next);
	if (l->ts_native_thread_id != LAYOUT_NONE)
		heap_u64(h, ts + l->ts_native_thread_id, native_id);
	if (l->ts_cframe == LAYOUT_NONE) {
		heap_u64(h, ts + l->ts_frame, frame);
		return ts;
	}
	cframe = heap_alloc(h, 64);
	heap_u64(h, cframe + l->cframe_current, frame);
	heap_u64(h, ts + l->ts_cframe, cframe);
	return ts;
}

uint64_t heap_runtime(struct heap *h, uint64_t tstate)
{
	uint64_t runtime = heap_alloc(h, 4096), interp = heap_alloc(h, 16384);

	heap_u64(h, runtime + h->layout->runtime_interpreters_head, interp);
	heap_u64(h, interp + h->layout->interp_threads_head, tstate);
	return runtime;
}
