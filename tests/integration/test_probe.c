// SPDX-License-Identifier: BSD-2-Clause
/*
 * probe/ and the BPF programs on a target whose instructions and memory are all known: the exact
 * records of each event. test_probe_life.c has the life cycle of a probe.
 */
#include "probe/probe.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/patience.h"
#include "harness/probe_rig.h"
#include "harness/test.h"

static struct probe_rig rig;

static void setup(void)
{
	caps_require_bpf();
	probe_rig_start(&rig, 0);
}

static void teardown(void)
{
	probe_rig_stop(&rig);
}

TestSuite(probe, .init = setup, .fini = teardown);

static struct fake_target *target(void)
{
	return &rig.target;
}

static uint64_t plain_code(const char *name)
{
	return fake_code(target(), "/srv/app.py", name, 3, 42);
}

static void check_string(const struct event *ev, uint64_t code, enum pyp_string_which which,
			 const char *text)
{
	cr_assert_eq(ev->type, PYP_REC_STRING);
	cr_assert_eq(ev->u.string.code, code);
	cr_assert_eq(ev->u.string.which, which);
	cr_assert(ev->u.string.kind == 1 && ev->u.string.flags == 0);
	cr_assert_eq(ev->u.string.bytes, strlen(text));
	cr_assert_eq(ev->u.string.units, strlen(text));
	assert_bytes_eq(ev->u.string.data, text, strlen(text));
}

/* Checks the four records that announce plain_code(name); the qualname is the fake target's. */
static size_t check_code(size_t i, uint64_t code, const char *name, const char *qualname)
{
	check_string(probe_rig_event(&rig, i), code, PYP_STR_FILENAME, "/srv/app.py");
	check_string(probe_rig_event(&rig, i + 1), code, PYP_STR_NAME, name);
	check_string(probe_rig_event(&rig, i + 2), code, PYP_STR_QUALNAME, qualname);
	const struct event *ev = probe_rig_event(&rig, i + 3);

	cr_assert_eq(ev->type, PYP_REC_CODE);
	cr_assert(ev->u.code.code == code && ev->u.code.flags == 3);
	cr_assert(ev->u.code.firstlineno == 42 && ev->arg == 0);
	return i + 4;
}

static void check_call(const struct event *ev, enum pyp_rec_type type, unsigned int site,
		       uint64_t frame, uint64_t code, uint64_t caller)
{
	cr_assert_eq(ev->type, type, "type %u, not %u", ev->type, type);
	cr_assert_eq(ev->tid, (uint32_t)target()->pid);
	cr_assert_eq(ev->site, site);
	cr_assert_eq(ev->arg, 0);
	cr_assert_eq(ev->u.call.frame, frame);
	cr_assert_eq(ev->u.call.code, code);
	cr_assert_eq(ev->u.call.caller, caller);
	cr_assert(ev->ts >= rig.attached_at);
}

static void check_empty_chain(const struct event *ev)
{
	cr_assert_eq(ev->type, PYP_REC_CHAIN);
	cr_assert(ev->arg == PYP_CHAIN_LAST && !ev->u.chain.first && !ev->u.chain.count);
}

/* Let the thread be announced first, so that the ring then contains only the test's events. */
static void acquaint(void)
{
	uint64_t frame = fake_frame(target(), plain_code("known"), 0, FAKE_OWNER_THREAD);

	fake_target_pairs(target(), frame, 1);
	probe_rig_drain(&rig);
	probe_rig_clear(&rig);
}

Test(probe, one_call_exactly)
{
	uint64_t code = plain_code("f");
	uint64_t frame = fake_frame(target(), code, 0, FAKE_OWNER_THREAD);
	size_t i;

	fake_target_enter(target(), frame);
	fake_target_leave(target(), frame);
	cr_assert_eq(probe_rig_drain(&rig), 7);
	i = check_code(0, code, "f", "Class.f");
	check_empty_chain(probe_rig_event(&rig, i++));
	check_call(probe_rig_event(&rig, i++), PYP_REC_ENTER, FAKE_ENTER, frame, code, 0);
	check_call(probe_rig_event(&rig, i++), PYP_REC_LEAVE, FAKE_LEAVE, frame, 0, 0);
	for (size_t k = 1; k < i; k++)
		cr_assert(probe_rig_event(&rig, k)->ts >= probe_rig_event(&rig, k - 1)->ts);
	probe_rig_check_no_loss(&rig);
}

