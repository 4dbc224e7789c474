// SPDX-License-Identifier: BSD-2-Clause
#include "session/pace.h"

#include <math.h>

#include "base/clock.h"
#include "base/square.h"
#include "snapshot/snapshot.h"

/* Marks may be chosen for this long, and are then counted, in readings, for at most this long. */
#define MEASURE_NS UINT64_C(1200000000)
#define CHOOSE_NS  (MEASURE_NS / 2)
#define READING_NS UINT64_C(15000000)
/*
 * After this number of readings (0.3 s), a relative standard error of PRECISE suffices. The speed of a
 * shared machine also varies slowly: means of 20 readings varied by 2.6 to 2.8 times as much as if
 * readings were independent of each other.
 */
#define READINGS_PRECISE 20
#define PRECISE		 0.03
#define SLOWLY		 2.7
/* With less CPU time, or fewer marks, the pace is unknown. */
#define CPU_LEAST  30e6
#define HITS_LEAST 100.0
#define READINGS   4
/* After the trace, a process that has used less than CPU_LEAST by then has nothing to do. */
#define IDLE_AFTER_NS UINT64_C(200000000)
/* The relative error of a steady program: the machine is not equally fast all the time */
#define STEADY 0.06

static void read_cpu(struct pace *p)
{
	(void)clock_process_cpu_ns(p->pid, &p->cpu_ns);
}

static uint64_t hits_of(const struct pace *p)
{
	return progress_hits(&p->progress, p->probe);
}

/* ---- the arithmetic ---- */

static struct pace_readings *readings_of(struct pace *p)
{
	return p->again ? &p->after : &p->before;
}

void pace_add(struct pace *p, uint64_t cpu_ns, uint64_t hits)
{
	struct pace_readings *r = readings_of(p);
	const double h = (double)(hits - p->last_hits);
	const double c =
		fmax(0, (double)(cpu_ns - p->last_cpu_ns) - p->progress.marks.of.hit_ns * h);

	p->last_cpu_ns = cpu_ns;
	p->last_hits = hits;
	r->n++;
	r->c += c;
	r->h += h;
	r->cc += c * c;
	r->ch += c * h;
	r->hh += h * h;
}

bool pace_suffices(const struct pace_readings *r)
{
	return r->n >= READINGS && r->c >= CPU_LEAST && r->h >= HITS_LEAST;
}

/* The relative variance of the CPU time per mark, by how much it varies between readings. */
static double variance_of(const struct pace_readings *r)
{
	const double n = r->n;

	return n / (n - 1) * square_residual(r->cc, r->ch, r->hh, r->c / r->h) / square(r->c);
}

bool pace_is_precise(const struct pace_readings *r)
{
	return r->n >= READINGS_PRECISE && pace_suffices(r) &&
	       SLOWLY * sqrt(variance_of(r)) <= PRECISE;
}

/*
 * Of both measurements, each weighs the same, as neither is nearer to the trace. How much they differ
 * shows, with what is usual, how much the pace changes while nothing is measured: twice the variance.
 */
double pace_undisturbed(const struct pace *p, double hits, double *ret_error)
{
	const double before = p->before.c / p->before.h;
	double ns = before * hits, of_readings = variance_of(&p->before),
	       of_change = square(STEADY);

	*ret_error = 0;
	if (hits <= 0)
		return 0;
	if (pace_suffices(&p->after)) {
		const double after = p->after.c / p->after.h, mean = (before + after) / 2;

		ns = mean * hits;
		of_readings = (of_readings + variance_of(&p->after)) / 4;
		of_change = (of_change + square((after - before) / mean) / 2) / 4;
	}
	/* The trace varies like the time before it. */
	of_readings += variance_of(&p->before) * p->before.c / ns;
	*ret_error = sqrt(of_readings + of_change);
	return ns;
}

/* ---- before the trace ---- */

void pace_begin(struct pace *p, struct probe *probe, pid_t pid, uint32_t nmarks, double hit_ns)
{
	*p = (struct pace){
		.probe = probe, .pid = pid, .until_ns = clock_monotonic_ns() + CHOOSE_NS};
	read_cpu(p);
	progress_begin(&p->progress, NULL, &(struct marks_opts){nmarks, hit_ns, 0});
}

