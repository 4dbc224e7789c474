// SPDX-License-Identifier: BSD-2-Clause
/* Merging of snapshots: see merge.h. */
#include "snapshot/merge.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/wait.h"
#include "snapshot/lines.h"

struct merger {
	struct snapshot *s;
	struct map funcs;    /* hash of the identity → the first function with it */
	uint32_t *same_hash; /* per function: next with the same hash; SNAPSHOT_NONE: none */
	struct map threads;  /* hash of the identity → thread; a collision adds a thread */
	struct map coros;    /* hash of process, function and kind → index */
	struct map pairs;    /* hash of process, holder and waiter → index */
	struct map children; /* (parent, function) → node */
	/* Maps indices of the snapshot being added to those of the result. */
	uint32_t *func_at, *thread_at, *node_at;
};

static void merger_deinit(struct merger *m)
{
	map_deinit(&m->funcs);
	map_deinit(&m->threads);
	map_deinit(&m->coros);
	map_deinit(&m->pairs);
	map_deinit(&m->children);
	free(m->same_hash);
	free(m->func_at);
	free(m->thread_at);
	free(m->node_at);
}

/* ---- functions ---- */

static bool str_equal(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool snapshot_func_equal(const struct snapshot_func *a, const struct snapshot_func *b)
{
	return a->firstlineno == b->firstlineno && a->variant == b->variant &&
	       a->pseudo == b->pseudo && str_equal(a->name, b->name) &&
	       str_equal(a->filename, b->filename) && str_equal(a->qualname, b->qualname);
}

static uint64_t hash_str(uint64_t seed, const char *s)
{
	/* Hashes the terminator too, so that "ab"+"c" differs from "a"+"bc". */
	return s ? strtab_hash(seed, s, strlen(s) + 1) : strtab_hash(seed, "", 0) + 1;
}

uint64_t snapshot_func_hash(const struct snapshot_func *f)
{
	const uint64_t numbers[] = {(uint64_t)f->firstlineno, f->variant, f->pseudo};
	uint64_t h = strtab_hash(0, numbers, sizeof(numbers));

	return hash_str(hash_str(hash_str(h, f->filename), f->name), f->qualname);
}

static int copy_str(struct merger *m, const char **str)
{
	const char *copy = snapshot_str(m->s, *str);

	if (*str && !copy)
		return -ENOMEM;
	*str = copy;
	return 0;
}

static int add_func(struct merger *m, const struct snapshot_func *f, uint32_t *ret)
{
	uint32_t first = SNAPSHOT_NONE, at = m->s->nfuncs;
	uint64_t hash = snapshot_func_hash(f);
	struct snapshot_func *copy;

	map_get(&m->funcs, hash, &first);
	for (uint32_t i = first; i != SNAPSHOT_NONE; i = m->same_hash[i]) {
		if (!snapshot_func_equal(&m->s->funcs[i], f))
			continue;
		snapshot_add_variance(&m->s->funcs[i], f->variance);
		*ret = i;
		if (snapshot_add_lines(m->s, &m->s->funcs[i], f->lines, f->nlines) < 0)
			return -ENOMEM;
		return snapshot_merge_durations(m->s, &m->s->funcs[i], f->durations);
	}
	copy = &m->s->funcs[at];
	*copy = *f;
	copy->durations = NULL;
	copy->nlines = 0;
	if (snapshot_add_lines(m->s, copy, f->lines, f->nlines) < 0 ||
	    snapshot_merge_durations(m->s, copy, f->durations) < 0 ||
	    copy_str(m, &copy->filename) < 0 || copy_str(m, &copy->name) < 0 ||
	    copy_str(m, &copy->qualname) < 0 || map_put(&m->funcs, hash, at) < 0)
		return -ENOMEM;
	m->same_hash[at] = first;
	m->s->nfuncs++;
	*ret = at;
	return 0;
}

/* ---- targets ---- */

static void windows_sum(struct snapshot_windows *into, const struct snapshot_windows *w)
{
	into->sampled |= w->sampled;
	into->max_overhead = w->max_overhead > into->max_overhead ? w->max_overhead
								  : into->max_overhead;
	into->n += w->n;
	into->span_ns += w->span_ns;
	into->seen_cpu_ns += w->seen_cpu_ns;
	into->all_cpu_ns += w->all_cpu_ns;
	into->samples += w->samples;
	into->failed += w->failed;
	/* The targets had different times and factors. */
	if (into->whole_ns != w->whole_ns)
		into->whole_ns = 0;
	if (into->samples_factor != w->samples_factor)
		into->samples_factor = 0;
}

static void target_sum(struct snapshot_target *into, const struct snapshot_target *t)
{
	if (t->end_unix_ns > into->end_unix_ns) {
		into->end_ns = t->end_ns;
		into->end_unix_ns = t->end_unix_ns;
		into->alive = t->alive;
		into->tracing = t->tracing;
	}
	into->folded += t->folded;
	into->execs += t->execs;
	into->fork_gap_ns += t->fork_gap_ns;
	into->exec_gap_ns += t->exec_gap_ns;
	into->children.followed += t->children.followed;
	into->children.over_limit += t->children.over_limit;
	into->children.ended_first += t->children.ended_first;
	into->children.failed += t->children.failed;
	into->traced_ns += t->traced_ns;
	into->overhead_ns += t->overhead_ns;
	into->own_cpu_ns += t->own_cpu_ns;
	into->estimate.samples += t->estimate.samples;
	into->estimate.of_probes += t->estimate.of_probes;
	into->estimate.before += t->estimate.before;
	for (const struct snapshot_fact *f = snapshot_facts; f->key; f++)
		*snapshot_fact(into, f) += snapshot_fact_of(t, f);
	into->misses_calls |= t->misses_calls;
	into->corrected &= t->corrected;
	into->clamped += t->clamped;
	windows_sum(&into->windows, &t->windows);
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		into->subtracted[c] += t->subtracted[c];
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		into->losses[i] += t->losses[i];
}

/* Merges the entries for system calls by name. */
static int add_waits(struct merger *m, struct snapshot_waits *into, const struct snapshot_waits *w)
{
	struct snapshot_call *v =
		snapshot_alloc(m->s, (size_t)into->nother + w->nother + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < into->nother; i++)
		v[i] = into->other[i];
	into->other = v;
	for (uint32_t i = 0; i < w->nother; i++) {
		struct snapshot_call call = w->other[i];
		uint32_t k = 0;

		while (k < into->nother && !str_equal(v[k].name, call.name))
			k++;
		if (k == into->nother) {
			if (copy_str(m, &call.name) < 0)
				return -ENOMEM;
			v[into->nother++] = call;
			continue;
		}
		v[k].ns += call.ns;
		v[k].n += call.n;
	}
	into->measured |= w->measured;
	into->gil_known |= w->gil_known;
	into->walked |= w->walked;
	into->walks += w->walks;
	into->pairs_dropped += w->pairs_dropped;
	return 0;
}

static int add_target(struct merger *m, const struct snapshot_target *t)
{
	struct snapshot_target *copy = &m->s->targets[m->s->ntargets];

	for (uint32_t i = 0; i < m->s->ntargets; i++) {
		struct snapshot_target *known = &m->s->targets[i];

		if (known->pid != t->pid || known->start_unix_ns != t->start_unix_ns ||
		    !str_equal(known->cmdline, t->cmdline))
			continue;
		target_sum(known, t);
		return add_waits(m, &known->waits, &t->waits);
	}
	*copy = *t;
	copy->beside = (struct snapshot_beside){0};
	copy->waits = (struct snapshot_waits){0};
	if (copy_str(m, &copy->cmdline) < 0 || copy_str(m, &copy->exe) < 0 ||
	    copy_str(m, &copy->python_file) < 0 || copy_str(m, &copy->python_version) < 0 ||
	    copy_str(m, &copy->build_id) < 0 || copy_str(m, &copy->mechanism) < 0 ||
	    copy_str(m, &copy->self_test) < 0 || copy_str(m, &copy->warnings) < 0 ||
	    copy_str(m, &copy->windows.unsampled) < 0 || add_waits(m, &copy->waits, &t->waits) < 0)
		return -ENOMEM;
	m->s->ntargets++;
	return 0;
}

/* ---- overlaps ---- */

/* System clocks are adjusted, so an overlap up to this many ns does not count. */
#define OVERLAP_MIN UINT64_C(1000000)

static bool spans_overlap(const struct snapshot_target *a, const struct snapshot_target *b)
{
	uint64_t start = a->start_unix_ns > b->start_unix_ns ? a->start_unix_ns : b->start_unix_ns;
	uint64_t end = a->end_unix_ns < b->end_unix_ns ? a->end_unix_ns : b->end_unix_ns;

	return a->start_unix_ns == b->start_unix_ns || (end > start && end - start > OVERLAP_MIN);
}

/* With --tid a snapshot contains one thread only and does not overlap with another thread's. */
static bool share_thread(const struct snapshot *a, const struct snapshot *b, uint32_t pid)
{
	for (uint32_t i = 0; i < a->nthreads; i++)
		for (uint32_t k = 0; k < b->nthreads && a->threads[i].pid == pid; k++)
			if (b->threads[k].pid == pid && b->threads[k].tid == a->threads[i].tid &&
			    b->threads[k].start_ns == a->threads[i].start_ns)
				return true;
	return false;
}

bool snapshot_overlap(const struct snapshot *a, const struct snapshot *b, uint32_t *ret_pid)
{
	if (!str_equal(a->host, b->host))
		return false;
	for (uint32_t i = 0; i < a->ntargets; i++)
		for (uint32_t k = 0; k < b->ntargets; k++) {
			uint32_t pid = a->targets[i].pid;

			if (b->targets[k].pid != pid ||
			    !spans_overlap(&a->targets[i], &b->targets[k]) ||
			    !share_thread(a, b, pid))
				continue;
			*ret_pid = pid;
			return true;
		}
	return false;
}

/* ---- threads ---- */

static uint64_t started(const struct snapshot *s, uint32_t pid)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (s->targets[i].pid == pid)
			return s->targets[i].start_unix_ns;
	return 0;
}

