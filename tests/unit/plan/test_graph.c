// SPDX-License-Identifier: BSD-2-Clause
/*
 * A function's graph, and what is derived from it: data flow, lines, comparisons, paths, cuts. Small
 * programs of the made-up instruction set (harness/toy.h), with results calculated by hand.
 */
#include <errno.h>

#include "elf/image.h"
#include "harness/test.h"
#include "harness/toy.h"

#define SP   TOY_SP
#define FP   TOY_FP
#define ZERO TOY_ZERO

static struct toy_rig rig;

static bool full; /* see harness/toy.h */

#define OPEN(code_, ...)                                                                           \
	toy_open(&rig, &(struct toy_program){TOY_CODE_OF(code_), .full = full, __VA_ARGS__})

static const struct cfg_node *node(unsigned int at)
{
	const uint32_t i = toy_node(&rig, at);

	cr_assert_neq(i, CFG_NONE, "instruction %u", at);
	return &rig.p.cfg.v[i];
}

/* ---- the graph ------------------------------------------------------------------------------ */

static void expect_node(unsigned int at, int next, int jump, unsigned int preds, int only_pred)
{
	const struct cfg_node *n = node(at);

	cr_expect_eq(toy_at(&rig, n->next), next, "%u: next", at);
	cr_expect_eq(toy_at(&rig, n->jump), jump, "%u: jump", at);
	cr_expect_eq(n->preds, preds, "%u: %u predecessors", at, n->preds);
	cr_expect_eq(toy_at(&rig, n->only_pred), only_pred, "%u: predecessor", at);
	cr_expect_eq(n->root, at == 0, "%u: root", at);
	cr_expect(!n->doubtful && !n->tail, "%u", at);
}

Test(graph, edges)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 1, TOY_TO(3)}, /* 0 */
		{TOY_NOP},		  /* 1 */
		{TOY_B, 0, TOY_TO(4)},	  /* 2 */
		{TOY_CALLR, 1},		  /* 3 */
		{TOY_BEQ, 0, TOY_TO(5)},  /* 4: both edges lead to the same place */
		{TOY_CALL, 0, TOY_TO(7)}, /* 5 */
		{TOY_BR, 1},		  /* 6 */
		{TOY_NOP},		  /* 7: not part of it */
	};
	uint8_t seen[7] = {0}, blocked[7] = {0};

	OPEN(code);
	cr_expect_eq(rig.p.cfg.n, 7);
	expect_node(0, 1, 3, 0, -1);
	expect_node(1, 2, -1, 1, 0);
	expect_node(2, -1, 4, 1, 1);
	expect_node(3, 4, -1, 1, 0);
	expect_node(4, 5, 5, 2, -1);
	expect_node(5, 6, -1, 1, 4);
	expect_node(6, -1, -1, 1, 5);
	cr_expect_eq(toy_node(&rig, 7), CFG_NONE);
	cr_expect_eq(cfg_find(&(struct cfg){0}, TOY_CODE), CFG_NONE);
	blocked[toy_node(&rig, 4)] = 1;
	seen[toy_node(&rig, 6)] = 1;
	assert_ok(cfg_reach(&rig.p.cfg, CFG_NONE, blocked, seen));
	assert_ok(cfg_reach(&rig.p.cfg, toy_node(&rig, 4), blocked, seen));
	assert_ok(cfg_reach(&rig.p.cfg, toy_node(&rig, 0), blocked, seen));
	for (unsigned int i = 0; i < 7; i++)
		cr_expect_eq(seen[toy_node(&rig, i)], i != 4 && i != 5, "%u", i);
	toy_close(&rig);
	check_no_leaks();
}

Test(graph, where_functions_end)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 1, TOY_TO(4)},     /* 0 */
		{TOY_CALL, 0, TOY_TO_PLT(1)}, /* 1: strlen returns */
		{TOY_CALL, 0, TOY_TO_PLT(0)}, /* 2: abort does not */
		{TOY_NOP},		      /* 3 */
		{TOY_BEQ, 0, TOY_TO(7)},      /* 4 */
		{TOY_CALL, 0, TOY_TO(11)},    /* 5: __assert_fail */
		{TOY_NOP},		      /* 6 */
		{TOY_BNE, 0, TOY_TO_PLT(1)},  /* 7: only a jump is taken for a call */
		{TOY_CALL, 0, TOY_TO(12)},    /* 8: another */
		{TOY_B, 0, TOY_TO_PLT(0)},    /* 9 */
		{TOY_NOP},		      /* 10 */
		{TOY_NOP},		      /* 11 */
		{TOY_NOP},		      /* 12 */
	};
	static const unsigned int reached[] = {0, 1, 2, 4, 5, 7, 8, 9};

	OPEN(code, .plt = {"abort", "strlen"},
	     .symbol = {{"Py_FatalError", TOY_CODE + 4 * 10},
			{"__assert_fail", TOY_CODE + 4 * 11}});
	cr_expect_eq(rig.p.cfg.n, 8);
	for (size_t i = 0; i < 8; i++)
		cr_expect_eq(node(reached[i])->tail, reached[i] == 9, "%u", reached[i]);
	cr_expect_eq(node(2)->in.flow, INSN_STOP);
	cr_expect_eq(node(5)->in.flow, INSN_STOP);
	cr_expect_eq(node(8)->in.flow, INSN_CALL);
	cr_expect_eq(node(7)->jump, CFG_NONE);
	cr_expect_eq(toy_at(&rig, node(7)->next), 8);
	cr_expect_eq(node(9)->jump, CFG_NONE);
	toy_close(&rig);
	check_no_leaks();
}

/* A jump to a stub ends the function; there is code. */
Test(graph, stubs_are_other_functions)
{
	/* jmp stub; 3 bytes that are no code */
	static const uint8_t code[][4] = {{0xe9, 0xfb, 0x7f, 0x01}, {0x00, 0x06, 0x06, 0x06}};

	OPEN(code, .plt = {"strlen"}, .arch = &arch_x86_64);
	cr_expect(rig.p.cfg.n == 1 && node(0)->in.target == TOY_PLT && node(0)->tail);
	toy_close(&rig);
	check_no_leaks();
}

/* The last instruction is followed by the segment's end, and data is no code. */
Test(graph, code_ends)
{
	static const uint8_t code[][4] = {{TOY_CBNZ, 1, TOY_TO_DATA(0)}, {TOY_NOP}};
	static const uint64_t data[] = {TOY_RET};
	uint64_t root = TOY_DATA;
	struct insn_full in;
	char text[16] = "x";

	OPEN(code, TOY_DATA_OF(data));
	assert_ok(cfg_explore(&rig.p.cfg, &root, 1));
	cr_expect_eq(rig.p.cfg.n, 2);
	cr_expect_eq(node(0)->jump, CFG_NONE);
	cr_expect_eq(node(1)->next, CFG_NONE);
	cr_expect(cfg_full(&rig.p.cfg, 1, &in) && in.vaddr == TOY_CODE + 4);
	cfg_format(&rig.p.cfg, 1, text, sizeof(text));
	cr_expect_str_eq(text, "toy 1");
	rig.p.cfg.v[1].in.vaddr = TOY_CODE + 8;
	cr_expect_not(cfg_full(&rig.p.cfg, 1, &in));
	cfg_format(&rig.p.cfg, 1, text, sizeof(text));
	cr_expect_str_eq(text, "");
	toy_close(&rig);
	check_no_leaks();
}

