// SPDX-License-Identifier: BSD-2-Clause
/* Snapshots for tests: see snapshot_builder.h. */
#include "harness/snapshot_builder.h"

#include <inttypes.h>
#include <string.h>

#include "harness/test.h"

#define MAX_TARGETS 8
#define MAX_THREADS 64
#define MAX_FUNCS   4096
#define MAX_NODES   65536
#define MAX_DEPTH   128

struct snapshot_builder {
	struct snapshot *s; /* its arrays have their maximum size until snapshot_builder_finish() */
};

struct snapshot_builder *snapshot_builder_new(void)
{
	struct snapshot_builder *b = calloc(1, sizeof(*b));
	struct snapshot *s = snapshot_new();

	cr_assert(b && s);
	s->host = snapshot_str(s, "testhost");
	s->kernel = snapshot_str(s, "Linux 6.1.0");
	s->program = snapshot_str(s, "pyprofd test");
	s->taken_unix_ns = 1700000010 * 1000000000ull;
	s->targets = snapshot_alloc(s, MAX_TARGETS, sizeof(*s->targets));
	s->threads = snapshot_alloc(s, MAX_THREADS, sizeof(*s->threads));
	s->funcs = snapshot_alloc(s, MAX_FUNCS, sizeof(*s->funcs));
	s->nodes = snapshot_alloc(s, MAX_NODES, sizeof(*s->nodes));
	cr_assert(s->targets && s->threads && s->funcs && s->nodes);
	b->s = s;
	return b;
}

uint32_t snapshot_builder_target(struct snapshot_builder *b, uint32_t pid)
{
	struct snapshot *s = b->s;

	cr_assert(s->ntargets < MAX_TARGETS);
	s->targets[s->ntargets] = (struct snapshot_target){
		.pid = pid,
		.cmdline = snapshot_str(s, "python app.py"),
		.exe = snapshot_str(s, "/opt/python/bin/python"),
		.python_file = snapshot_str(s, "/opt/python/lib/libpython.so"),
		.python_version = snapshot_str(s, "3.13.0"),
		.build_id = snapshot_str(s, "0123456789abcdef"),
		.alive = true,
		.tracing = true,
		.start_ns = 1000000000,
		.end_ns = 11000000000,
		.start_unix_ns = 1700000000 * 1000000000ull,
		.end_unix_ns = 1700000010 * 1000000000ull,
		.traced_ns = 10000000000,
		.events = 1234,
	};
	return s->ntargets++;
}

