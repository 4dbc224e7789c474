// SPDX-License-Identifier: BSD-2-Clause
/* Comparing the test program's events with the expected ones: see transcript.h. */
#include "verify/transcript.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CODES   512u /* where they are freed late, one for each eval() of the program */
#define MAX_DEPTH   64u
#define MAX_THREADS 2u
#define NO_NAME	    UINT32_MAX

/* A live code object, and its name as an index into names */
struct code {
	uint64_t addr;
	uint32_t name;
};

struct running_frame {
	uint64_t frame;
	uint64_t code;
	uint32_t name;
	/* The C function being called; NO_NAME: none. unreported: the expected events do not include
	 * its end. */
	uint32_t called;
	bool unreported;
};

/* A thread's position in its parts */
struct cursor {
	const struct script_part *part;
	unsigned int time;
	const char *at; /* the next event, or blanks before it */
};

struct scratch_thread {
	uint32_t tid;
	struct cursor cursor;
	struct running_frame open[MAX_DEPTH];
	unsigned int depth;
	uint64_t events;
	bool after_init; /* the last event was the end of an __init__ */
	bool collecting;
	uint16_t generation; /* of the collection */
};

struct transcript {
	struct transcript_opts opts;
	struct scratch_thread threads[MAX_THREADS];
	unsigned int nthreads;
	struct code codes[MAX_CODES];
	size_t ncodes;
	struct transcript_calls names[MAX_CODES];
	size_t nnames;
	/* Where code objects are freed late: by name, those that have ended and were not freed yet. */
	int32_t unfreed[MAX_CODES];
	uint64_t ended, freed; /* and of all names */
	uint64_t sites[TRANSCRIPT_WORDS];
	uint64_t collections[PYP_GC_UNKNOWN + 1]; /* that have started and stopped */
	bool lost;				  /* events were lost, so stop comparing */
	char wrong[160];
	char gc_wrong[160]; /* about collections: all else may be right */
};

/* ---- errors ------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void wrong(struct transcript *t, const char *fmt, ...)
{
	va_list ap;

	if (t->wrong[0])
		return;
	va_start(ap, fmt);
	vsnprintf(t->wrong, sizeof(t->wrong), fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 2, 3))) static void gc_wrong(struct transcript *t, const char *fmt,
							   ...)
{
	va_list ap;

	if (t->gc_wrong[0])
		return;
	va_start(ap, fmt);
	vsnprintf(t->gc_wrong, sizeof(t->gc_wrong), fmt, ap);
	va_end(ap);
}

static const char *sign_text(char sign)
{
	switch (sign) {
	case '>':
		return "the start of";
	case '^':
		return "a throw into";
	case '<':
		return "the return of";
	case '!':
		return "the unwinding of";
	case '~':
		return "the yield of";
	case '(':
	case '+':
		return "a call of";
	case ')':
		return "the end of";
	default:
		return "the release of the code of";
	}
}

static const char *seen_text(uint8_t type)
{
	switch (type) {
	case PYP_REC_ENTER:
		return "start";
	case PYP_REC_THROW:
		return "be thrown into";
	case PYP_REC_LEAVE:
		return "end";
	case PYP_REC_YIELD:
		return "yield";
	case PYP_REC_C_ENTER:
	case PYP_REC_C_INSTANT:
		return "be called";
	case PYP_REC_C_LEAVE:
		return "return";
	default:
		return "lose its code";
	}
}

static const char *site_text(const struct transcript *t, const struct event *e)
{
	return e->site < plan_sites(t->opts.plan) ? plan_site(t->opts.plan, e->site)->role
						  : "no site";
}

/* ---- names of code objects --------------------------------------------------------------- */

static uint32_t name_index(struct transcript *t, const char *text, size_t n)
{
	struct transcript_calls *new;

	n = n < sizeof(new->name) ? n : sizeof(new->name) - 1;
	for (uint32_t i = 0; i < t->nnames; i++)
		if (strlen(t->names[i].name) == n && memcmp(t->names[i].name, text, n) == 0)
			return i;
	if (t->nnames == MAX_CODES)
		return NO_NAME;
	new = &t->names[t->nnames];
	*new = (struct transcript_calls){0};
	memcpy(new->name, text, n);
	return (uint32_t)t->nnames++;
}