Test(graph, overlapping_instructions_are_doubtful)
{
	/* From byte 2 on: nop, return. */
	static const uint8_t code[][4] = {
		{TOY_NOP, 0, TOY_NOP}, {TOY_NOP, 0, TOY_RET}, {TOY_NOP}, {TOY_RET}};
	uint64_t root = TOY_CODE + 2;

	OPEN(code);
	assert_ok(cfg_explore(&rig.p.cfg, &root, 1));
	assert_ok(cfg_link(&rig.p.cfg));
	cr_expect_eq(rig.p.cfg.n, 6);
	cr_expect(node(1)->preds == 1 && toy_at(&rig, node(1)->only_pred) == 0);
	for (uint32_t i = 0; i < 6; i++)
		cr_expect_eq(rig.p.cfg.v[i].doubtful, rig.p.cfg.v[i].in.vaddr != TOY_CODE + 4 * 3,
			     "%u", i);
	toy_close(&rig);
	check_no_leaks();
}

/* ---- data flow ------------------------------------------------------------------------------ */

static struct flow_state *states;

static void solve(insn_regs regs, unsigned int bits, const struct flow_slot *slot, uint8_t n)
{
	const struct flow_root root = {rig.p.entry, regs, slot, n};

	states = flow_solve(&rig.p.cfg, &root, 1, bits);
	cr_assert(states);
}

/* Exactly these registers and slots: pairs of base and displacement, up to base 0 */
static void expect_flow(unsigned int at, insn_regs regs, const int (*slot)[2])
{
	const struct flow_state *st = &states[toy_node(&rig, at)];
	uint8_t n = 0;

	cr_expect(st->reached, "%u", at);
	cr_expect_eq(st->regs, regs, "%u: registers 0x%x", at, st->regs);
	for (; slot && slot[n][0]; n++)
		cr_expect(flow_in_slot(st, slot[n][0], slot[n][1]), "%u: no slot %d %d", at,
			  slot[n][0], slot[n][1]);
	cr_expect_eq(st->nslots, n, "%u: %u slots", at, st->nslots);
}

#define SLOTS(...)                                                                                 \
	(const int[][2])                                                                           \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

#define R(r) insn_bit(r)

static void end_flow(void)
{
	free(states);
	toy_close(&rig);
	check_no_leaks();
}

Test(flow, copies)
{
	static const uint8_t code[][4] = {
		{TOY_MOV, 20, 1},	  /* 0 */
		{TOY_MOV4, 2, 1},	  /* 1: not all of it */
		{TOY_MOV, 21, 2},	  /* 2: something else */
		{TOY_STORE, 1, SP, 16},	  /* 3 */
		{TOY_STORE, 1, 6, 24},	  /* 4: not the stack */
		{TOY_STORE4, 1, SP, 32},  /* 5 */
		{TOY_MOV, 1, 5},	  /* 6 */
		{TOY_LOAD, 3, SP, 16},	  /* 7 */
		{TOY_LOAD, 4, SP, 24},	  /* 8: another slot */
		{TOY_LOAD, 7, 6, 16},	  /* 9: not the stack */
		{TOY_UNTAG, 3},		  /* 10 */
		{TOY_UNTAG, 5},		  /* 11 */
		{TOY_ADD, 20, 5},	  /* 12 */
		{TOY_MOV, 22, 3},	  /* 13 */
		{TOY_CALL, 0, TOY_TO(0)}, /* 14 */
		{TOY_OPAQUE},		  /* 15 */
		{TOY_RET},		  /* 16 */
	};

	OPEN(code);
	solve(R(1), 64, NULL, 0);
	expect_flow(0, R(1), NULL);
	expect_flow(3, R(1) | R(20), NULL);
	expect_flow(6, R(1) | R(20), SLOTS({SP, 16}));
	expect_flow(7, R(20), SLOTS({SP, 16}));
	expect_flow(8, R(20) | R(3), SLOTS({SP, 16}));
	expect_flow(12, R(20) | R(3), SLOTS({SP, 16}));
	expect_flow(13, R(3), SLOTS({SP, 16}));
	expect_flow(14, R(3) | R(22), SLOTS({SP, 16}));
	expect_flow(15, R(22), SLOTS({SP, 16}));
	expect_flow(16, 0, NULL);
	end_flow();
}

/* An int is in the lower half of a register; it has no tag. */
Test(flow, copies_of_an_int)
{
	static const uint8_t code[][4] = {
		{TOY_MOV4, 2, 1},	 /* 0 */
		{TOY_STORE4, 2, SP, 16}, /* 1 */
		{TOY_MOV, 3, 2},	 /* 2 */
		{TOY_UNTAG, 3},		 /* 3 */
		{TOY_RET},		 /* 4 */
	};

	OPEN(code);
	solve(R(1), 32, NULL, 0);
	expect_flow(2, R(1) | R(2), SLOTS({SP, 16}));
	expect_flow(3, R(1) | R(2) | R(3), SLOTS({SP, 16}));
	expect_flow(4, R(1) | R(2), SLOTS({SP, 16}));
	end_flow();
}

Test(flow, pushes_and_pops)
{
	static const uint8_t code[][4] = {
		{TOY_PUSH, 9}, /* 0: overwrites what was below the stack */
		{TOY_PUSH, 1}, /* 1 */
		{TOY_POP, 2},  /* 2 */
		{TOY_POP, 3},  /* 3: the first one, which is not the value */
		{TOY_RET},     /* 4 */
	};
	static const struct flow_slot slot[] = {{SP, -16}, {SP, -15}, {SP, -1}, {SP, 0}};

	OPEN(code);
	solve(R(1), 64, slot, 4);
	expect_flow(0, R(1), SLOTS({SP, -16}, {SP, -15}, {SP, -1}, {SP, 0}));
	expect_flow(1, R(1), SLOTS({SP, -8}, {SP, 8}));
	expect_flow(2, R(1), SLOTS({SP, 0}, {SP, 16}));
	expect_flow(3, R(1) | R(2), SLOTS({SP, -8}, {SP, 8}));
	expect_flow(4, R(1) | R(2), SLOTS({SP, -16}, {SP, 0}));
	end_flow();
}

