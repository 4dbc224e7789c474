// SPDX-License-Identifier: BSD-2-Clause
/*
 * Starts of functions, from the sorted unwind table (.eh_frame_hdr, in the format that all linkers
 * write: Linux Standard Base, "Exception Frame Header"). Stripping keeps it, and compilers generate
 * it for C on x86-64, too. Each part of a split function has its own entry.
 */
#include <errno.h>
#include <string.h>

#include "elf/image_priv.h"

#define ENC_UDATA4	   0x03
#define ENC_DATAREL_SDATA4 0x3b
#define ENC_OMIT	   0xff

/* version, three encodings, and the address of the frames (4 bytes in practice) */
struct unwind_header {
	uint8_t version, frames, count, table;
	uint32_t frames_at, entries;
};

struct unwind_entry {
	int32_t start, frame; /* relative to the header's address */
};

/* The table's entries; NULL: no usable table. */
static const uint8_t *unwind_table(const struct image *img, size_t *ret_n)
{
	struct unwind_header h;
	const uint8_t *p = image_view(img, img->unwind, sizeof(h));
	size_t room;

	if (!img->unwind || !p)
		return NULL;
	memcpy(&h, p, sizeof(h));
	if (h.version != 1 || h.frames == ENC_OMIT || h.count != ENC_UDATA4 ||
	    h.table != ENC_DATAREL_SDATA4)
		return NULL;
	room = image_view_max(img, img->unwind + sizeof(h), &p) / sizeof(struct unwind_entry);
	*ret_n = h.entries < room ? h.entries : room;
	return p;
}

static uint64_t unwind_start(const struct image *img, const uint8_t *table, size_t i)
{
	struct unwind_entry e;

	memcpy(&e, table + i * sizeof(e), sizeof(e));
	return img->unwind + (uint64_t)(int64_t)e.start;
}

int image_function_start(const struct image *img, uint64_t vaddr, uint64_t *ret)
{
	size_t n = 0;
	const uint8_t *table = unwind_table(img, &n);
	bool found = false;

	for (size_t i = 0; table && i < n; i++) {
		uint64_t start = unwind_start(img, table, i);

		if (start > vaddr || (found && start < *ret))
			continue;
		*ret = start;
		found = true;
	}
	if (!table)
		return -ENODATA;
	return found ? 0 : -ENOENT;
}

int image_function_range(const struct image *img, uint64_t vaddr, uint64_t *ret_start,
			 uint64_t *ret_end)
{
	size_t n = 0, room;
	const uint8_t *table = unwind_table(img, &n), *bytes;
	uint64_t start, end;
	int r = image_function_start(img, vaddr, &start);

	if (r < 0)
		return r;
	room = image_view_max(img, vaddr, &bytes);
	if (!room)
		return -ENOENT;
	end = vaddr + room;
	for (size_t i = 0; i < n; i++) {
		uint64_t next = unwind_start(img, table, i);

		if (next > vaddr && next < end)
			end = next;
	}
	*ret_start = start;
	*ret_end = end;
	return 0;
}
