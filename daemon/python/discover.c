// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the interpreter of a process.
 *
 * CPython is either in the executable (Debian's python3, programs that embed it statically) or in a
 * libpython that the program links or loads. File names are unreliable. But every build exports the
 * evaluator's dynamic symbol, as extension modules may need it. So each file that the process maps
 * executable is checked for that symbol: the executable first, then files with "python" in the
 * name, then all others. Files that may have it are parsed completely, and exactly one must be an
 * interpreter.
 *
 * Files are opened through /proc/PID/exe and /proc/PID/map_files, which work even if a file was
 * deleted or replaced, or is in another mount namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "python/implementation.h"
#include "python/inside.h"

/* Limit of files inspected per process */
#define MAX_CANDIDATES 8192

enum rank { RANK_EXE, RANK_NAMED_PYTHON, RANK_OTHER };

/* A file that is mapped executable */
struct candidate {
	const struct target_map *map;
	enum rank rank;
};

struct search {
	const struct target *target;
	struct candidate *v;
	size_t n;
	struct diag denied;	   /* the first missing permission to open a file */
	enum implementation other; /* another implementation of Python, by the names of its files */
	struct python *python;	   /* the interpreter found, or NULL */
};

static int refuse_version(const struct python *py, struct diag *diag)
{
	char range[32];

	return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, "",
			"'%s' is Python %s; supported: CPython %s", py->file, py->version,
			layout_proven_range(range, sizeof(range)));
}

static int refuse_build(const struct python *py, const char *what, const char *hint,
			struct diag *diag)
{
	return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, hint,
			"'%s' is a %s of Python %s, which cannot be traced", py->file, what,
			py->version);
}

/*
 * Returns whether this is a Py_DEBUG, Py_REF_DEBUG or Py_TRACE_REFS build. They change object
 * layouts, and define these symbols.
 */
static bool is_debug_build(const struct image *img)
{
	static const char *const names[] = {"_Py_NegativeRefcount", "_Py_RefTotal",
					    "_Py_GetRefTotal"};
	struct image_symbol sym;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!image_symbol(img, names[i], &sym))
			return true;
	return false;
}

/* 3.6 has no _PyRuntime, only a static interp_head. PyInterpreterState_Head() consists of loading
 * it: mov disp32(%rip),%rax. Its address is used as the runtime's. */
static uint64_t interp_head_vaddr(const struct image *img)
{
	static const uint8_t mov[3] = {0x48, 0x8b, 0x05};
	struct image_symbol sym;
	const uint8_t *p;
	int32_t disp;

	if (image_symbol(img, "PyInterpreterState_Head", &sym))
		return 0;
	p = image_view(img, sym.vaddr, 8);
	if (!p || memcmp(p, mov, sizeof(mov)) != 0 || p[7] != 0xc3)
		return 0;
	memcpy(&disp, p + 3, 4);
	return sym.vaddr + 7 + (uint64_t)(int64_t)disp;
}

/* Address of _PyRuntime in the file; 0: unknown */
static uint64_t runtime_vaddr(const struct image *img)
{
	struct image_symbol sym;
	uint64_t vaddr, size;

	if (!image_symbol(img, "_PyRuntime", &sym))
		return sym.vaddr;
	return image_section(img, ".PyRuntime", &vaddr, &size) ? 0 : vaddr;
}

static int refuse_abi(const struct python *py, unsigned int abi, struct diag *diag)
{
	if (abi & LAYOUT_ABI_DEBUG)
		return refuse_build(py, "debug build",
				    "run the program with an ordinary build of Python", diag);
	return refuse_build(py, "free-threaded build",
			    "run the program with an ordinary build of Python, or with the "
			    "free-threaded one of 3.13",
			    diag);
}

/* Finds the layout of this version and build, confirmed by the file's contents. */
static int take_layout(const struct image *img, struct python *py, struct diag *diag)
{
	const struct layout *layout = layout_find(py->major, py->minor);
	unsigned int abi = is_debug_build(img) ? LAYOUT_ABI_DEBUG : 0;

	if (!layout || !layout->proven)
		return refuse_version(py, diag);
	py->runtime = py->minor == 6 ? interp_head_vaddr(img) : runtime_vaddr(img);
	if (python_is_free_threaded(img, py->runtime))
		abi |= LAYOUT_ABI_FREE_THREADED;
	layout = layout_find_abi(py->major, py->minor, abi);
	if (!layout || !layout->proven)
		return refuse_abi(py, abi, diag);
	py->layout = *layout;
	return python_confirm_layout(img, py->runtime, py, diag);
}

static uint64_t address_of(const struct image *img, const char *symbol)
{
	struct image_symbol sym;

	return image_symbol(img, symbol, &sym) == 0 ? sym.vaddr : 0;
}

/*
 * From 3.7 on, cProfile also counts methods called through their type; this profiler does the same.
 */