static struct code *code_find(struct transcript *t, uint64_t addr)
{
	for (size_t i = 0; i < t->ncodes; i++)
		if (t->codes[i].addr == addr)
			return &t->codes[i];
	return NULL;
}

static void code_name(struct transcript *t, uint64_t addr, const char *text, size_t n)
{
	struct code *c = code_find(t, addr);

	if (!c && t->ncodes == MAX_CODES) {
		wrong(t, "there were more code objects than the program has");
		return;
	}
	if (!c)
		c = &t->codes[t->ncodes++];
	*c = (struct code){addr, name_index(t, text, n)};
}

static uint32_t name_of(struct transcript *t, uint64_t addr)
{
	struct code *c = code_find(t, addr);
	char text[64];

	if (!c && t->opts.name && t->opts.name(t->opts.ctx, addr, text, sizeof(text)) == 0) {
		code_name(t, addr, text, strlen(text));
		c = code_find(t, addr);
	}
	return c ? c->name : NO_NAME;
}

static const char *name_text(const struct transcript *t, uint32_t name)
{
	return name < t->nnames ? t->names[name].name : "a function of unknown name";
}

static void on_string(struct transcript *t, const struct event *e)
{
	const struct event_string *s = &e->u.string;

	if (s->which == PYP_STR_NAME && s->kind == 1 && !(s->flags & PYP_STRING_UNREADABLE))
		code_name(t, s->code, (const char *)s->data, s->bytes);
}

/* ---- expected events --------------------------------------------------------------------- */

struct expected {
	char sign; /* 0: end */
	char name[24];
};

/* The token at the cursor; false at the end of the part. */
static bool cursor_token(struct cursor *c, struct expected *ret, unsigned int *until)
{
	size_t n;

	c->at += strspn(c->at, " ");
	n = strcspn(c->at, " :");
	*until = UINT32_MAX;
	if (!n)
		return false;
	ret->sign = *c->at;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)n - 1, c->at + 1);
	c->at += n;
	if (*c->at == ':')
		*until = (unsigned int)strtoul(c->at + 1, (char **)&c->at, 10);
	return true;
}

static struct expected cursor_next(struct cursor *c, unsigned int minor)
{
	struct expected e = {0};
	unsigned int until;

	while (c->part->events) {
		if (!c->at)
			c->at = c->part->events;
		while (minor >= c->part->since && cursor_token(c, &e, &until))
			if (minor <= until)
				return e;
		c->at = NULL;
		if (minor < c->part->since || ++c->time >= c->part->times) {
			c->part++;
			c->time = 0;
		}
	}
	return (struct expected){0};
}

/* Can a record of this type be the expected event? Before 3.11 a yield is reported as an end. */
static bool fits(const struct transcript *t, char sign, uint8_t type)
{
	switch (type) {
	case PYP_REC_ENTER:
		return sign == '>';
	case PYP_REC_THROW:
		return sign == '^';
	case PYP_REC_LEAVE:
		return sign == '<' || sign == '!' ||
		       (sign == '~' && t->opts.layout->model == LAYOUT_FRAME_OBJECT);
	case PYP_REC_YIELD:
		return sign == '~';
	case PYP_REC_C_ENTER:
		return sign == '(' || sign == '+';
	case PYP_REC_C_LEAVE:
		return sign == ')';
	case PYP_REC_C_INSTANT:
		return sign == '+';
	default:
		return sign == '-';
	}
}

/*
 * Where code objects are freed late that is when the garbage collector runs, in whichever thread, and
 * 3.13t frees none once there have been two threads: that there are some is checked, not when.
 */
static void pass_freed(struct transcript *t, struct cursor *c)
{
	struct cursor ahead = *c;
	struct expected e = cursor_next(&ahead, t->opts.layout->minor);
	uint32_t name;

	for (; e.sign == '-'; e = cursor_next(&ahead, t->opts.layout->minor)) {
		*c = ahead;
		t->ended++;
		name = name_index(t, e.name, strlen(e.name));
		if (name < t->nnames)
			t->unfreed[name]++;
	}
}

