// SPDX-License-Identifier: BSD-2-Clause
/*
 * ELF notes: the build-id, and support of indirect branch tracking. An invalid note ends the
 * reading of its segment. Notes are optional.
 */
#include <string.h>

#include "elf/image_priv.h"

/* GNU properties are padded to 8 bytes in 64-bit files. */
static void read_properties(struct image *img, const uint8_t *p, size_t n)
{
	while (n >= 8) {
		uint32_t type, size, bits;
		size_t padded;

		memcpy(&type, p, 4);
		memcpy(&size, p + 4, 4);
		padded = ((size_t)size + 7) & ~(size_t)7;
		if (padded > n - 8)
			return;
		if (type == GNU_PROPERTY_X86_FEATURE_1_AND && size >= 4) {
			memcpy(&bits, p + 8, 4);
			img->cet = bits & GNU_PROPERTY_X86_FEATURE_1_IBT;
		}
		p += 8 + padded;
		n -= 8 + padded;
	}
}

static void read_gnu_note(struct image *img, uint32_t type, const uint8_t *desc, size_t n)
{
	if (type == NT_GNU_BUILD_ID && n > 0 && n <= IMAGE_BUILD_ID_MAX) {
		memcpy(img->build_id, desc, n);
		img->build_id_len = n;
	} else if (type == NT_GNU_PROPERTY_TYPE_0) {
		read_properties(img, desc, n);
	}
}

void image_read_note(struct image *img, const GElf_Phdr *ph)
{
	const uint8_t *p = image_bytes(img, ph->p_offset, ph->p_filesz);
	size_t left = ph->p_filesz, align = ph->p_align == 8 ? 8 : 4;
	Elf64_Nhdr nh;

	while (p && left >= sizeof(nh)) {
		size_t desc, next;

		memcpy(&nh, p, sizeof(nh));
		desc = (sizeof(nh) + nh.n_namesz + align - 1) & ~(align - 1);
		next = (desc + nh.n_descsz + align - 1) & ~(align - 1);
		if (desc > left || nh.n_descsz > left - desc)
			return;
		if (nh.n_namesz == 4 && memcmp(p + sizeof(nh), "GNU", 4) == 0)
			read_gnu_note(img, nh.n_type, p + desc, nh.n_descsz);
		if (next > left)
			return;
		p += next;
		left -= next;
	}
}
