// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fork and exec handling.
 *
 * A forked child is a copy of its parent at the same addresses, so the findings about the parent
 * are reused. The exec id (see target_exec_id) shows whether the child is still that copy or has
 * executed a program.
 *
 * An exec replaces the program by another one, or by the same one again. The file decides: if it is
 * the same file, the plan is still valid, and the kernel has inserted the probes again by itself,
 * because the link belongs to the process and the file. Only the addresses are new, so the
 * interpreter is located again. This may take a while, because exec returns before the program's
 * libraries are mapped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/collector.h"
#include "session/tracee.h"
#include "target/deadline.h"

#define LOOK_FOR_NS   2000000000ull
#define LOOK_AGAIN_NS 5000000ull
#define LOST_FOR_NS   20000000ull
#define CHECK_MS      900 /* inspection at start, in ms: clients wait meanwhile */
#define FORKED_MS     10

static int exe_of(pid_t pid, struct target_file *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return target_file_of(path, ret);
}

int tracee_identify(struct tracee *t)
{
	int r = exe_of(t->target->tid, &t->exe);

	if (r == 0)
		r = target_file_of(t->python->via, &t->file);
	return r;
}

/* Copies the interpreter description for access through another process or thread. */
static int inherit_python(const struct tracee *from, pid_t pid, struct python **ret)
{
	struct python *py = malloc(sizeof(*py));
	const char *rest = strchr(from->python->via + strlen("/proc/"), '/');

	if (!py || !rest) {
		free(py);
		return -ENOMEM;
	}
	*py = *from->python;
	py->image = NULL;
	snprintf(py->via, sizeof(py->via), "/proc/%d%s", pid, rest);
	*ret = py;
	return 0;
}

/* ---- executed ---------------------------------------------------------------------------- */

/* Returns 0 if pid runs the same program, -ENOEXEC if not, -ETIMEDOUT or -EBUSY if unknown. */
static int compare_program(const struct tracee *t, pid_t pid)
{
	struct target_file exe;
	int r = exe_of(pid, &exe);

	if (deadline_missed(r))
		return r;
	return r == 0 && target_file_equal(&exe, &t->exe) ? 0 : -ENOEXEC;
}

bool tracee_same_program(const struct tracee *t, pid_t pid)
{
	return compare_program(t, pid) == 0;
}

/*
 * Compares the interpreter found in another process or after an exec of the same program. Returns 0
 * if it is the same, -ENOEXEC if not, -EAGAIN if that cannot be decided yet because its files are
 * not all mapped.
 */
static int same_interpreter(const struct tracee *like, const struct python *py)
{
	struct target_file file;

	if (target_file_of(py->via, &file) < 0)
		return -EAGAIN;
	if (!target_file_equal(&file, &like->file) || !python_same_build(py, like->python))
		return -ENOEXEC;
	return 0;
}

static int set_target(const struct tracee *t, struct probe *probe, const struct python *py)
{
	return probe_set_target(probe, &(struct probe_opts){
					       .pid = t->target->pid,
					       .tid = t->target->tid,
					       .via = py->via,
					       .bias = py->bias,
					       .plan = t->collector->probes ? &t->plan : NULL,
					       .native = python_native_types(py),
					       .sampling = tracee_sampling(t, &t->opts, py),
				       });
}

/* The same build has its own code at the same places; they are found only when probes are planned. */
static void keep_own_code(const struct python *like, struct python *py)
{
	memcpy(py->own_code, like->own_code, sizeof(py->own_code));
}

/* Starts to inspect the process after its exec. */
static int look_again(struct tracee *t)
{
	const struct inspect_opts io = {.target = t->target};
	int r = target_refresh(t->target, NULL);

	if (r == 0)
		r = compare_program(t, t->target->tid);
	return r < 0 ? r : inspect_start(&io, &t->looking, NULL);
}

/* Replaces the inspector by the inspector of the process after its exec. */
static void take_inspect(struct tracee *t)
{
	t->late_before += inspect_late(t->inspect);
	inspect_free(t->inspect);
	t->inspect = TAKE_PTR(t->looking);
}

static void stop_looking(struct tracee *t)
{
	inspect_free(TAKE_PTR(t->looking));
	inspect_result_deinit(&t->found);
}

/*
 * Locates the interpreter again, waiting up to ms. Returns 0, -EINPROGRESS if the inspection is
 * still running (call it again), -EAGAIN if no interpreter was found (call it again later), or
 * another error.
 */