Test(flow, the_frame_pointers_slots_are_not_popped)
{
	static const uint8_t code[][4] = {
		{TOY_PUSH, 9}, /* 0 */
		{TOY_POP, 2},  /* 1 */
		{TOY_POP, SP}, /* 2: the stack is elsewhere then, by an unknown distance */
		{TOY_RET},     /* 3 */
	};
	static const struct flow_slot slot[] = {{FP, 0}, {SP, -8}};

	OPEN(code);
	solve(R(1), 64, slot, 2);
	expect_flow(1, R(1), SLOTS({FP, 0}));
	expect_flow(2, R(1), SLOTS({FP, 0}));
	expect_flow(3, R(1), SLOTS({FP, 0}));
	end_flow();
}

Test(flow, the_stack_moves)
{
	static const uint8_t code[][4] = {
		{TOY_ADDSP, 16},  /* 0 */
		{TOY_ALIGN},	  /* 1 */
		{TOY_MOV, 5, FP}, /* 2 */
		{TOY_MOV, FP, 5}, /* 3 */
		{TOY_RET},	  /* 4 */
	};
	static const struct flow_slot slot[] = {{SP, 24}, {FP, 8}, {SP, 0}, {FP, 16}};

	OPEN(code);
	solve(0, 64, slot, 4);
	expect_flow(1, 0, SLOTS({SP, 8}, {SP, -16}, {FP, 8}, {FP, 16}));
	expect_flow(2, 0, SLOTS({FP, 8}, {FP, 16}));
	expect_flow(3, 0, SLOTS({FP, 8}, {FP, 16}));
	expect_flow(4, 0, NULL);
	end_flow();
}

Test(flow, stores_overwrite_slots)
{
	static const uint8_t code[][4] = {
		{TOY_STORE, 9, 6, 16},	 /* 0 */
		{TOY_STORE4, 9, SP, 11}, /* 1 */
		{TOY_STORE, 9, SP, 16},	 /* 2 */
		{TOY_STORE, 9, FP, 64},	 /* 3 */
		{TOY_RET},		 /* 4 */
	};
	static const struct flow_slot edges[] = {{SP, 8}, {SP, 9}, {SP, 23}, {SP, 24}},
				      small[] = {{SP, 3}, {SP, 4}, {SP, 14}, {SP, 15}},
				      both[] = {{FP, 0}, {FP, 16}, {SP, 32}};

	OPEN(code);
	solve(0, 64, edges, 4);
	expect_flow(1, 0, SLOTS({SP, 8}, {SP, 9}, {SP, 23}, {SP, 24}));
	expect_flow(2, 0, SLOTS({SP, 23}, {SP, 24}));
	expect_flow(3, 0, SLOTS({SP, 24}));
	expect_flow(4, 0, NULL);
	free(states);
	solve(0, 64, small, 4);
	expect_flow(2, 0, SLOTS({SP, 3}, {SP, 15}));
	free(states);
	solve(0, 64, both, 3);
	expect_flow(1, 0, SLOTS({FP, 0}, {FP, 16}, {SP, 32}));
	expect_flow(2, 0, SLOTS({SP, 32}));
	end_flow();
}

/* 8 to 16 is next to the slot that is overwritten. */
Test(flow, slots_next_to_a_store_remain)
{
	static const uint8_t code[][4] = {{TOY_STORE, 9, SP, 16}, {TOY_RET}};
	static const struct flow_slot slot[] = {{SP, 9}, {SP, 8}, {SP, 24}, {SP, 23}};

	OPEN(code);
	solve(0, 64, slot, 4);
	expect_flow(1, 0, SLOTS({SP, 8}, {SP, 24}));
	end_flow();
}

Test(flow, there_is_room_for_four_slots)
{
	static const uint8_t code[][4] = {{TOY_STORE, 1, SP, 8}, {TOY_STORE, 1, SP, 40}, {TOY_RET}};
	static const struct flow_slot slot[] = {{SP, 8}, {SP, 8}, {SP, 16}, {SP, 24}},
				      four[] = {{SP, 8}, {SP, 16}, {SP, 24}, {SP, 32}};

	OPEN(code);
	solve(R(1), 64, slot, 4);
	expect_flow(0, R(1), SLOTS({SP, 8}, {SP, 16}, {SP, 24}));
	expect_flow(2, R(1), SLOTS({SP, 8}, {SP, 16}, {SP, 24}, {SP, 40}));
	free(states);
	solve(R(1), 64, four, 4);
	expect_flow(2, R(1), SLOTS({SP, 8}, {SP, 16}, {SP, 24}, {SP, 32}));
	end_flow();
}

