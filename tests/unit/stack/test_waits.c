// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waiting by reason: the functions that it is charged to; and reasons add up to wall time minus CPU
 * time in every context, whatever is taken back, lost, unknown or in flight.
 */
#include "stack/waits.h"

#include <sys/syscall.h>

#include "harness/event_script.h"
#include "harness/test.h"
#include "accuracy/finish.h"
#include "snapshot/waits.h"

static struct event_script *script_new(void)
{
	struct event_script *es = event_script_new(NULL);

	assert_ok(profile_keep_waits(event_script_profile(es)));
	return es;
}

static uint64_t waits_at(const struct snapshot *s, uint32_t node)
{
	uint64_t sum = 0, kinds = 0;

	for (int c = COLUMN_WAITS_FIRST; c < COLUMN_WAITS_END; c++)
		sum += snapshot_figure(s, c, node);
	for (int c = COLUMN_io_disk; c <= COLUMN_io_device; c++)
		kinds += snapshot_figure(s, c, node);
	cr_assert_eq(kinds, snapshot_figure(s, COLUMN_io, node), "kinds of I/O add up");
	return sum;
}

/* In every context. */
static void assert_adds_up(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const uint64_t *self = s->nodes[i].self;
		uint64_t wait = self[SNAPSHOT_WALL] > self[SNAPSHOT_CPU]
					? self[SNAPSHOT_WALL] - self[SNAPSHOT_CPU]
					: 0;

		cr_assert_eq(waits_at(s, i), wait, "node %u: %lu, not %lu", i, waits_at(s, i),
			     wait);
	}
}

/* Expected text: "f gil 10 lock 5" for each function with waits */
static void assert_waits(const struct snapshot *s, const char *expected)
{
	char text[1024] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		const char *name = s->nodes[i].func == SNAPSHOT_NONE
					   ? "outside"
					   : s->funcs[s->nodes[i].func].name;

		if (!waits_at(s, i))
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s", name);
		for (int c = COLUMN_WAITS_FIRST; c < COLUMN_WAITS_END; c++)
			if (snapshot_figure(s, c, i))
				at += (size_t)snprintf(text + at, sizeof(text) - at, " %s %lu",
						       column_table[c].name,
						       snapshot_figure(s, c, i));
		at += (size_t)snprintf(text + at, sizeof(text) - at, "\n");
	}
	cr_assert_str_eq(text, expected, "%s", text);
	assert_adds_up(s);
}

static void check(const char *script, const char *expected)
{
	struct event_script *es = script_new();
	struct snapshot *s;

	event_script_run(es, script);
	s = event_script_snapshot(es);
	assert_waits(s, expected);
	cr_assert_eq(s->targets[0].unsplit_waits, strstr(script, "delay-wrong") ? 1 : 0);
	snapshot_free(s);
	event_script_free(es);
}

Test(waits, go_to_the_function_that_waits)
{
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out lock\n"
	      "T1 +100 in\n"
	      "T1 +1 enter 0x20 g 0x10\n"
	      "T1 +10 out gil\n"
	      "T1 +200 in\n"
	      "T1 +10 out socket\n"
	      "T1 +300 in\n"
	      "T1 +10 out sync\n"
	      "T1 +30 in\n"
	      "T1 +10 leave 0x20\n"
	      "T1 +10 out sleep\n"
	      "T1 +400 in\n"
	      "T1 +10 out child\n"
	      "T1 +500 in\n"
	      "T1 +10 out fault\n"
	      "T1 +60 in\n"
	      "T1 +10 out cpu\n"
	      "T1 +70 in\n"
	      "T1 +10 leave 0x10\n",
	      "f lock 100 runnable 70 sleep 400 fault 60 process 500\n"
	      "g gil 200 io 330\n");
}

Test(waits, in_flight)
{
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out socket\n"
	      "+70 wait\n",
	      "f io 70\n");
	check("T1 +1 enter 0x10 f\n"
	      "+70 wait\n",
	      "");
}

