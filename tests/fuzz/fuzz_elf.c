// SPDX-License-Identifier: BSD-2-Clause
/* Arbitrary bytes as an ELF file: every reader must return. */
#include <stddef.h>
#include <stdint.h>

#include "python/python.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int visit(void *ctx, uint64_t vaddr, const uint64_t *targets, size_t n)
{
	struct image *img = ctx;

	image_plt_name(img, targets[n - 1]);
	image_pointer(img, vaddr, &(uint64_t){0});
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(image_freep) struct image *img = NULL;
	struct python py = {0};
	uint64_t a, b;

	if (image_open_bytes(data, size, "fuzz", &img, NULL))
		return 0;
	image_code_pointer_runs(img, 1, visit, img);
	image_section(img, ".PyRuntime", &a, &b);
	image_needed(img, "lib");
	image_soname(img);
	image_function_start(img, UINT64_MAX, &a);
	image_find(img, "x", 1, 0, &a);
	python_version_of_image(img, "fuzz", &py, NULL);
	return 0;
}
