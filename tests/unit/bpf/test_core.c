// SPDX-License-Identifier: BSD-2-Clause
/* bpf/core.bpf.h on the host: the same source that runs in the kernel. */
#include "core.bpf.h"

#include "harness/test.h"
#include "plan/plan.h"

enum { CF = 1, PF = 1 << 2, ZF = 1 << 6, SF = 1 << 7, OF = 1 << 11 };

/* The processor's own evaluation of a condition. The red zone is skipped before the push. */
#define CPU_CONDITION(flags, set)                                                                  \
	({                                                                                         \
		uint8_t r_;                                                                        \
		__asm__("lea -128(%%rsp), %%rsp\n\t"                                               \
			"push %1\n\t"                                                              \
			"popfq\n\t" set " %0\n\t"                                                  \
			"lea 128(%%rsp), %%rsp"                                                    \
			: "=q"(r_)                                                                 \
			: "r"((uint64_t)(flags) | 0x202)                                           \
			: "cc");                                                                   \
		r_;                                                                                \
	})

static unsigned int cpu_condition(uint64_t flags, unsigned int cc)
{
	switch (cc) {
	case 0x0:
		return CPU_CONDITION(flags, "seto");
	case 0x1:
		return CPU_CONDITION(flags, "setno");
	case 0x2:
		return CPU_CONDITION(flags, "setb");
	case 0x3:
		return CPU_CONDITION(flags, "setae");
	case 0x4:
		return CPU_CONDITION(flags, "sete");
	case 0x5:
		return CPU_CONDITION(flags, "setne");
	case 0x6:
		return CPU_CONDITION(flags, "setbe");
	case 0x7:
		return CPU_CONDITION(flags, "seta");
	case 0x8:
		return CPU_CONDITION(flags, "sets");
	case 0x9:
		return CPU_CONDITION(flags, "setns");
	case 0xa:
		return CPU_CONDITION(flags, "setp");
	case 0xb:
		return CPU_CONDITION(flags, "setnp");
	case 0xc:
		return CPU_CONDITION(flags, "setl");
	case 0xd:
		return CPU_CONDITION(flags, "setge");
	case 0xe:
		return CPU_CONDITION(flags, "setle");
	default:
		return CPU_CONDITION(flags, "setg");
	}
}

static uint64_t flags_of(unsigned int bits)
{
	return (bits & 1 ? CF : 0) | (bits & 2 ? PF : 0) | (bits & 4 ? ZF : 0) |
	       (bits & 8 ? SF : 0) | (bits & 16 ? OF : 0);
}

Test(core, conditions_are_the_processors)
{
	for (unsigned int bits = 0; bits < 32; bits++) {
		uint64_t flags = flags_of(bits);

		for (unsigned int cc = 0; cc < 16; cc++)
			cr_assert_eq(arch_condition(flags, cc), cpu_condition(flags, cc),
				     "condition %x with flags %lx", cc, (unsigned long)flags);
	}
}

Test(core, conditions_ignore_other_flags)
{
	uint64_t others = ~(uint64_t)(CF | PF | ZF | SF | OF);

	for (unsigned int bits = 0; bits < 32; bits++)
		for (unsigned int cc = 0; cc < 16; cc++)
			cr_assert_eq(arch_condition(flags_of(bits) | others, cc),
				     arch_condition(flags_of(bits), cc));
}

static uint64_t branch(bool has_cc, bool taken)
{
	const struct plan_site s = {
		.kind = PYP_SITE_ENTER, .has_cc = has_cc, .cc = 4 /* je */, .taken = taken};

	return plan_cookie(&s, 0);
}

Test(core, counts_only_the_wanted_direction)
{
	uint64_t plain = branch(false, true);
	uint64_t je_taken = branch(true, true);
	uint64_t je_not = branch(true, false);

	cr_assert(core_counts(plain, 0) && core_counts(plain, ZF));
	cr_assert(!core_counts(je_taken, 0) && core_counts(je_taken, ZF));
	cr_assert(core_counts(je_not, 0) && !core_counts(je_not, ZF));
}

/* The BPF side decodes the fields that plan/ encodes: each at its extremes, in all combinations. */
Test(core, cookie_round_trip)
{
	const int32_t disps[] = {0, -1, INT32_MIN, INT32_MAX, -8, 0x48};

	for (unsigned int ones = 0; ones < 512; ones++)
		for (unsigned int d = 0; d < sizeof(disps) / sizeof(disps[0]); d++) {
			const struct plan_site s = {.kind = ones & 1 ? 15 : 0,
						    .reg = ones & 2 ? 31 : 0,
						    .deref = ones >> 2 & 1,
						    .has_cc = ones >> 3 & 1,
						    .cc = ones & 16 ? 15 : 0,
						    .taken = ones >> 5 & 1,
						    .has_flag = ones >> 6 & 1,
						    .flag_reg = ones & 128 ? 31 : 0,
						    .disp = disps[d]};
			unsigned int site = ones & 256 ? PYP_ALL_SITES - 1 : 0;
			uint64_t c = plan_cookie(&s, site);

			cr_assert_eq(PYP_COOKIE_KIND(c), s.kind);
			cr_assert_eq(PYP_COOKIE_REG(c), s.reg);
			cr_assert_eq(PYP_COOKIE_DEREF(c), s.deref);
			cr_assert_eq(PYP_COOKIE_SITE(c), site);
			cr_assert_eq(PYP_COOKIE_HAS_CC(c), s.has_cc);
			cr_assert_eq(PYP_COOKIE_CC(c), s.cc);
			cr_assert_eq(PYP_COOKIE_TAKEN(c), s.taken);
			cr_assert_eq(PYP_COOKIE_HAS_FLAG(c), s.has_flag);
			cr_assert_eq(PYP_COOKIE_FLAG_REG(c), s.flag_reg);
			cr_assert_eq(PYP_COOKIE_DISP(c), s.disp);
		}
}

