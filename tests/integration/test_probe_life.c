// SPDX-License-Identifier: BSD-2-Clause
/*
 * The life cycle of a probe: attach, detach, attach again, failed attach, full ring, fork, context
 * switches, exec. Afterwards no breakpoint is left in the target.
 */
#include "probe/probe.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "harness/caps.h"
#include "harness/patience.h"
#include "harness/probe_rig.h"
#include "harness/test.h"
#include "target/target.h"

#define SMALL_RING 65536
#define BREAKPOINT 0xcc

static struct probe_rig rig;

static void setup(void)
{
	caps_require_bpf();
	probe_rig_start(&rig, 0);
}

static void setup_small(void)
{
	caps_require_bpf();
	probe_rig_start(&rig, SMALL_RING);
}

static void teardown(void)
{
	probe_rig_stop(&rig);
}

TestSuite(probe_life, .init = setup, .fini = teardown);
TestSuite(probe_small_ring, .init = setup_small, .fini = teardown);

static struct fake_target *target(void)
{
	return &rig.target;
}

static uint64_t plain_frame(uint64_t previous)
{
	return fake_frame(target(), fake_code(target(), "/srv/app.py", "f", 3, 1), previous, 0);
}

static void check_site_bytes(pid_t pid, bool probed)
{
	for (unsigned int i = 0; i < rig.plan.nsites; i++)
		cr_assert_eq(fake_site_byte(pid, &rig.plan.sites[i]) == BREAKPOINT, probed,
			     "site %u", i);
}

Test(probe_life, detach_leaves_the_code_as_it_was)
{
	uint64_t frame = plain_frame(0);

	check_site_bytes(target()->pid, true);
	fake_target_pairs(target(), frame, 1);
	probe_detach(rig.probe);
	cr_assert(!probe_attached(rig.probe));
	check_site_bytes(target()->pid, false);
	cr_assert_eq(probe_rig_drain(&rig), 7, "what was in the ring stays there");
	fake_target_pairs(target(), frame, 1);
	cr_assert_eq(probe_rig_drain(&rig), 7, "and nothing is added");
	probe_detach(rig.probe);
}

/*
 * The target changed while the probe was detached: code objects and the stack are announced again.
 */
Test(probe_life, attach_again)
{
	uint64_t frame = plain_frame(0), before;

	for (int i = 0; i < 3; i++) {
		fake_target_pairs(target(), frame, 1);
		cr_assert_eq(probe_rig_drain(&rig), 7);
		cr_assert_eq(probe_rig_event(&rig, 4)->type, PYP_REC_CHAIN);
		cr_assert_eq(probe_rig_event(&rig, 4)->arg, PYP_CHAIN_LAST);
		cr_assert(probe_rig_event(&rig, 0)->ts >= rig.attached_at);
		probe_rig_clear(&rig);
		probe_detach(rig.probe);
		fake_target_pairs(target(), frame, 5);
		before = rig.attached_at;
		probe_rig_attach(&rig);
		cr_assert(rig.attached_at > before);
		check_site_bytes(target()->pid, true);
	}
	probe_rig_check_no_loss(&rig);
}

Test(probe_life, freeing_detaches)
{
	probe_free(rig.probe);
	rig.probe = NULL;
	check_site_bytes(target()->pid, false);
	fake_target_pairs(target(), plain_frame(0), 1);
}

Test(probe_life, attach_twice_is_refused)
{
	struct diag diag = {0};
	uint64_t ts;

	assert_err(probe_attach(rig.probe, &ts, &diag), -EALREADY);
	cr_assert_eq(diag.exit, PYP_EXIT_BUSY);
	check_site_bytes(target()->pid, true);
}

Test(probe_life, a_process_that_is_gone)
{
	struct diag diag = {0};
	uint64_t ts;
	int r;

	probe_detach(rig.probe);
	kill(target()->pid, SIGKILL);
	waitpid(target()->pid, NULL, 0);
	r = probe_attach(rig.probe, &ts, &diag);
	cr_assert(r < 0 && diag.exit == PYP_EXIT_NO_PROCESS, "%d: %s", r, diag.msg);
	cr_assert(!probe_attached(rig.probe));
}