static int relocate(struct tracee *t, int ms)
{
	int r = t->looking ? 0 : look_again(t);

	if (r < 0)
		return r;
	r = inspect_wait(t->looking, ms, &t->found, NULL);
	if (r == -EINPROGRESS)
		return r;
	r = r < 0 ? -EAGAIN : same_interpreter(t, t->found.python);
	if (r == 0)
		keep_own_code(t->python, t->found.python);
	if (r == 0)
		r = target_check(t->target, NULL) < 0 ? -EAGAIN
						      : set_target(t, t->probe, t->found.python);
	if (r == 0) {
		take_inspect(t);
		tracee_take_found(t);
		tracee_find_gils(t);
	}
	stop_looking(t);
	return r;
}

static void resumed(struct tracee *t, uint64_t ts)
{
	t->execs++;
	t->exec_gap_ns += ts > t->exec_ns ? ts - t->exec_ns : 0;
}

/*
 * Handles an exec record. The link stays valid if the main thread executed. If another thread did,
 * the link refers to a task that no longer exists.
 */
static void exec_seen(struct tracee *t)
{
	uint64_t ts = 0;
	int r;

	t->executed = false;
	t->collector->interrupt(t, t->exec_ns);
	t->exec_until_ns = tracee_now() + LOOK_FOR_NS;
	t->exec_retry_ns = 0;
	stop_looking(t);
	/*
	 * Programs that count or sample read the new process at its addresses, so they resume when
	 * these are known. Those that trace need only the registers.
	 */
	r = compare_program(t, t->target->pid);
	if (r == -ENOEXEC) {
		tracee_end(t, "executed another program");
	} else if (r == 0 && t->collector->stacks && !t->exec_other &&
		   probe_rearm(t->probe, &ts) == 0) {
		tracee_begin(t, ts);
		resumed(t, ts);
	} else {
		probe_detach(t->probe);
	}
}

static int attach_again(struct tracee *t)
{
	uint64_t ts = 0;
	int r;

	if (probe_attached(t->probe))
		return 0;
	r = t->collector->start(t, &ts, NULL);
	if (r == 0)
		resumed(t, ts);
	return r;
}

void tracee_executed(struct tracee *t)
{
	uint64_t now = tracee_now();
	int r;

	if (t->executed)
		exec_seen(t);
	if (t->state == SESSION_ENDED || now < t->exec_retry_ns)
		return;
	r = relocate(t, 0);
	if (r == -EINPROGRESS)
		return;
	if (r == 0)
		r = attach_again(t);
	if (r == 0) {
		t->exec_until_ns = 0;
	} else if (deadline_missed(r)) {
		/*
		 * Another exec is in progress and is being held up; the program is determined after
		 * that.
		 */
		t->exec_until_ns = now + LOOK_FOR_NS;
		t->exec_retry_ns = now + LOOK_AGAIN_NS;
	} else if (r == -EAGAIN && now < t->exec_until_ns) {
		t->exec_retry_ns = now + LOOK_AGAIN_NS;
	} else {
		tracee_end(t, "executed another program");
	}
}

/* ---- the main thread has ended ----------------------------------------------------------- */

/*
 * A target is accessed through one of its threads: that thread's /proc directory shows its memory
 * and files, and the kernel finds the probes' process by that thread's memory. When this thread
 * ends, another one replaces it; if it was the main thread, the probes need another kernel
 * mechanism. Records of the old probe count up to the time of the new probe's earliest possible
 * event, so no event is missing or counted twice, unless the kernel has already detached the old
 * probe: it does so if that one was a uprobe event.
 */
static int open_another(struct tracee *t, struct probe **ret, struct diag *diag)
{
	_cleanup_(probe_freep) struct probe *p = NULL;
	_cleanup_free_ struct python *py = NULL;
	const struct probe_opts po = {
		.pid = t->target->pid,
		.tid = t->target->tid,
		.via = "",
		.bias = t->python->bias,
		.counters = t->opts.counters,
		.builtins = t->opts.builtins,
		.ring_bytes = t->opts.ring_bytes,
		.layout = &t->python->layout,
		.plan = &t->plan,
	};
	int r;

	r = inherit_python(t, t->target->tid, &py);
	if (r == 0)
		r = probe_open(&po, &p, diag);
	if (r == 0)
		r = set_target(t, p, py);
	if (r < 0)
		return diag_errno(diag, -r, "cannot trace process %d", t->target->pid);
	snprintf(t->python->via, sizeof(t->python->via), "%s", py->via);
	*ret = TAKE_PTR(p);
	return 0;
}

/* Replaces the probe. The old one's ring may still be polled; set.c releases it. */
static void take_another(struct tracee *t, struct probe *next)
{
	uint64_t losses[PYP_LOSS_MAX];

	pace_again_end(&t->pace);
	probe_detach(t->probe);
	probe_losses(t->probe, losses);
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		t->old_losses[i] += losses[i];
	t->old_latency = tracee_latency(t);
	t->old_traps = tracee_traps(t);
	t->old_probe = t->probe;
	t->probe = next;
	t->goal_ns = 0;
	t->mechanism = probe_mechanism(next);
	if (t->opts.follow)
		probe_follow(next, true);
	tracee_report_raised(t);
}

