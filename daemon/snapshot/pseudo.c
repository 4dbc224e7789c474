// SPDX-License-Identifier: BSD-2-Clause
/*
 * Time that belongs to no function
 *
 * "<outside>" is the time of a thread's root: the thread's stack has no Python frame. This is C
 * code outside of any Python function, and the time before the thread's first and after its last
 * frame.
 *
 * "<wait>" is the time that a thread is off its CPU while its innermost Python frame is a poller: a
 * function that itself only waits for work, such as a function that calls select(), poll(), epoll_wait() or
 * accept() for a server's loop. The table below lists these functions; a C function that a poller
 * calls (--builtins) is one as well. It contains wall time only; the CPU time of the
 * call, before and after the thread sleeps, remains the poller's own, as does the time of a poller
 * that never sleeps because there are always events. Time in the run queue is included, because the
 * thread is off its CPU as well; the poller's columns of reasons for waiting, if measured, show it
 * separately. Loops that wait in C code called by the user's Python code (uvloop) have no such
 * function; their waiting belongs to the calling function.
 *
 * Both are contexts without calls, as children of the context that the time was taken from, whose
 * cumulative time still includes it.
 */
#include "snapshot/pseudo.h"

#include <errno.h>
#include <string.h>

static const struct poller {
	const char *file; /* the end of the file name; a directory in it if it ends in '/' */
	const char *name;
} pollers[] = {
	{"/selectors.py",
	 "select"}, /* asyncio, socketserver, and everything else that uses selectors */
	{"/gevent/hub.py", "run"}, /* calls libev's or libuv's loop */
	{"/eventlet/hubs/", "do_poll"},
	{"/eventlet/hubs/selects.py", "wait"},
	{"/trio/_core/_io_epoll.py", "get_events"},
	{"/twisted/internet/epollreactor.py", "doPoll"},
	{"/twisted/internet/pollreactor.py", "doPoll"},
	{"/twisted/internet/selectreactor.py", "_select"},
	/* accept loops, worker pools, masters of servers, brokers */
	{"/socket.py", "accept"},
	{"/concurrent/futures/thread.py", "_worker"}, /* from 3.7: the queue's get() is C code */
	{"/gunicorn/arbiter.py", "sleep"},
	{"/gunicorn/workers/sync.py", "wait"},
	{"/kombu/utils/eventio.py", "_poll"}, /* Celery */
	{"/kombu/transport/virtual/base.py", "drain_events"},
	{"/werkzeug/_reloader.py", "run"},
};

static bool file_fits(const char *file, const char *pattern)
{
	size_t n = strlen(file), m = strlen(pattern);

	if (pattern[m - 1] == '/')
		return strstr(file, pattern) != NULL;
	return n >= m && strcmp(file + n - m, pattern) == 0;
}

bool snapshot_is_poller(const struct snapshot_func *f)
{
	for (size_t i = 0; !f->pseudo && i < sizeof(pollers) / sizeof(pollers[0]); i++)
		if (strcmp(f->name, pollers[i].name) == 0 &&
		    file_fits(f->filename, pollers[i].file))
			return true;
	return false;
}

struct adder {
	struct snapshot *s;
	uint32_t wait, outside; /* indices of functions */
	bool *poller;		/* per function */
	uint32_t *there;	/* per node: its existing pseudo child */
};

static bool waits_for_work(const struct adder *a, const struct snapshot_node *n)
{
	const struct snapshot_node *parent = &a->s->nodes[n->parent];

	if (a->poller[n->func])
		return true;
	return parent->func != SNAPSHOT_NONE && a->poller[parent->func] &&
	       snapshot_func_is_native(&a->s->funcs[n->func]);
}

static uint32_t pseudo_func(struct snapshot *s, const char *name)
{
	uint32_t i = 0;

	while (i < s->nfuncs && !(s->funcs[i].pseudo && strcmp(s->funcs[i].name, name) == 0))
		i++;
	if (i == s->nfuncs) {
		s->funcs[s->nfuncs++] =
			(struct snapshot_func){.filename = "~", .name = name, .pseudo = true};
		for (int k = 0; k < SNAPSHOT_FIGURES; k++)
			s->funcs[i].variance[k] = -1; /* the error is unknown */
	}
	return i;
}

/*
 * Computes the times that move from the node to its pseudo child; returns false if there are none.
 */