/* Rows of folded threads are the same if their entry functions have the same name. */
static bool thread_same(const struct snapshot_thread *a, const struct snapshot_thread *b)
{
	if (a->pid != b->pid || a->tid != b->tid || !a->folded != !b->folded)
		return false;
	return a->folded ? str_equal(a->entry, b->entry) : a->start_ns == b->start_ns;
}

static int fold_more(struct merger *m, struct snapshot_thread *into,
		     const struct snapshot_thread *t)
{
	into->folded += t->folded;
	if (t->start_ns < into->start_ns)
		into->start_ns = t->start_ns;
	into->name = snapshot_folded_name(m->s, into->folded, into->entry);
	return into->name ? 0 : -ENOMEM;
}

static void thread_sum(struct snapshot_thread *into, const struct snapshot_thread *t)
{
	if (t->end_ns > into->end_ns) {
		into->end_ns = t->end_ns;
		into->alive = t->alive;
	}
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		into->total[c] += t->total[c];
}

static int add_thread(struct merger *m, const struct snapshot *from,
		      const struct snapshot_thread *t, uint32_t *ret)
{
	const uint64_t identity[] = {t->pid, t->tid, t->folded ? 0 : t->start_ns,
				     started(from, t->pid)};
	uint64_t hash = hash_str(strtab_hash(0, identity, sizeof(identity)), t->entry);
	struct snapshot_thread *thread;
	uint32_t at;

	if (map_get(&m->threads, hash, &at)) {
		thread = &m->s->threads[at];
		if (thread_same(thread, t)) {
			thread_sum(thread, t);
			*ret = at;
			return t->folded ? fold_more(m, thread, t) : 0;
		}
	}
	at = m->s->nthreads;
	thread = &m->s->threads[at];
	*thread = *t;
	thread->root = SNAPSHOT_NONE;
	if (copy_str(m, &thread->name) < 0 || copy_str(m, &thread->entry) < 0 ||
	    map_put(&m->threads, hash, at) < 0)
		return -ENOMEM;
	m->s->nthreads++;
	*ret = at;
	return 0;
}

