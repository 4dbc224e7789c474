// SPDX-License-Identifier: BSD-2-Clause
/*
 * elf/ on real interpreters: it finds everything that the daemon needs, and damaged copies are
 * refused or read without a crash.
 */
#include "elf/image.h"

#include <fcntl.h>
#include <time.h>

#include "harness/interpreters.h"
#include "harness/test.h"
#include "python/python.h"

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

static int count_run(void *ctx, uint64_t vaddr, const uint64_t *targets, size_t n)
{
	struct found *f = ctx;

	f->n += n && vaddr && targets[n - 1];
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
	assert_ok(image_function_start(img, sym.vaddr + 5, &vaddr));
	cr_assert(vaddr == sym.vaddr, "unwinders find the evaluator");
	cr_assert(image_build_id(img, id) <= IMAGE_BUILD_ID_MAX);
	assert_ok(image_code_pointer_runs(img, 200, note_run, &found));
	fprintf(stderr, "%s: open %.1f ms, scan %.1f ms, %u runs, longest %zu at %#lx, cet %d\n",
		it->file, opened - start, now_ms() - opened, found.n, found.longest, found.vaddr,
		image_is_cet(img));
	cr_assert(found.longest >= 256, "no opcode table in %s", it->file);
}

Test(elf_real, interpreters)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++)
		check_interpreter(&v[i]);
	check_no_leaks();
}

/* Call all query functions of an image and ignore the results. */
static void exercise(const uint8_t *data, size_t size)
{
	_cleanup_(image_freep) struct image *img = NULL;
	struct found found = {0};
	struct image_symbol sym;
	struct python py = {0};
	uint64_t a, b;

	if (image_open_bytes(data, size, "damaged", &img, NULL))
		return;
	image_symbol(img, "_PyEval_EvalFrameDefault", &sym);
	image_code_pointer_runs(img, 200, count_run, &found);
	image_section(img, ".PyRuntime", &a, &b);
	image_needed(img, "libpython");
	image_function_start(img, 0x20000, &a);
	for (a = 0; a < 4096; a += 16)
		image_plt_name(img, a + 0x20000);
	python_version_of_image(img, "damaged", &py, NULL);
}

/*
 * Returns an offset where damage has the most effect: in the headers, and in the tables that the
 * dynamic segment refers to.
 */
static size_t pick(unsigned int *seed, size_t size)
{
	size_t r = (size_t)rand_r(seed) << 16 ^ (size_t)rand_r(seed);

	switch (rand_r(seed) % 4) {
	case 0:
		return r % 1024;
	case 1:
		return r % (size < 300000 ? size : 300000);
	default:
		return r % size;
	}
}

/* Reads the smallest interpreter, as the loops below copy it often. */
static uint8_t *smallest(size_t *size)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);
	uint8_t *data = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t s;
		uint8_t *d = interpreter_read(&v[i], &s);

		if (data && s >= *size) {
			free(d);
			continue;
		}
		free(data);
		data = d;
		*size = s;
	}
	return data;
}

Test(elf_real, truncated)
{
	size_t size;
	uint8_t *data = smallest(&size);

	for (size_t n = 0; n < 200; n++)
		exercise(data, n);
	for (size_t i = 0; i < 60; i++)
		exercise(data, size / 60 * i + i);
	free(data);
	check_no_leaks();
}

Test(elf_real, flipped_bytes)
{
	unsigned int seed = 20240229;
	size_t size;
	uint8_t *data = smallest(&size);

	for (int i = 0; i < 100; i++) {
		size_t at[8];
		uint8_t was[8];

		for (int k = 0; k < 8; k++) {
			at[k] = pick(&seed, size);
			was[k] = data[at[k]];
			data[at[k]] = (uint8_t)rand_r(&seed);
		}
		exercise(data, size);
		for (int k = 7; k >= 0; k--)
			data[at[k]] = was[k];
	}
	free(data);
	check_no_leaks();
}
