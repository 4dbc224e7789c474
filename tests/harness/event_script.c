// SPDX-License-Identifier: BSD-2-Clause
/* Event scripts: see event_script.h. */
#include "harness/event_script.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "harness/test.h"

#define MAX_WORDS   64
#define MAX_CODES   256
#define MAX_THREADS 64
#define FIRST_CODE  0xc000u

struct script_code {
	char name[32];
	uint64_t address;
	int32_t line;
	bool announced;
};

/* The state that the kernel's scheduler has in reality */
struct script_thread {
	uint64_t runtime, since;
	uint32_t chain_n; /* frames of an unfinished chain */
	bool seen, on_cpu;
};

struct event_script {
	struct profile *p;
	uint64_t now;
	struct script_code codes[MAX_CODES];
	size_t ncodes;
	struct script_thread threads[MAX_THREADS];
	const char *line;
};

struct words {
	char *w[MAX_WORDS];
	size_t n, at;
};

static void fail(const struct event_script *es, const char *what)
{
	fprintf(stderr, "event script: %s: %s\n", what, es->line ? es->line : "?");
	abort();
}

struct event_script *event_script_new(const struct profile_limits *limits)
{
	struct event_script *es = calloc(1, sizeof(*es));

	if (!es)
		abort();
	es->now = 1000;
	es->p = profile_new(limits, NULL, NULL);
	if (!es->p)
		abort();
	return es;
}

void event_script_free(struct event_script *es)
{
	if (!es)
		return;
	profile_free(es->p);
	free(es);
}

struct profile *event_script_profile(struct event_script *es)
{
	return es->p;
}

/* Words ------------------------------------------------------------------------------------- */

static const char *next_word(struct words *w)
{
	return w->at < w->n ? w->w[w->at++] : NULL;
}

static bool accept_word(struct words *w, const char *word)
{
	if (w->at >= w->n || strcmp(w->w[w->at], word))
		return false;
	w->at++;
	return true;
}

static uint64_t number(const struct event_script *es, const char *word)
{
	char *end;
	uint64_t v = word ? strtoull(word, &end, 0) : 0;

	if (!word || *end)
		fail(es, "a number is missing");
	return v;
}

/* Code objects ------------------------------------------------------------------------------ */

static struct script_code *find_code(struct event_script *es, const char *name)
{
	struct script_code *c;

	for (size_t i = 0; i < es->ncodes; i++)
		if (strcmp(es->codes[i].name, name) == 0)
			return &es->codes[i];
	if (es->ncodes == MAX_CODES)
		fail(es, "too many code objects");
	c = &es->codes[es->ncodes++];
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->address = FIRST_CODE + es->ncodes * 0x100;
	c->line = (int32_t)es->ncodes;
	return c;
}

static void send_string(struct event_script *es, uint32_t tid, uint64_t code, uint32_t which,
			const char *str)
{
	struct event e = {.ts = es->now, .tid = tid, .type = PYP_REC_STRING};

	e.u.string = (struct event_string){
		.code = code,
		.which = which,
		.units = (uint32_t)strlen(str),
		.bytes = (uint32_t)strlen(str),
		.kind = 1,
		.data = (const uint8_t *)str,
	};
	profile_event(es->p, &e);
}

static void announce(struct event_script *es, uint32_t tid, struct script_code *c)
{
	struct event e = {.ts = es->now, .tid = tid, .type = PYP_REC_CODE};

	send_string(es, tid, c->address, PYP_STR_FILENAME, "t.py");
	send_string(es, tid, c->address, PYP_STR_NAME, c->name);
	e.u.code.code = c->address;
	e.u.code.firstlineno = c->line;
	profile_event(es->p, &e);
	c->announced = true;
}

/* Returns the address of a code object by name, or an address that is never announced. */
static uint64_t code_of(struct event_script *es, uint32_t tid, const char *name)
{
	struct script_code *c;

	if (!name)
		fail(es, "a code object is missing");
	if (strncmp(name, "0x", 2) == 0)
		return number(es, name);
	c = find_code(es, name);
	if (!c->announced)
		announce(es, tid, c);
	return c->address;
}