/* The link is created for all sites or not at all. */
Test(probe_life, one_bad_instruction_and_none_is_probed)
{
	struct diag diag = {0};
	uint64_t ts;

	probe_detach(rig.probe);
	rig.plan.sites[FAKE_LEAVE].offset = (uint64_t)1 << 40;
	cr_assert(probe_attach(rig.probe, &ts, &diag) < 0);
	cr_assert(diag.msg[0]);
	fake_target_plan(&rig.plan);
	check_site_bytes(target()->pid, false);
	probe_rig_attach(&rig);
}

Test(probe_life, every_register)
{
	uint64_t frame = plain_frame(0);

	probe_free(rig.probe);
	fake_target_reg_plan(&rig.plan);
	probe_rig_open(&rig, 0);
	probe_rig_attach(&rig);
	fake_target_leave_regs(target(), frame);
	probe_rig_drain(&rig);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_LEAVE), FAKE_REGS);
	for (unsigned int i = 0; i < FAKE_REGS; i++) {
		const struct event *ev = probe_rig_find(&rig, PYP_REC_LEAVE, i);

		cr_assert_eq(ev->site, i);
		cr_assert_eq(ev->u.call.frame, frame, "register %u", i);
	}
	probe_rig_check_no_loss(&rig);
}

static void count_one(void *ctx, const void *data, size_t size)
{
	(void)data;
	(void)size;
	++*(size_t *)ctx;
}

Test(probe_life, drain_keeps_to_its_budget)
{
	size_t seen = 0, rounds = 0;
	int n;

	fake_target_pairs(target(), plain_frame(0), 100);
	probe_detach(rig.probe);
	while ((n = probe_drain(rig.probe, 10, count_one, &seen)) == 10)
		rounds++;
	cr_assert(n >= 0 && n < 10);
	cr_assert(seen >= 205 && rounds == seen / 10, "%zu in %zu", seen, rounds);
}

/*
 * Overflow the ring: received events are complete, lost ones are counted, and the thread's stack is
 * announced again, once, when there is room.
 */
Test(probe_small_ring, losses_are_counted_and_mended)
{
	const uint64_t pairs = SMALL_RING / 64;
	uint64_t outer = plain_frame(0), frame = plain_frame(outer), losses[PYP_LOSS_MAX];
	const struct event *ev;
	size_t got;

	fake_target_pairs(target(), frame, 1);
	probe_rig_drain(&rig);
	probe_rig_clear(&rig);
	fake_target_pairs(target(), frame, pairs);
	probe_rig_drain(&rig);
	got = probe_rig_count(&rig, PYP_REC_ENTER) + probe_rig_count(&rig, PYP_REC_LEAVE);
	probe_losses(rig.probe, losses);
	cr_assert(losses[PYP_LOSS_lost_events] > 0);
	cr_assert_eq(got + losses[PYP_LOSS_lost_events], 2 * pairs);

	probe_rig_clear(&rig);
	fake_target_pairs(target(), frame, 2);
	cr_assert_eq(probe_rig_drain(&rig), 5);
	ev = probe_rig_event(&rig, 0);
	cr_assert(ev->type == PYP_REC_CHAIN && ev->arg == (PYP_CHAIN_LAST | PYP_CHAIN_RESYNC));
	cr_assert(ev->u.chain.count == 1 && ev->u.chain.frames[0].frame == outer);
	probe_losses(rig.probe, losses);
	cr_assert_eq(got + losses[PYP_LOSS_lost_events], 2 * pairs, "no more was lost");
}