static void branch_away(struct fake_target *t, uint64_t frame, uint64_t b)
{
	(void)t;
	(void)b;
	fake_enter(frame, 0);
}

Test(probe, the_other_branch_does_not_count)
{
	uint64_t frame = fake_frame(target(), plain_code("f"), 0, FAKE_OWNER_THREAD);

	fake_target_run(target(), branch_away, frame, 0);
	cr_assert_eq(probe_rig_drain(&rig), 0);
}

static void throw_and_yield(struct fake_target *t, uint64_t frame, uint64_t tstate)
{
	(void)t;
	fake_throw(frame);
	fake_yield(tstate);
}

Test(probe, throw_and_yield)
{
	uint64_t code = plain_code("gen"), outer = fake_frame(target(), code, 0, 0);
	uint64_t frame = fake_frame(target(), code, outer, FAKE_OWNER_GENERATOR);
	uint64_t tstate = fake_alloc(target(), 128, 16);

	fake_put64(tstate + FAKE_TS_FRAME, frame);
	acquaint();
	fake_target_run(target(), throw_and_yield, frame, tstate);
	cr_assert_eq(probe_rig_drain(&rig), 6);
	check_code(0, code, "gen", "Class.gen");
	check_call(probe_rig_event(&rig, 4), PYP_REC_THROW, FAKE_THROW, frame, code, outer);
	check_call(probe_rig_event(&rig, 5), PYP_REC_YIELD, FAKE_YIELD, frame, 0, 0);
}

static void yield(struct fake_target *t, uint64_t tstate, uint64_t b)
{
	(void)t;
	(void)b;
	fake_yield(tstate);
}

Test(probe, first_yield_of_a_frame_cut_off_sends_nothing)
{
	uint64_t frame = fake_frame(target(), plain_code("gen"), 0, FAKE_OWNER_GENERATOR);
	uint64_t tstate = fake_alloc(target(), 128, 16);

	fake_put64(tstate + FAKE_TS_FRAME, frame);
	fake_target_run(target(), yield, tstate, 0);
	cr_assert_eq(probe_rig_drain(&rig), 0);
	probe_rig_check_no_loss(&rig);
}

/* A call from C: the frame below is an entry frame in the C stack. */
static void enter_through_c(struct fake_target *t, uint64_t frame, uint64_t caller)
{
	const struct pyp_layout *l = &t->layout->bpf;
	uint64_t entry[16] = {0};

	entry[l->frame_code / 8] = 0xdead0; /* not a code object: must not be read as one */
	entry[l->frame_previous / 8] = caller;
	((uint8_t *)entry)[l->frame_owner] = FAKE_OWNER_ENTRY;
	fake_put64(frame + l->frame_previous, (uintptr_t)entry);
	fake_enter(frame, 1);
	__asm__ volatile("" : : "r"(entry) : "memory");
}

Test(probe, callers_behind_entry_frames)
{
	uint64_t code = plain_code("f");
	uint64_t caller = fake_frame(target(), code, 0, FAKE_OWNER_THREAD);
	uint64_t frame = fake_frame(target(), code, 0, FAKE_OWNER_THREAD);

	acquaint();
	fake_target_run(target(), enter_through_c, frame, caller);
	fake_target_run(target(), enter_through_c, frame, 0);
	cr_assert_eq(probe_rig_drain(&rig), 6);
	check_call(probe_rig_event(&rig, 4), PYP_REC_ENTER, FAKE_ENTER, frame, code, caller);
	check_call(probe_rig_event(&rig, 5), PYP_REC_ENTER, FAKE_ENTER, frame, code, 0);
}

/*
 * In 3.13 and later, the shim is directly below the frame of __init__, and is never reported as a
 * caller.
 */
Test(probe, callers_behind_shims)
{
	uint64_t code = plain_code("f");
	uint64_t shim_code = fake_code(target(), "", "__init__", FAKE_SKIP_FLAGS, 0);
	uint64_t caller = fake_frame(target(), code, 0, FAKE_OWNER_THREAD);
	uint64_t shim = fake_frame(target(), shim_code, caller, FAKE_OWNER_THREAD);
	uint64_t frame = shim + 88;

	fake_put64(frame, code);
	fake_put64(frame + 8, shim);
	acquaint();
	fake_target_enter(target(), frame);
	fake_target_enter(target(), shim);
	fake_target_run(target(), enter_through_c, caller, shim);
	cr_assert_eq(probe_rig_drain(&rig), 6);
	check_call(probe_rig_event(&rig, 4), PYP_REC_ENTER, FAKE_ENTER, frame, code, caller);
	check_call(probe_rig_event(&rig, 5), PYP_REC_ENTER, FAKE_ENTER, caller, code, caller);
	probe_rig_check_no_loss(&rig);
}

