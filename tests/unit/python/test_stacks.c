// SPDX-License-Identifier: BSD-2-Clause
/*
 * python/stacks: threads and frames, in memory defined by the test for every version, and in real
 * processes.
 */
#include <errno.h>

#include "harness/heap.h"
#include "harness/interpreters.h"
#include "harness/test.h"
#include "python/python.h"

#define ENTRY_OWNER 3

static int stacks_of(const struct heap *h, uint64_t runtime, struct python_stack **v, size_t *n)
{
	struct python py = {.layout = *h->layout, .runtime = runtime};
	struct memory mem = heap_memory(h);

	return python_stacks(&py, &mem, 0, v, n, NULL);
}

/*
 * Two threads: in one, f was called by g through C (with an entry frame between them, 3.12+); the
 * other one is idle.
 */
static void check_version(const struct layout *l)
{
	struct heap *h = heap_new(l);
	uint64_t f, g, none, frame_f, frame_g, runtime;
	struct python_stack *v = NULL;
	size_t n;

	f = heap_code(h, "a.py", "f", 1, 0);
	g = heap_code(h, "a.py", "g", 9, 0);
	none = heap_code(h, "", "shim", 0, 0x2000000);
	frame_g = heap_frame(h, g | l->bpf.code_tag_mask, 0, 0);
	frame_f = frame_g;
	if (l->bpf.owner_entry != 0xff)
		frame_f = heap_frame(h, none, frame_f, ENTRY_OWNER);
	if (l->bpf.code_skip_flags)
		frame_f = heap_frame(h, none, frame_f, 0);
	frame_f = heap_frame(h, f, frame_f, 1);
	runtime = heap_runtime(h, heap_tstate(h, frame_f, 41, heap_tstate(h, 0, 42, 0)));

	assert_ok(stacks_of(h, runtime, &v, &n));
	cr_assert(n == 2 && v[0].n == 2 && v[1].n == 0);
	cr_assert(v[0].frames[0].frame == frame_f && v[0].frames[0].code == f);
	cr_assert(v[0].frames[1].frame == frame_g && v[0].frames[1].code == g);
	cr_assert(!v[0].truncated && !v[1].truncated);
	cr_assert(v[0].tid == (l->minor >= 11 ? 41 : 0) && v[1].tid == (l->minor >= 11 ? 42 : 0));
	python_stacks_free(v, n);
	free(h);
}

Test(stacks, every_layout)
{
	for (const struct layout *const *l = layout_tables; *l; l++)
		if ((*l)->runtime_interpreters_head != LAYOUT_NONE)
			check_version(*l);
	check_no_leaks();
}

Test(stacks, unreadable)
{
	struct heap *h = heap_new(layout_find(3, 13));
	uint64_t code = heap_code(h, "a.py", "f", 1, 0), ts, runtime;
	struct python_stack *v = NULL;
	size_t n = 99;

	assert_err(stacks_of(h, 0, &v, &n), -EOPNOTSUPP);
	assert_err(stacks_of(h, 0x1000, &v, &n), -EFAULT);
	cr_assert(!v && n == 99);
	/* A frame whose caller cannot be read, and a thread that cannot be read. */
	ts = heap_tstate(h, heap_frame(h, code, 0x1000, 0), 41, 0x2000);
	runtime = heap_runtime(h, ts);
	assert_ok(stacks_of(h, runtime, &v, &n));
	cr_assert(n == 2 && v[0].n == 1 && v[0].truncated);
	cr_assert(v[1].n == 0 && v[1].truncated && v[1].tid == 0);
	python_stacks_free(v, n);
	free(h);
	check_no_leaks();
}

/*
 * Memory in which a thread's state is freed, and used for something else, as soon as its list has been
 * read `frees` times.
 */
struct changing {
	struct memory mem; /* first */
	const struct heap *h;
	uint64_t head, interp_field;
	unsigned int reads, frees;
};

static int changing_read(const struct memory *mem, uint64_t addr, void *out, size_t n)
{
	struct changing *c = (struct changing *)mem;
	const struct memory heap = heap_memory(c->h);
	int r = heap.read(&heap, addr, out, n);

	if (r == 0 && addr <= c->head && c->head + 8 <= addr + n)
		c->reads++;
	if (r == 0 && c->reads <= c->frees && addr <= c->interp_field &&
	    c->interp_field + 8 <= addr + n)
		memset((char *)out + (c->interp_field - addr), 0x5a, 8);
	return r;
}

/* A new thread that ends, and the main thread behind it in the list */
static size_t dump_changing(unsigned int frees, struct python_stack **v)
{
	const struct layout *l = layout_find(3, 12);
	struct heap *h = heap_new(l);
	uint64_t code = heap_code(h, "a.py", "f", 1, 0), first, second, runtime, interp;
	struct python py = {.layout = *l};
	struct changing c = {.mem = {.read = changing_read}, .h = h, .frees = frees};
	size_t n = 0;

	second = heap_tstate(h, heap_frame(h, code, 0, 0), 41, 0);
	first = heap_tstate(h, heap_frame(h, code, 0, 0), 42, second);
	py.runtime = runtime = heap_runtime(h, first);
	memcpy(&interp, h->bytes + (runtime - HEAP_BASE) + l->runtime_interpreters_head, 8);
	heap_u64(h, first + l->ts_interp, interp);
	heap_u64(h, second + l->ts_interp, interp);
	c.head = interp + l->interp_threads_head;
	c.interp_field = first + l->ts_interp;
	assert_ok(python_dump(&py, &c.mem, 0, v, &n, NULL));
	free(h);
	return n;
}