/* If a stack does not fit into the ring, its chain has no last record, so it is not used. */
Test(probe_small_ring, a_stack_too_large_for_the_ring)
{
	uint64_t code = fake_code(target(), "f.py", "f", 3, 1), frame = 0, losses[PYP_LOSS_MAX];

	for (int i = 0; i < 8000; i++)
		frame = fake_frame(target(), code, frame, 0);
	fake_target_leave(target(), frame);
	probe_rig_drain(&rig);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_LEAVE), 0);
	cr_assert(probe_rig_count(&rig, PYP_REC_CHAIN) > 0);
	for (size_t i = 0; i < rig.n; i++)
		cr_assert(rig.events[i].type != PYP_REC_CHAIN ||
			  !(rig.events[i].arg & PYP_CHAIN_LAST));
	probe_losses(rig.probe, losses);
	cr_assert_eq(losses[PYP_LOSS_lost_chains], 1);
	cr_assert_eq(losses[PYP_LOSS_lost_events], 1);
}

Test(probe_small_ring, wakes_once_when_half_full)
{
	_cleanup_close_ int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	uint64_t frame = plain_frame(0);

	assert_ok(epoll_ctl(ep, EPOLL_CTL_ADD, probe_ring_fd(rig.probe), &ev));
	for (int i = 0; i < 3; i++) {
		probe_rig_drain(&rig);
		cr_assert_eq(epoll_wait(ep, &ev, 1, 0), 0);
		fake_target_pairs(target(), frame, 50);
		cr_assert_eq(epoll_wait(ep, &ev, 1, 0), 0, "nearly empty");
		/*
		 * Between half full and full, one event in 64 checks the fill level; 2000 pairs
		 * suffice.
		 */
		fake_target_pairs(target(), frame, 2000);
		cr_assert_eq(epoll_wait(ep, &ev, 1, patience_left_ms()), 1);
		cr_assert_eq(epoll_wait(ep, &ev, 1, 0), 0);
	}
}

/* The child's part of the arena */
struct child {
	volatile uint64_t pid; /* set by its parent */
	volatile uint64_t go, done;
	uint64_t frame, tstate;
};

/* When `go` is set, the child executes every site once. */
static void child_main(struct child *c)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!c->go)
		patience_step();
	fake_enter(c->frame, 1);
	fake_throw(c->frame);
	fake_leave(c->frame);
	fake_yield(c->tstate);
	fake_code_free(c->frame);
	c->done = 1;
	for (;;)
		pause();
}

static void fork_child(struct fake_target *t, uint64_t where, uint64_t b)
{
	struct child *c = (struct child *)(uintptr_t)where;
	pid_t pid = fork();

	(void)t;
	(void)b;
	if (pid == 0)
		child_main(c);
	c->pid = (uint64_t)pid;
}

/*
 * Make the child execute every site. Without a sweep, the kernel removes a breakpoint from a
 * process when that process hits it and the probe's filter does not accept it.
 */
static bool is_done(void *ctx)
{
	return ((const struct child *)ctx)->done;
}

static void hit_everything(struct child *c)
{
	c->go = 1;
	patience_until(is_done, c, "the child's hits");
}

Test(probe_life, a_forked_child_is_swept)
{
	uint64_t where = fake_alloc(target(), sizeof(struct child), 8);
	struct child *c = (struct child *)(uintptr_t)where;
	struct diag diag = {0};
	pid_t child;

	*c = (struct child){.frame = plain_frame(0), .tstate = fake_alloc(target(), 128, 16)};
	fake_target_run(target(), fork_child, where, 0);
	child = (pid_t)c->pid;
	probe_rig_drain(&rig);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_FORK), 1);
	cr_assert_eq(probe_rig_find(&rig, PYP_REC_FORK, 0)->u.process.child, (uint32_t)child);
	check_site_bytes(child, true);
	assert_diag_ok(probe_sweep_child(rig.probe, child, &diag), &diag);
	if (probe_mechanism(rig.probe) == PROBE_TRACEFS)
		hit_everything(c);
	check_site_bytes(child, false);
	check_site_bytes(target()->pid, true);
	kill(child, SIGKILL);
	cr_assert_eq(probe_rig_drain(&rig), 1, "the child's calls are not the target's");
	/* Sweeping a child that has ended succeeds. */
	assert_ok(probe_sweep_child(rig.probe, INT32_MAX - 1, &diag));
}

static bool has_event(void *ctx)
{
	probe_rig_drain(&rig);
	return probe_rig_count(&rig, *(const enum pyp_rec_type *)ctx);
}