/* Returns the sign of what had to be seen. */
static char compare(struct transcript *t, struct scratch_thread *th, const struct event *e,
		    uint32_t name)
{
	const char *text = name_text(t, name);
	struct expected want;

	if (strncmp(text, SCRIPT_FREE, sizeof(SCRIPT_FREE) - 1) == 0)
		return 0;
	want = cursor_next(&th->cursor, t->opts.layout->minor);
	if (!want.sign)
		return 0; /* it has finished; later output is not compared */
	th->events++;
	if (!fits(t, want.sign, e->type) || strcmp(want.name, text) != 0)
		wrong(t, "event %llu: expected %s %s, but %s was reported to %s (%s)",
		      (unsigned long long)th->events, sign_text(want.sign), want.name, text,
		      seen_text(e->type), site_text(t, e));
	if (t->opts.layout->frees_code_late)
		pass_freed(t, &th->cursor);
	return want.sign;
}

/* ---- stacks ------------------------------------------------------------------------------ */

static struct running_frame *top_of(struct scratch_thread *th)
{
	return th->depth ? &th->open[th->depth - 1] : NULL;
}

static void count_call(struct transcript *t, const struct scratch_thread *th, uint32_t name,
		       uint64_t code)
{
	if (name >= t->nnames)
		return;
	t->names[name].calls++;
	for (unsigned int i = 0; i < th->depth; i++)
		if (th->open[i].code == code)
			return;
	t->names[name].primitive++;
}

/*
 * An exception thrown into a generator that waits for another one bypasses it, so the frame below
 * need not be the running one.
 */
static void on_enter(struct transcript *t, struct scratch_thread *th, const struct event *e)
{
	const struct running_frame *top = top_of(th);
	uint32_t name = name_of(t, e->u.call.code);

	if (top && top->frame == e->u.call.frame && top->code == e->u.call.code)
		return;
	compare(t, th, e, name);
	if (!th->collecting && strcmp(name_text(t, name), SCRIPT_FINALIZER) == 0)
		gc_wrong(t, "a finalizer was called outside of a collection");
	if (e->type == PYP_REC_ENTER && e->u.call.caller != (top ? top->frame : 0))
		wrong(t, "%s has the wrong caller; %s was running (%s)", name_text(t, name),
		      top ? name_text(t, top->name) : "nobody", site_text(t, e));
	count_call(t, th, name, e->u.call.code);
	if (th->depth == MAX_DEPTH)
		wrong(t, "%s was entered, but earlier functions were not reported to end",
		      name_text(t, name));
	else
		th->open[th->depth++] = (struct running_frame){e->u.call.frame, e->u.call.code,
							       name, NO_NAME, false};
}

static void on_leave(struct transcript *t, struct scratch_thread *th, const struct event *e)
{
	const struct running_frame *top = top_of(th);
	bool may_be_shim = th->after_init && t->opts.layout->bpf.code_skip_flags;

	th->after_init = false;
	if (!top || top->frame != e->u.call.frame) {
		if (!may_be_shim || e->type != PYP_REC_LEAVE)
			wrong(t,
			      "a frame that was not running was reported to %s; running: %s (%s)",
			      seen_text(e->type), top ? name_text(t, top->name) : "none",
			      site_text(t, e));
		return;
	}
	compare(t, th, e, top->name);
	th->after_init = strcmp(name_text(t, top->name), "__init__") == 0;
	th->depth--;
}

static void mark_site(struct transcript *t, const struct event *e)
{
	if (e->site < PYP_ALL_SITES)
		t->sites[e->site / 64] |= UINT64_C(1) << (e->site & 63);
}

/* ---- calls of C functions ---------------------------------------------------------------- */

static void on_method(struct transcript *t, const struct event *e)
{
	const struct event_method *m = &e->u.method;

	if (!m->unreadable)
		code_name(t, m->method, m->name, strlen(m->name));
}

/* The running function if its C calls are compared, else NULL. */
static struct running_frame *caller_of(const struct transcript *t, struct scratch_thread *th)
{
	struct running_frame *top = top_of(th);

	if (!top ||
	    strncmp(name_text(t, top->name), SCRIPT_BUILTINS, sizeof(SCRIPT_BUILTINS) - 1) != 0)
		return NULL;
	return top;
}