/* Events ------------------------------------------------------------------------------------ */

static struct script_thread *thread_at(struct event_script *es, uint32_t tid)
{
	struct script_thread *t = &es->threads[tid % MAX_THREADS];

	if (!t->seen)
		*t = (struct script_thread){.runtime = 500, .since = es->now, .on_cpu = true};
	t->seen = true;
	return t;
}

static void do_call(struct event_script *es, struct words *w, struct event *e, bool enter)
{
	const char *caller;

	thread_at(es, e->tid);
	e->u.call.frame = number(es, next_word(w));
	if (enter) {
		e->u.call.code = code_of(es, e->tid, next_word(w));
		if (accept_word(w, "first"))
			e->arg = PYP_ENTER_GENERATOR | PYP_ENTER_START;
		else if (accept_word(w, "again"))
			e->arg = PYP_ENTER_GENERATOR;
		caller = next_word(w);
		e->u.call.caller = caller ? number(es, caller) : 0;
	} else if (accept_word(w, "raised")) {
		e->arg = PYP_LEAVE_RAISED;
	}
	profile_event(es->p, e);
}

static void announce_method(struct event_script *es, uint32_t tid, struct script_code *c)
{
	struct event e = {.ts = es->now, .tid = tid, .type = PYP_REC_METHOD};

	e.u.method = (struct event_method){
		.method = c->address,
		.kind = PYP_METHOD_FUNCTION,
		.name = c->name,
		.type = "",
		.module = "",
	};
	profile_event(es->p, &e);
	c->announced = true;
}

static void do_c_call(struct event_script *es, struct words *w, struct event *e)
{
	thread_at(es, e->tid);
	e->u.c_call.frame = number(es, next_word(w));
	if (e->type != PYP_REC_C_LEAVE) {
		struct script_code *c = find_code(es, next_word(w));

		if (!c->announced)
			announce_method(es, e->tid, c);
		e->u.c_call.method = c->address;
	}
	profile_event(es->p, e);
}