/* Wait until the ring has an event of this type, without sending anything to the target. */
static void wait_for(enum pyp_rec_type type)
{
	patience_until(has_event, &type, "an event");
	cr_assert_eq(probe_rig_count(&rig, type), 1);
}

/* The child shares the target's memory, breakpoints included, but is another process. */
static void vfork_child(struct fake_target *t, uint64_t frame, uint64_t b)
{
	pid_t pid = vfork();

	(void)t;
	(void)b;
	if (pid == 0) {
		fake_enter(frame, 1);
		fake_leave(frame);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

Test(probe_life, a_vforked_child_is_not_the_target)
{
	uint64_t frame = plain_frame(0);

	fake_target_pairs(target(), frame, 1);
	probe_rig_drain(&rig);
	probe_rig_clear(&rig);
	for (int i = 0; i < 3; i++)
		fake_target_run(target(), vfork_child, frame, 0);
	probe_rig_drain(&rig);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_ENTER), 0);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_LEAVE), 0);
	check_site_bytes(target()->pid, true);
	fake_target_pairs(target(), frame, 1);
	probe_rig_drain(&rig);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_ENTER), 1);
	probe_rig_check_no_loss(&rig);
}

static void *thread_main(void *arg)
{
	uint64_t frame = (uintptr_t)arg;

	prctl(PR_SET_NAME, "worker");
	fake_enter(frame, 1);
	fake_leave(frame);
	return NULL;
}

static void run_thread(struct fake_target *t, uint64_t frame, uint64_t b)
{
	pthread_t thread;

	(void)t;
	(void)b;
	if (!pthread_create(&thread, NULL, thread_main, (void *)(uintptr_t)frame))
		pthread_join(thread, NULL);
}

Test(probe_life, threads_come_and_go)
{
	uint64_t frame = plain_frame(0);
	const struct event *enter, *end;

	fake_target_pairs(target(), frame, 1);
	for (int i = 0; i < 20; i++) {
		probe_rig_clear(&rig);
		fake_target_run(target(), run_thread, frame, 0);
		/*
		 * The thread can be joined before its exit event; wait for the event before
		 * starting the next thread.
		 */
		wait_for(PYP_REC_THREAD_EXIT);
		enter = probe_rig_find(&rig, PYP_REC_ENTER, i ? 0 : 1);
		end = probe_rig_find(&rig, PYP_REC_THREAD_EXIT, 0);
		cr_assert_neq(enter->tid, (uint32_t)target()->pid);
		cr_assert_eq(enter->tid, end->tid);
		cr_assert_str_eq(end->u.thread.comm, "worker");
		cr_assert_eq(end->arg, 0, "not the last");
		cr_assert_eq(probe_rig_count(&rig, PYP_REC_FORK), 0, "a thread is no process");
	}
}

/* It waits for the next command, off its CPU. */
static bool waits(void *ctx)
{
	struct target_thread thread;

	(void)ctx;
	return target_thread_read(target()->pid, target()->pid, &thread) == 0 &&
	       thread.state == 'S';
}

/*
 * The target waits for its next command: it leaves the CPU and gets it again, with a run time that
 * only grows. Every switch out is reported. Not every switch in is: when a thread of the kernel's
 * init process leaves a CPU, the kernel may not report it at any tracepoint, nor the next thread
 * there; the accounting handles that (timing_event).
 */