static bool moves(const struct adder *a, const struct snapshot_node *n,
		  uint64_t ns[SNAPSHOT_CLOCKS])
{
	uint64_t cpu = n->self[SNAPSHOT_CPU], wall = n->self[SNAPSHOT_WALL];

	if (n->parent == SNAPSHOT_NONE) {
		ns[SNAPSHOT_CPU] = cpu;
		ns[SNAPSHOT_WALL] = wall;
	} else {
		ns[SNAPSHOT_CPU] = 0;
		ns[SNAPSHOT_WALL] = waits_for_work(a, n) && wall > cpu ? wall - cpu : 0;
	}
	return ns[SNAPSHOT_CPU] || ns[SNAPSHOT_WALL];
}

static struct snapshot_node *child(struct adder *a, uint32_t parent)
{
	struct snapshot *s = a->s;
	const struct snapshot_node *n = &s->nodes[parent];

	if (a->there[parent] != SNAPSHOT_NONE)
		return &s->nodes[a->there[parent]];
	s->nodes[s->nnodes] = (struct snapshot_node){
		.parent = parent,
		.func = n->parent == SNAPSHOT_NONE ? a->outside : a->wait,
		.thread = n->thread,
		.min = {UINT64_MAX, UINT64_MAX},
	};
	return &s->nodes[s->nnodes++];
}

/* Moves all other figures outside Python as well. A poller keeps its other figures. */
static void move_columns(struct snapshot *s, uint32_t from, uint32_t to)
{
	snapshot_add_columns(s, to, s, from);
	for (int c = 0; c < COLUMNS; c++)
		if (s->columns[c])
			s->columns[c][from] = 0;
}

static void move_all(struct adder *a, uint32_t nodes)
{
	for (uint32_t i = 0; i < nodes; i++) {
		uint64_t ns[SNAPSHOT_CLOCKS];
		struct snapshot_node *to;

		if (!moves(a, &a->s->nodes[i], ns))
			continue;
		to = child(a, i);
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
			a->s->nodes[i].self[c] -= ns[c];
			to->self[c] += ns[c];
		}
		if (to->func == a->outside)
			move_columns(a->s, i, (uint32_t)(to - a->s->nodes));
	}
}

static uint32_t count_moves(struct adder *a)
{
	uint64_t ns[SNAPSHOT_CLOCKS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->s->nnodes; i++) {
		const struct snapshot_node *node = &a->s->nodes[i];

		if (node->func != SNAPSHOT_NONE &&
		    (node->func == a->wait || node->func == a->outside))
			a->there[node->parent] = i;
		n += moves(a, node, ns);
	}
	return n;
}

/* Makes room for two functions and n nodes; the old arrays stay in the arena. */
static int make_room_for_funcs(struct snapshot *s)
{
	struct snapshot_func *funcs = snapshot_alloc(s, (size_t)s->nfuncs + 2, sizeof(*funcs));

	if (!funcs)
		return -ENOMEM;
	if (s->nfuncs)
		memcpy(funcs, s->funcs, s->nfuncs * sizeof(*funcs));
	s->funcs = funcs;
	return 0;
}

static int make_room_for_nodes(struct snapshot *s, uint32_t n)
{
	struct snapshot_node *nodes = snapshot_alloc(s, (size_t)s->nnodes + n, sizeof(*nodes));

	if (!nodes || s->nnodes > SNAPSHOT_NONE - n ||
	    snapshot_reserve_columns(s, 0, s->nnodes + n) < 0)
		return -ENOMEM;
	if (s->nnodes)
		memcpy(nodes, s->nodes, s->nnodes * sizeof(*nodes));
	s->nodes = nodes;
	if (!s->wholes)
		return 0;
	s->wholes =
		snapshot_grow(s, &s->adding.wholes, s->wholes, s->nnodes, n, sizeof(*s->wholes));
	return s->wholes ? 0 : -ENOMEM;
}

int snapshot_pseudo(struct snapshot *s)
{
	_cleanup_free_ bool *poller = calloc((size_t)s->nfuncs + 3, sizeof(*poller));
	_cleanup_free_ uint32_t *there = calloc((size_t)s->nnodes + 1, sizeof(*there));
	struct adder a = {.s = s, .poller = poller, .there = there};
	uint32_t nodes = s->nnodes, n;

	if (!poller || !there || make_room_for_funcs(s) < 0)
		return -ENOMEM;
	a.wait = pseudo_func(s, SNAPSHOT_WAIT);
	a.outside = pseudo_func(s, SNAPSHOT_OUTSIDE);
	for (uint32_t i = 0; i < s->nfuncs; i++)
		poller[i] = snapshot_is_poller(&s->funcs[i]);
	memset(there, 0xff, ((size_t)nodes + 1) * sizeof(*there));
	n = count_moves(&a);
	if (n && make_room_for_nodes(s, n) < 0)
		return -ENOMEM;
	move_all(&a, nodes);
	return 0;
}