Test(flow, paths_meet)
{
	static const uint8_t code[][4] = {
		{TOY_STORE, 1, SP, 8},	   /* 0 */
		{TOY_CBNZ, 9, TOY_TO(5)},  /* 1 */
		{TOY_MOV, 2, 1},	   /* 2 */
		{TOY_STORE, 1, SP, 24},	   /* 3 */
		{TOY_B, 0, TOY_TO(7)},	   /* 4 */
		{TOY_MOV, 3, 1},	   /* 5 */
		{TOY_STORE, 1, SP, 32},	   /* 6 */
		{TOY_MOV, 4, 1},	   /* 7 */
		{TOY_CBNZ, 9, TOY_TO(11)}, /* 8: a loop, at whose end 4 is something else */
		{TOY_MOV, 4, 9},	   /* 9 */
		{TOY_B, 0, TOY_TO(8)},	   /* 10 */
		{TOY_RET},		   /* 11 */
	};
	static const struct flow_slot slot[] = {{SP, 40}};
	const struct flow_root roots[] = {{0, R(1) | R(5), slot, 1}, {0, R(1), NULL, 0}};

	OPEN(code);
	solve(R(1), 64, NULL, 0);
	expect_flow(7, R(1), SLOTS({SP, 8}));
	expect_flow(8, R(1), SLOTS({SP, 8}));
	expect_flow(11, R(1), SLOTS({SP, 8}));
	free(states);
	/* Two roots are two paths. */
	states = flow_solve(&rig.p.cfg, roots, 2, 64);
	expect_flow(1, R(1), SLOTS({SP, 8}));
	free(states);
	states = flow_solve(&rig.p.cfg, roots, 1, 64);
	expect_flow(1, R(1) | R(5), SLOTS({SP, 8}, {SP, 40}));
	free(states);
	states = flow_solve(&rig.p.cfg, &(struct flow_root){toy_node(&rig, 7), R(1), NULL, 0}, 1,
			    64);
	cr_expect(!states[0].reached && states[toy_node(&rig, 11)].reached);
	end_flow();
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void expect_line(unsigned int from, const struct line_opts o, const char *want)
{
	struct line line;
	char got[256] = "";

	line_build(&rig.p.cfg, toy_node(&rig, from), &o, &line);
	for (unsigned int i = 0; i < line.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%d", i ? " " : "",
			 toy_at(&rig, line.v[i]));
	cr_expect_str_eq(got, want);
}

Test(line, ends)
{
	static const uint8_t code[][4] = {
		{TOY_NOP},		  /* 0 */
		{TOY_CALL, 0, TOY_TO(0)}, /* 1 */
		{TOY_CALLR, 1},		  /* 2 */
		{TOY_B, 0, TOY_TO(5)},	  /* 3 */
		{TOY_NOP},		  /* 4 */
		{TOY_CBNZ, 1, TOY_TO(7)}, /* 5 */
		{TOY_B, 0, TOY_TO(6)},	  /* 6: forever */
		{TOY_NOP},		  /* 7 */
		{TOY_B, 0, TOY_TO(8)},	  /* 8: forever */
	};

	OPEN(code);
	expect_line(0, (struct line_opts){0}, "0 1");
	expect_line(0, (struct line_opts){.through_calls = true}, "0 1 2 3");
	expect_line(2, (struct line_opts){.follow_jumps = true}, "2");
	expect_line(3, (struct line_opts){.follow_jumps = true}, "3 5");
	expect_line(3, (struct line_opts){0}, "3");
	expect_line(6, (struct line_opts){.follow_jumps = true}, "6");
	expect_line(7, (struct line_opts){0}, "7 8");
	expect_line(7, (struct line_opts){.follow_jumps = true}, "7 8");
	expect_line(4, (struct line_opts){0}, ""); /* not part of the graph */
	toy_close(&rig);
	check_no_leaks();
}

Test(line, has_a_greatest_length)
{
	static uint8_t code[PLAN_LINE_MAX + 2][4];
	struct line line;

	for (size_t i = 0; i < PLAN_LINE_MAX + 2; i++)
		code[i][0] = TOY_NOP;
	OPEN(code);
	line_build(&rig.p.cfg, 0, &(struct line_opts){0}, &line);
	cr_expect_eq(line.n, PLAN_LINE_MAX);
	toy_close(&rig);
}

/* The instruction that gets the site of a line from `from`; where: registers at each instruction */
static int site_on_line(unsigned int from, const struct flow_state *where, const uint8_t *harmless)
{
	const struct site_want want = {PYP_SITE_ENTER, "role", where, harmless};
	struct line line;
	int r;

	rig.plan.nsites = 0;
	line_build(&rig.p.cfg, toy_node(&rig, from), &(struct line_opts){0}, &line);
	r = line_site(&rig.p, &line, &want);
	if (r < 0)
		return r;
	cr_assert_eq(rig.plan.nsites, 1);
	return toy_site_at(&rig.plan.sites[0]);
}

Test(line, the_cheapest_instruction_gets_the_site)
{
	static const uint8_t code[][4] = {
		{TOY_MOV, 5, 6},	   /* 0: single-stepped */
		{TOY_NOP},		   /* 1: emulated */
		{TOY_PUSH, 1},		   /* 2 */
		{TOY_CBNZ, 9, TOY_TO(6)},  /* 3: a branch, which costs less */
		{TOY_NOP},		   /* 4 */
		{TOY_RET},		   /* 5 */
		{TOY_PAD},		   /* 6: better not */
		{TOY_MOV, 5, 6},	   /* 7 */
		{TOY_MOV, 5, 7},	   /* 8 */
		{TOY_CBNZ, 9, TOY_TO(12)}, /* 9 */
		{TOY_MOV, 5, 6},	   /* 10 */
		{TOY_RET},		   /* 11 */
		{TOY_RET},		   /* 12 */
	};
	struct flow_state where[13];

	OPEN(code);
	for (uint32_t i = 0; i < 13; i++)
		where[i] = (struct flow_state){.regs = R(1) | R(3), .reached = true};
	cr_expect_eq(site_on_line(0, where, NULL), 3);
	cr_expect_eq(rig.plan.sites[0].cost, PLAN_COST_EMULATED);
	cr_expect(rig.plan.sites[0].reg == 1 && !rig.plan.sites[0].deref);
	where[toy_node(&rig, 3)].regs = 0;
	cr_expect_eq(site_on_line(0, where, NULL), 1);
	where[toy_node(&rig, 1)].reached = false;
	cr_expect_eq(site_on_line(0, where, NULL), 2);
	rig.p.cfg.v[toy_node(&rig, 2)].doubtful = true;
	cr_expect_eq(site_on_line(0, where, NULL), 0);
	cr_expect_eq(rig.plan.sites[0].cost, PLAN_COST_STEPPED);
	cr_expect_eq(site_on_line(4, where, NULL), 4);
	where[toy_node(&rig, 9)].regs = 0;
	cr_expect_eq(site_on_line(6, where, NULL), 7);
	cr_expect_eq(site_on_line(10, where, NULL), 10);
	cr_expect_eq(site_on_line(12, where, NULL), -ENOENT);
	toy_close(&rig);
	check_no_leaks();
}

Test(line, nobody_jumps_into_a_line_before_its_site)
{
	static const uint8_t code[][4] = {
		{TOY_MOV, 5, 6},	  /* 0 */
		{TOY_MOV, 5, 7},	  /* 1 */
		{TOY_NOP},		  /* 2: 4 jumps here, too */
		{TOY_CBNZ, 9, TOY_TO(5)}, /* 3 */
		{TOY_B, 0, TOY_TO(2)},	  /* 4 */
		{TOY_RET},		  /* 5 */
	};
	uint8_t harmless[6] = {0};
	struct flow_state where[6];

	OPEN(code);
	for (uint32_t i = 0; i < 6; i++)
		where[i] = (struct flow_state){.regs = R(1), .reached = true};
	cr_expect_eq(site_on_line(0, where, NULL), 0);
	cr_expect_eq(site_on_line(0, where, harmless), 0);
	harmless[toy_node(&rig, 2)] = 1; /* which does not make the jump there harmless */
	cr_expect_eq(site_on_line(0, where, harmless), 0);
	harmless[toy_node(&rig, 4)] = 1;
	cr_expect_eq(site_on_line(0, where, harmless), 3);
	/* Where the line begins, others may jump to. */
	cr_expect_eq(site_on_line(2, where, NULL), 3);
	rig.p.cfg.v[toy_node(&rig, 3)].root = true;
	cr_expect_eq(site_on_line(2, where, NULL), 2);
	harmless[toy_node(&rig, 3)] = 1;
	cr_expect_eq(site_on_line(2, where, harmless), 3);
	toy_close(&rig);
	check_no_leaks();
}

Test(line, sites)
{
	static const uint8_t code[][4] = {{TOY_CBNZ, 9, TOY_TO(2)}, {TOY_RET}, {TOY_RET}};
	struct flow_state at = {.reached = true, .nslots = 2, .slot = {{SP, -24}, {FP, 8}}};
	const struct plan_site *s = &rig.plan.sites[0];

	OPEN(code);
	assert_ok(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_YIELD, "a role", &at));
	cr_expect(s->vaddr == TOY_CODE && s->target == TOY_CODE + 8 && s->len == 4);
	cr_expect(s->deref && s->reg == SP && s->disp == -24 && s->kind == PYP_SITE_YIELD);
	cr_expect_str_eq(s->role, "a role");
	cr_expect_arr_eq(s->bytes, code[0], 4);
	cr_expect_eq(s->insn[0], 't');
	/* The same again, then others at the same place */
	assert_ok(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_YIELD, "again", &at));
	cr_expect_eq(rig.plan.nsites, 1);
	assert_ok(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_LEAVE, "a role", &at));
	cr_expect_eq(rig.plan.nsites, 2);
	at.slot[0].disp = 24;
	assert_ok(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_YIELD, "a role", &at));
	cr_expect_eq(rig.plan.nsites, 3);
	at.slot[0].base = FP;
	assert_ok(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_YIELD, "a role", &at));
	assert_ok(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_YIELD, "a role", &at));
	cr_expect_eq(rig.plan.nsites, 4);
	at.regs = R(3);
	rig.plan.nsites = PYP_MAX_SITES - 1;
	assert_ok(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_YIELD, "a role", &at));
	cr_expect(rig.plan.sites[PYP_MAX_SITES - 1].reg == 3);
	at.regs = R(4);
	assert_err(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_YIELD, "a role", &at), -E2BIG);
	/* Nowhere, or no probe is possible. */
	rig.plan.nsites = 0;
	assert_err(site_add(&rig.p, &rig.p.cfg, toy_node(&rig, 1), PYP_SITE_YIELD, "", &at),
		   -ENOENT);
	rig.p.cfg.v[0].doubtful = true;
	assert_err(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_YIELD, "", &at), -ENOENT);
	rig.p.cfg.v[0].doubtful = false;
	at = (struct flow_state){.regs = R(1)};
	assert_err(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_YIELD, "", &at), -ENOENT);
	at = (struct flow_state){.reached = true};
	assert_err(site_add(&rig.p, &rig.p.cfg, 0, PYP_SITE_YIELD, "", &at), -ENOENT);
	cr_expect_eq(rig.plan.nsites, 0);
	toy_close(&rig);
	check_no_leaks();
}