/* ---- contexts ---- */

static void node_sum(struct snapshot_node *into, const struct snapshot_node *n)
{
	into->calls += n->calls;
	into->inflight += n->inflight;
	into->yields += n->yields;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		into->self[c] += n->self[c];
		into->min[c] = n->min[c] < into->min[c] ? n->min[c] : into->min[c];
		into->max[c] = n->max[c] > into->max[c] ? n->max[c] : into->max[c];
	}
}

/* Finds the node or its new index; *ret is nnodes for a new one. */
static int find_node(struct merger *m, const struct snapshot_node *n, uint32_t *ret)
{
	struct snapshot_thread *thread = &m->s->threads[m->thread_at[n->thread]];
	uint64_t key;

	*ret = m->s->nnodes;
	if (n->parent == SNAPSHOT_NONE) {
		if (thread->root == SNAPSHOT_NONE)
			thread->root = *ret;
		*ret = thread->root;
		return 0;
	}
	key = (uint64_t)m->node_at[n->parent] << 32 | m->func_at[n->func];
	return map_get(&m->children, key, ret) ? 0 : map_put(&m->children, key, *ret);
}

/* Adds the node. Parents come first in every snapshot, and therefore in the result. */
static int add_node(struct merger *m, const struct snapshot_node *n, uint32_t *ret)
{
	struct snapshot_node *copy;
	int err = find_node(m, n, ret);

	if (err < 0)
		return err;
	if (*ret < m->s->nnodes) {
		node_sum(&m->s->nodes[*ret], n);
		return 0;
	}
	copy = &m->s->nodes[m->s->nnodes++];
	*copy = *n;
	copy->thread = m->thread_at[n->thread];
	if (n->parent != SNAPSHOT_NONE) {
		copy->parent = m->node_at[n->parent];
		copy->func = m->func_at[n->func];
	}
	return 0;
}

