// SPDX-License-Identifier: BSD-2-Clause
/*
 * Detects executions of Python code that bypass the probed evaluator. They are not errors, but
 * noted in all reports.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "python/inside.h"
#include "target/proc.h"

#define ENVIRON_MAX	 (256u << 10)
#define MAX_INTERPRETERS 64
#define MAX_THREADS	 4096
#define MONITORING_TOOLS 8
#define JIT_FIRST_MINOR	 13

struct notes {
	char *out;
	size_t size, n;
};

__attribute__((format(printf, 2, 3))) static void note(struct notes *o, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (o->n && o->n < o->size)
		o->n += (size_t)snprintf(o->out + o->n, o->size - o->n, "; ");
	if (o->n >= o->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(o->out + o->n, o->size - o->n, fmt, ap);
	va_end(ap);
	o->n += n > 0 ? (size_t)n : 0;
}

uint64_t python_evaluator(const struct python *py)
{
	struct image_symbol sym;

	if (py->image && image_symbol(py->image, PYTHON_EVALUATOR, &sym) == 0)
		return sym.vaddr + py->bias;
	return py->evaluator;
}

/* Findings in all interpreters of the process */
struct found {
	unsigned int interpreters;
	unsigned int replaced; /* interpreters with another frame evaluator (PEP 523) */
	unsigned int profiled, traced, monitoring; /* threads, threads, tools */
};

/* Since 3.11 the field is NULL by default; before, it points to CPython's own evaluator by
 * default. */
static bool is_replaced(const struct python *py, const struct memory *mem, uint64_t interp)
{
	const struct layout *l = &py->layout;
	uint64_t eval = 0, own = python_evaluator(py);

	if (l->interp_eval_frame == LAYOUT_NONE || (!own && l->minor < 11))
		return false;
	return memory_read_u64(mem, interp + l->interp_eval_frame, &eval) == 0 && eval &&
	       eval != own;
}

static bool is_set(const struct memory *mem, uint64_t addr)
{
	uint64_t v = 0;

	return memory_read_u64(mem, addr, &v) == 0 && v;
}

static void find_tools(struct found *f, const struct layout *l, const struct memory *mem,
		       uint64_t interp)
{
	uint64_t ts = 0;

	if (memory_read_u64(mem, interp + l->interp_threads_head, &ts) < 0)
		return;
	for (unsigned int n = 0; ts && n < MAX_THREADS; n++) {
		f->profiled += is_set(mem, ts + l->ts_profilefunc);
		f->traced += is_set(mem, ts + l->ts_tracefunc);
		if (memory_read_u64(mem, ts + l->ts_next, &ts) < 0)
			return;
	}
	/* A tool's name must be a str, so other pointers are not mistaken for one. */
	for (unsigned int i = 0; i < MONITORING_TOOLS && l->interp_tool_names; i++) {
		_cleanup_free_ char *name = NULL;
		uint64_t str = 0;
		size_t n;

		f->monitoring +=
			memory_read_u64(mem, interp + l->interp_tool_names + 8 * i, &str) == 0 &&
			str && python_str_read(l, mem, str, &name, &n) == 0;
	}
}

static struct found find(const struct python *py, const struct memory *mem)
{
	const struct layout *l = &py->layout;
	struct found f = {0};
	uint64_t interp = 0;

	if (!py->runtime || l->runtime_interpreters_head == LAYOUT_NONE ||
	    memory_read_u64(mem, py->runtime + l->runtime_interpreters_head, &interp) < 0)
		return f;
	for (; interp && f.interpreters < MAX_INTERPRETERS; f.interpreters++) {
		f.replaced += is_replaced(py, mem, interp);
		find_tools(&f, l, mem, interp);
		if (memory_read_u64(mem, interp + l->interp_next, &interp) < 0)
			interp = 0;
	}
	return f;
}

static void note_interpreters(struct notes *o, const struct found *f)
{
	if (f->replaced)
		note(o, "a frame evaluator is installed (PEP 523): code that it runs itself is not "
			"traced");
	if (f->interpreters > 1)
		note(o, "%u interpreters in this process: their calls are counted together",
		     f->interpreters);
	if (f->profiled || f->traced || f->monitoring)
		note(o, "%s%s%s%s%s is active: calls are traced, including those of the tool",
		     f->profiled ? "sys.setprofile" : "",
		     f->profiled && (f->traced || f->monitoring) ? ", " : "",
		     f->traced ? "sys.settrace" : "", f->traced && f->monitoring ? ", " : "",
		     f->monitoring ? "sys.monitoring" : "");
}

/* PYTHON_JIT in the program's environment; false if it is not set or 0. */
static bool jit_wanted(const struct target *t)
{
	static const char name[] = "PYTHON_JIT=";
	_cleanup_free_ char *env = NULL;
	size_t size = 0;
	int fd = target_open_part(t, TARGET_ENVIRON, 0, 0);

	if (fd < 0 || proc_read_fd(fd, ENVIRON_MAX, &env, &size) < 0)
		return false;
	for (size_t at = 0; at < size; at += strlen(env + at) + 1)
		if (strncmp(env + at, name, strlen(name)) == 0)
			return env[at + strlen(name)] && env[at + strlen(name)] != '0';
	return false;
}

/* A JIT's code is in executable memory without a file. */
static bool has_made_code(const struct target *t)
{
	_cleanup_(target_maps_deinit) struct target_maps maps = {0};

	if (target_maps_read(t, &maps, NULL) < 0)
		return false;
	for (size_t i = 0; i < maps.n; i++)
		if (maps.v[i].exec && !maps.v[i].write && !maps.v[i].inode && !maps.v[i].path[0])
			return true;
	return false;
}

/* Returns whether calls are being missed. */
static bool note_jit(struct notes *o, const struct python *py, const struct target *t)
{
	bool wanted, made;

	if (py->minor < JIT_FIRST_MINOR)
		return false;
	wanted = jit_wanted(t);
	made = has_made_code(t);
	if (wanted)
		note(o,
		     "the JIT is enabled (PYTHON_JIT)%s: calls in compiled code are not "
		     "seen",
		     made ? " and has compiled code" : "");
	else if (made)
		note(o, "there is code that is in no file: if CPython's JIT has compiled it, calls "
			"in it "
			"are not traced");
	return wanted && made;
}

size_t python_hidden(const struct python *py, const struct memory *mem, const struct target *t,
		     bool *misses, char *out, size_t size)
{
	const struct found f = find(py, mem);
	struct notes o = {.out = out, .size = size};

	out[0] = '\0';
	note_interpreters(&o, &f);
	*misses = note_jit(&o, py, t) || f.replaced;
	return o.n;
}