#define DEPTH 100

Test(probe, a_deep_stack_is_sent_whole)
{
	uint64_t code = plain_code("f"), other = plain_code("g");
	uint64_t skip = fake_code(target(), "", "__init__", FAKE_SKIP_FLAGS, 0);
	uint64_t frames[DEPTH], below = 0;
	size_t seen = 0, i = 0;

	for (int k = DEPTH - 1; k >= 0; k--) {
		if (k % 7 == 0)
			below = fake_frame(target(), 0xdead0, below, FAKE_OWNER_ENTRY);
		if (k % 5 == 0)
			below = fake_frame(target(), skip, below, FAKE_OWNER_THREAD);
		below = frames[k] = fake_frame(target(), k == DEPTH - 1 ? other : code, below, 0);
	}
	fake_target_leave(target(), frames[0]);
	cr_assert_eq(probe_rig_drain(&rig), 8 + 4 + 1);
	i = check_code(i, code, "f", "Class.f");
	i = check_code(i, other, "g", "Class.g");
	for (; probe_rig_event(&rig, i)->type == PYP_REC_CHAIN; i++) {
		const struct event *ev = probe_rig_event(&rig, i);

		cr_assert_eq(ev->u.chain.first, seen);
		for (uint32_t k = 0; k < ev->u.chain.count; k++, seen++) {
			cr_assert_eq(ev->u.chain.frames[k].frame, frames[seen]);
			cr_assert_eq(ev->u.chain.frames[k].code, seen == DEPTH - 1 ? other : code);
		}
		cr_assert_eq(ev->arg, seen == DEPTH ? PYP_CHAIN_LAST : 0);
	}
	cr_assert_eq(seen, DEPTH);
	check_call(probe_rig_event(&rig, i), PYP_REC_LEAVE, FAKE_LEAVE, frames[0], 0, 0);
	probe_rig_check_no_loss(&rig);
}

Test(probe, an_endless_stack_is_cut)
{
	uint64_t code = plain_code("f"), frame = fake_frame(target(), code, 0, 0);
	uint64_t losses[PYP_LOSS_MAX];
	const struct event *last;
	size_t n;

	fake_put64(frame + 8, frame);
	fake_target_leave(target(), frame);
	n = probe_rig_drain(&rig);
	cr_assert_eq(n, 4 + PYP_CHAIN_MAX_DEPTH / PYP_CHAIN_FRAMES + 1);
	last = probe_rig_event(&rig, n - 2);
	cr_assert_eq(last->arg, PYP_CHAIN_LAST | PYP_CHAIN_TRUNCATED);
	probe_losses(rig.probe, losses);
	cr_assert_eq(losses[PYP_LOSS_chain_truncated], 1);
}

Test(probe, an_unreadable_stack_is_cut)
{
	uint64_t code = plain_code("f"), frame = fake_frame(target(), code, 8, 0);
	const struct event *ev;

	fake_target_leave(target(), frame);
	cr_assert_eq(probe_rig_drain(&rig), 6);
	ev = probe_rig_event(&rig, 4);
	cr_assert_eq(ev->arg, PYP_CHAIN_LAST | PYP_CHAIN_TRUNCATED);
	cr_assert(ev->u.chain.count == 1 && ev->u.chain.frames[0].frame == frame);
}

Test(probe, an_unreadable_frame_is_counted)
{
	uint64_t losses[PYP_LOSS_MAX];

	acquaint();
	fake_target_enter(target(), 8);
	fake_target_enter(target(), fake_frame(target(), 0, 0, 0));
	cr_assert_eq(probe_rig_drain(&rig), 0);
	probe_losses(rig.probe, losses);
	cr_assert_eq(losses[PYP_LOSS_fault_frame], 2);
	cr_assert_eq(losses[PYP_LOSS_lost_events], 2);
}

/* As the kernel does while it moves a page, but for longer. */
struct absence {
	void *page;
	cpu_set_t cpus; /* of the thread that ends it */
	atomic_bool began;
};

/*
 * On a busy machine the thread would get a CPU too late, as the other one keeps its own while it
 * waits. With a single CPU there is no way.
 */