/* The next switch has the time in a run queue during the previous wait. */
Test(waits, woken_and_no_cpu)
{
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out lock delay 1000\n"
	      "T1 +100 in\n"
	      "T1 +1 enter 0x20 g 0x10\n"
	      "T1 +10 out sleep delay 1030\n"
	      "T1 +50 in\n",
	      "f lock 70 runnable 30\ng sleep 50\n");
	/* What it was before the wait is not known. */
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out lock\n"
	      "T1 +100 in\n"
	      "T1 +10 out sleep delay 30\n",
	      "f lock 100\n");
	/* It is limited to the wait. */
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out lock delay 1000\n"
	      "T1 +100 in\n"
	      "T1 +10 out sleep delay 5000\n",
	      "f runnable 100\n");
	/* A clear between the two switches discards the first one. */
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out lock delay 1000\n"
	      "T1 +100 in\n"
	      "clear\n"
	      "T1 +10 out sleep delay 1030\n"
	      "T1 +50 in\n",
	      "f sleep 50\n");
}

/* The kernel has moved a thread that waits to another run queue, and measures its wait there. */
Test(waits, wait_measured_as_time_in_a_run_queue)
{
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out lock delay 1000\n"
	      "T1 +5 delay-wrong\n"
	      "T1 +95 in\n"
	      "T1 +1 enter 0x20 g 0x10\n"
	      "T1 +10 out sleep delay 1095\n"
	      "T1 +50 in\n"
	      "T1 +10 out sleep delay 1105\n",
	      "f lock 100\ng runnable 10 sleep 40\n");
}

/* A hypervisor had the CPU: the scheduler's run time shows that at the next switch. */
Test(waits, stolen_time_is_runnable)
{
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out lock 1000\n"
	      "T1 +100 in 1000\n"
	      "T1 +1000000 enter 0x20 g 0x10\n"
	      "T1 +10 out lock 501000\n",
	      "f lock 100 runnable 500000\ng runnable 10\n");
}

/* The switch in was not reported: that part is CPU time. */
Test(waits, missed_switches)
{
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out gil 1000\n"
	      "T1 +100 enter 0x20 g 0x10\n"
	      "T1 +10 out lock 1050\n"
	      "T1 +5 in 1050\n",
	      "f gil 60\ng lock 5\n");
	/* The switch out was not reported, nor its reason. */
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out lock 1000\n"
	      "T1 +100 in 1000\n"
	      "T1 +100 in 1040\n",
	      "f lock 100 other 60\n");
}

Test(waits, gaps_and_initial_stacks)
{
	check("begin\n"
	      "T1 +0 initial blocked 500 0x10=f\n"
	      "T1 +100 enter 0x20 g 0x10\n"
	      "T1 +10 out gil 540\n"
	      "T1 +5 in\n",
	      "f other 70\ng gil 5\n");
	check("T1 +1 enter 0x10 f\n"
	      "T1 +10 out lock\n"
	      "T1 +100 in\n"
	      "T1 +10 out lost sleep\n"
	      "T1 +40 in lost\n"
	      "T1 +10 chain resync 0x10=f\n"
	      "T1 +10 out lock\n",
	      "(lost) sleep 40\nf lock 100\n");
}

/* Random events of three threads, also with inconsistent run times: the reasons always add up. */
Test(waits, always_add_up)
{
	static const char *const reasons[] = {"gil", "lock", "socket", "cpu", "sleep", "quota"};
	struct event_script *es = script_new();
	char line[128];
	uint32_t rnd = 12345;

	for (int i = 0; i < 20000; i++) {
		uint32_t r = (rnd = rnd * 1103515245u + 12345u) >> 8;
		int tid = 1 + (int)(r % 3), frame = 0x10 * (1 + (int)(r / 3 % 4));

		switch (r / 16 % 8) {
		case 0:
		case 1:
			snprintf(line, sizeof(line), "T%d +%u enter 0x%x f%d", tid, r / 512 % 90,
				 frame, frame);
			break;
		case 2:
			snprintf(line, sizeof(line), "T%d +%u leave 0x%x", tid, r / 512 % 90,
				 frame);
			break;
		case 3:
		case 4:
			snprintf(line, sizeof(line), "T%d +%u out %s delay %d", tid, r / 512 % 90,
				 reasons[r / 1024 % 6], i * 7);
			break;
		case 5:
			snprintf(line, sizeof(line), "T%d +%u in", tid, r / 512 % 9000);
			break;
		case 6:
			snprintf(line, sizeof(line), "T%d +%u out lost gil %u", tid,
				 r / 512 % 3000000, i * 40);
			break;
		default:
			snprintf(line, sizeof(line), "T%d +%u in %u", tid, r / 512 % 90, i * 50);
			break;
		}
		event_script_run(es, line);
		if (i % 500 == 0) {
			struct snapshot *s = event_script_snapshot(es);

			assert_adds_up(s);
			snapshot_free(s);
		}
	}
	event_script_free(es);
	check_no_leaks();
}

