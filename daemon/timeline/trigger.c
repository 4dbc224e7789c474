// SPDX-License-Identifier: BSD-2-Clause
/* The condition that ends a timeline: see trigger.h. */
#include "timeline/trigger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/parse.h"
#include "base/utf8_clean.h"
#include "slow/match.h"

#define CALLS_MAX   4096u
#define CPU_READS   16u
#define CPU_STEP_NS (TRIGGER_CPU_NS / (CPU_READS - 4))
#define NONE	    UINT32_MAX

/* A call that is followed */
struct call {
	uint32_t source, tid, func;
	uint32_t above; /* frames that it has called and that are open */
	uint64_t frame, start_ns;
	bool used, active; /* active: on the thread's stack, not suspended */
};

struct source {
	const struct profile *profile; /* NULL: ended */
	uint32_t pid;
	struct match_known known;
	struct {
		uint64_t ts, cpu;
	} read[CPU_READS]; /* the last ones, by turns */
	uint32_t nreads;
};

enum kind { SLOW, RAISE, CPU };

struct trigger {
	enum kind kind;
	char *condition;
	struct match match;
	uint64_t over_ns;
	uint64_t percent;
	struct source *sources;
	uint32_t nsources;
	struct call calls[CALLS_MAX]; /* the first ncalls were used */
	uint32_t ncalls, unused[CALLS_MAX], nunused;
	struct map by_thread; /* source and tid → active call */
	struct map by_frame;  /* source and frame → suspended call */
	uint64_t refused;
	bool met;
	struct trigger_hit hit;
};

/* Conditions -------------------------------------------------------------------------------- */

static int bad(const char *condition, struct diag *diag)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"expected slow:PATTERN:DURATION, slow:DURATION, raise:PATTERN or "
			"cpu:PERCENT%",
			"invalid condition '%s'", condition);
}

/* The last colon ends the pattern, which may have others. */
static int parse_slow(struct trigger *tr, const char *text, struct diag *diag)
{
	const char *colon = strrchr(text, ':');
	_cleanup_free_ char *pattern = colon ? strndup(text, (size_t)(colon - text)) : NULL;

	if (colon && !pattern)
		return diag_errno(diag, ENOMEM, "cannot follow calls");
	if (parse_duration(colon ? colon + 1 : text, &tr->over_ns) < 0)
		return bad(tr->condition, diag);
	return match_init(&tr->match, pattern, diag);
}

static int parse_cpu(struct trigger *tr, const char *text, struct diag *diag)
{
	size_t n = strlen(text);
	_cleanup_free_ char *number = strndup(text, n && text[n - 1] == '%' ? n - 1 : n);

	if (!number)
		return diag_errno(diag, ENOMEM, "cannot watch the CPU time");
	if (parse_u64(number, 1, TRIGGER_PERCENT, &tr->percent) < 0)
		return bad(tr->condition, diag);
	return 0;
}

static int parse(struct trigger *tr, struct diag *diag)
{
	const char *text = tr->condition;

	if (strlen(text) >= TRIGGER_TEXT)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "a shorter pattern",
				"the condition is longer than %u bytes", TRIGGER_TEXT - 1);
	if (strncmp(text, "slow:", 5) == 0)
		return parse_slow(tr, text + 5, diag);
	tr->kind = *text == 'r' ? RAISE : CPU;
	if (strncmp(text, "raise:", 6) == 0)
		return match_init(&tr->match, text + 6, diag);
	if (strncmp(text, "cpu:", 4) == 0)
		return parse_cpu(tr, text + 4, diag);
	return bad(text, diag);
}

int trigger_new(const char *condition, struct trigger **ret, struct diag *diag)
{
	_cleanup_(trigger_freep) struct trigger *tr = calloc(1, sizeof(*tr));
	int r;

	if (tr)
		tr->condition = strdup(condition);
	if (!tr || !tr->condition)
		return diag_errno(diag, ENOMEM, "cannot wait for a condition");
	r = parse(tr, diag);
	if (r == 0)
		*ret = TAKE_PTR(tr);
	return r;
}

void trigger_free(struct trigger *tr)
{
	if (!tr)
		return;
	for (uint32_t i = 0; i < tr->nsources; i++)
		match_known_deinit(&tr->sources[i].known);
	free(tr->sources);
	free(tr->condition);
	match_deinit(&tr->match);
	map_deinit(&tr->by_thread);
	map_deinit(&tr->by_frame);
	free(tr);
}

const char *trigger_condition(const struct trigger *tr)
{
	return tr->condition;
}

bool trigger_needs_cpu(const struct trigger *tr)
{
	return tr->kind == CPU;
}

bool trigger_needs_raised(const struct trigger *tr)
{
	return tr->kind == RAISE;
}

const struct trigger_hit *trigger_hit(const struct trigger *tr)
{
	return tr->met ? &tr->hit : NULL;
}