/* ---- coroutines ---- */

static void coro_sum(struct snapshot_coro *into, const struct snapshot_coro *c)
{
	into->started += c->started;
	into->partial += c->partial;
	into->ended += c->ended;
	into->steps += c->steps;
	into->suspended += c->suspended;
	for (int k = 0; k < SNAPSHOT_CLOCKS; k++)
		into->running[k] += c->running[k];
	if (c->lifetimes && (!into->lifetimes || c->min < into->min))
		into->min = c->min;
	if (c->max > into->max)
		into->max = c->max;
	into->lifetimes += c->lifetimes;
	into->total += c->total;
	into->ends_hidden |= c->ends_hidden;
}

static bool coro_same(const struct snapshot_coro *a, const struct snapshot_coro *b)
{
	return a->pid == b->pid && a->func == b->func && a->kind == b->kind;
}

static int add_coro(struct merger *m, const struct snapshot_coro *c)
{
	struct snapshot_coro copy = *c;
	uint64_t identity[3], hash;
	uint32_t at;

	copy.func = m->func_at[c->func];
	identity[0] = copy.pid;
	identity[1] = copy.func;
	identity[2] = copy.kind;
	hash = strtab_hash(0, identity, sizeof(identity));
	if (map_get(&m->coros, hash, &at) && coro_same(&m->s->coros[at], &copy)) {
		coro_sum(&m->s->coros[at], &copy);
		return 0;
	}
	m->s->coros[m->s->ncoros] = copy;
	return map_put(&m->coros, hash, m->s->ncoros++);
}

/* ---- whole snapshots ---- */

/* The value common to all snapshots, or NULL. */
static int common_str(struct merger *m, const char **into, const char *str, bool first)
{
	if (!first) {
		if (!str_equal(*into, str))
			*into = "several";
		return 0;
	}
	*into = str;
	return copy_str(m, into);
}