static struct pyp_native_types native_types_of(const struct image *img, const struct layout *l)
{
	const struct image_segment *seg;
	unsigned int n = image_segments(img, &seg);
	uint64_t first = UINT64_MAX, end = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (seg[i].vaddr < first)
			first = seg[i].vaddr;
		if (seg[i].vaddr + seg[i].memsz > end)
			end = seg[i].vaddr + seg[i].memsz;
	}
	return (struct pyp_native_types){
		.function = address_of(img, "PyCFunction_Type"),
		.cmethod = address_of(img, "PyCMethod_Type"),
		.descriptor = l->minor >= 7 ? address_of(img, "PyMethodDescr_Type") : 0,
		.image = n ? first : 0,
		.image_size = n ? end - first : 0,
	};
}

/* Collect all facts from the file. Takes ownership of img, even on failure. */
static int python_from_image(struct image *img, const char *file, struct python **ret,
			     struct diag *diag)
{
	_cleanup_(python_freep) struct python *py = calloc(1, sizeof(*py));
	int err;

	if (!py) {
		image_free(img);
		return diag_errno(diag, ENOMEM, "cannot inspect '%s'", file);
	}
	py->image = img;
	snprintf(py->file, sizeof(py->file), "%s", file);
	err = python_version_of_image(img, file, py, diag);
	if (err == 0)
		err = take_layout(img, py, diag);
	if (err)
		return err;
	py->build_id_len = image_build_id(img, py->build_id);
	py->code_type = address_of(img, "PyCode_Type");
	if (py->layout.gc_place == LAYOUT_GC_POINTER)
		py->gc_generation0 = address_of(img, "_PyGC_generation0");
	py->native_types = native_types_of(img, &py->layout);
	*ret = TAKE_PTR(py);
	return 0;
}

static bool has_evaluator(const struct image *img)
{
	struct image_symbol sym;

	return !image_symbol(img, PYTHON_EVALUATOR, &sym) ||
	       !image_symbol(img, PYTHON_EVALUATOR_OLD, &sym);
}

int python_open_file(const char *path, struct python **ret, struct diag *diag)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return diag_errno(diag, errno, "cannot open '%s'", path);
	return python_open_fd(fd, path, ret, diag);
}

int python_open_fd(int fd, const char *path, struct python **ret, struct diag *diag)
{
	_cleanup_(image_freep) struct image *img = NULL;
	const char *library;
	char hint[256];
	int err;

	err = image_open_fd(fd, path, &img, diag);
	if (err)
		return err;
	library = image_needed(img, "libpython");
	if (!has_evaluator(img) && library) {
		snprintf(hint, sizeof(hint), "use the path of %s instead", library);
		return diag_set(diag, -ENOENT, PYP_EXIT_UNTRACEABLE, hint,
				"'%s' contains no interpreter, it uses %s", path, library);
	}
	return python_from_image(TAKE_PTR(img), path, ret, diag);
}

void python_build_id_hex(const struct python *py, char out[PYTHON_BUILD_ID_HEX])
{
	out[0] = '\0';
	for (size_t i = 0; i < py->build_id_len; i++)
		snprintf(out + 2 * i, 3, "%02x", py->build_id[i]);
}

bool python_same_build(const struct python *a, const struct python *b)
{
	return a->build_id_len == b->build_id_len &&
	       memcmp(a->build_id, b->build_id, a->build_id_len) == 0 &&
	       strcmp(a->version, b->version) == 0;
}

void python_free(struct python *py)
{
	if (!py)
		return;
	image_free(py->image);
	free(py);
}

static enum rank rank_of(const struct target *t, const struct target_map *map)
{
	const char *base = strrchr(map->path, '/');

	if (strcmp(map->path, t->exe) == 0)
		return RANK_EXE;
	return base && strstr(base, "python") ? RANK_NAMED_PYTHON : RANK_OTHER;
}

static int by_file(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const struct target_map *m = x->map, *n = y->map;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (m->inode != n->inode)
		return m->inode < n->inode ? -1 : 1;
	if (m->dev_major != n->dev_major)
		return m->dev_major < n->dev_major ? -1 : 1;
	if (m->dev_minor != n->dev_minor)
		return m->dev_minor < n->dev_minor ? -1 : 1;
	return (m->start > n->start) - (m->start < n->start);
}

static bool same_file(const struct target_map *m, const struct target_map *n)
{
	return m->inode == n->inode && m->dev_major == n->dev_major && m->dev_minor == n->dev_minor;
}

/* Remember an implementation that is not CPython. */
static void note_other(struct search *s, const char *path)
{
	enum implementation found = implementation_of_file(path, NULL);

	if (found != IMPLEMENTATION_NONE && found != IMPLEMENTATION_CPYTHON)
		s->other = found;
}