uint64_t trigger_refused(const struct trigger *tr)
{
	return tr->refused;
}

/* Sources ----------------------------------------------------------------------------------- */

int trigger_add(struct trigger *tr, uint32_t source, uint32_t pid, const struct profile *p)
{
	struct source *v;

	if (source < tr->nsources) {
		/* Recording it failed after this call. */
		tr->sources[source].profile = p;
		tr->sources[source].pid = pid;
		return 0;
	}
	v = reallocarray(tr->sources, source + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	tr->sources = v;
	v[source] = (struct source){.profile = p, .pid = pid};
	tr->nsources = source + 1;
	return 0;
}

static uint64_t thread_key(uint32_t source, uint32_t tid)
{
	return (uint64_t)source << 32 | tid;
}

/* User addresses have 47 bits. */
static uint64_t frame_key(uint32_t source, uint64_t frame)
{
	return frame ^ (uint64_t)source << 48;
}

static void drop(struct trigger *tr, uint32_t i)
{
	struct call *c = &tr->calls[i];

	if (c->active)
		map_del(&tr->by_thread, thread_key(c->source, c->tid));
	else
		map_del(&tr->by_frame, frame_key(c->source, c->frame));
	c->used = false;
	tr->unused[tr->nunused++] = i;
}

void trigger_end_source(struct trigger *tr, uint32_t source)
{
	for (uint32_t i = 0; i < tr->ncalls; i++)
		if (tr->calls[i].used && tr->calls[i].source == source)
			drop(tr, i);
	tr->sources[source].profile = NULL;
}

/* The condition is met ---------------------------------------------------------------------- */

static const char *base_name(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash && slash[1] ? slash + 1 : file;
}

static void describe_func(const struct trigger *tr, uint32_t source, uint32_t func, char *out,
			  size_t size)
{
	const struct profile_func f = profile_func(tr->sources[source].profile, func);
	char name[160], file[160];

	utf8_clean(f.qualname ? f.qualname : f.name ? f.name : "?", name, sizeof(name));
	utf8_clean(f.filename ? base_name(f.filename) : "?", file, sizeof(file));
	snprintf(out, size, "%s (%s:%" PRId32 ")", name, file, f.firstlineno);
}

static bool fire_slow(struct trigger *tr, const struct call *c)
{
	char name[360];

	describe_func(tr, c->source, c->func, name, sizeof(name));
	tr->met = true;
	tr->hit = (struct trigger_hit){
		.source = c->source,
		.tid = c->tid,
		.func = c->func,
		.ts = c->start_ns + tr->over_ns,
	};
	snprintf(tr->hit.text, sizeof(tr->hit.text), "a call of %s has taken %g ms", name,
		 (double)tr->over_ns / 1e6);
	return true;
}

static bool fire_raise(struct trigger *tr, uint32_t source, const struct watch_event *e)
{
	char name[360];

	describe_func(tr, source, e->func, name, sizeof(name));
	tr->met = true;
	tr->hit =
		(struct trigger_hit){.source = source, .tid = e->tid, .func = e->func, .ts = e->ts};
	snprintf(tr->hit.text, sizeof(tr->hit.text), "an exception has left %s", name);
	return true;
}

static bool is_over(const struct trigger *tr, const struct call *c, uint64_t now_ns)
{
	return now_ns >= c->start_ns && now_ns - c->start_ns >= tr->over_ns;
}

/* Slow calls -------------------------------------------------------------------------------- */

static void begin(struct trigger *tr, uint32_t source, const struct watch_event *e)
{
	uint32_t i = tr->ncalls;

	if (tr->nunused) {
		i = tr->unused[--tr->nunused];
	} else if (i == CALLS_MAX) {
		tr->refused++;
		return;
	} else {
		tr->ncalls++;
	}
	tr->calls[i] = (struct call){
		.source = source,
		.tid = e->tid,
		.func = e->func,
		.frame = e->frame,
		.start_ns = e->ts,
		.used = true,
		.active = true,
	};
	if (map_put(&tr->by_thread, thread_key(source, e->tid), i) == 0)
		return;
	tr->refused++;
	tr->calls[i].used = false;
	tr->unused[tr->nunused++] = i;
}

static void suspend(struct trigger *tr, uint32_t i)
{
	struct call *c = &tr->calls[i];

	if (map_put(&tr->by_frame, frame_key(c->source, c->frame), i) < 0) {
		tr->refused++;
		drop(tr, i);
		return;
	}
	map_del(&tr->by_thread, thread_key(c->source, c->tid));
	c->active = false;
}

static void resume(struct trigger *tr, uint32_t i, const struct watch_event *e)
{
	struct call *c = &tr->calls[i];

	if (map_put(&tr->by_thread, thread_key(c->source, e->tid), i) < 0) {
		tr->refused++;
		drop(tr, i);
		return;
	}
	map_del(&tr->by_frame, frame_key(c->source, c->frame));
	c->tid = e->tid;
	c->active = true;
}

static bool is_match(struct trigger *tr, uint32_t source, uint32_t func)
{
	struct source *s = &tr->sources[source];

	return s->profile && match_func(&tr->match, &s->known, s->profile, func);
}

/* A frame is pushed on a thread without a followed call. */
static bool look(struct trigger *tr, uint32_t source, const struct watch_event *e)
{
	uint32_t i;

	if (map_get(&tr->by_frame, frame_key(source, e->frame), &i)) {
		if (e->kind != WATCH_CALL && tr->calls[i].func == e->func) {
			if (is_over(tr, &tr->calls[i], e->ts))
				return fire_slow(tr, &tr->calls[i]);
			resume(tr, i, e);
			return false;
		}
		/* Another frame at its address: its end was not seen. */
		drop(tr, i);
	}
	if (e->kind == WATCH_CALL && is_match(tr, source, e->func))
		begin(tr, source, e);
	return false;
}

/* Whether the thread was in the call until this event. After a gap that is not known. */
static bool proves(enum watch_kind kind)
{
	return kind != WATCH_OPEN && kind != WATCH_CLOSE && kind != WATCH_LOST &&
	       kind != WATCH_DROPPED && kind != WATCH_THREAD;
}

static bool follow(struct trigger *tr, uint32_t i, const struct watch_event *e)
{
	struct call *c = &tr->calls[i];
	const int step = watch_kind_step(e->kind);

	if (proves(e->kind) && is_over(tr, c, e->ts))
		return fire_slow(tr, c);
	if (step > 0)
		c->above++;
	else if (step < 0 && c->above)
		c->above--;
	else if (step < 0 && (e->kind == WATCH_YIELD || e->kind == WATCH_SWITCH_OUT))
		suspend(tr, i);
	else if (step < 0)
		drop(tr, i);
	return false;
}

bool trigger_event(struct trigger *tr, uint32_t source, const struct watch_event *e)
{
	uint32_t i;

	if (tr->met || tr->kind == CPU)
		return false;
	if (tr->kind == RAISE)
		return e->raised && is_match(tr, source, e->func) && fire_raise(tr, source, e);
	if (map_get(&tr->by_thread, thread_key(source, e->tid), &i))
		return follow(tr, i, e);
	return watch_kind_step(e->kind) > 0 && look(tr, source, e);
}

bool trigger_time(struct trigger *tr, uint32_t source, uint64_t now_ns)
{
	const struct call *first = NULL;

	if (tr->met || tr->kind != SLOW)
		return false;
	for (uint32_t i = 0; i < tr->ncalls; i++) {
		const struct call *c = &tr->calls[i];

		if (c->used && c->source == source && is_over(tr, c, now_ns) &&
		    (!first || c->start_ns < first->start_ns))
			first = c;
	}
	return first && fire_slow(tr, first);
}

/* CPU time ---------------------------------------------------------------------------------- */

/* Index of the youngest reading that is a whole span old; NONE: there is none. */
static uint32_t span_start(const struct source *s, uint64_t now_ns)
{
	const uint32_t n = s->nreads < CPU_READS ? s->nreads : CPU_READS;

	for (uint32_t i = 1; i <= n; i++) {
		const uint32_t at = (s->nreads - i) % CPU_READS;

		if (now_ns - s->read[at].ts >= TRIGGER_CPU_NS)
			return at;
	}
	return NONE;
}

static bool fire_cpu(struct trigger *tr, uint32_t source, uint64_t now_ns, double percent)
{
	const uint32_t pid = tr->sources[source].pid;

	tr->met = true;
	tr->hit = (struct trigger_hit){
		.source = source, .tid = pid, .func = WATCH_NO_FUNC, .ts = now_ns};
	snprintf(tr->hit.text, sizeof(tr->hit.text),
		 "process %" PRIu32 " has used %.0f%% of a CPU over %g s", pid, percent,
		 (double)TRIGGER_CPU_NS / 1e9);
	return true;
}

bool trigger_cpu(struct trigger *tr, uint32_t source, uint64_t now_ns, uint64_t cpu_ns)
{
	struct source *s = &tr->sources[source];
	const uint32_t last = (s->nreads + CPU_READS - 1) % CPU_READS;
	double percent;
	uint32_t from;

	if (tr->met || tr->kind != CPU || (s->nreads && now_ns - s->read[last].ts < CPU_STEP_NS))
		return false;
	from = span_start(s, now_ns);
	if (from != NONE && cpu_ns > s->read[from].cpu) {
		percent = 100.0 * (double)(cpu_ns - s->read[from].cpu) /
			  (double)(now_ns - s->read[from].ts);
		if (percent >= (double)tr->percent)
			return fire_cpu(tr, source, now_ns, percent);
	}
	s->read[s->nreads % CPU_READS].ts = now_ns;
	s->read[s->nreads % CPU_READS].cpu = cpu_ns;
	s->nreads++;
	return false;
}