/* ---- comparisons ---------------------------------------------------------------------------- */

Test(paths, the_comparison_before_a_branch)
{
	static const uint8_t code[][4] = {
		{TOY_LOAD, 11, 20, 168},	 /* 0 */
		{TOY_LOADG, 12, TOY_TO_DATA(0)}, /* 1 */
		{TOY_ADD, 12, 1},		 /* 2 */
		{TOY_CMP, 11, 12},		 /* 3 */
		{TOY_MOV, 5, 6},		 /* 4 */
		{TOY_BEQ, 0, TOY_TO(8)},	 /* 5 */
		{TOY_BLT, 0, TOY_TO(8)},	 /* 6: tests no equality */
		{TOY_BNE, 0, TOY_TO(8)},	 /* 7: after a branch */
		{TOY_BEQ, 0, TOY_TO(10)},	 /* 8: several lead here */
		{TOY_CBNZ, 5, TOY_TO(10)},	 /* 9: compares itself */
		{TOY_RET},			 /* 10 */
	};
	struct comparison c;

	OPEN(code);
	cr_assert(planner_compared(&rig.p, toy_node(&rig, 5), &c));
	cr_expect_eq(toy_at(&rig, c.node), 3);
	cr_expect(c.value[0].type == INSN_OP_MEM && c.value[0].reg == 20 &&
		  c.value[0].value == 168);
	/* 12 was computed. */
	cr_expect(c.value[1].type == INSN_OP_REG && c.value[1].reg == 12);
	cr_expect_eq(c.changed, R(5) | R(11) | R(12));
	cr_expect_not(planner_compared(&rig.p, toy_node(&rig, 4), &c));
	cr_expect_not(planner_compared(&rig.p, toy_node(&rig, 6), &c));
	cr_expect_not(planner_compared(&rig.p, toy_node(&rig, 7), &c));
	cr_expect_not(planner_compared(&rig.p, toy_node(&rig, 8), &c));
	cr_assert(planner_compared(&rig.p, toy_node(&rig, 9), &c));
	cr_expect(toy_at(&rig, c.node) == 9 && c.changed == 0 && c.in.op[0].reg == 5);
	rig.p.cfg.v[toy_node(&rig, 5)].in.cond = INSN_COND_OTHER;
	cr_expect_not(planner_compared(&rig.p, toy_node(&rig, 5), &c));
	rig.p.cfg.v[toy_node(&rig, 5)].in.cond = INSN_COND_EQUAL;
	/* Code that is not in the graph may jump between the comparison and the branch. */
	rig.p.cfg.v[toy_node(&rig, 4)].root = true;
	cr_expect_not(planner_compared(&rig.p, toy_node(&rig, 5), &c));
	toy_close(&rig);
	check_no_leaks();
}

/* Registers are not followed to memory where memory can be compared. */
Test(paths, the_comparison_of_memory)
{
	static const uint8_t code[][4] = {
		{TOY_LOAD, 11, 20, 168},  /* 0 */
		{TOY_CMPM, 11, 20, 16},	  /* 1 */
		{TOY_BNE, 0, TOY_TO(4)},  /* 2 */
		{TOY_CBNZ, 5, TOY_TO(4)}, /* 3: sets no flags */
		{TOY_RET},		  /* 4 */
	};
	struct arch arch = toy_arch;
	struct comparison c;

	arch.load_store = arch.compare_branch = false;
	OPEN(code, .arch = &arch);
	cr_assert(planner_compared(&rig.p, toy_node(&rig, 2), &c));
	cr_expect(c.value[0].type == INSN_OP_MEM && c.value[0].value == 16);
	cr_expect(c.value[1].type == INSN_OP_REG && c.value[1].reg == 11);
	cr_expect_eq(c.changed, 0);
	cr_expect_not(planner_compared(&rig.p, toy_node(&rig, 3), &c));
	toy_close(&rig);
}

/* This many instructions are between comparison and branch, and between load and comparison. */
static bool is_compared(unsigned int before, unsigned int after, bool *loaded)
{
	static uint8_t code[3 * PLAN_BACK_MAX][4];
	struct comparison c;
	unsigned int n = 0;
	bool ret;

	memcpy(code[n++], (const uint8_t[4]){TOY_LOAD, 5, 20, 8}, 4);
	while (n <= before)
		memcpy(code[n++], (const uint8_t[4]){TOY_NOP}, 4);
	memcpy(code[n++], (const uint8_t[4]){TOY_CMPI, 5, 1}, 4);
	while (n < before + 2 + after)
		memcpy(code[n++], (const uint8_t[4]){TOY_NOP}, 4);
	memcpy(code[n++], (const uint8_t[4]){TOY_BEQ, 0, TOY_TO(0)}, 4);
	toy_open(&rig, &(struct toy_program){.code = code, .n = n});
	ret = planner_compared(&rig.p, toy_node(&rig, n - 1), &c);
	*loaded = ret && c.value[0].type == INSN_OP_MEM;
	toy_close(&rig);
	return ret;
}