/* If times are corrected, reasons are scaled in proportion. */
Test(waits, fit_what_is_left)
{
	struct event_script *es = script_new();
	struct snapshot *s;

	event_script_run(es, "T1 +1 enter 0x10 f\n"
			     "T1 +10 out socket\n"
			     "T1 +300 in\n"
			     "T1 +10 out sync\n"
			     "T1 +100 in\n"
			     "T1 +10 out gil\n"
			     "T1 +200 in\n");
	s = event_script_snapshot(es);
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].func != SNAPSHOT_NONE)
			s->nodes[i].self[SNAPSHOT_WALL] -= 301;
	snapshot_fit_waits(s);
	assert_waits(s, "f gil 99 io 200\n");
	snapshot_free(s);
	event_script_free(es);
}

/*
 * The system calls in "other" are listed separately; values that are not a system call have no
 * name.
 */
Test(waits, other_by_name)
{
	struct event_script *es = script_new();
	struct snapshot *s;

	event_script_run(es, "T1 +1 enter 0x10 f\n"
			     "T1 +10 out quota\n"
			     "T1 +300 in\n"
			     "T1 +10 out stop\n"
			     "T1 +100 in\n"
			     "T1 +10 out lock\n"
			     "T1 +200 in\n"
			     "T1 +10 out quota\n"
			     "T1 +5 in\n");
	s = event_script_snapshot(es);
	assert_waits(s, "f lock 200 other 405\n");
	cr_assert(s->targets[0].waits.measured);
	cr_assert_eq(s->targets[0].waits.nother, 2);
	cr_assert_str_eq(s->targets[0].waits.other[0].name, "quotactl");
	cr_assert(s->targets[0].waits.other[0].ns == 305 && s->targets[0].waits.other[0].n == 2);
	cr_assert_str_eq(s->targets[0].waits.other[1].name, "unknown");
	snapshot_free(s);
	event_script_free(es);
}

Test(waits, reasons_of_calls)
{
	static const struct {
		long nr;
		uint64_t arg0, arg1;
		uint8_t fd;
		enum wait_reason want;
	} v[] = {
		{SYS_read, 3, 0, PYP_FD_FILE, WAIT_disk},
		{SYS_read, 3, 0, PYP_FD_SOCKET, WAIT_socket},
		{SYS_write, 3, 0, PYP_FD_PIPE, WAIT_pipe},
		{SYS_read, 0, 0, PYP_FD_OTHER, WAIT_device},
		{SYS_recvfrom, 3, 0, 0, WAIT_socket},
		{SYS_ppoll, 0x1000, 1, 0, WAIT_poll},
		{SYS_ppoll, 0, 0, 0, WAIT_sleep},
		{SYS_pselect6, 4, 0x1000, 0, WAIT_poll},
		{SYS_pselect6, 0, 0, 0, WAIT_sleep},
		{SYS_epoll_pwait, 4, 0x1000, 0, WAIT_poll},
		{SYS_futex, 0x1000, 0, 0, WAIT_lock},
		{SYS_waitid, 0, 0, 0, WAIT_process},
		{SYS_fsync, 3, 0, 0, WAIT_disk},
		{SYS_quotactl, 3, 0, 0, WAIT_other},
		{-1, 0, 0, 0, WAIT_other},
		{WAIT_SYSCALLS + 5, 0, 0, 0, WAIT_other},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		cr_expect_eq(wait_of_syscall(v[i].nr, v[i].arg0, v[i].arg1, v[i].fd), v[i].want,
			     "system call %ld", v[i].nr);
	cr_assert(wait_by_fd(SYS_read) && !wait_by_fd(SYS_recvfrom) && !wait_by_fd(-1));
}