static void on_c_enter(struct transcript *t, struct scratch_thread *th, const struct event *e)
{
	struct running_frame *caller = caller_of(t, th);
	uint32_t name;

	if (!caller)
		return;
	mark_site(t, e);
	name = name_of(t, e->u.c_call.method);
	if (caller->called != NO_NAME)
		wrong(t, "%s was called, but %s before it was not reported to return (%s)",
		      name_text(t, name), name_text(t, caller->called), site_text(t, e));
	if (caller->frame != e->u.c_call.frame)
		wrong(t, "%s has the wrong caller; %s was running (%s)", name_text(t, name),
		      name_text(t, caller->name), site_text(t, e));
	caller->unreported = compare(t, th, e, name) == '+';
	caller->called = e->type == PYP_REC_C_ENTER ? name : NO_NAME;
}

/* Ends without a call do not belong to C functions; the daemon ignores them, too. */
static void on_c_leave(struct transcript *t, struct scratch_thread *th, const struct event *e)
{
	struct running_frame *caller = caller_of(t, th);

	if (!caller || caller->frame != e->u.c_call.frame || caller->called == NO_NAME)
		return;
	mark_site(t, e);
	if (!caller->unreported)
		compare(t, th, e, caller->called);
	caller->called = NO_NAME;
}

/* ---- collections ------------------------------------------------------------------------- */

/* Does this frame run below the innermost one? A generator's frame in creation (3.11) does not. */
static bool is_open_below(const struct scratch_thread *th, uint64_t frame)
{
	for (unsigned int i = 0; i + 1 < th->depth; i++)
		if (th->open[i].frame == frame)
			return true;
	return false;
}

static void on_gc_start(struct transcript *t, struct scratch_thread *th, const struct event *e)
{
	const struct running_frame *top = top_of(th);

	if (th->collecting)
		gc_wrong(t, "a collection started, and the one before it was not seen to stop");
	if (top && top->frame != e->u.gc.frame && is_open_below(th, e->u.gc.frame))
		gc_wrong(t, "a collection was not set off by %s, which was running",
			 name_text(t, top->name));
	th->collecting = true;
	th->generation = e->arg;
}

static void on_gc_stop(struct transcript *t, struct scratch_thread *th, const struct event *e)
{
	if (!th->collecting)
		gc_wrong(t, "a collection stopped, and none was seen to start");
	else if (th->generation != e->arg)
		gc_wrong(t, "a collection of generation %u stopped as one of generation %u",
			 th->generation, e->arg);
	th->collecting = false;
	t->collections[e->arg <= PYP_GC_UNKNOWN ? e->arg : PYP_GC_UNKNOWN]++;
}

/* The initial stack of a new thread, which is always small here. */
static void on_chain(struct transcript *t, struct scratch_thread *th, const struct event *e)
{
	const struct event_chain *c = &e->u.chain;

	if (c->flags & PYP_CHAIN_RESYNC) {
		t->lost = true;
		return;
	}
	if (c->first || c->count >= MAX_DEPTH || c->flags != PYP_CHAIN_LAST || th->depth) {
		wrong(t, "an unexpected stack was reported");
		return;
	}
	for (uint32_t i = 0; i < c->count; i++) {
		const struct pyp_chain_frame *f = &c->frames[c->count - 1 - i];

		th->open[i] = (struct running_frame){f->frame, f->code, name_of(t, f->code),
						     NO_NAME, false};
	}
	th->depth = c->count;
}

static void on_code_free(struct transcript *t, struct scratch_thread *th, const struct event *e)
{
	struct code *c = code_find(t, e->u.code.code);

	if (!c)
		return;
	if (!t->opts.layout->frees_code_late)
		compare(t, th, e, c->name);
	else if (c->name < t->nnames)
		t->unfreed[c->name]--;
	t->freed++;
	*c = t->codes[--t->ncodes];
}

static struct scratch_thread *thread_of(struct transcript *t, uint32_t tid)
{
	for (unsigned int i = 0; i < t->nthreads; i++)
		if (t->threads[i].tid == tid)
			return &t->threads[i];
	if (t->nthreads == MAX_THREADS) {
		wrong(t, "there were more threads than the program has");
		return NULL;
	}
	t->threads[t->nthreads] = (struct scratch_thread){
		.tid = tid,
		.cursor.part = t->opts.parts[t->nthreads],
	};
	return &t->threads[t->nthreads++];
}

/* ------------------------------------------------------------------------------------------ */

struct transcript *transcript_new(const struct transcript_opts *opts)
{
	struct transcript *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->opts = *opts;
	if (!t->opts.parts[0]) {
		t->opts.parts[0] = script_main;
		t->opts.parts[1] = script_worker;
	}
	return t;
}