static int add_head(struct merger *m, const struct snapshot *s, bool first)
{
	if (common_str(m, &m->s->host, s->host, first) < 0 ||
	    common_str(m, &m->s->kernel, s->kernel, first) < 0 ||
	    common_str(m, &m->s->program, s->program, first) < 0 ||
	    common_str(m, &m->s->builtins_of, s->builtins_of, first) < 0)
		return -ENOMEM;
	if (first)
		m->s->clock = s->clock;
	m->s->folded |= s->folded;
	m->s->stripped |= s->stripped;
	if (s->taken_unix_ns > m->s->taken_unix_ns)
		m->s->taken_unix_ns = s->taken_unix_ns;
	return 0;
}

static void add_columns(struct merger *m, const struct snapshot *s)
{
	m->s->measured |= s->measured;
	for (uint32_t i = 0; i < s->nnodes; i++)
		snapshot_add_columns(m->s, m->node_at[i], s, i);
	for (uint32_t i = 0; i < s->nnodes && s->rest; i++)
		snapshot_add_rest(&m->s->rest[m->node_at[i]], &s->rest[i]);
}

static void add_wholes(struct merger *m, const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nnodes && s->wholes; i++)
		snapshot_add_whole(&m->s->wholes[m->node_at[i]], &s->wholes[i]);
}

static uint32_t func_in(const struct merger *m, uint32_t func)
{
	return func == SNAPSHOT_NONE ? SNAPSHOT_NONE : m->func_at[func];
}

static int add_gil_pair(struct merger *m, const struct snapshot_gil_pair *p)
{
	const struct snapshot_gil_pair copy = {
		.pid = p->pid,
		.holder = func_in(m, p->holder),
		.waiter = func_in(m, p->waiter),
		.ns = p->ns,
	};
	const uint64_t identity[] = {copy.pid, copy.holder, copy.waiter};
	const uint64_t hash = strtab_hash(0, identity, sizeof(identity));
	struct snapshot_gil_pair *same;
	uint32_t at;

	if (map_get(&m->pairs, hash, &at)) {
		same = &m->s->gil_pairs[at];
		if (same->pid == copy.pid && same->holder == copy.holder &&
		    same->waiter == copy.waiter) {
			same->ns += copy.ns;
			return 0;
		}
	}
	m->s->gil_pairs[m->s->ngil_pairs] = copy;
	return map_put(&m->pairs, hash, m->s->ngil_pairs++);
}

/* Where to put a wait: a new place, that of the shortest one of its reason, or NULL: it is shorter. */
static struct snapshot_wait *place_of_wait(struct snapshot *s, const struct snapshot_wait *w)
{
	struct snapshot_wait *least = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nwaits; i++) {
		if (s->waits[i].why != w->why)
			continue;
		n++;
		if (!least || s->waits[i].ns < least->ns)
			least = &s->waits[i];
	}
	if (n < WAIT_LONGEST)
		return &s->waits[s->nwaits++];
	return least->ns < w->ns ? least : NULL;
}

/* As of one process, some of each reason are kept. */
static int add_wait(struct merger *m, const struct snapshot_wait *w)
{
	struct snapshot_wait *copy = place_of_wait(m->s, w);

	if (!copy)
		return 0;
	*copy = *w;
	copy->func = func_in(m, w->func);
	return copy_str(m, &copy->syscall);
}

static int add_snapshot(struct merger *m, const struct snapshot *s, bool first)
{
	int err = add_head(m, s, first);

	for (uint32_t i = 0; i < s->ntargets && !err; i++)
		err = add_target(m, &s->targets[i]);
	for (uint32_t i = 0; i < s->nfuncs && !err; i++)
		err = add_func(m, &s->funcs[i], &m->func_at[i]);
	for (uint32_t i = 0; i < s->nthreads && !err; i++)
		err = add_thread(m, s, &s->threads[i], &m->thread_at[i]);
	for (uint32_t i = 0; i < s->nnodes && !err; i++)
		err = add_node(m, &s->nodes[i], &m->node_at[i]);
	if (!err) {
		add_columns(m, s);
		add_wholes(m, s);
	}
	for (uint32_t i = 0; i < s->ncoros && !err; i++)
		err = add_coro(m, &s->coros[i]);
	for (uint32_t i = 0; i < s->ngil_pairs && !err; i++)
		err = add_gil_pair(m, &s->gil_pairs[i]);
	for (uint32_t i = 0; i < s->nwaits && !err; i++)
		err = add_wait(m, &s->waits[i]);
	return err;
}

