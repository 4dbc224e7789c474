// SPDX-License-Identifier: BSD-2-Clause
/* elf/ against real interpreters: what the rest of the daemon needs from them is found, and damaged
 * copies of them are refused or read without harm. */
#include "elf/image.h"

#include <fcntl.h>
#include <time.h>

#include "harness/interpreters.h"
#include "harness/test.h"

static struct image *open_file(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image *img = NULL;
	struct diag diag = {0};

	cr_assert(fd >= 0, "cannot open %s", path);
	assert_diag_ok(image_open_fd(fd, path, &img, &diag), &diag);
	return img;
}

struct found {
	unsigned int n;
	size_t longest;
	uint64_t vaddr;
};

static int note_run(void *ctx, uint64_t vaddr, const uint64_t *targets, size_t n)
{
	struct found *f = ctx;

	cr_assert(targets[0] && targets[n - 1]);
	f->n++;
	if (n > f->longest) {
		f->longest = n;
		f->vaddr = vaddr;
	}
	return 0;
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void check_interpreter(const struct interpreter *it)
{
	_cleanup_(image_freep) struct image *img = NULL;
	uint8_t id[IMAGE_BUILD_ID_MAX];
	struct image_symbol sym;
	struct found found = {0};
	uint64_t offset, vaddr;
	double opened, start = now_ms();

	img = open_file(it->file);
	opened = now_ms();
	assert_ok(image_symbol(img, "_PyEval_EvalFrameDefault", &sym));
	cr_assert(sym.func);
	cr_assert_not_null(image_view(img, sym.vaddr, 16));
	assert_ok(image_offset(img, sym.vaddr, &offset));
	assert_ok(image_vaddr(img, offset, &vaddr));
	cr_assert(vaddr == sym.vaddr);
	cr_assert(image_build_id(img, id) <= IMAGE_BUILD_ID_MAX);
	assert_ok(image_code_pointer_runs(img, 200, note_run, &found));
	fprintf(stderr, "%s: open %.1f ms, scan %.1f ms, %u runs, longest %zu at %#lx, cet %d\n",
		it->file, opened - start, now_ms() - opened, found.n, found.longest, found.vaddr,
		image_is_cet(img));
	cr_assert(found.longest >= 256, "no opcode table in %s", it->file);
}

Test(elf_real, interpreters, .timeout = 60)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		check_interpreter(&v[i]);
	check_no_leaks();
}