Test(paths, comparisons_are_near)
{
	bool loaded;

	cr_expect(is_compared(0, PLAN_BACK_MAX - 1, &loaded) && loaded);
	cr_expect_not(is_compared(0, PLAN_BACK_MAX, &loaded));
	cr_expect(is_compared(PLAN_BACK_MAX - 1, 0, &loaded) && loaded);
	cr_expect(is_compared(PLAN_BACK_MAX, 0, &loaded) && !loaded);
}

/* Only a load of the whole line is followed. */
Test(paths, what_was_not_loaded_from_memory)
{
	static const uint8_t code[][4] = {
		{TOY_LOAD, 5, 20, 8},	 /* 0 */
		{TOY_MOV, 5, 6},	 /* 1: copied */
		{TOY_CMPI, 5, 1},	 /* 2 */
		{TOY_BEQ, 0, TOY_TO(9)}, /* 3 */
		{TOY_LEA, 5, 20, 8},	 /* 4: computed */
		{TOY_CMPI, 5, 1},	 /* 5 */
		{TOY_BEQ, 0, TOY_TO(9)}, /* 6 */
		{TOY_CMPM4, 1, 20, 8},	 /* 7: is memory */
		{TOY_BEQ, 0, TOY_TO(9)}, /* 8 */
		{TOY_RET},		 /* 9 */
	};
	struct comparison c;

	OPEN(code);
	cr_expect(planner_compared(&rig.p, toy_node(&rig, 3), &c) && c.value[0].reg == 5 &&
		  c.changed == 0);
	cr_expect(planner_compared(&rig.p, toy_node(&rig, 6), &c) && c.value[0].reg == 5 &&
		  c.changed == 0);
	cr_expect(planner_compared(&rig.p, toy_node(&rig, 8), &c) &&
		  c.value[0].type == INSN_OP_MEM && c.changed == 0);
	toy_close(&rig);
}

Test(paths, what_a_set_depends_on)
{
	static const uint8_t code[][4] = {
		{TOY_CMP, 3, 4}, /* 0 */
		{TOY_MOV, 5, 6}, /* 1 */
		{TOY_SNE, 7},	 /* 2 */
		{TOY_CALLR, 1},	 /* 3 */
		{TOY_SEQ, 8},	 /* 4: after a call */
		{TOY_RET},	 /* 5 */
	};
	struct comparison c;

	OPEN(code);
	cr_assert(planner_set_by(&rig.p, toy_node(&rig, 2), &c));
	cr_expect(toy_at(&rig, c.node) == 0 && c.changed == R(5));
	cr_expect(c.value[0].reg == 3 && c.value[1].reg == 4);
	cr_expect_not(planner_set_by(&rig.p, toy_node(&rig, 1), &c));
	cr_expect_not(planner_set_by(&rig.p, toy_node(&rig, 4), &c));
	toy_close(&rig);
	check_no_leaks();
}

Test(paths, comparisons_with_zero)
{
	static const struct insn_operand reg = {.type = INSN_OP_REG, .reg = 3, .bits = 32},
					 wide = {.type = INSN_OP_REG, .reg = 3, .bits = 64},
					 other = {.type = INSN_OP_REG, .reg = 4, .bits = 32},
					 mem = {.type = INSN_OP_MEM, .reg = 3, .bits = 32},
					 zero = {.type = INSN_OP_IMM},
					 one = {.type = INSN_OP_IMM, .value = 1};
	const struct {
		enum insn_kind kind;
		struct insn_operand op[2];
		bool want;
	} v[] = {
		{INSN_TEST, {reg, reg}, true},	   {INSN_TEST, {reg, other}, false},
		{INSN_TEST, {reg, wide}, false},   {INSN_TEST, {mem, mem}, false},
		{INSN_TEST, {reg, mem}, false},	   {INSN_TEST, {mem, reg}, false},
		{INSN_COMPARE, {reg, zero}, true}, {INSN_COMPARE, {reg, one}, false},
		{INSN_COMPARE, {reg, reg}, false}, {INSN_COMPARE, {mem, zero}, true},
		{INSN_AND, {reg, zero}, false},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		const struct comparison c = {
			.in = {.kind = v[i].kind, .op = {v[i].op[0], v[i].op[1]}}};

		cr_expect_eq(planner_tests_zero(&c), v[i].want, "%zu", i);
	}
}

/* ---- paths ---------------------------------------------------------------------------------- */

Test(paths, what_seen_nodes_do)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 1, TOY_TO(2)},  /* 0 */
		{TOY_RET},		   /* 1 */
		{TOY_CBNZ, 1, TOY_TO(4)},  /* 2 */
		{TOY_BR, 1},		   /* 3 */
		{TOY_B, 0, TOY_TO_PLT(0)}, /* 4: a tail call */
	};
	/* Only this instruction is seen: does it return, dispatch? */
	static const struct {
		bool returns, dispatches;
	} want[] = {{false, false}, {true, false}, {false, false}, {false, true}, {true, false}};

	OPEN(code, .plt = {"strlen"});
	for (unsigned int i = 0; i < 5; i++) {
		uint8_t seen[5] = {0};

		seen[toy_node(&rig, i)] = 1;
		cr_expect_eq(planner_any_flow(&rig.p.cfg, seen, true, false), want[i].returns);
		cr_expect_eq(planner_any_flow(&rig.p.cfg, seen, false, true), want[i].dispatches);
		cr_expect_eq(planner_any_flow(&rig.p.cfg, seen, true, true),
			     want[i].returns || want[i].dispatches);
		cr_expect_not(planner_any_flow(&rig.p.cfg, seen, false, false));
	}
	toy_close(&rig);
	check_no_leaks();
}

static void expect_marks(const uint8_t *marks, const char *want)
{
	for (unsigned int i = 0; want[i]; i++)
		if (toy_node(&rig, i) != CFG_NONE)
			cr_expect_eq(marks[toy_node(&rig, i)], want[i] == '1', "%s: %u", want, i);
}

