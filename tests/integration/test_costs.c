// SPDX-License-Identifier: BSD-2-Clause
/*
 * The cost of events can be measured on every interpreter of this machine, and differs between
 * them by less than an order of magnitude, so that one's cost is a guess of another's.
 */
#include <sys/wait.h>

#include "harness/caps.h"
#include "harness/interpreters.h"
#include "harness/patience.h"
#include "harness/python.h"
#include "harness/test.h"
#include "verify/calibration.h"
#include "verify/measure.h"

static const char sleeping[] = "import signal\nprint('ready')\nsignal.pause()\n";

struct subject {
	pid_t pid;
	int out;
	struct target *target;
	struct python *python;
	struct plan plan;
};

static struct verify_opts subject_start(struct subject *s, const struct interpreter *it)
{
	struct diag diag = {0};
	char line[16];

	s->pid = interpreter_start(it, sleeping, &s->out);
	interpreter_line(s->out, line, sizeof(line));
	assert_diag_ok(target_open(s->pid, &s->target, &diag), &diag);
	assert_diag_ok(python_discover(s->target, &s->python, &diag), &diag);
	assert_diag_ok(plan_build(s->python->image, &s->python->layout, &s->plan, &diag), &diag);
	return (struct verify_opts){.python = s->python, .plan = &s->plan, .target = s->target};
}

static void subject_end(struct subject *s)
{
	python_free(s->python);
	target_free(s->target);
	interpreter_end(s->pid, s->out);
}

/* The cost of a call and its return */
static uint32_t pair_of(const struct cost *c)
{
	return c->before[COST_ENTER] + c->after[COST_ENTER] + c->before[COST_LEAVE] +
	       c->after[COST_LEAVE];
}

/*
 * Measures as an attach does: in a process without open descriptors of the profiler except those
 * that it keeps.
 */
static struct cost measured_beside(const struct verify_opts *vo)
{
	struct calibration *c = calibration_start(vo);
	struct cost ret;

	cr_assert(c);
	cr_assert(calibration_wait(c, patience_left_ms()));
	ret = calibration_result(c);
	calibration_free(c);
	return ret;
}

static uint32_t check_one(const struct interpreter *it)
{
	struct subject s;
	const struct verify_opts vo = subject_start(&s, it);
	const struct cost own = measured_beside(&vo);

	fprintf(stderr, "3.%-3d a call and its end: %u ns  %s\n", it->minor, pair_of(&own),
		it->exe);
	cr_expect(own.known && own.latency_ps, "%s", it->exe);
	/* Two traps into the kernel */
	cr_expect_gt(pair_of(&own), 100);
	if (it->minor >= 11)
		cr_expect_gt(own.before[COST_YIELD] + own.after[COST_YIELD], 0);
	subject_end(&s);
	return pair_of(&own);
}

Test(costs, every_interpreter)
{
	struct interpreter v[INTERPRETERS_MAX];
	uint32_t least = UINT32_MAX, most = 0, pair;
	size_t n;

	caps_require_bpf();
	n = interpreters_find(v);
	for (size_t i = 0; i < n; i++) {
		if (v[i].major != 3)
			continue;
		pair = check_one(&v[i]);
		least = pair < least ? pair : least;
		most = pair > most ? pair : most;
	}
	cr_assert(most / 10 < least, "%u to %u ns", least, most);
}

/* A calibration that is freed before its result was read leaves no unreaped child. */
Test(costs, given_up)
{
	struct interpreter v[INTERPRETERS_MAX];
	struct calibration *c;
	struct verify_opts vo;
	struct subject s;
	size_t n, i = 0;

	caps_require_bpf();
	n = interpreters_find(v);
	while (i + 1 < n && v[i].major != 3)
		i++;
	vo = subject_start(&s, &v[i]);
	c = calibration_start(&vo);
	cr_assert(c);
	calibration_free(c);
	cr_assert(waitpid(-1, NULL, WNOHANG) <= 0, "no child is left but the target");
	subject_end(&s);
}