static void hurry(const struct absence *a)
{
	const struct sched_param first = {.sched_priority = 1};

	if (CPU_COUNT(&a->cpus))
		pthread_setaffinity_np(pthread_self(), sizeof(a->cpus), &a->cpus);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
}

static void *end_absence(void *arg)
{
	struct absence *a = arg;

	hurry(a);
	while (!atomic_load(&a->began))
		sched_yield();
	patience_pass(PATIENCE_STEP_MS);
	mprotect(a->page, 4096, PROT_READ | PROT_WRITE);
	return NULL;
}

static void enter_without(struct fake_target *t, uint64_t frame, uint64_t page)
{
	struct absence a = {.page = (void *)page};
	cpu_set_t all, own;
	pthread_t other;

	(void)t;
	CPU_ZERO(&own);
	CPU_SET((size_t)sched_getcpu(), &own);
	sched_getaffinity(0, sizeof(all), &all);
	CPU_XOR(&a.cpus, &all, &own);
	sched_setaffinity(0, sizeof(own), &own);
	pthread_create(&other, NULL, end_absence, &a);
	mprotect(a.page, 4096, PROT_NONE);
	atomic_store(&a.began, true);
	fake_enter(frame, 1);
	pthread_join(other, NULL);
	sched_setaffinity(0, sizeof(all), &all);
}

/*
 * Not all are seen to end: on a busy machine some absences end before the call, some last for
 * longer than probes wait, so they are repeated until some are. What was not seen is counted. Where
 * a hypervisor handles page tables in software, a program that only reads may not see that the page
 * is there again: 10 of 20 absences while much else runs, and none of 20, at times, while nothing
 * does. Nor can it with a single CPU.
 */
static bool was_seen(size_t seen, size_t enough)
{
	fprintf(stderr, "  %zu seen\n", seen);
	cr_assert(!patience_over(), "waited for absences that probes see to end");
	return seen >= enough || caps_virtual() || sysconf(_SC_NPROCESSORS_ONLN) == 1;
}

/* A probe that has waited in vain a number of times does not wait any more. */
static void begin_again(void)
{
	probe_rig_stop(&rig);
	probe_rig_start(&rig, 0);
}

static size_t see_absences(void)
{
	uint64_t code = plain_code("f"), frame;
	uint64_t losses[PYP_LOSS_MAX];
	size_t n, entries = 0;

	acquaint();
	fake_alloc(target(), 0, 4096);
	frame = fake_frame(target(), code, 0, FAKE_OWNER_THREAD);
	cr_assert_eq(frame % 4096, 0);
	for (int i = 0; i < 20; i++)
		fake_target_run(target(), enter_without, frame, frame);
	n = probe_rig_drain(&rig);
	for (size_t i = 0; i < n; i++)
		entries += probe_rig_event(&rig, i)->type == PYP_REC_ENTER;
	probe_losses(rig.probe, losses);
	cr_assert_eq(entries + losses[PYP_LOSS_fault_frame], 20);
	return entries;
}

Test(probe, pages_that_are_absent_for_a_moment)
{
	while (!was_seen(see_absences(), 4))
		begin_again();
}

/* A code object whose name is on a page of its own. */
static uint64_t code_with_distant_name(uint64_t *ret_page)
{
	uint64_t code = plain_code("near");

	fake_alloc(target(), 0, 4096);
	*ret_page = fake_str(target(), "distant");
	fake_alloc(target(), 0, 4096);
	fake_put64(code + target()->layout->bpf.code_name, *ret_page);
	return code;
}

static size_t see_names(void)
{
	size_t n, readable = 0, names = 0;

	acquaint();
	for (int i = 0; i < 10; i++) {
		uint64_t page, code = code_with_distant_name(&page);

		cr_assert_eq(page % 4096, 0);
		fake_target_run(target(), enter_without,
				fake_frame(target(), code, 0, FAKE_OWNER_THREAD), page);
	}
	n = probe_rig_drain(&rig);
	for (size_t i = 0; i < n; i++) {
		const struct event *ev = probe_rig_event(&rig, i);

		if (ev->type != PYP_REC_STRING || ev->u.string.which != PYP_STR_NAME)
			continue;
		names++;
		readable += ev->u.string.flags == 0;
	}
	cr_assert_eq(names, 10, "%zu names, readable or not", names);
	return readable;
}

Test(probe, names_on_pages_that_are_absent_for_a_moment)
{
	while (!was_seen(see_names(), 2))
		begin_again();
}