Test(paths, from_handlers_and_to_marks)
{
	static const uint8_t code[][4] = {
		{TOY_NOP},		  /* 0 */
		{TOY_RET},		  /* 1 */
		{TOY_NOP},		  /* 2: handler 5 */
		{TOY_B, 0, TOY_TO(6)},	  /* 3 */
		{TOY_CBNZ, 1, TOY_TO(7)}, /* 4: handler 6 */
		{TOY_NOP},		  /* 5 */
		{TOY_NOP},		  /* 6 */
		{TOY_RET},		  /* 7 */
	};
	uint8_t seen[8] = {0}, all[8] = {0}, blocked[8] = {0}, mark[8] = {0}, stop[8] = {0};

	OPEN(code, .handler = {{5, 2}, {6, 4}});
	rig.plan.nsites = 3;
	rig.plan.sites[0] = (struct plan_site){.vaddr = TOY_PLT, .kind = PYP_SITE_LEAVE};
	rig.plan.sites[1] = (struct plan_site){.vaddr = TOY_CODE + 20, .kind = PYP_SITE_ENTER};
	rig.plan.sites[2] = (struct plan_site){.vaddr = TOY_CODE + 12, .kind = PYP_SITE_LEAVE};
	planner_block_sites(&rig.p, 1u << PYP_SITE_LEAVE, blocked);
	expect_marks(blocked, "00010000");
	assert_ok(planner_reach_all(&rig.p, true, toy_node(&rig, 4), blocked, seen));
	expect_marks(seen, "11100000");
	assert_ok(planner_reach_all(&rig.p, false, CFG_NONE, NULL, all));
	expect_marks(all, "00111111");
	mark[toy_node(&rig, 7)] = 1;
	stop[toy_node(&rig, 5)] = 1;
	planner_lead_to(&rig.p, stop, mark);
	expect_marks(mark, "00111011");
	planner_lead_to(&rig.p, NULL, mark);
	expect_marks(mark, "00111111");
	cr_expect(node(0)->root && node(2)->root && node(4)->root && !node(6)->root);
	toy_close(&rig);
	cr_expect_eq(cfg_find(&rig.p.cfg, TOY_CODE), CFG_NONE);
	check_no_leaks();
}

Test(paths, sites_on_edges)
{
	static const uint8_t code[][4] = {
		{TOY_BEQ, 0, TOY_TO(1)},  /* 0 */
		{TOY_CBNZ, 1, TOY_TO(2)}, /* 1: no condition to be evaluated */
		{TOY_NOP},		  /* 2 */
		{TOY_BNE, 0, TOY_TO(4)},  /* 3 */
		{TOY_RET},		  /* 4 */
	};
	const struct plan_site *s = rig.plan.sites;

	OPEN(code);
	assert_ok(planner_edge_site(&rig.p, toy_node(&rig, 0), true, PYP_SITE_LEAVE, "x"));
	assert_err(planner_edge_site(&rig.p, toy_node(&rig, 0), true, PYP_SITE_LEAVE, "x"),
		   -ENOENT);
	assert_err(planner_edge_site(&rig.p, toy_node(&rig, 1), true, PYP_SITE_LEAVE, "x"),
		   -ENOENT);
	assert_err(planner_edge_site(&rig.p, toy_node(&rig, 2), true, PYP_SITE_LEAVE, "x"),
		   -ENOENT);
	assert_ok(planner_edge_site(&rig.p, toy_node(&rig, 3), false, PYP_SITE_LEAVE, "x"));
	cr_assert_eq(rig.plan.nsites, 2);
	cr_expect(toy_site_at(&s[0]) == 0 && s[0].has_cc && s[0].cc == 1 && s[0].taken);
	cr_expect(toy_site_at(&s[1]) == 3 && s[1].has_cc && s[1].cc == 0 && !s[1].taken);
	rig.plan.nsites = 0;
	rig.p.cfg.v[0].in.probe = INSN_STEPPED;
	assert_err(planner_edge_site(&rig.p, 0, true, PYP_SITE_LEAVE, "x"), -ENOENT);
	rig.p.cfg.v[0].in.probe = INSN_EMULATED;
	rig.p.frame[0].regs = 0;
	assert_err(planner_edge_site(&rig.p, 0, true, PYP_SITE_LEAVE, "x"), -ENOENT);
	cr_expect_eq(rig.plan.nsites, 0);
	toy_close(&rig);
	check_no_leaks();
}

/* ---- cuts ----------------------------------------------------------------------------------- */

/*
 * A cut before the open ends, of the instructions marked '1'; '2' is an end that needs no cut. Its
 * nodes and registers as text: "3:1 7:1"; "none".
 */
static const char *cut(const char *marks, bool direct, int reg)
{
	static char got[256];
	_cleanup_free_ uint8_t *ends = planner_bytes(&rig.p), *open = planner_bytes(&rig.p),
			       *in = planner_bytes(&rig.p);
	struct cut c = {.ends = ends, .open = open, .in = in, .direct = direct, .end_reg = reg};
	bool ok;

	cr_assert(ends && open && in);
	for (unsigned int i = 0; marks[i]; i++) {
		uint32_t n = toy_node(&rig, i);

		if (n == CFG_NONE)
			continue;
		ends[n] = marks[i] != '0';
		open[n] = marks[i] == '1';
	}
	assert_ok(cut_find(&rig.p, &c, &ok));
	if (!ok)
		return "none";
	got[0] = '\0';
	for (unsigned int k = 0; k < c.n; k++) {
		cr_expect(in[c.node[k]]);
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%d:%u", k ? " " : "",
			 toy_at(&rig, c.node[k]), c.reg[k]);
	}
	return got;
}

Test(cut, the_nearest_instruction_before_an_end)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 9, TOY_TO(8)}, /* 0 */
		{TOY_B, 0, TOY_TO(2)},	  /* 1 */
		{TOY_CALLR, 17},	  /* 2 */
		{TOY_NOP},		  /* 3 */
		{TOY_B, 0, TOY_TO(5)},	  /* 4 */
		{TOY_MOV, 1, 16},	  /* 5 */
		{TOY_MOV, 17, 1},	  /* 6: the end */
		{TOY_BR, 9},		  /* 7 */
		{TOY_RET},		  /* 8 */
	};

	OPEN(code);
	cr_expect_str_eq(cut("0000001", false, 1), "4:16");
	cr_expect_str_eq(cut("0000001", true, 1), "4:16");
	/* A register that is not copied there */
	cr_expect_str_eq(cut("0000001", false, 3), "4:3");
	cr_expect_str_eq(cut("0000001", false, 0), "4:0");
	rig.p.cfg.v[toy_node(&rig, 4)].doubtful = true;
	cr_expect_str_eq(cut("0000001", false, 1), "3:16");
	/* There is a call between the other branch and the end. */
	cr_expect_str_eq(cut("0000001", true, 1), "none");
	rig.p.cfg.v[toy_node(&rig, 4)].doubtful = false;
	rig.p.cfg.v[toy_node(&rig, 4)].in.probe = INSN_STEPPED;
	cr_expect_str_eq(cut("0000001", false, 1), "3:16");
	/* Nothing to cut */
	cr_expect_str_eq(cut("0000002", false, 1), "");
	toy_close(&rig);
	check_no_leaks();
}