Test(probe_life, switches_of_a_known_thread)
{
	uint64_t frame = plain_frame(0), runtime = 0;
	bool on = true;
	size_t outs;

	rig.with_switches = true;
	fake_target_run(target(), NULL, 0, 0);
	fake_target_run(target(), NULL, 0, 0);
	cr_assert_eq(probe_rig_drain(&rig), 0, "not a thread we know");
	for (int i = 0; i < 10; i++) {
		fake_target_pairs(target(), frame, 1000);
		patience_until(waits, NULL, "the target to wait");
	}
	probe_rig_drain(&rig);
	for (size_t i = 0; i < rig.n; i++) {
		const struct event *ev = probe_rig_event(&rig, i);
		bool in = ev->type == PYP_REC_SWITCH_IN;

		if (ev->type != PYP_REC_SWITCH_OUT && !in)
			continue;
		cr_assert_eq(ev->tid, (uint32_t)target()->pid);
		cr_assert(!in || !on, "it has left a CPU, which was not reported");
		cr_assert(ev->u.sw.runtime >= runtime);
		runtime = ev->u.sw.runtime;
		on = in;
	}
	outs = probe_rig_count(&rig, PYP_REC_SWITCH_OUT);
	cr_assert(outs >= 9);
	cr_assert(probe_rig_count(&rig, PYP_REC_SWITCH_IN) >= outs / 2);
	probe_rig_check_no_loss(&rig);
}

static void exec_other(struct fake_target *t, uint64_t a, uint64_t b)
{
	(void)t;
	(void)a;
	(void)b;
	execl("/bin/sh", "sh", "-c", "echo; exec sleep 60", NULL);
}

Test(probe_life, exec_ends_it)
{
	fake_target_pairs(target(), plain_frame(0), 1);
	fake_target_send(target(), exec_other, 0, 0);
	wait_for(PYP_REC_EXEC);
	cr_assert_eq(probe_rig_event(&rig, rig.n - 1)->type, PYP_REC_EXEC);
	probe_detach(rig.probe);
}

static void die(struct fake_target *t, uint64_t a, uint64_t b)
{
	(void)t;
	(void)a;
	(void)b;
	_exit(0);
}

Test(probe_life, the_end_of_the_process)
{
	fake_target_pairs(target(), plain_frame(0), 1);
	fake_target_send(target(), die, 0, 0);
	wait_for(PYP_REC_THREAD_EXIT);
	cr_assert_eq(probe_rig_find(&rig, PYP_REC_THREAD_EXIT, 0)->arg, 1, "the last thread");
}

static void hit_for_ever(struct fake_target *t, uint64_t frame, uint64_t b)
{
	(void)t;
	(void)b;
	for (;;) {
		fake_enter(frame, 1);
		fake_leave(frame);
	}
}

static bool calls_and_returns(void *ctx)
{
	(void)ctx;
	probe_rig_drain(&rig);
	return probe_rig_count(&rig, PYP_REC_ENTER) && probe_rig_count(&rig, PYP_REC_LEAVE);
}

/*
 * So many windows that hits are in progress when some of them are closed: the thread does nothing
 * but hit sites.
 */
#define WINDOWS 100

static bool is_ready(void *ctx)
{
	(void)ctx;
	return probe_window_ready(rig.probe);
}

static void one_window(void)
{
	const struct event *chain;
	struct diag diag = {0};
	uint64_t ts;

	patience_until(is_ready, NULL, "the end of the last window");
	probe_rig_drain(&rig);
	probe_rig_clear(&rig);
	assert_diag_ok(probe_window_open(rig.probe, &ts, &diag), &diag);
	patience_until(calls_and_returns, NULL, "calls and returns");
	probe_window_silence(rig.probe, &ts);
	probe_window_close(rig.probe);
	chain = probe_rig_find(&rig, PYP_REC_CHAIN, 0);
	cr_assert(chain < probe_rig_find(&rig, PYP_REC_ENTER, 0));
	cr_assert(chain < probe_rig_find(&rig, PYP_REC_LEAVE, 0));
}

/* Each window begins with the thread's stack, regardless of leftovers of the previous window. */
Test(probe_life, every_window_begins_with_the_stack)
{
	struct diag diag = {0};

	probe_detach(rig.probe);
	if (probe_mechanism(rig.probe) == PROBE_TRACEFS) {
		assert_err(probe_attach_windows(rig.probe, &diag), -ENOTSUP);
		return;
	}
	assert_diag_ok(probe_attach_windows(rig.probe, &diag), &diag);
	fake_target_send(target(), hit_for_ever, plain_frame(0), 0);
	for (int i = 0; i < WINDOWS; i++)
		one_window();
	probe_detach(rig.probe);
}
