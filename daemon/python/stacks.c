// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the Python stacks of all threads of a running process: _PyRuntime → interpreters → thread
 * states → frames. Lists may change while they are read, or be forged, so all loops are bounded and
 * all addresses checked. The caller has to detect inconsistent stacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/abi.h"
#include "base/array.h"
#include "python/line_tables.h"
#include "python/python.h"
#include "target/proc.h"

#define MAX_INTERPRETERS 1024
#define LIST_TRIES	 8 /* of a dump */
#define MAX_THREADS	 TARGET_MAX_THREADS
#define MAX_FRAMES	 (2u << 20) /* all threads together */
#define MAX_READS	 (1u << 20) /* takes about a second */

/* Bytes of a frame that are read at once; all needed offsets lie within. */
#define FRAME_BYTES 128

/* Read whole pages, because frames are adjacent. */
#define PAGE 4096u

/* Cache of code objects, and whether their frames are skipped */
#define CODE_CACHE 256

/*
 * A dump reads a stack DUMP_READINGS times in succession, and repeats that up to DUMP_ROUNDS times
 * until all readings agree. One reading may mix two states of a thread that makes two calls within
 * a microsecond; eight successive readings do not show the same mixture.
 */
#define DUMP_READINGS 8
#define DUMP_ROUNDS   16

struct tid_pair {
	pid_t inner; /* in the process's pid namespace */
	pid_t outer; /* in the daemon's */
};

struct walk {
	const struct python *py;
	const struct layout *l;
	const struct memory *mem;
	unsigned int reads;
	size_t frames;
	uint64_t page; /* address of page_data; 1: none */
	uint8_t page_data[PAGE];
	struct {
		uint64_t code;
		bool skip;
	} codes[CODE_CACHE];
	struct tid_pair *tids;
	size_t ntids;
	bool check_tids;
	bool inner_tids;  /* see PYTHON_TIDS_INNER */
	bool dump;	  /* see python_dump */
	uint64_t *instrs; /* dump: instruction per frame of the current stack; see lines_offset() */
	uint32_t instrs_room;
	struct line_tables lines; /* dump */
	struct python_stack *v;
	uint32_t n, room;
};

static int walk_read(struct walk *w, uint64_t addr, void *out, size_t n)
{
	uint64_t page = addr & ~(uint64_t)(PAGE - 1);

	if (page != w->page || addr - page + n > PAGE) {
		if (++w->reads > MAX_READS)
			return -E2BIG;
		w->page = 1;
		if (addr - page + n > PAGE || memory_read(w->mem, page, w->page_data, PAGE))
			return memory_read(w->mem, addr, out, n);
		w->page = page;
	}
	memcpy(out, w->page_data + (addr - page), n);
	return 0;
}

static int walk_u64(struct walk *w, uint64_t addr, uint64_t *ret)
{
	return walk_read(w, addr, ret, sizeof(*ret));
}

/* Skip frames of the interpreter's own shims. */
static bool skip_code(struct walk *w, uint64_t code)
{
	size_t slot = (code >> 4) % CODE_CACHE;
	uint32_t flags = 0;

	if (!w->l->bpf.code_skip_flags)
		return false;
	if (w->codes[slot].code != code) {
		if (walk_read(w, code + w->l->bpf.code_flags, &flags, sizeof(flags)))
			flags = 0;
		w->codes[slot].code = code;
		w->codes[slot].skip = flags & w->l->bpf.code_skip_flags;
	}
	return w->codes[slot].skip;
}

static uint64_t u64_in(const uint8_t *block, uint16_t offset)
{
	uint64_t v;

	memcpy(&v, block + offset, sizeof(v));
	return v;
}

/* Number of bytes of a frame that are needed */
static size_t frame_bytes(const struct pyp_layout *b)
{
	size_t n = (b->frame_code > b->frame_previous ? b->frame_code : b->frame_previous) + 8u;

	if (b->frame_owner != LAYOUT_NONE && b->frame_owner + 1u > n)
		n = b->frame_owner + 1u;
	if (b->frame_instr + 8u > n)
		n = b->frame_instr + 8u;
	return n;
}

