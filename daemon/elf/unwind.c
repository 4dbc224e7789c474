// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where functions start, by the sorted table that unwinders search (.eh_frame_hdr, in the form that
 * every linker writes: Linux Standard Base, "Exception Frame Header"). Stripping leaves it alone, and
 * compilers write it for each function of x86-64, C as well; a function that was split has an entry
 * for each part.
 */
#include <errno.h>
#include <string.h>

#include "elf/image_priv.h"

#define ENC_UDATA4	   0x03
#define ENC_DATAREL_SDATA4 0x3b
#define ENC_OMIT	   0xff

/* version, three encodings; the frames' address, as `frames` encodes it: four bytes in practice */
struct unwind_header {
	uint8_t version, frames, count, table;
	uint32_t frames_at, entries;
};

struct unwind_entry {
	int32_t start, frame; /* both from the header's own address on */
};

int image_function_start(const struct image *img, uint64_t vaddr, uint64_t *ret)
{
	struct unwind_header h;
	struct unwind_entry e;
	const uint8_t *p = image_view(img, img->unwind, sizeof(h));
	size_t room;
	bool found = false;

	if (!img->unwind || !p)
		return -ENODATA;
	memcpy(&h, p, sizeof(h));
	if (h.version != 1 || h.frames == ENC_OMIT || h.count != ENC_UDATA4 ||
	    h.table != ENC_DATAREL_SDATA4)
		return -ENODATA;
	room = image_view_max(img, img->unwind + sizeof(h), &p) / sizeof(e);
	for (size_t i = 0; i < h.entries && i < room; i++) {
		uint64_t start;

		memcpy(&e, p + i * sizeof(e), sizeof(e));
		start = img->unwind + (uint64_t)(int64_t)e.start;
		if (start > vaddr || (found && start < *ret))
			continue;
		*ret = start;
		found = true;
	}
	return found ? 0 : -ENOENT;
}