uint32_t snapshot_builder_thread(struct snapshot_builder *b, uint32_t pid, uint32_t tid,
				 const char *name)
{
	struct snapshot *s = b->s;
	uint32_t root = snapshot_builder_node(b, SNAPSHOT_NONE, SNAPSHOT_NONE, 0, 0, 0, 0);

	cr_assert(s->nthreads < MAX_THREADS);
	s->nodes[root].thread = s->nthreads;
	s->threads[s->nthreads++] = (struct snapshot_thread){
		.pid = pid,
		.tid = tid,
		.name = snapshot_str(s, name),
		.alive = true,
		.start_ns = 1000000000,
		.end_ns = 11000000000,
		.total = {5000000000, 10000000000},
		.root = root,
	};
	return root;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

uint32_t snapshot_builder_func(struct snapshot_builder *b, const char *file, int32_t line,
			       const char *name, const char *qualname)
{
	struct snapshot *s = b->s;

	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (s->funcs[i].firstlineno == line && same(s->funcs[i].name, name) &&
		    same(s->funcs[i].filename, file) && same(s->funcs[i].qualname, qualname))
			return i;
	cr_assert(s->nfuncs < MAX_FUNCS);
	s->funcs[s->nfuncs] = (struct snapshot_func){
		.filename = snapshot_str(s, file),
		.name = snapshot_str(s, name),
		.qualname = snapshot_str(s, qualname),
		.firstlineno = line,
	};
	return s->nfuncs++;
}

uint32_t snapshot_builder_node(struct snapshot_builder *b, uint32_t parent, uint32_t func,
			       uint64_t calls, uint64_t cpu, uint64_t wall, uint32_t inflight)
{
	struct snapshot *s = b->s;

	cr_assert(s->nnodes < MAX_NODES);
	s->nodes[s->nnodes] = (struct snapshot_node){
		.parent = parent,
		.func = func,
		.thread = parent == SNAPSHOT_NONE ? 0 : s->nodes[parent].thread,
		.inflight = inflight,
		.calls = calls,
		.self = {cpu, wall},
		.min = {UINT64_MAX, UINT64_MAX},
	};
	if (calls > inflight) {
		s->nodes[s->nnodes].min[SNAPSHOT_CPU] = cpu / calls;
		s->nodes[s->nnodes].max[SNAPSHOT_CPU] = cpu;
		s->nodes[s->nnodes].min[SNAPSHOT_WALL] = wall / calls;
		s->nodes[s->nnodes].max[SNAPSHOT_WALL] = wall;
	}
	return s->nnodes++;
}

/* A copy of its exact size, so that a sanitizer detects accesses beyond the end. */
static void *exact(struct snapshot *s, const void *array, uint32_t n, size_t size)
{
	void *copy = snapshot_alloc(s, n, size);

	cr_assert(copy);
	memcpy(copy, array, n * size);
	return copy;
}

struct snapshot *snapshot_builder_finish(struct snapshot_builder *b)
{
	struct snapshot *s = b->s;

	free(b);
	s->targets = exact(s, s->targets, s->ntargets, sizeof(*s->targets));
	s->threads = exact(s, s->threads, s->nthreads, sizeof(*s->threads));
	s->funcs = exact(s, s->funcs, s->nfuncs, sizeof(*s->funcs));
	s->nodes = exact(s, s->nodes, s->nnodes, sizeof(*s->nodes));
	cr_assert(snapshot_valid(s), "the description makes no sound snapshot");
	return s;
}

struct reader {
	struct snapshot_builder *b;
	uint32_t parents[MAX_DEPTH]; /* the current parent node of contexts at each depth */
	uint32_t pid;
};

static void read_context(struct reader *r, const char *line)
{
	size_t depth = strspn(line, " ") / 2;
	char name[64], file[64];
	uint64_t calls, cpu, wall;
	unsigned int inflight = 0;
	uint32_t func;
	int n, lineno;

	n = sscanf(line, " %63s %63[^:]:%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %u", name, file,
		   &lineno, &calls, &cpu, &wall, &inflight);
	cr_assert(n >= 5 && depth + 1 < MAX_DEPTH, "cannot read '%s'", line);
	func = snapshot_builder_func(r->b, file, lineno, name, NULL);
	r->parents[depth + 1] = snapshot_builder_node(r->b, r->parents[depth], func, calls, cpu,
						      n > 5 ? wall : cpu, inflight);
}

static void read_thread(struct reader *r, uint32_t pid, uint32_t tid, const char *name)
{
	if (r->pid != pid)
		snapshot_builder_target(r->b, pid);
	r->pid = pid;
	r->parents[0] = snapshot_builder_thread(r->b, pid, tid, name);
}

static void read_line(struct reader *r, const char *line)
{
	uint32_t pid, tid;
	char name[32];

	if (sscanf(line, "thread %" SCNu32 " %" SCNu32 " %31s", &pid, &tid, name) == 3) {
		read_thread(r, pid, tid, name);
	} else if (sscanf(line, "target %" SCNu32, &pid) == 1) {
		snapshot_builder_target(r->b, pid);
		r->pid = pid;
	} else if (line[0]) {
		if (!r->b->s->nthreads)
			read_thread(r, 42, 42, "MainThread");
		read_context(r, line);
	}
}

struct snapshot *snapshot_build(const char *text)
{
	struct reader r = {.b = snapshot_builder_new()};
	char *copy = strdup(text), *rest = copy;

	cr_assert(copy);
	for (char *line; (line = strsep(&rest, "\n"));)
		read_line(&r, line);
	free(copy);
	return snapshot_builder_finish(r.b);
}