static int keep_instr(struct walk *w, uint32_t at, uint64_t instr)
{
	uint64_t *v = array_room(w->instrs, &w->instrs_room, at + 1, 64, sizeof(*v));

	if (!v)
		return -ENOMEM;
	w->instrs = v;
	w->instrs[at] = instr;
	return 0;
}

static int add_frame(struct python_stack *st, uint32_t *room, uint64_t frame, uint64_t code)
{
	struct pyp_chain_frame *v =
		array_room(st->frames, room, (uint32_t)st->n + 1, 16, sizeof(*v));

	if (!v)
		return -ENOMEM;
	st->frames = v;
	st->frames[st->n++] = (struct pyp_chain_frame){.frame = frame, .code = code};
	return 0;
}

/* Walk from the innermost frame outwards. Fails only if out of memory. */
static int walk_frames(struct walk *w, uint64_t frame, struct python_stack *st)
{
	const struct pyp_layout *b = &w->l->bpf;
	size_t need = frame_bytes(b);
	uint32_t room = 0;
	uint8_t block[FRAME_BYTES];

	for (unsigned int depth = 0; frame; depth++) {
		uint64_t code;
		bool entry;
		int err = 0;

		if (depth == PYP_CHAIN_MAX_DEPTH || w->frames++ >= MAX_FRAMES ||
		    need > sizeof(block) || walk_read(w, frame, block, need)) {
			st->truncated = true;
			return 0;
		}
		code = u64_in(block, b->frame_code) & ~(uint64_t)b->code_tag_mask;
		entry = b->frame_owner != LAYOUT_NONE && block[b->frame_owner] >= b->owner_entry;
		if (code && !entry && !skip_code(w, code)) {
			err = add_frame(st, &room, frame, code);
			if (!err && w->dump)
				err = keep_instr(w, (uint32_t)st->n - 1,
						 u64_in(block, b->frame_instr));
		}
		if (err)
			return err;
		frame = u64_in(block, b->frame_previous);
	}
	return 0;
}

static int current_frame(struct walk *w, uint64_t tstate, uint64_t *ret)
{
	uint64_t cframe;

	if (w->l->ts_cframe == LAYOUT_NONE)
		return walk_u64(w, tstate + w->l->ts_frame, ret);
	if (walk_u64(w, tstate + w->l->ts_cframe, &cframe))
		return -EFAULT;
	*ret = 0;
	return cframe ? walk_u64(w, cframe + w->l->cframe_current, ret) : 0;
}

static int by_inner(const void *a, const void *b)
{
	const struct tid_pair *x = a, *y = b;

	return (x->inner > y->inner) - (x->inner < y->inner);
}

/* Returns the id of the process's thread `inner` in the daemon's namespace; 0: no such thread. */
static pid_t outer_tid(const struct walk *w, uint64_t inner)
{
	struct tid_pair key = {.inner = (pid_t)inner};
	const struct tid_pair *hit = NULL;

	if (inner == 0 || inner > INT32_MAX)
		return 0;
	if (!w->check_tids)
		return (pid_t)inner;
	if (w->ntids)
		hit = bsearch(&key, w->tids, w->ntids, sizeof(key), by_inner);
	return hit ? hit->outer : 0;
}

static pid_t thread_tid(struct walk *w, uint64_t tstate)
{
	uint64_t v;
	uint32_t tid;

	if (w->l->ts_native_thread_id != LAYOUT_NONE) {
		if (walk_u64(w, tstate + w->l->ts_native_thread_id, &v))
			return 0;
		return outer_tid(w, v);
	}
	/* thread_id is a pthread_t, the address of an internal structure of glibc. Use the value in
	 * it only if it is the id of one of the process's threads. */
	if ((!w->check_tids && !w->inner_tids) || walk_u64(w, tstate + w->l->ts_thread_id, &v) ||
	    !v || walk_read(w, v + ABI_GLIBC_PTHREAD_TID, &tid, sizeof(tid)))
		return 0;
	return outer_tid(w, tid);
}