/* No register: something else is written to it, or at one of the ends. */
Test(cut, needs_the_value_in_a_register)
{
	static const uint8_t code[][4] = {
		{TOY_NOP},		  /* 0 */
		{TOY_CBNZ, 9, TOY_TO(5)}, /* 1 */
		{TOY_LOAD, 1, 16, 8},	  /* 2 */
		{TOY_BR, 9},		  /* 3: an end */
		{TOY_RET},		  /* 4 */
		{TOY_MOV, 1, 16},	  /* 5 */
		{TOY_BR, 9},		  /* 6: another */
	};

	OPEN(code);
	cr_expect_str_eq(cut("0000001", false, 1), "none");
	cr_expect_str_eq(cut("0001001", false, 1), "none");
	cr_expect_str_eq(cut("0001001", false, 2), "1:2");
	/* Memory at the stack pointer is no register to be read. */
	cr_expect_str_eq(cut("0001001", false, SP), "none");
	toy_close(&rig);
	check_no_leaks();
}

static int value_of_two(const struct planner *p, uint32_t i)
{
	return p->cfg.v[i].in.vaddr == TOY_CODE + 12 ? 2 : 3;
}

/* The ends have the value in different registers. */
Test(cut, asks_each_end_for_its_register)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 9, TOY_TO(4)}, /* 0 */
		{TOY_MOV, 2, 17},	  /* 1 */
		{TOY_MOV, 3, 18},	  /* 2 */
		{TOY_BR, 9},		  /* 3 */
		{TOY_MOV, 3, 17},	  /* 4 */
		{TOY_MOV, 2, 18},	  /* 5 */
		{TOY_BR, 9},		  /* 6 */
	};
	uint8_t ends[7] = {0}, in[7] = {0};
	struct cut c = {.ends = ends, .open = ends, .in = in, .value_at = value_of_two};
	bool ok;

	OPEN(code);
	ends[toy_node(&rig, 3)] = ends[toy_node(&rig, 6)] = 1;
	/* The entry is a root, but the cut is there. */
	assert_ok(cut_find(&rig.p, &c, &ok));
	cr_expect(ok && c.n == 1 && c.reg[0] == 17 && toy_at(&rig, c.node[0]) == 0);
	toy_close(&rig);
	check_no_leaks();
}

Test(cut, does_not_reach_a_root_or_lead_elsewhere)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 9, TOY_TO(4)}, /* 0: leads elsewhere */
		{TOY_MOV, 5, 6},	  /* 1 */
		{TOY_MOV, 5, 7},	  /* 2: an end */
		{TOY_BR, 9},		  /* 3 */
		{TOY_RET},		  /* 4 */
		{TOY_MOV, 5, 6},	  /* 5: a handler */
		{TOY_BR, 9},		  /* 6: its end */
		{TOY_NOP},		  /* 7: another */
		{TOY_MOV, 5, 6},	  /* 8 */
		{TOY_MOV, 5, 6},	  /* 9 */
		{TOY_BR, 9},		  /* 10: its end */
	};

	OPEN(code, .handler = {{5, 5}, {6, 7}});
	cr_expect_str_eq(cut("001", false, 1), "none");
	cr_expect_str_eq(cut("0000001", false, 1), "none");
	cr_expect_str_eq(cut("00000000001", false, 1), "7:1");
	/* Between cut and end is another end, which needs no cut. */
	cr_expect_str_eq(cut("00000000201", false, 1), "none");
	toy_close(&rig);
	check_no_leaks();
}

Test(cut, is_passed_once)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 9, TOY_TO(9)},  /* 0 */
		{TOY_BNE, 0, TOY_TO(3)},   /* 1: before 3, and before 2 */
		{TOY_NOP},		   /* 2: before 3 */
		{TOY_MOV, 5, 6},	   /* 3: the end */
		{TOY_BR, 9},		   /* 4 */
		{TOY_MOV, 5, 6},	   /* 5: a handler */
		{TOY_B, 0, TOY_TO(7)},	   /* 6 */
		{TOY_MOV, 5, 6},	   /* 7: its end */
		{TOY_BR, 9},		   /* 8 */
		{TOY_CBNZ, 9, TOY_TO(14)}, /* 9 */
		{TOY_MOV, 5, 6},	   /* 10 */
		{TOY_NOP},		   /* 11 */
		{TOY_B, 0, TOY_TO(15)},	   /* 12: before 15 */
		{TOY_BR, 9},		   /* 13 */
		{TOY_BEQ, 0, TOY_TO(11)},  /* 14: before 15, and before 12 */
		{TOY_MOV, 5, 6},	   /* 15: the end */
		{TOY_BR, 9},		   /* 16 */
	};

	OPEN(code, .handler = {{5, 5}});
	cr_expect_str_eq(cut("0001", false, 20), "none");
	cr_expect_str_eq(cut("0000000000000001", false, 20), "none");
	cr_expect_str_eq(cut("00000001", false, 20), "6:20");
	toy_close(&rig);
	check_no_leaks();
}

/* ---- a graph without room ------------------------------------------------------------------- */

Test(graph, is_full)
{
	static const uint8_t code[][4] = {
		{TOY_CBNZ, 9, TOY_TO(5)}, /* 0 */
		{TOY_MOV, 16, 1},	  /* 1 */
		{TOY_BNE, 0, TOY_TO(3)},  /* 2 */
		{TOY_MOV, 5, 1},	  /* 3: an end; others jump here */
		{TOY_BR, 9},		  /* 4 */
		{TOY_B, 0, TOY_TO(3)},	  /* 5 */
	};
	uint8_t *mark;
	struct flow_state *where;

	full = true;
	OPEN(code);
	cr_expect_str_eq(cut("0001", false, 1), "2:1 5:1");
	cr_expect_str_eq(cut("0001", true, 1), "2:1 5:1");
	mark = planner_bytes(&rig.p);
	mark[toy_node(&rig, 4)] = 1;
	planner_lead_to(&rig.p, NULL, mark);
	expect_marks(mark, "111111");
	cr_expect(planner_any_flow(&rig.p.cfg, mark, false, true));
	cr_expect_not(planner_any_flow(&rig.p.cfg, mark, true, false));
	free(mark);
	where = calloc(rig.p.cfg.n, sizeof(*where));
	cr_assert(where);
	for (unsigned int i = 0; i < 5; i++)
		where[toy_node(&rig, i)] = (struct flow_state){.reached = true, .regs = R(1)};
	cr_expect_eq(site_on_line(3, where, NULL), 3);
	cr_expect_eq(site_on_line(1, where, NULL), 2);
	rig.p.cfg.v[toy_node(&rig, 2)].in.flow = INSN_NEXT;
	cr_expect_eq(site_on_line(2, where, NULL), 2);
	free(where);
	toy_close(&rig);
	check_no_leaks();
}