void transcript_free(struct transcript *t)
{
	free(t);
}

void transcript_event(struct transcript *t, const struct event *e)
{
	static void (*const on[PYP_REC_MAX])(struct transcript *, struct scratch_thread *,
					     const struct event *) = {
		[PYP_REC_ENTER] = on_enter,	    [PYP_REC_THROW] = on_enter,
		[PYP_REC_LEAVE] = on_leave,	    [PYP_REC_YIELD] = on_leave,
		[PYP_REC_CODE_FREE] = on_code_free, [PYP_REC_CHAIN] = on_chain,
		[PYP_REC_C_ENTER] = on_c_enter,	    [PYP_REC_C_LEAVE] = on_c_leave,
		[PYP_REC_C_INSTANT] = on_c_enter,   [PYP_REC_GC_START] = on_gc_start,
		[PYP_REC_GC_STOP] = on_gc_stop,
	};
	struct scratch_thread *th;

	if (t->wrong[0] || t->lost)
		return;
	if (e->type == PYP_REC_STRING) {
		on_string(t, e);
		return;
	}
	if (e->type == PYP_REC_METHOD) {
		on_method(t, e);
		return;
	}
	if (e->type >= PYP_REC_MAX || !on[e->type])
		return;
	th = thread_of(t, e->tid);
	if (!th)
		return;
	if (e->type <= PYP_REC_YIELD || e->type == PYP_REC_CODE_FREE)
		mark_site(t, e);
	on[e->type](t, th, e);
}

/* Code objects freed late are freed at most once, and some are. */
static bool freed_right(const struct transcript *t, char *why, size_t size)
{
	for (uint32_t i = 0; i < t->nnames; i++) {
		if (t->unfreed[i] >= 0)
			continue;
		snprintf(why, size, "the code of %s was seen to be freed, and had not ended",
			 t->names[i].name);
		return false;
	}
	if (t->freed || !t->ended)
		return true;
	snprintf(why, size, "no code object was seen to be freed");
	return false;
}

bool transcript_right(const struct transcript *t, char *why, size_t size)
{
	if (t->wrong[0]) {
		snprintf(why, size, "%s", t->wrong);
		return false;
	}
	if (t->lost)
		return true;
	for (unsigned int i = 0; i < MAX_THREADS; i++) {
		struct cursor c = {.part = t->opts.parts[i]};
		struct expected want;

		if (!c.part)
			continue;
		if (i < t->nthreads)
			c = t->threads[i].cursor;
		want = cursor_next(&c, t->opts.layout->minor);
		if (want.sign) {
			snprintf(why, size, "%s %s and all later events are missing",
				 sign_text(want.sign), want.name);
			return false;
		}
	}
	return freed_right(t, why, size);
}

bool transcript_collections_right(const struct transcript *t,
				  const uint64_t counted[PYP_GC_GENERATIONS], char *why,
				  size_t size)
{
	const bool known = t->opts.plan->ngc && t->opts.plan->gc[0].disp != PYP_GC_NO_GENERATION;
	uint64_t seen = 0, all = 0;

	if (t->lost)
		return true;
	if (t->gc_wrong[0]) {
		snprintf(why, size, "%s", t->gc_wrong);
		return false;
	}
	for (unsigned int g = 0; g < PYP_GC_GENERATIONS; g++) {
		seen += t->collections[g];
		all += counted[g];
		if (known && t->collections[g] != counted[g]) {
			snprintf(why, size,
				 "%llu collections of generation %u were seen, and there were %llu",
				 (unsigned long long)t->collections[g], g,
				 (unsigned long long)counted[g]);
			return false;
		}
	}
	seen += t->collections[PYP_GC_UNKNOWN];
	if (seen == all)
		return true;
	snprintf(why, size, "%llu collections were seen, and there were %llu",
		 (unsigned long long)seen, (unsigned long long)all);
	return false;
}

uint64_t transcript_events(const struct transcript *t)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < t->nthreads; i++)
		n += t->threads[i].events;
	return n;
}

uint64_t transcript_sites(const struct transcript *t, unsigned int word)
{
	return word < TRANSCRIPT_WORDS ? t->sites[word] : 0;
}

size_t transcript_calls(const struct transcript *t, const struct transcript_calls **ret)
{
	*ret = t->names;
	return t->nnames;
}