static int walk_stack(struct walk *w, struct python_stack *st)
{
	uint64_t frame = 0;

	st->truncated = current_frame(w, st->tstate, &frame) != 0;
	return walk_frames(w, frame, st);
}

/* Reads the stack again into *st, and its instructions into w->instrs. */
static int walk_again(struct walk *w, struct python_stack *st)
{
	w->page = 1;
	w->frames -= st->n < w->frames ? st->n : w->frames;
	free(st->frames);
	st->frames = NULL;
	st->n = 0;
	return walk_stack(w, st);
}

/* A reading with which others are compared. */
struct reading {
	struct python_stack stack;
	uint64_t *instrs;
};

static int keep_reading(const struct walk *w, const struct python_stack *st, struct reading *ret)
{
	size_t n = st->n;

	ret->stack = *st;
	ret->stack.frames = calloc(n + 1, sizeof(*st->frames));
	ret->instrs = calloc(n + 1, sizeof(*ret->instrs));
	if (!ret->stack.frames || !ret->instrs)
		return -ENOMEM;
	if (n) {
		memcpy(ret->stack.frames, st->frames, n * sizeof(*st->frames));
		memcpy(ret->instrs, w->instrs, n * sizeof(*ret->instrs));
	}
	return 0;
}

static void reading_deinit(struct reading *r)
{
	free(r->stack.frames);
	free(r->instrs);
}

/*
 * Returns the number of equal outermost frames, including the instructions (except the innermost
 * frame's).
 */
static size_t common_frames(const struct walk *w, const struct python_stack *st,
			    const struct reading *r)
{
	size_t n = 0, a = st->n, b = r->stack.n;

	while (a && b) {
		const struct pyp_chain_frame *x = &st->frames[--a], *y = &r->stack.frames[--b];

		if (x->frame != y->frame || x->code != y->code ||
		    (w->instrs[a] != r->instrs[b] && (a || b)))
			break;
		n++;
	}
	return n;
}

/*
 * Returns whether both readings end at the same frame. Before 3.11, an ending frame is detached
 * from its caller, and a reading ends there.
 */
static bool same_outermost(const struct python_stack *a, const struct python_stack *b)
{
	return a->n && b->n && a->frames[a->n - 1].frame == b->frames[b->n - 1].frame;
}

/*
 * Reads the stack DUMP_READINGS times. *ret: the first reading; its `stable` is the number of
 * outermost frames that were the same in all others. Readings that were cut off do not reduce it,
 * because they show nothing about the frames outside; if most were cut off, no frame is stable.
 * *ret_same: all readings are equal.
 */
static int walk_round(struct walk *w, struct python_stack *st, struct reading *ret, bool *ret_same)
{
	unsigned int whole = 1;
	int err = walk_again(w, st);

	if (!err)
		err = keep_reading(w, st, ret);
	if (err)
		return err;
	ret->stack.stable = st->n;
	*ret_same = true;
	for (unsigned int i = 1; i < DUMP_READINGS; i++) {
		size_t same;

		err = walk_again(w, st);
		if (err)
			return err;
		same = common_frames(w, st, ret);
		*ret_same &= same == st->n && same == ret->stack.n;
		if (!same_outermost(st, &ret->stack))
			continue;
		whole++;
		ret->stack.stable = same < ret->stack.stable ? same : ret->stack.stable;
	}
	if (!*ret_same && whole < DUMP_READINGS / 2)
		ret->stack.stable = 0;
	return 0;
}

/* Returns whether more frames of a than of b are certain. */
static bool reading_better(const struct reading *a, const struct reading *b)
{
	if (a->stack.stable != b->stack.stable)
		return a->stack.stable > b->stack.stable;
	return a->stack.n > b->stack.n;
}

static void swap_readings(struct reading *a, struct reading *b)
{
	struct reading was = *a;

	*a = *b;
	*b = was;
}

/*
 * Selects the first reading of a round without differences, else the one with the most certain
 * frames.
 */