static void change_probes(struct tracee *t, struct probe *next, uint64_t ts)
{
	t->until_ns = ts;
	tracee_drain_all(t);
	t->until_ns = 0;
	if (probe_mechanism(t->probe) == PROBE_TRACEFS && ts > t->lost_hold_ns)
		t->hold_gap_ns += ts - t->lost_hold_ns;
	tracee_cease(t, ts);
	take_another(t, next);
	tracee_find_gils(t);
	tracee_begin(t, ts);
	tracee_add_initial(t);
}

/*
 * Waits LOST_FOR_NS, because the end of all threads, or an exec by another thread, begins in the same
 * way. Returns true if the target now has another live thread.
 */
static bool has_live_thread(struct tracee *t)
{
	pid_t before = t->target->tid;
	int r;

	if (tracee_now() < t->lost_hold_ns + LOST_FOR_NS)
		return false;
	r = target_alive(t->target) ? target_hold(t->target) : -ESRCH;
	if (deadline_missed(r)) /* retried on the next call */
		return false;
	t->lost_hold = r == 0 && t->target->tid != before;
	return t->lost_hold;
}

void tracee_hold_on(struct tracee *t)
{
	_cleanup_(probe_freep) struct probe *next = NULL;
	pid_t before = t->target->tid;
	uint64_t ts = 0;

	/* One change at a time: the previous probe's ring is still polled. */
	if (t->old_probe || t->state != SESSION_TRACING || !has_live_thread(t))
		return;
	/*
	 * Counts in the kernel cannot be moved to another probe, and windows need a multi-uprobe
	 * link.
	 */
	if (t->collector->moves && open_another(t, &next, NULL) == 0 &&
	    probe_attach(next, &ts, NULL) == 0) {
		t->lost_hold = false;
		change_probes(t, TAKE_PTR(next), ts);
		return;
	}
	/* The process may be exiting. */
	t->target->tid = before;
	if (tracee_now() > t->lost_hold_ns + LOOK_FOR_NS)
		tracee_end(t, "its main thread has ended");
}

/* The same while no probe is attached. */
static int hold_stopped(struct tracee *t, struct diag *diag)
{
	struct probe *next = NULL;
	pid_t before = t->target->tid;
	int r;

	r = target_hold(t->target);
	if (deadline_missed(r))
		return deadline_diag(diag, r, t->target->pid);
	if (r < 0)
		return diag_errno(diag, -r, "process %d has ended", t->target->pid);
	if (t->target->tid == before || t->old_probe || !t->collector->stacks)
		return 0;
	r = open_another(t, &next, diag);
	if (r == 0)
		take_another(t, next);
	return r;
}

/* ---- before tracing starts ---------------------------------------------------------------- */

static int not_in_time(const struct tracee *t, struct diag *diag)
{
	return diag_set(diag, -ETIMEDOUT, PYP_EXIT_FAILURE,
			"try again; it may map files of a file system that does not respond",
			"the memory of process %d could not be read in time", t->target->pid);
}

/*
 * Returns whether the target is still the program that was inspected. *ret_err: the inspector's
 * error; if it has failed, the caller inspects the process again.
 */
static bool same_program(struct tracee *t, int *ret_err)
{
	struct target_file file;
	uint64_t id = 0;

	*ret_err = inspect_exec_id(t->inspect, &id);
	return *ret_err == 0 && id == t->exec_id && target_file_of(t->python->via, &file) == 0 &&
	       target_file_equal(&file, &t->file);
}

bool tracee_unchanged(struct tracee *t)
{
	int err;

	return same_program(t, &err);
}

int tracee_check_program(struct tracee *t, struct diag *diag)
{
	uint64_t before = t->exec_id;
	int r, err;

	r = hold_stopped(t, diag);
	if (r < 0)
		return r;
	if (same_program(t, &err))
		return 0;
	if (err == -ETIMEDOUT || err == -EBUSY)
		return not_in_time(t, diag);
	r = relocate(t, CHECK_MS);
	if (r == -EINPROGRESS)
		return not_in_time(t, diag);
	if (deadline_missed(r))
		return deadline_diag(diag, r, t->target->pid);
	if (r == 0) {
		t->execs += t->exec_id != before;
		return 0;
	}
	tracee_end(t, "executed another program");
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "detach it, then attach it again",
			"process %d has executed another program", t->target->pid);
}

/* ---- forked ------------------------------------------------------------------------------ */