/* A dump reads the list again, instead of what is no thread, and without the threads behind it. */
Test(stacks, threads_that_end)
{
	struct python_stack *v = NULL;
	size_t n = dump_changing(0, &v);

	cr_assert(n == 2 && v[0].tid == 42 && v[1].tid == 41);
	python_stacks_free(v, n);
	n = dump_changing(3, &v);
	cr_assert(n == 2 && v[0].tid == 42 && v[1].tid == 41);
	python_stacks_free(v, n);
	n = dump_changing(1000, &v);
	cr_assert_eq(n, 0, "%zu", n);
	python_stacks_free(v, n);
	check_no_leaks();
}

Test(stacks, circles_end)
{
	const struct layout *l = layout_find(3, 12);
	struct heap *h = heap_new(l);
	uint64_t code = heap_code(h, "a.py", "f", 1, 0), frame, ts, runtime, interp;
	struct python_stack *v = NULL;
	size_t n;

	frame = heap_frame(h, code, 0, 0);
	heap_u64(h, frame + l->bpf.frame_previous, frame);
	ts = heap_tstate(h, frame, 41, 0);
	runtime = heap_runtime(h, ts);
	assert_ok(stacks_of(h, runtime, &v, &n));
	cr_assert(n == 1 && v[0].truncated && v[0].n == PYP_CHAIN_MAX_DEPTH);
	python_stacks_free(v, n);

	heap_u64(h, ts + l->ts_next, ts);
	memcpy(&interp, h->bytes + (runtime - HEAP_BASE) + l->runtime_interpreters_head, 8);
	heap_u64(h, interp + l->interp_next, interp);
	assert_ok(stacks_of(h, runtime, &v, &n));
	cr_assert(n <= TARGET_MAX_THREADS);
	python_stacks_free(v, n);
	free(h);
	check_no_leaks();
}

/* A recursion of 300 in a thread, through __init__ and a generator; the main thread is in wait(). */
static const char deep[] = "import signal, threading\n"
			   "class K:\n"
			   "    def __init__(self, n): self.n = next(gen(n))\n"
			   "def gen(n):\n"
			   "    yield rec(n)\n"
			   "def rec(n):\n"
			   "    if n: return rec(n - 1)\n"
			   "    print('ready')\n"
			   "    signal.pause()\n"
			   "def wait(t): t.join()\n"
			   "t = threading.Thread(target=K, args=(299,), daemon=True)\n"
			   "t.start()\n"
			   "wait(t)\n";

/* Writes the names of a stack: "rec*300 gen K.__init__ run …". */
static void describe(const struct python *py, const struct memory *mem,
		     const struct python_stack *st, char *out, size_t size)
{
	char last[64] = "";
	unsigned int times = 0;
	size_t at = 0;

	out[0] = 0;
	for (size_t i = 0; i <= st->n; i++) {
		struct code_names c = {0};

		if (i < st->n)
			assert_ok(python_code_read(&py->layout, mem, st->frames[i].code, &c));
		if (c.name && strcmp(c.name, last) == 0) {
			times++;
		} else {
			if (times)
				at += (size_t)snprintf(out + at, size - at, "%s*%u ", last, times);
			snprintf(last, sizeof(last), "%s", c.name ? c.name : "");
			times = 1;
		}
		code_names_deinit(&c);
	}
}

static void check_process(const struct interpreter *it)
{
	struct target *t = NULL;
	struct python *py = NULL;
	struct python_stack *v = NULL;
	struct diag diag = {0};
	struct memory mem;
	char line[64], text[2][512];
	size_t n;
	int out;
	pid_t pid = interpreter_start(it, deep, &out);

	interpreter_line(out, line, sizeof(line));
	mem = memory_live(pid);
	assert_diag_ok(target_open(pid, &t, &diag), &diag);
	assert_diag_ok(python_discover(t, &py, &diag), &diag);
	/* The main thread may not have reached wait() yet. */
	do {
		python_stacks_free(v, v ? n : 0);
		assert_diag_ok(python_stacks(py, &mem, pid, &v, &n, &diag), &diag);
		cr_assert(n == 2);
		for (size_t i = 0; i < n; i++)
			describe(py, &mem, &v[i], text[v[i].tid == pid], sizeof(text[0]));
	} while (!strstr(text[1], "wait*1 <module>*1 "));
	cr_assert(strncmp(text[0], "rec*300 gen*1 __init__*1 run*1 ", 31) == 0, "%s", text[0]);
	cr_assert(v[0].tid && v[1].tid && v[0].tid != v[1].tid);
	cr_assert(v[0].tid == pid || v[1].tid == pid);
	python_stacks_free(v, n);
	python_free(py);
	target_free(t);
	interpreter_end(pid, out);
}

Test(stacks, real_processes)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++) {
		const struct layout *l = interpreter_layout(&v[i]);

		if (l && l->proven)
			check_process(&v[i]);
	}
	check_no_leaks();
}