static int walk_best(struct walk *w, struct python_stack *st, struct reading *best)
{
	bool same = false;

	for (unsigned int i = 0; !same && i < DUMP_ROUNDS; i++) {
		struct reading r = {0};
		int err;

		/*
		 * Skip further rounds after a quarter of MAX_READS, so that every thread is read
		 * once.
		 */
		if (i && w->reads > MAX_READS / 4)
			break;
		err = walk_round(w, st, &r, &same);
		if (!err && (same || !i || reading_better(&r, best)))
			swap_readings(&r, best);
		reading_deinit(&r);
		if (err)
			return err;
	}
	return 0;
}

static int walk_until_same(struct walk *w, struct python_stack *st)
{
	struct reading best = {0};
	int err = walk_best(w, st, &best);

	if (!err) {
		free(st->frames);
		*st = best.stack;
		best.stack.frames = NULL;
		if (st->n)
			memcpy(w->instrs, best.instrs, st->n * sizeof(*best.instrs));
	}
	reading_deinit(&best);
	return err;
}

/* Finds the lines of a stack's frames from w->instrs. */
static int find_lines(struct walk *w, struct python_stack *st)
{
	st->lines = calloc(st->n + 1, sizeof(*st->lines));
	if (!st->lines)
		return -ENOMEM;
	for (size_t i = 0; i < st->n; i++) {
		uint64_t code = st->frames[i].code;
		const struct lines *lines = line_tables_get(&w->lines, w->l, w->mem, code);

		if (lines)
			st->lines[i] = lines_find(lines, lines_offset(w->l, code, w->instrs[i]));
	}
	return 0;
}

static int walk_thread(struct walk *w, uint64_t tstate)
{
	struct python_stack *v = array_room(w->v, &w->room, w->n + 1, 16, sizeof(*v)), *st;
	int err;

	if (!v)
		return -ENOMEM;
	w->v = v;
	st = &w->v[w->n++];
	*st = (struct python_stack){.tstate = tstate};
	st->tid = thread_tid(w, tstate);
	if (!w->dump)
		return walk_stack(w, st);
	err = walk_until_same(w, st);
	return err ? err : find_lines(w, st);
}

/* A thread state that was freed, or is something else by now, does not refer to its interpreter. */
static bool tstate_valid(struct walk *w, uint64_t tstate, uint64_t interp)
{
	uint64_t v;

	return !walk_u64(w, tstate + w->l->ts_interp, &v) && v == interp;
}

/* Forget all threads but the first n. */
static void forget_after(struct walk *w, uint32_t n)
{
	while (w->n > n) {
		w->n--;
		free(w->v[w->n].frames);
		free(w->v[w->n].lines);
	}
}

/*
 * *ret_whole: false if a thread state was freed meanwhile: the rest of the list is lost. A dump leaves
 * it out.
 */
static int walk_list(struct walk *w, uint64_t interp, bool *ret_whole)
{
	uint64_t tstate;
	int err;

	w->page = 1;
	err = walk_u64(w, interp + w->l->interp_threads_head, &tstate);

	*ret_whole = true;
	while (!err && tstate && w->n < MAX_THREADS) {
		const uint32_t before = w->n;
		uint64_t next;

		err = walk_thread(w, tstate);
		if (err)
			break;
		w->page = 1; /* not as it was before */
		*ret_whole = !walk_u64(w, tstate + w->l->ts_next, &next) &&
			     (!w->dump || tstate_valid(w, tstate, interp));
		if (!*ret_whole) {
			if (w->dump)
				forget_after(w, before);
			break;
		}
		tstate = next;
	}
	return err == -ENOMEM ? err : 0;
}

/* Servers that start a thread per request have a list that changes all the time. */
static int walk_threads(struct walk *w, uint64_t interp)
{
	const uint32_t before = w->n;
	bool whole = false;
	int err = 0;

	for (int i = 0; i < LIST_TRIES && !whole && !err; i++) {
		forget_after(w, before);
		err = walk_list(w, interp, &whole);
		if (!w->dump)
			break;
	}
	return err;
}