Test(core, code_entries)
{
	uint64_t code = 0x7f1234567890, next = code + 8;

	cr_assert(core_code_hit(core_code_entry(code, 0), code));
	cr_assert(core_code_hit(core_code_entry(code, CORE_CODE_SKIP), code));
	cr_assert(!core_code_hit(core_code_entry(code, CORE_CODE_SKIP), next));
	cr_assert(!core_code_hit(0, code));
	cr_assert_eq(core_code_entry(code, CORE_CODE_SKIP) & CORE_CODE_SKIP, CORE_CODE_SKIP);
	cr_assert_eq(core_code_entry(code, 0xfe) & CORE_CODE_SKIP, 0);
}

/* Code objects are close to each other in arenas; this must not make them share slots. */
Test(core, code_slots_spread)
{
	static uint8_t used[CORE_CODE_SLOTS];
	unsigned int shared = 0;

	for (uint64_t i = 0; i < 8192; i++) {
		uint32_t slot = core_code_slot(0x7f3a5c000000 + i * 208);

		cr_assert(slot < CORE_CODE_SLOTS);
		shared += used[slot];
		used[slot] = 1;
	}
	cr_assert(shared < 8192 / 8, "%u of 8192 share a slot", shared);
}

Test(core, thread_entries)
{
	cr_assert_neq(core_thread_entry(1, 2), core_thread_entry(2, 1));
	cr_assert_neq(core_thread_entry(7, 1), core_thread_entry(7, 2));
	cr_assert_eq(core_thread_entry(0xffffffff, 1) >> 32, 0xffffffff);
	for (uint32_t tid = 0; tid < 3 * CORE_THREAD_SLOTS; tid++)
		cr_assert(core_thread_slot(tid) < CORE_THREAD_SLOTS);
}

/* Another value of any counter, another thread or another attachment changes the mark. */
Test(core, counters_marks)
{
	__u64 value[PYP_COUNTERS] = {1, 2, 3, 4, 5, 6};
	const __u64 mark = core_counters_mark(value, 7, 1);

	cr_assert_eq(core_counters_mark(value, 7, 1), mark);
	cr_assert_neq(core_counters_mark(value, 8, 1), mark);
	cr_assert_neq(core_counters_mark(value, 7, 2), mark);
	for (int i = 0; i < PYP_COUNTERS; i++) {
		value[i]++;
		cr_assert_neq(core_counters_mark(value, 7, 1), mark, "%d", i);
		value[i]--;
	}
	/* the sum of the counters is unchanged */
	value[0]++;
	value[1]--;
	cr_assert_neq(core_counters_mark(value, 7, 1), mark);
}

Test(core, entry_frames_are_just_above_sp)
{
	uint64_t sp = 0x7ffd00001000;

	cr_assert(core_near_stack(sp, sp));
	cr_assert(core_near_stack(sp + CORE_ENTRY_WINDOW - 1, sp));
	cr_assert(!core_near_stack(sp + CORE_ENTRY_WINDOW, sp));
	cr_assert(!core_near_stack(sp - 1, sp));
	cr_assert(!core_near_stack(0, sp));
	cr_assert(core_on_stack(sp + CORE_STACK_WINDOW - 1, sp));
	cr_assert(!core_on_stack(sp + CORE_STACK_WINDOW, sp));
	cr_assert(!core_on_stack(sp - 1, sp) && !core_on_stack(0, sp));
}

Test(core, shims_are_close_or_at_a_chunks_start)
{
	uint64_t below = 0x7f0000004000 + CORE_CHUNK_HEADER;

	cr_assert(core_may_be_shim(below + 88, below));
	cr_assert(core_may_be_shim(below + 96, below));
	cr_assert(!core_may_be_shim(below + 160, below));
	cr_assert(core_may_be_shim(0x7f0000010000 + CORE_CHUNK_HEADER, below));
	cr_assert(!core_may_be_shim(below - 88, below));
}

static struct core_string shape(uint64_t length, unsigned int kind, unsigned int compact,
				unsigned int ascii, unsigned int shift)
{
	return core_string_shape(length,
				 kind << shift | compact << (shift + 3) | ascii << (shift + 4) |
					 ((1u << shift) - 1),
				 shift, 40, 56);
}