static int take_python(const struct tracee *from, struct tracee *t)
{
	struct python *py;
	int r;

	if (!t->found.exec_id)
		return -ESRCH;
	if (t->found.same) {
		r = inherit_python(from, t->target->pid, &py);
		if (r < 0)
			return r;
		t->found.python = py;
	} else {
		r = compare_program(from, t->target->tid);
		if (r < 0)
			return r;
		r = same_interpreter(from, t->found.python);
		if (r < 0)
			return r;
		keep_own_code(from->python, t->found.python);
	}
	tracee_take_found(t);
	r = tracee_identify(t);
	if (r == 0 &&
	    (!target_file_equal(&t->file, &from->file) || target_check(t->target, NULL) < 0))
		r = -EAGAIN;
	return r;
}

static void take_over(const struct tracee *from, struct tracee *t)
{
	t->plan = from->plan;
	tracee_set_opts(t, &from->opts);
	memcpy(t->self_test, from->self_test, sizeof(t->self_test));
	t->cost = from->cost;
	t->cost_of_other = from->cost_of_other;
	t->self_test_ns = from->self_test_ns;
	t->calibration = calibration_share(from->calibration);
	t->opcodes = opcodes_share(from->opcodes);
}

static struct probe_opts spare_opts(const struct tracee *from)
{
	return (struct probe_opts){
		.counters = from->opts.counters,
		.builtins = from->opts.builtins,
		.collections = true,
		.ring_bytes = from->opts.ring_bytes,
		.mode = from->opts.mode.mode,
		.marks = from->collector->windows,
		.mark_records = from->collector->windows,
		.plain = !from->warning[0],
		.layout = &from->python->layout,
		.sampling = tracee_sampling(from, &from->opts, from->python),
		.walks = tracee_walks(from, from->python),
	};
}

int tracee_open_spare(const struct tracee *from, struct probe **ret)
{
	const struct probe_opts po = spare_opts(from);

	return probe_open(&po, ret, NULL);
}

int tracee_load_spare(const struct tracee *from, struct probe **ret)
{
	const struct probe_opts po = spare_opts(from);

	return probe_open_begin(&po, ret, NULL);
}

static int take_probe(struct probe **spare, struct tracee *t)
{
	t->probe = TAKE_PTR(*spare);
	t->mechanism = probe_mechanism(t->probe);
	t->period_ns = probe_period(t->probe);
	return set_target(t, t->probe, t->python);
}

static int begin_fork(const struct tracee *from, const struct tracee_news *news,
		      struct tracee **ret, struct diag *diag)
{
	_cleanup_(tracee_freep) struct tracee *t = calloc(1, sizeof(*t));
	struct inspect_opts io = {.like = from->python, .like_exec_id = from->exec_id};
	int r;

	if (!t)
		return diag_errno(diag, ENOMEM, "cannot follow %d", news->pid);
	r = target_open(news->pid, &t->target, diag);
	if (r < 0)
		return r;
	take_over(from, t);
	t->known_ns = news->ts ? news->ts : target_started_ns(t->target);
	io.target = t->target;
	r = inspect_start(&io, &t->inspect, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(t);
	return 0;
}

/*
 * Returns 0, -EINPROGRESS if the inspection is still running, -EAGAIN if the child has executed the
 * same program again and not all of it is mapped, or another error.
 */
static int await_found(const struct tracee *from, struct tracee *t)
{
	int r = inspect_wait(t->inspect, FORKED_MS, &t->found, NULL);

	if (r == -EINPROGRESS || r == 0)
		return r;
	r = compare_program(from, t->target->tid);
	return r == 0 ? -EAGAIN : r;
}

int tracee_fork(const struct tracee *from, const struct tracee_news *news, struct tracee **half,
		struct probe **spare, struct tracee **ret, struct diag *diag)
{
	_cleanup_(tracee_freep) struct tracee *t = TAKE_PTR(*half);
	int r = t ? 0 : begin_fork(from, news, &t, diag);

	if (r < 0)
		return r;
	r = *spare ? await_found(from, t) : -EINPROGRESS;
	if (r == -EINPROGRESS) {
		*half = TAKE_PTR(t);
		return -EAGAIN;
	}
	if (r == 0)
		r = take_python(from, t);
	if (r < 0)
		return r;
	r = take_probe(spare, t);
	if (r == 0)
		r = tracee_make_profile(t, diag);
	if (r < 0)
		return diag_errno(diag, -r, "cannot follow %d", news->pid);
	t->parent = news->parent ? news->parent : t->target->parent;
	t->forked_ns = t->known_ns;
	t->first_ns = tracee_now();
	t->first_unix_ns = tracee_unix_now();
	*ret = TAKE_PTR(t);
	return 0;
}