static void begin_measuring(struct pace *p)
{
	p->measuring = true;
	p->until_ns = clock_monotonic_ns() + MEASURE_NS;
	p->last_cpu_ns = p->progress.marks.cpu_ns;
	p->last_hits = 0;
}

static void go_on(struct pace *p)
{
	read_cpu(p);
	if (p->measuring)
		pace_add(p, p->cpu_ns, hits_of(p));
	else if (progress_chooses(&p->progress, p->cpu_ns) &&
		 progress_turn(&p->progress, p->probe, p->pid, true))
		begin_measuring(p);
}

uint64_t pace_turn(struct pace *p)
{
	const struct marks *m = &p->progress.marks;

	if (p->ending)
		return probe_marks_released(p->probe) ? 0 : PROGRESS_TURN_NS;
	go_on(p);
	if (m->state != MARKS_NONE && clock_monotonic_ns() < p->until_ns &&
	    !pace_is_precise(readings_of(p)))
		return p->measuring ? READING_NS : PROGRESS_TURN_NS;
	if (!p->again)
		p->known = m->state == MARKS_KEPT && pace_suffices(&p->before);
	p->ending = true;
	probe_marks_release(p->probe);
	return PROGRESS_TURN_NS;
}

/* ---- after the trace ---- */

void pace_again_begin(struct pace *p)
{
	if (!p->known || p->counting || p->again ||
	    !progress_attach(&p->progress, p->probe, p->pid))
		return;
	p->again = true;
	p->ending = false;
	begin_measuring(p);
	p->next_ns = clock_monotonic_ns() + READING_NS;
}

/* A process that has become idle is not waited for. */
static bool is_idle(const struct pace *p, uint64_t now_ns)
{
	return p->until_ns < now_ns + MEASURE_NS - IDLE_AFTER_NS && p->after.c < CPU_LEAST;
}

void pace_again_turn(struct pace *p)
{
	const uint64_t now = clock_monotonic_ns();
	uint64_t pause;

	if (!p->again || now < p->next_ns)
		return;
	if (is_idle(p, now))
		p->until_ns = now;
	pause = pace_turn(p);
	p->again = pause;
	p->next_ns = now + pause;
}

void pace_again_end(struct pace *p)
{
	if (p->again)
		probe_marks_detach(p->probe);
	p->again = false;
}

void pace_again_discard(struct pace *p)
{
	p->after = (struct pace_readings){0};
}

/* ---- during the trace ---- */

/* Adds what the process has reached by now, or subtracts it: counting ends, or begins. */
static void add_now(struct pace *p, double sign)
{
	read_cpu(p);
	p->hits += sign * (double)hits_of(p);
	p->ns += sign * (double)p->cpu_ns;
}

void pace_forget(struct pace *p)
{
	p->known = p->counting = false;
	p->hits = p->ns = 0;
}

void pace_start(struct pace *p, struct probe *probe)
{
	pace_again_end(p);
	if (!p->known)
		return;
	p->probe = probe;
	if (!progress_attach(&p->progress, probe, p->pid)) {
		pace_forget(p);
		return;
	}
	p->counting = true;
	add_now(p, -1);
}

void pace_stop(struct pace *p)
{
	if (p->counting)
		add_now(p, 1);
	p->counting = false;
}

void pace_clear(struct pace *p)
{
	p->hits = p->ns = 0;
	if (p->counting)
		add_now(p, -1);
}

static double counted_hits(const struct pace *p)
{
	return p->hits + (p->counting ? (double)hits_of(p) : 0);
}

void pace_check(struct pace *p)
{
	if (!p->counting)
		return;
	read_cpu(p);
	if (!progress_unfit(&p->progress, p->probe, p->cpu_ns))
		return;
	pace_forget(p);
	probe_marks_release(p->probe);
}

void pace_report(const struct pace *p, struct snapshot_beside *ret)
{
	if (!p->known)
		return;
	ret->process_cpu_ns = p->ns + (p->counting ? (double)p->cpu_ns : 0);
	ret->undisturbed_ns = pace_undisturbed(p, counted_hits(p), &ret->undisturbed_error);
}

double pace_marks_ns(const struct pace *p)
{
	return p->progress.marks.of.hit_ns * counted_hits(p);
}