Test(core, string_shapes)
{
	for (unsigned int shift = 2; shift <= 8; shift += 6) {
		struct core_string s = shape(3, 1, 1, 1, shift);

		cr_assert(s.units == 3 && s.bytes == 3 && s.offset == 40 && s.kind == 1);
		s = shape(3, 1, 1, 0, shift);
		cr_assert(s.units == 3 && s.bytes == 3 && s.offset == 56 && s.kind == 1);
		s = shape(3, 2, 1, 0, shift);
		cr_assert(s.bytes == 6 && s.offset == 56 && s.kind == 2);
		s = shape(3, 4, 1, 0, shift);
		cr_assert(s.bytes == 12 && s.kind == 4);
		s = shape(3, 1, 0, 1, shift);
		cr_assert(s.units == 3 && s.kind == 0 && s.bytes == 0);
		s = shape(3, 3, 1, 0, shift);
		cr_assert(s.kind == 0 && s.bytes == 0);
	}
}

Test(core, string_classes)
{
	const uint64_t head = sizeof(struct pyp_rec_string);

	cr_assert_eq(core_string_class(0), PYP_STRING_SMALL);
	cr_assert_eq(core_string_class(PYP_STRING_SMALL - head), PYP_STRING_SMALL);
	cr_assert_eq(core_string_class(PYP_STRING_SMALL - head + 1), PYP_STRING_MEDIUM);
	cr_assert_eq(core_string_class(PYP_STRING_MEDIUM - head), PYP_STRING_MEDIUM);
	cr_assert_eq(core_string_class(PYP_STRING_MEDIUM - head + 1), PYP_STRING_LARGE);
	cr_assert_eq(core_string_class(PYP_STRING_LARGE - head), PYP_STRING_LARGE);
	cr_assert_eq(core_string_class(PYP_STRING_LARGE - head + 1), PYP_STRING_HUGE);
	cr_assert_eq(core_string_class(UINT64_MAX), PYP_STRING_HUGE);
	/* Truncation must not cut a character of 4 bytes. */
	cr_assert_eq((PYP_STRING_LARGE - head) % 4, 0);
	cr_assert_eq((PYP_STRING_HUGE - head) % 4, 0);
}

Test(core, frame_entries_distinguish_threads_and_attachments)
{
	uint64_t frame = 0x7f12345678a8, entry = core_frame_entry(frame, 4711, 3);

	cr_assert_neq(entry, 0);
	cr_assert_neq(entry, core_frame_entry(frame + 8, 4711, 3));
	cr_assert_neq(entry, core_frame_entry(frame, 4712, 3), "another thread's");
	cr_assert_neq(entry, core_frame_entry(frame, 4711, 4), "before the last attach");
	cr_assert_lt(core_frame_slot(frame), CORE_FRAME_SLOTS);
	cr_assert_neq(core_frame_slot(frame), core_frame_slot(frame + 8));
}

Test(core, counting_entries_hold_an_address_and_a_number)
{
	const uint64_t addr[] = {8, 0x7f12345678a8, 0x7ffffffffff8};
	const uint32_t id[] = {PYP_COUNT_OUTSIDE, PYP_COUNT_IDS - 1,
			       (PYP_COUNT_IDS - 1) | CORE_COUNT_CREATES};

	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 3; k++) {
			uint64_t entry = core_count_entry(addr[i], id[k]);

			cr_assert(core_count_hit(entry, addr[i]));
			cr_assert(!core_count_hit(entry, addr[i] + 8));
			cr_assert(!core_count_hit(0, addr[i]));
			cr_assert_eq(core_count_id(entry), id[k]);
			cr_assert_lt(core_count_frame_slot(addr[i]), CORE_COUNT_FRAMES);
		}
}

/* If two threads write one half each, the result belongs to neither. */
Test(core, what_a_frame_calls_is_read_from_halves)
{
	uint64_t frame[] = {0x7f12345678a8, 0x7f12345688a8}, method[] = {0x563412345678, 0};

	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < 2; k++) {
			uint64_t entry = core_called_entry(frame[i], method[k]);

			cr_assert_eq(entry, core_called_entry(frame[i], method[k]));
			cr_assert_neq(entry, core_called_entry(frame[i], method[1 - k]));
			cr_assert_neq(entry, core_called_entry(frame[1 - i], method[k]));
			cr_assert_neq(entry, core_called_entry(frame[1 - i], method[1 - k]));
		}
}

/* The function that a site was seen to call is only valid in the same epoch. */
Test(core, known_methods_end_with_their_epoch)
{
	const uint64_t method = 0x7fffdeadbee8;

	cr_expect_eq(core_same_method(core_same_entry(method, 7), 7), method);
	cr_expect_eq(core_same_method(core_same_entry(method, 7), 8), 0);
	cr_expect_eq(core_same_method(0, 7), 0);
	cr_expect_eq(core_same_method(0, 0), 0);
}