static void code_free(struct fake_target *t, uint64_t code, uint64_t b)
{
	(void)t;
	(void)b;
	fake_code_free(code);
}

static void enter_hidden(struct fake_target *t, uint64_t frame, uint64_t page)
{
	(void)t;
	mprotect((void *)page, 4096, PROT_NONE);
	fake_enter(frame, 1);
	mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
}

/* Checks the records of a code object with or without its name, the first of the ring. */
static void check_names(uint64_t code, const char *name, unsigned int arg)
{
	const struct event *ev = probe_rig_event(&rig, 1);

	check_string(probe_rig_event(&rig, 0), code, PYP_STR_FILENAME, "/srv/app.py");
	if (name)
		check_string(ev, code, PYP_STR_NAME, name);
	cr_assert_eq(ev->u.string.flags, name ? 0 : PYP_STRING_UNREADABLE);
	check_string(probe_rig_event(&rig, 2), code, PYP_STR_QUALNAME, "Class.near");
	ev = probe_rig_event(&rig, 3);
	cr_assert(ev->type == PYP_REC_CODE && ev->arg == arg);
	cr_assert(ev->u.code.code == code && ev->u.code.firstlineno == 42);
}

/* A page that is absent for longer than probes wait; the daemon may come too late to read the name. */
Test(probe, names_are_sent_again_when_code_is_freed)
{
	uint64_t page, code = code_with_distant_name(&page);

	acquaint();
	fake_target_run(target(), enter_hidden, fake_frame(target(), code, 0, FAKE_OWNER_THREAD),
			page);
	cr_assert_eq(probe_rig_drain(&rig), 5);
	check_names(code, NULL, 0);
	probe_rig_clear(&rig);
	fake_target_run(target(), code_free, code, 0);
	cr_assert_eq(probe_rig_drain(&rig), 5);
	check_names(code, "distant", PYP_CODE_LATE);
	cr_assert_eq(probe_rig_event(&rig, 4)->type, PYP_REC_CODE_FREE);
}

/* Names that are read later are those of the code object only if it has not been freed meanwhile. */
Test(probe, code_lives_until_it_is_freed)
{
	uint64_t code = plain_code("f"), frame = fake_frame(target(), code, 0, 0), first;

	acquaint();
	fake_target_pairs(target(), frame, 1);
	cr_assert_eq(probe_rig_drain(&rig), 6);
	cr_assert_eq(probe_rig_event(&rig, 3)->type, PYP_REC_CODE);
	first = probe_rig_event(&rig, 3)->ts;
	cr_assert(probe_code_lives(rig.probe, code, first));
	cr_assert_not(probe_code_lives(rig.probe, code, first + 1));
	fake_target_run(target(), code_free, code, 0);
	cr_assert_not(probe_code_lives(rig.probe, code, first));
	probe_rig_drain(&rig);
	probe_rig_clear(&rig);
	fake_target_pairs(target(), frame, 1);
	cr_assert_eq(probe_rig_drain(&rig), 6);
	cr_assert_not(probe_code_lives(rig.probe, code, first), "another one");
	cr_assert(probe_code_lives(rig.probe, code, probe_rig_event(&rig, 3)->ts));
}

Test(probe, freed_code_is_announced_anew)
{
	uint64_t code = plain_code("f"), frame = fake_frame(target(), code, 0, 0);
	const struct event *ev;

	fake_target_run(target(), code_free, code, 0);
	cr_assert_eq(probe_rig_drain(&rig), 0, "nobody knew it");
	acquaint();
	fake_target_pairs(target(), frame, 2);
	cr_assert_eq(probe_rig_drain(&rig), 8);
	probe_rig_clear(&rig);
	fake_target_run(target(), code_free, code, 0);
	fake_target_run(target(), code_free, code, 0);
	fake_target_enter(target(), frame);
	cr_assert_eq(probe_rig_drain(&rig), 6);
	ev = probe_rig_event(&rig, 0);
	cr_assert(ev->type == PYP_REC_CODE_FREE && ev->u.code.code == code);
	cr_assert_eq(ev->site, FAKE_CODE_FREE);
	check_code(1, code, "f", "Class.f");
}

static const struct event *string_of(enum pyp_string_which which)
{
	for (size_t i = 0; i < rig.n; i++) {
		const struct event *ev = probe_rig_event(&rig, i);

		if (ev->type == PYP_REC_STRING && ev->u.string.which == which)
			return ev;
	}
	cr_assert_fail("no such string");
	return NULL;
}