/* The reason why the thread leaves its CPU */
static void parse_reason(struct event_script *es, struct words *w, struct event_switch *sw)
{
	static const struct {
		const char *word;
		struct event_switch sw;
	} reasons[] = {
		{"cpu", {.wait = PYP_WAIT_CPU, .syscall = -1}},
		{"gil", {.wait = PYP_WAIT_GIL, .syscall = SYS_futex}},
		{"gil1", {.wait = PYP_WAIT_GIL, .syscall = SYS_futex, .gil = 1}},
		{"fault", {.wait = PYP_WAIT_FAULT, .syscall = -1}},
		{"stop", {.wait = PYP_WAIT_STOPPED, .syscall = -1}},
		{"lock", {.wait = PYP_WAIT_SYSCALL, .syscall = SYS_futex}},
		{"sleep", {.wait = PYP_WAIT_SYSCALL, .syscall = SYS_clock_nanosleep}},
		{"socket", {.wait = PYP_WAIT_SYSCALL, .syscall = SYS_read, .fd = PYP_FD_SOCKET}},
		{"child", {.wait = PYP_WAIT_SYSCALL, .syscall = SYS_wait4}},
		{"sync", {.wait = PYP_WAIT_SYSCALL, .syscall = SYS_fsync}},
		{"quota", {.wait = PYP_WAIT_SYSCALL, .syscall = SYS_quotactl}},
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (accept_word(w, reasons[i].word))
			*sw = reasons[i].sw;
	if (accept_word(w, "fd"))
		sw->arg[0] = number(es, next_word(w));
	if (accept_word(w, "delay"))
		sw->delay = number(es, next_word(w));
}

static void do_switch(struct event_script *es, struct words *w, struct event *e, bool in)
{
	struct script_thread *t = thread_at(es, e->tid);
	const char *runtime;

	if (accept_word(w, "lost"))
		e->arg |= PYP_SWITCH_LOST;
	if (!in)
		parse_reason(es, w, &e->u.sw);
	runtime = next_word(w);
	if (t->on_cpu)
		t->runtime += es->now - t->since;
	t->since = es->now;
	t->on_cpu = in;
	if (runtime)
		t->runtime = number(es, runtime);
	e->u.sw.runtime = t->runtime;
	profile_event(es->p, e);
}

static size_t parse_frames(struct event_script *es, struct words *w, uint32_t tid,
			   struct pyp_chain_frame *frames)
{
	const char *word;
	size_t n = 0;

	while ((word = next_word(w))) {
		char frame[32];
		const char *eq = strchr(word, '=');

		if (!eq || eq - word >= (long)sizeof(frame))
			fail(es, "frames are FRAME=CODE");
		memcpy(frame, word, (size_t)(eq - word));
		frame[eq - word] = '\0';
		frames[n].frame = number(es, frame);
		frames[n++].code = code_of(es, tid, eq + 1);
	}
	return n;
}

static void do_chain(struct event_script *es, struct words *w, struct event *e)
{
	struct pyp_chain_frame frames[MAX_WORDS];
	struct script_thread *t = thread_at(es, e->tid);
	struct event_chain *c = &e->u.chain;

	if (accept_word(w, "resync"))
		c->flags |= PYP_CHAIN_RESYNC;
	if (accept_word(w, "truncated"))
		c->flags |= PYP_CHAIN_TRUNCATED;
	if (!accept_word(w, "more"))
		c->flags |= PYP_CHAIN_LAST;
	c->first = t->chain_n;
	c->count = (uint32_t)parse_frames(es, w, e->tid, frames);
	c->frames = frames;
	t->chain_n = c->flags & PYP_CHAIN_LAST ? 0 : c->first + c->count;
	profile_event(es->p, e);
}

static void do_exit(struct event_script *es, struct words *w, struct event *e)
{
	struct script_thread *t = thread_at(es, e->tid);
	const char *comm;

	if (accept_word(w, "lost"))
		e->arg |= PYP_EXIT_LOST;
	comm = next_word(w);
	if (comm)
		snprintf(e->u.thread.comm, sizeof(e->u.thread.comm), "%s", comm);
	e->u.thread.runtime = t->runtime + (t->on_cpu ? es->now - t->since : 0);
	t->seen = false;
	profile_event(es->p, e);
}

static void do_seed(struct event_script *es, struct words *w, uint32_t tid)
{
	struct pyp_chain_frame frames[MAX_WORDS];
	struct initial_stack initial = {.tid = tid, .name = "initial", .frames = frames};

	initial.running = accept_word(w, "running");
	if (!initial.running && !accept_word(w, "blocked"))
		fail(es, "running or blocked?");
	initial.runtime = number(es, next_word(w));
	initial.n = parse_frames(es, w, tid, frames);
	es->threads[tid % MAX_THREADS] = (struct script_thread){
		.seen = true,
		.on_cpu = initial.running,
		.runtime = initial.runtime,
		.since = es->now,
	};
	profile_add_initial(es->p, es->now, &initial);
}

static void thread_line(struct event_script *es, struct words *w, uint32_t tid)
{
	static const struct {
		const char *word;
		uint8_t type;
	} types[] = {
		{"enter", PYP_REC_ENTER},	  {"throw", PYP_REC_THROW},
		{"leave", PYP_REC_LEAVE},	  {"yield", PYP_REC_YIELD},
		{"out", PYP_REC_SWITCH_OUT},	  {"in", PYP_REC_SWITCH_IN},
		{"chain", PYP_REC_CHAIN},	  {"exit", PYP_REC_THREAD_EXIT},
		{"c-enter", PYP_REC_C_ENTER},	  {"c-leave", PYP_REC_C_LEAVE},
		{"c-instant", PYP_REC_C_INSTANT}, {"gc-start", PYP_REC_GC_START},
		{"gc-stop", PYP_REC_GC_STOP},	  {"delay-wrong", PYP_REC_DELAY},
		{"mark", PYP_REC_MARK},
	};
	struct event e = {.ts = es->now, .tid = tid};
	const char *frame;

	if (accept_word(w, "initial")) {
		do_seed(es, w, tid);
		return;
	}
	if (accept_word(w, "runtime")) {
		profile_update_runtime(es->p, tid, es->now, number(es, next_word(w)));
		return;
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (accept_word(w, types[i].word)) {
			e.type = types[i].type;
			break;
		}
	switch (e.type) {
	case PYP_REC_ENTER:
	case PYP_REC_THROW:
		do_call(es, w, &e, true);
		break;
	case PYP_REC_LEAVE:
	case PYP_REC_YIELD:
		do_call(es, w, &e, false);
		break;
	case PYP_REC_C_ENTER:
	case PYP_REC_C_LEAVE:
	case PYP_REC_C_INSTANT:
		do_c_call(es, w, &e);
		break;
	case PYP_REC_GC_START:
	case PYP_REC_GC_STOP:
		e.arg = (uint16_t)number(es, next_word(w));
		frame = next_word(w);
		e.u.gc.frame = frame ? number(es, frame) : 0;
		profile_event(es->p, &e);
		break;
	case PYP_REC_SWITCH_OUT:
	case PYP_REC_SWITCH_IN:
		do_switch(es, w, &e, e.type == PYP_REC_SWITCH_IN);
		break;
	case PYP_REC_DELAY:
	case PYP_REC_MARK:
		profile_event(es->p, &e);
		break;
	case PYP_REC_CHAIN:
		do_chain(es, w, &e);
		break;
	case PYP_REC_THREAD_EXIT:
		do_exit(es, w, &e);
		break;
	default:
		fail(es, "no such event");
	}
}

static void code_line(struct event_script *es, struct words *w)
{
	const char *name = next_word(w), *line;
	struct script_code *c;

	if (!name)
		fail(es, "a name is missing");
	c = find_code(es, name);
	c->address = number(es, next_word(w));
	line = next_word(w);
	if (line)
		c->line = (int32_t)number(es, line);
	announce(es, 1, c);
}

static void free_line(struct event_script *es, struct words *w)
{
	const char *name = next_word(w);
	struct event e = {.ts = es->now, .tid = 1, .type = PYP_REC_CODE_FREE};
	struct script_code *c;

	if (!name)
		fail(es, "a name is missing");
	c = find_code(es, name);
	e.u.code.code = c->address;
	c->announced = false;
	profile_event(es->p, &e);
}

/* Addresses are invalid in the next window: code objects of running frames are announced again. */
static void do_end(struct event_script *es)
{
	profile_end(es->p, es->now);
	for (size_t i = 0; i < es->ncodes; i++)
		es->codes[i].announced = false;
}

static void run_words(struct event_script *es, struct words *w)
{
	uint32_t tid = 0;

	if (w->w[0][0] == 'T') {
		tid = (uint32_t)number(es, w->w[0] + 1);
		w->at++;
	}
	if (w->at < w->n && w->w[w->at][0] == '+')
		es->now += number(es, w->w[w->at++] + 1);
	if (tid)
		thread_line(es, w, tid);
	else if (accept_word(w, "code"))
		code_line(es, w);
	else if (accept_word(w, "free"))
		free_line(es, w);
	else if (accept_word(w, "begin"))
		profile_begin(es->p, es->now);
	else if (accept_word(w, "end"))
		do_end(es);
	else if (accept_word(w, "clear"))
		profile_clear(es->p, es->now);
	else if (!accept_word(w, "wait"))
		fail(es, "not understood");
	if (w->at < w->n)
		fail(es, "too many words");
}

void event_script_run(struct event_script *es, const char *text)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *line, *word, *save;

	if (!copy)
		abort();
	while ((line = strsep(&rest, "\n;"))) {
		_cleanup_free_ char *shown = strdup(line);
		struct words w = {.n = 0};

		es->line = shown;
		line[strcspn(line, "#")] = '\0';
		for (word = strtok_r(line, " \t", &save); word;
		     word = strtok_r(NULL, " \t", &save)) {
			if (w.n == MAX_WORDS)
				fail(es, "line too long");
			w.w[w.n++] = word;
		}
		if (w.n)
			run_words(es, &w);
		es->line = NULL;
	}
}

/* Results ----------------------------------------------------------------------------------- */

struct snapshot *event_script_snapshot(struct event_script *es)
{
	struct snapshot *s = snapshot_new();

	if (!s)
		abort();
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	if (!s->targets || profile_snapshot(es->p, es->now, 99, s, s->targets))
		abort();
	s->ntargets = 1;
	return s;
}

static unsigned int depth_of(const struct snapshot *s, uint32_t node)
{
	unsigned int depth = 0;

	while (s->nodes[node].parent != SNAPSHOT_NONE) {
		node = s->nodes[node].parent;
		depth++;
	}
	return depth;
}

static void print_node(FILE *out, const struct snapshot *s, uint32_t i)
{
	const struct snapshot_node *n = &s->nodes[i];
	const struct snapshot_func *f = &s->funcs[n->func];

	fprintf(out, "%*s%s %" PRIu64 " %" PRIu64 "/%" PRIu64, 2 * (int)depth_of(s, i), "", f->name,
		n->calls, n->self[SNAPSHOT_CPU], n->self[SNAPSHOT_WALL]);
	if (n->inflight)
		fprintf(out, " *%u", n->inflight);
	fputc('\n', out);
}

/* Depth first. Scripts make small trees, so a linear search for children is fast enough. */
static void print_children(FILE *out, const struct snapshot *s, uint32_t parent)
{
	for (uint32_t i = parent + 1; i < s->nnodes; i++) {
		if (s->nodes[i].parent != parent)
			continue;
		print_node(out, s, i);
		print_children(out, s, i);
	}
}

static void print_thread(FILE *out, const struct snapshot *s, const struct snapshot_thread *t)
{
	const struct snapshot_node *root = &s->nodes[t->root];

	fprintf(out, "T%u %" PRIu64 "/%" PRIu64 "%s\n", t->tid, t->total[SNAPSHOT_CPU],
		t->total[SNAPSHOT_WALL], t->alive ? "" : " dead");
	if (root->self[SNAPSHOT_CPU] || root->self[SNAPSHOT_WALL])
		fprintf(out, "  outside %" PRIu64 "/%" PRIu64 "\n", root->self[SNAPSHOT_CPU],
			root->self[SNAPSHOT_WALL]);
	print_children(out, s, t->root);
}

static void print_count(FILE *out, const char *what, uint64_t n)
{
	if (n)
		fprintf(out, "! %s %" PRIu64 "\n", what, n);
}

char *event_script_tree(const struct snapshot *s)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		abort();
	for (uint32_t i = 0; i < s->nthreads; i++)
		print_thread(out, s, &s->threads[i]);
	for (uint32_t i = 0; i < s->ntargets; i++) {
		const struct snapshot_target *t = &s->targets[i];

		print_count(out, "unmatched", t->unmatched);
		print_count(out, "unseen", t->unseen);
		print_count(out, "unstarted", t->unstarted);
		print_count(out, "switches", t->stack_switches);
		print_count(out, "resyncs", t->resyncs);
		print_count(out, "missed", t->missed_switches);
		print_count(out, "unsplit", t->unsplit_waits);
		print_count(out, "truncated", t->truncated);
	}
	fclose(out);
	return text;
}

void event_script_expect(const struct profile_limits *limits, const char *script,
			 const char *expected)
{
	struct event_script *es = event_script_new(limits);
	struct snapshot *s;
	char *tree;

	event_script_run(es, script);
	s = event_script_snapshot(es);
	cr_assert(snapshot_valid(s));
	tree = event_script_tree(s);
	cr_assert(strcmp(tree, expected) == 0, "%s\n--- gives\n%s--- not\n%s", script, tree,
		  expected);
	free(tree);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}