static int walk_interpreters(struct walk *w)
{
	uint64_t interp;
	int err = walk_u64(w, w->py->runtime + w->l->runtime_interpreters_head, &interp);

	if (err)
		return err;
	for (unsigned int i = 0; interp && i < MAX_INTERPRETERS; i++) {
		err = walk_threads(w, interp);
		if (err || walk_u64(w, interp + w->l->interp_next, &interp))
			break;
	}
	return err;
}

/* Returns the thread id in the process's own pid namespace. */
static pid_t inner_tid(pid_t pid, pid_t tid)
{
	_cleanup_free_ char *status = NULL;
	char path[64];
	pid_t inner;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	if (proc_read(AT_FDCWD, path, 65536, &status, NULL))
		return 0;
	inner = proc_last_pid(status, "NSpid");
	return inner ? inner : tid;
}

static int list_tids(struct walk *w, pid_t pid, struct diag *diag)
{
	_cleanup_free_ struct target_thread *threads = NULL;
	struct target t = {.pid = pid, .pidfd = -1}; /* without a pidfd it counts as alive */
	bool nested = inner_tid(pid, pid) != pid;
	size_t n;
	int err = target_threads(&t, &threads, &n, diag);

	if (err)
		return err;
	w->tids = calloc(n + 1, sizeof(*w->tids));
	if (!w->tids)
		return diag_errno(diag, ENOMEM, "cannot read the stacks of process %d", pid);
	for (size_t i = 0; i < n; i++) {
		w->tids[i].outer = threads[i].tid;
		w->tids[i].inner = nested ? inner_tid(pid, threads[i].tid) : threads[i].tid;
	}
	qsort(w->tids, n, sizeof(*w->tids), by_inner);
	w->ntids = n;
	w->check_tids = true;
	return 0;
}

static void walk_free(struct walk *w)
{
	if (!w)
		return;
	python_stacks_free(w->v, w->n);
	free(w->tids);
	free(w->instrs);
	line_tables_deinit(&w->lines);
	free(w);
}
DEFINE_FREEP(struct walk, walk_free)

static int read_stacks(const struct python *py, const struct memory *mem, pid_t pid, bool dump,
		       struct python_stack **ret, size_t *n, struct diag *diag)
{
	_cleanup_(walk_freep) struct walk *w = calloc(1, sizeof(*w));
	int err = 0;

	if (!w)
		return diag_errno(diag, ENOMEM, "cannot read the stacks of process %d", pid);
	w->py = py;
	w->l = &py->layout;
	w->mem = mem;
	w->page = 1;
	w->inner_tids = pid == PYTHON_TIDS_INNER;
	w->dump = dump;
	if (!py->runtime || w->l->runtime_interpreters_head == LAYOUT_NONE)
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, "",
				"Python %s in process %d: thread list not found (symbols missing)",
				py->version, pid);
	err = pid > 0 ? list_tids(w, pid, diag) : 0;
	if (!err)
		err = walk_interpreters(w);
	if (err)
		return diag_errno(diag, -err, "cannot read the stacks of process %d", pid);
	*ret = TAKE_PTR(w->v);
	*n = w->n;
	w->n = 0;
	return 0;
}

int python_stacks(const struct python *py, const struct memory *mem, pid_t pid,
		  struct python_stack **ret, size_t *n, struct diag *diag)
{
	return read_stacks(py, mem, pid, false, ret, n, diag);
}

int python_dump(const struct python *py, const struct memory *mem, pid_t pid,
		struct python_stack **ret, size_t *n, struct diag *diag)
{
	return read_stacks(py, mem, pid, true, ret, n, diag);
}

int python_stacks_check(struct python_stack *v, size_t n, pid_t pid, struct diag *diag)
{
	_cleanup_(walk_freep) struct walk *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return diag_errno(diag, ENOMEM, "cannot read the stacks of process %d", pid);
	err = list_tids(w, pid, diag);
	for (size_t i = 0; i < n && !err; i++)
		v[i].tid = v[i].tid > 0 ? outer_tid(w, (uint64_t)v[i].tid) : 0;
	return err;
}

void python_stacks_free(struct python_stack *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].frames);
		free(v[i].lines);
	}
	free(v);
}