struct sizes {
	uint64_t targets, threads, funcs, nodes, coros, gil_pairs;
};

/* Reserves room for the case that nothing matches. */
static int make_room(struct merger *m, const struct snapshot *const *list, size_t n)
{
	struct sizes sum = {0}, most = {0};
	uint64_t columns = 0;
	bool rest = false, wholes = false;

	for (size_t i = 0; i < n; i++) {
		const struct snapshot *s = list[i];

		rest |= s->rest != NULL;
		sum.targets += s->ntargets;
		sum.threads += s->nthreads;
		sum.funcs += s->nfuncs;
		sum.nodes += s->nnodes;
		columns |= snapshot_columns(s);
		wholes |= s->wholes != NULL;
		sum.coros += s->ncoros;
		sum.gil_pairs += s->ngil_pairs;
		most.threads = s->nthreads > most.threads ? s->nthreads : most.threads;
		most.funcs = s->nfuncs > most.funcs ? s->nfuncs : most.funcs;
		most.nodes = s->nnodes > most.nodes ? s->nnodes : most.nodes;
	}
	if (sum.targets >= SNAPSHOT_NONE || sum.threads >= SNAPSHOT_NONE ||
	    sum.funcs >= SNAPSHOT_NONE || sum.nodes >= SNAPSHOT_NONE ||
	    sum.coros >= SNAPSHOT_NONE || sum.gil_pairs >= SNAPSHOT_NONE)
		return -E2BIG;
	m->s->targets = snapshot_alloc(m->s, sum.targets + 1, sizeof(*m->s->targets));
	m->s->threads = snapshot_alloc(m->s, sum.threads + 1, sizeof(*m->s->threads));
	m->s->funcs = snapshot_alloc(m->s, sum.funcs + 1, sizeof(*m->s->funcs));
	m->s->nodes = snapshot_alloc(m->s, sum.nodes + 1, sizeof(*m->s->nodes));
	if (wholes)
		m->s->wholes = snapshot_alloc(m->s, sum.nodes + 1, sizeof(*m->s->wholes));
	if ((wholes && !m->s->wholes) ||
	    snapshot_reserve_columns(m->s, columns, (uint32_t)sum.nodes) < 0)
		return -ENOMEM;
	if (rest)
		m->s->rest = snapshot_alloc(m->s, sum.nodes + 1, sizeof(*m->s->rest));
	if (rest && !m->s->rest)
		return -ENOMEM;
	m->s->coros = snapshot_alloc(m->s, sum.coros + 1, sizeof(*m->s->coros));
	m->s->gil_pairs = snapshot_alloc(m->s, sum.gil_pairs + 1, sizeof(*m->s->gil_pairs));
	m->s->waits = snapshot_alloc(m->s, (size_t)WAITS * WAIT_LONGEST, sizeof(*m->s->waits));
	m->same_hash = calloc(sum.funcs + 1, sizeof(*m->same_hash));
	m->thread_at = calloc(most.threads + 1, sizeof(*m->thread_at));
	m->func_at = calloc(most.funcs + 1, sizeof(*m->func_at));
	m->node_at = calloc(most.nodes + 1, sizeof(*m->node_at));
	if (!m->s->coros || !m->s->gil_pairs || !m->s->waits || !m->s->targets || !m->s->threads ||
	    !m->s->funcs || !m->s->nodes || !m->same_hash || !m->thread_at || !m->func_at ||
	    !m->node_at)
		return -ENOMEM;
	return 0;
}

int snapshot_merge(const struct snapshot *const *list, size_t n, struct snapshot **ret)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_new();
	_cleanup_(merger_deinit) struct merger m = {.s = s};
	int err;

	if (!s)
		return -ENOMEM;
	err = make_room(&m, list, n);
	for (size_t i = 0; i < n && !err; i++)
		err = add_snapshot(&m, list[i], i == 0);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(s);
	return 0;
}