static void enter_named(uint64_t name)
{
	uint64_t code = plain_code("x");

	fake_put64(code + target()->layout->bpf.code_name, name);
	probe_rig_clear(&rig);
	fake_target_enter(target(), fake_frame(target(), code, 0, 0));
	probe_rig_drain(&rig);
}

static void check_name(unsigned int kind, size_t units, size_t bytes, unsigned int flags)
{
	const struct event *ev = string_of(PYP_STR_NAME);

	cr_assert_eq(ev->u.string.kind, kind);
	cr_assert_eq(ev->u.string.units, units);
	cr_assert_eq(ev->u.string.bytes, bytes);
	cr_assert_eq(ev->u.string.flags, flags);
}

Test(probe, strings_of_every_kind_and_size)
{
	static const size_t sizes[] = {0, 1, 56, 57, 472, 473, 16000, 16400, 40000};
	static uint8_t text[65536];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)('a' + i % 23);
	for (unsigned int kind = 0; kind <= 4; kind += kind < 2 ? 1 : 2)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			unsigned int width = kind ? kind : 1;
			size_t units = sizes[i] / width;

			enter_named(fake_str_kind(target(), kind, text, units));
			check_name(width, units, units * width, 0);
			assert_bytes_eq(string_of(PYP_STR_NAME)->u.string.data, text,
					units * width);
		}
}

Test(probe, strings_too_long_are_cut)
{
	static uint8_t text[131072];
	const size_t room = PYP_STRING_HUGE - sizeof(struct pyp_rec_string);

	memset(text, 'x', sizeof(text));
	enter_named(fake_str_kind(target(), 0, text, room));
	check_name(1, room, room, 0);
	enter_named(fake_str_kind(target(), 0, text, room + 1));
	check_name(1, room + 1, room, PYP_STRING_TRUNCATED);
	enter_named(fake_str_kind(target(), 4, text, room / 2));
	check_name(4, room / 2, room, PYP_STRING_TRUNCATED);
}

static void drop_page(struct fake_target *t, uint64_t addr, uint64_t size)
{
	(void)t;
	madvise((void *)(uintptr_t)addr, size, MADV_DONTNEED);
}

Test(probe, strings_not_in_memory_say_where_they_are)
{
	uint64_t page = fake_alloc(target(), 4096, 4096);
	uint64_t name = fake_str(target(), "paged_out"), next = fake_alloc(target(), 1, 4096);
	uint64_t losses[PYP_LOSS_MAX];

	cr_assert(name > page && next > name);
	fake_target_run(target(), drop_page, page, next - page);
	enter_named(name);
	check_name(0, 0, 0, PYP_STRING_UNREADABLE);
	cr_assert_eq(string_of(PYP_STR_NAME)->u.string.object, name);
	probe_losses(rig.probe, losses);
	cr_assert_eq(losses[PYP_LOSS_fault_string], 1);
}

Test(probe, code_not_in_memory_is_still_counted)
{
	uint64_t frame = fake_frame(target(), 0x10, 0, 0);
	const struct event *ev;

	acquaint();
	fake_target_pairs(target(), frame, 2);
	cr_assert_eq(probe_rig_drain(&rig), 5);
	ev = probe_rig_event(&rig, 0);
	cr_assert(ev->type == PYP_REC_CODE && ev->arg == PYP_CODE_UNREADABLE);
}

Test(probe, twenty_three_calls_are_twenty_three)
{
	uint64_t frame = fake_frame(target(), plain_code("f"), 0, 0);

	acquaint();
	fake_target_pairs(target(), frame, 23);
	probe_rig_drain(&rig);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_ENTER), 23);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_LEAVE), 23);
	probe_rig_check_no_loss(&rig);
}

/* Some of them share a slot of the direct-mapped cache; the map behind it has all of them. */
Test(probe, every_code_object_is_announced_once)
{
	enum { CODES = 3000 };
	static uint64_t frames[CODES];

	acquaint();
	for (int i = 0; i < CODES; i++)
		frames[i] = fake_frame(target(), plain_code("f"), 0, 0);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < CODES; i++)
			fake_target_enter(target(), frames[i]);
	probe_rig_drain(&rig);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_ENTER), 2 * CODES);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_CODE), CODES);
	cr_assert_eq(probe_rig_count(&rig, PYP_REC_STRING), 3 * CODES);
}