/* List the files that are mapped executable, best candidates first, without duplicates. */
static int list_candidates(struct search *s, const struct target_maps *maps)
{
	size_t n = 0;

	s->v = calloc(maps->n + 1, sizeof(*s->v));
	if (!s->v)
		return -ENOMEM;
	for (size_t i = 0; i < maps->n; i++) {
		const struct target_map *m = &maps->v[i];

		if (m->exec && m->inode && m->path[0] == '/') {
			s->v[s->n++] = (struct candidate){m, rank_of(s->target, m)};
			note_other(s, m->path);
		}
	}
	qsort(s->v, s->n, sizeof(*s->v), by_file);
	for (size_t i = 0; i < s->n; i++)
		if (!n || !same_file(s->v[n - 1].map, s->v[i].map))
			s->v[n++] = s->v[i];
	s->n = n < MAX_CANDIDATES ? n : MAX_CANDIDATES;
	return 0;
}

/* Load bias: runtime address minus address in the file, from the mapping of an executable
 * segment. */
static int find_bias(const struct image *img, const struct target_map *map, uint64_t *ret)
{
	const struct image_segment *seg;
	unsigned int n = image_segments(img, &seg);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (unsigned int i = 0; i < n; i++) {
		uint64_t start = seg[i].offset & ~(page - 1), end = seg[i].offset + seg[i].filesz;

		if (!seg[i].exec || map->offset < start || map->offset >= end)
			continue;
		*ret = map->start - (seg[i].vaddr + (map->offset - seg[i].offset));
		return *ret % page || (image_is_exec(img) && *ret) ? -EINVAL : 0;
	}
	return -ENOENT;
}

static int locate(struct python *py, const struct target_map *map, const char *via,
		  struct diag *diag)
{
	snprintf(py->via, sizeof(py->via), "%s", via);
	if (find_bias(py->image, map, &py->bias))
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, "",
				"the mapping of '%s' does not match its program headers", py->file);
	if (py->runtime)
		py->runtime += py->bias;
	return 0;
}

static int refuse_second(const struct search *s, const char *file, struct diag *diag)
{
	return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, "",
			"process %d has more than one Python interpreter: '%s' and '%s'",
			s->target->pid, s->python->file, file);
}

/* Inspect one file. Also returns 0 if it contains no interpreter. */
static int try_candidate(struct search *s, const struct target_map *map, struct diag *diag)
{
	_cleanup_(python_freep) struct python *py = NULL;
	_cleanup_(image_freep) struct image *img = NULL;
	_cleanup_close_ int fd = -1;
	struct diag why = {0};
	char via[64];
	int err;

	fd = target_open_map(s->target, map, via, sizeof(via), &why);
	if (fd < 0 && why.exit == PYP_EXIT_PERMISSION && !s->denied.err)
		s->denied = why;
	if (fd < 0 || (!image_may_define(fd, PYTHON_EVALUATOR) &&
		       !image_may_define(fd, PYTHON_EVALUATOR_OLD)))
		return 0;
	/* files that are not valid ELF files contain no interpreter */
	if (image_open_fd(fd, map->path, &img, NULL) || !has_evaluator(img))
		return 0;
	if (s->python)
		return refuse_second(s, map->path, diag);
	err = python_from_image(TAKE_PTR(img), map->path, &py, diag);
	if (!py)
		return err;
	err = locate(py, map, via, diag);
	if (err)
		return err;
	s->python = TAKE_PTR(py);
	return 0;
}

static int not_found(const struct search *s, struct diag *diag)
{
	const struct target *t = s->target;
	char hint[64], range[32];

	if (!target_alive(t))
		return diag_errno(diag, ESRCH, "process %d has ended", t->pid);
	if (s->denied.err)
		return diag_set(diag, s->denied.err, s->denied.exit, s->denied.hint, "%s",
				s->denied.msg);
	snprintf(hint, sizeof(hint), "use the pid of a CPython %s program",
		 layout_proven_range(range, sizeof(range)));
	if (s->other != IMPLEMENTATION_NONE)
		return diag_set(diag, -ENOTSUP, PYP_EXIT_UNTRACEABLE, hint,
				"process %d (%s) runs %s, not CPython", t->pid, t->exe,
				implementation_name(s->other));
	return diag_set(diag, -ENOENT, PYP_EXIT_UNTRACEABLE, hint,
			"process %d (%s) does not run Python", t->pid, t->exe);
}

static void search_deinit(struct search *s)
{
	python_free(s->python);
	free(s->v);
}

int python_discover(const struct target *t, struct python **ret, struct diag *diag)
{
	_cleanup_(target_maps_deinit) struct target_maps maps = {0};
	_cleanup_(search_deinit) struct search s = {.target = t};
	int err = target_maps_read(t, &maps, diag);

	if (!err && list_candidates(&s, &maps))
		err = diag_errno(diag, ENOMEM, "cannot inspect process %d", t->pid);
	for (size_t i = 0; !err && i < s.n; i++)
		err = try_candidate(&s, s.v[i].map, diag);
	if (err)
		return err;
	if (!s.python)
		return not_found(&s, diag);
	*ret = TAKE_PTR(s.python);
	return 0;
}
