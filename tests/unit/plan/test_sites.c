// SPDX-License-Identifier: BSD-2-Clause
/*
 * The sites of each group of events, in handlers of the made-up instruction set (harness/toy.h): forms
 * that known compilers do not generate, and what is refused.
 */
#include <errno.h>

#include "elf/image.h"
#include "harness/test.h"
#include "harness/toy.h"
#include "python/layout.h"

#define SP    TOY_SP
#define ZERO  TOY_ZERO
#define FRAME TOY_FRAME

static struct toy_rig rig;

static bool full; /* see harness/toy.h */

#define OPEN(code_, ...)                                                                           \
	toy_open(&rig, &(struct toy_program){TOY_CODE_OF(code_), .full = full, __VA_ARGS__})

static void end(void)
{
	toy_close(&rig);
	check_no_leaks();
}

static const struct plan_site *site_at(unsigned int at)
{
	for (unsigned int i = 0; i < rig.plan.nsites; i++)
		if (toy_site_at(&rig.plan.sites[i]) == (int)at)
			return &rig.plan.sites[i];
	cr_assert_fail("no site at %u", at);
	return NULL;
}

static void expect_site(unsigned int at, enum pyp_site_kind kind, const char *role, int reg)
{
	const struct plan_site *s = site_at(at);

	cr_expect_eq(s->kind, kind, "%u: kind %d", at, s->kind);
	cr_expect_str_eq(s->role, role);
	cr_expect(s->reg == reg && !s->deref, "%u: register %u", at, s->reg);
}

/* taken: -1: no condition */
static void expect_condition(unsigned int at, int cc, int taken)
{
	const struct plan_site *s = site_at(at);

	cr_expect_eq(s->has_cc, taken >= 0, "%u", at);
	cr_expect_eq(s->cc, cc, "%u: condition %u", at, s->cc);
	cr_expect_eq(s->taken, taken > 0, "%u", at);
}

static void expect_missing(int r, const char *text)
{
	assert_err(r, -ENOEXEC);
	cr_expect(strstr(rig.p.missing, text), "%s", rig.p.missing);
}

/* ---- RESUME --------------------------------------------------------------------------------- */

/* RESUME, RESUME_CHECK and INSTRUMENTED_RESUME of 3.13 */
#define RESUMES                                                                                    \
	{                                                                                          \
		{149, 2}, {207, 8},                                                                \
		{                                                                                  \
			236, 13                                                                    \
		}                                                                                  \
	}

static void expect_restart(unsigned int at, bool restarts, bool if_unequal)
{
	const struct plan_site *s = site_at(at);

	cr_expect_eq(s->restarts, restarts, "%u", at);
	cr_expect_eq(s->if_unequal, if_unequal, "%u", at);
}

Test(resume, counts_if_the_versions_are_equal)
{
	static const uint8_t code[][4] = {
		{TOY_NOP},		    /* 0 */
		{TOY_RET},		    /* 1 */
		{TOY_LOAD, 12, FRAME, 168}, /* 2: RESUME */
		{TOY_CMP, 12, 13},	    /* 3 */
		{TOY_BEQ, 0, TOY_TO(7)},    /* 4 */
		{TOY_CALL, 0, TOY_TO(1)},   /* 5 */
		{TOY_B, 0, TOY_TO(2)},	    /* 6: again */
		{TOY_BR, 9},		    /* 7 */
		{TOY_LOAD, 12, FRAME, 168}, /* 8: RESUME_CHECK */
		{TOY_CMP, 13, 12},	    /* 9 */
		{TOY_BNE, 0, TOY_TO(12)},   /* 10 */
		{TOY_BR, 9},		    /* 11 */
		{TOY_B, 0, TOY_TO(2)},	    /* 12: RESUME, whose site is passed */
		{TOY_LOAD, 12, FRAME, 168}, /* 13: INSTRUMENTED_RESUME */
		{TOY_CMP, 12, 13},	    /* 14 */
		{TOY_BNE, 0, TOY_TO(17)},   /* 15 */
		{TOY_BR, 9},		    /* 16 */
		{TOY_BR, 9},		    /* 17 */
	};

	OPEN(code, .handler = RESUMES);
	assert_ok(models_plan_resume(&rig.p));
	cr_expect_eq(rig.plan.nsites, 3);
	expect_site(4, PYP_SITE_ENTER, "RESUME", FRAME);
	expect_condition(4, 1, true);
	expect_restart(4, false, true);
	expect_site(10, PYP_SITE_ENTER, "RESUME_CHECK", FRAME);
	expect_condition(10, 0, false);
	expect_restart(10, false, true);
	expect_site(15, PYP_SITE_ENTER, "INSTRUMENTED_RESUME", FRAME);
	expect_condition(15, 0, -1);
	expect_restart(15, true, true);
	cr_expect_str_eq(rig.plan.twice, "");
	/* Without versions there is no comparison of them, and no handler is left. */
	rig.layout.code_version = 0;
	rig.plan.nsites = 0;
	assert_ok(models_plan_resume(&rig.p));
	expect_condition(4, 0, -1);
	expect_restart(4, false, false);
	expect_restart(15, false, false);
	end();
}

/* RESUME_CHECK ends in a copy of RESUME, without its site, and RESUME runs into another one. */
Test(resume, another_site_may_follow)
{
	static const uint8_t code[][4] = {
		{TOY_NOP},		    /* 0 */
		{TOY_RET},		    /* 1 */
		{TOY_LOAD, 12, FRAME, 168}, /* 2: RESUME */
		{TOY_CMP, 12, 13},	    /* 3 */
		{TOY_BEQ, 0, TOY_TO(7)},    /* 4 */
		{TOY_NOP},		    /* 5 */
		{TOY_BR, 9},		    /* 6 */
		{TOY_B, 0, TOY_TO(8)},	    /* 7 */
		{TOY_LOAD, 12, FRAME, 168}, /* 8: RESUME_CHECK */
		{TOY_CMP, 13, 12},	    /* 9 */
		{TOY_BEQ, 0, TOY_TO(12)},   /* 10 */
		{TOY_BR, 9},		    /* 11 */
		{TOY_BR, 9},		    /* 12 */
		{TOY_NOP},		    /* 13: INSTRUMENTED_RESUME */
		{TOY_BR, 9},		    /* 14 */
	};

	OPEN(code, .handler = RESUMES);
	assert_ok(models_plan_resume(&rig.p));
	expect_condition(4, 1, true);
	expect_condition(10, 0, -1);
	expect_restart(10, true, true);
	expect_restart(13, true, false);
	cr_expect_str_eq(rig.plan.twice, "RESUME");
	end();
}

/* Only the edge that counts leads to another site. */
Test(resume, what_follows_the_other_edge_does_not_matter)
{
	static const uint8_t code[][4] = {
		{TOY_NOP},		    /* 0 */
		{TOY_RET},		    /* 1 */
		{TOY_LOAD, 12, FRAME, 168}, /* 2: RESUME */
		{TOY_CMP, 12, 13},	    /* 3 */
		{TOY_BEQ, 0, TOY_TO(7)},    /* 4 */
		{TOY_B, 0, TOY_TO(13)},	    /* 5 */
		{TOY_BR, 9},		    /* 6 */
		{TOY_BR, 9},		    /* 7 */
		{TOY_LOAD, 12, FRAME, 168}, /* 8: RESUME_CHECK */
		{TOY_CMP, 13, 12},	    /* 9 */
		{TOY_BNE, 0, TOY_TO(12)},   /* 10 */
		{TOY_B, 0, TOY_TO(2)},	    /* 11 */
		{TOY_B, 0, TOY_TO(13)},	    /* 12 */
		{TOY_NOP},		    /* 13: INSTRUMENTED_RESUME */
		{TOY_BR, 9},		    /* 14 */
	};

	OPEN(code, .handler = RESUMES);
	assert_ok(models_plan_resume(&rig.p));
	expect_condition(4, 1, true);
	expect_condition(10, 0, false);
	cr_expect_str_eq(rig.plan.twice, "RESUME_CHECK");
	/* There is code of RESUME_CHECK, but nobody executes it. */
	rig.layout.unspecialized = true;
	rig.plan.nsites = 0;
	rig.plan.twice[0] = '\0';
	assert_ok(models_plan_resume(&rig.p));
	cr_expect_str_eq(rig.plan.twice, "");
	end();
}

/* None of these compares the version. */
Test(resume, other_comparisons)
{
	static const uint8_t load[][4] = {{TOY_LOAD, 12, FRAME, 160},
					  {TOY_LOADB, 12, FRAME, 168},
					  {TOY_MOV, 12, FRAME},
					  {TOY_LOAD, 12, FRAME, 168}};

	for (size_t i = 0; i < 4; i++) {
		uint8_t code[][4] = {
			{TOY_NOP},		 /* 0 */
			{TOY_RET},		 /* 1 */
			{0},			 /* 2 */
			{TOY_CMP, 12, 13},	 /* 3 */
			{TOY_BEQ, 0, TOY_TO(7)}, /* 4 */
			{TOY_BR, 9},		 /* 5 */
			{TOY_BR, 9},		 /* 6 */
			{TOY_BR, 9},		 /* 7 */
			{TOY_NOP},		 /* 8 */
			{TOY_BR, 9},		 /* 9 */
			{TOY_BR, 9},		 /* 10 */
			{TOY_BR, 9},		 /* 11 */
			{TOY_BR, 9},		 /* 12 */
			{TOY_PAD},		 /* 13 */
			{TOY_BR, 9},		 /* 14 */
		};

		memcpy(code[2], load[i], 4);
		if (i == 3)
			memcpy(code[3], (const uint8_t[4]){TOY_TEST, 12, 13}, 4);
		OPEN(code, .handler = RESUMES);
		assert_ok(models_plan_resume(&rig.p));
		expect_condition(4, 0, -1);
		expect_restart(4, true, false);
		cr_expect_eq(site_at(13)->cost, PLAN_COST_STEPPED);
		rig.plan.nsites = 0;
		rig.p.cfg.v[toy_node(&rig, 13)].in.probe = INSN_FORBIDDEN;
		expect_missing(models_plan_resume(&rig.p), "INSTRUMENTED_RESUME");
		toy_close(&rig);
	}
	check_no_leaks();
}

/* ---- throw() -------------------------------------------------------------------------------- */

Test(throw, follows_either_edge)
{
	static const uint8_t next[][4] = {
		{TOY_MOV, FRAME, 1},	 /* 0 */
		{TOY_CMPI, 2, 0},	 /* 1 */
		{TOY_BEQ, 0, TOY_TO(6)}, /* 2 */
		{TOY_B, 0, TOY_TO(5)},	 /* 3 */
		{TOY_RET},		 /* 4 */
		{TOY_RET},		 /* 5 */
		{TOY_BR, 9},		 /* 6 */
	};
	static const uint8_t jump[][4] = {
		{TOY_STORE4, 2, SP, 16}, /* 0 */
		{TOY_MOV, 2, 9},	 /* 1 */
		{TOY_CMPM4, 0, SP, 16},	 /* 2 */
		{TOY_BNE, 0, TOY_TO(6)}, /* 3 */
		{TOY_NOP},		 /* 4 */
		{TOY_BR, 9},		 /* 5 */
		{TOY_MOV, 5, 1},	 /* 6 */
		{TOY_NOP},		 /* 7 */
		{TOY_B, 0, TOY_TO(4)},	 /* 8 */
	};
	static const uint8_t other[][4] = {
		{TOY_CMPI, 3, 0},	 /* 0: another argument */
		{TOY_BNE, 0, TOY_TO(6)}, /* 1 */
		{TOY_CMPI, 2, 1},	 /* 2: another value */
		{TOY_BNE, 0, TOY_TO(6)}, /* 3 */
		{TOY_CMP, 2, ZERO},	 /* 4: 64 bits */
		{TOY_BNE, 0, TOY_TO(6)}, /* 5 */
		{TOY_RET},		 /* 6 */
	};

	OPEN(next);
	assert_ok(models_plan_throw(&rig.p));
	cr_expect_eq(rig.plan.nsites, 1);
	expect_site(3, PYP_SITE_THROW, "throw", 1);
	toy_close(&rig);
	OPEN(jump);
	assert_ok(models_plan_throw(&rig.p));
	cr_expect_eq(rig.plan.nsites, 1);
	expect_site(8, PYP_SITE_THROW, "throw", 1);
	toy_close(&rig);
	OPEN(other);
	expect_missing(models_plan_throw(&rig.p), "throw");
	cr_expect_eq(rig.plan.nsites, 0);
	end();
}

/* The test occurs twice. One site covers both, but only the one on the second edge's line. */
Test(throw, one_site_for_two_edges)
{
	static const uint8_t code[][4] = {
		{TOY_CMPI, 2, 0},	  /* 0 */
		{TOY_BNE, 0, TOY_TO(8)},  /* 1 */
		{TOY_CMPI, 3, 0},	  /* 2 */
		{TOY_BEQ, 0, TOY_TO(7)},  /* 3 */
		{TOY_TEST, 2, 2},	  /* 4 */
		{TOY_BNE, 0, TOY_TO(10)}, /* 5 */
		{TOY_NOP},		  /* 6 */
		{TOY_BR, 9},		  /* 7 */
		{TOY_NOP},		  /* 8 */
		{TOY_MOV, 5, 6},	  /* 9 */
		{TOY_PUSH, 5},		  /* 10 */
		{TOY_RET},		  /* 11 */
	};

	OPEN(code);
	/* Another one before, which leads there, too */
	rig.plan.nsites = 1;
	rig.plan.sites[0] = (struct plan_site){.kind = PYP_SITE_ENTER, .vaddr = TOY_CODE};
	assert_ok(models_plan_throw(&rig.p));
	cr_assert_eq(rig.plan.nsites, 2);
	expect_site(10, PYP_SITE_THROW, "throw", 1);
	end();
}

/* Two edges to where it is thrown */
static const uint8_t two_edges[][4] = {
	{TOY_CMPI, 2, 0},	  /* 0 */
	{TOY_BNE, 0, TOY_TO(8)},  /* 1 */
	{TOY_CMPI, 3, 0},	  /* 2 */
	{TOY_BEQ, 0, TOY_TO(7)},  /* 3 */
	{TOY_TEST, 2, 2},	  /* 4 */
	{TOY_BNE, 0, TOY_TO(10)}, /* 5 */
	{TOY_NOP},		  /* 6 */
	{TOY_BR, 9},		  /* 7 */
	{TOY_NOP},		  /* 8 */
	{TOY_B, 0, TOY_TO(7)},	  /* 9 */
	{TOY_NOP},		  /* 10 */
	{TOY_RET},		  /* 11 */
};

/* Each edge needs its own; one is on a line that others enter, too. */
Test(throw, a_site_for_each_edge)
{
	OPEN(two_edges);
	assert_ok(models_plan_throw(&rig.p));
	cr_assert_eq(rig.plan.nsites, 2);
	expect_site(9, PYP_SITE_THROW, "throw", 1);
	expect_site(10, PYP_SITE_THROW, "throw", 1);
	/* No instruction of the second can be probed. */
	rig.p.cfg.v[toy_node(&rig, 10)].in.probe = INSN_FORBIDDEN;
	rig.plan.nsites = 0;
	expect_missing(models_plan_throw(&rig.p), "throw");
	end();
}

/* One path from the first edge passes the second's site, another does not. */
Test(throw, no_site_without_another)
{
	uint8_t code[sizeof(two_edges) / 4][4];

	memcpy(code, two_edges, sizeof(code));
	toy_change(code, 9, TOY_BEQ, 0, TOY_TO(11));
	toy_change(code, 10, TOY_PUSH, 5, 0, 0);
	OPEN(code);
	expect_missing(models_plan_throw(&rig.p), "throw");
	cr_expect_eq(rig.plan.nsites, 0);
	end();
}

/* Code that others reach, too, is no place for the site. */
Test(throw, only_its_own_code)
{
	static const uint8_t code[][4] = {
		{TOY_CMPI, 2, 0},	 /* 0 */
		{TOY_BNE, 0, TOY_TO(5)}, /* 1 */
		{TOY_NOP},		 /* 2 */
		{TOY_NOP},		 /* 3 */
		{TOY_RET},		 /* 4 */
		{TOY_MOV, 5, 1},	 /* 5 */
		{TOY_B, 0, TOY_TO(3)},	 /* 6 */
	};

	OPEN(code);
	rig.p.cfg.v[toy_node(&rig, 6)].in.probe = INSN_FORBIDDEN;
	assert_ok(models_plan_throw(&rig.p));
	expect_site(5, PYP_SITE_THROW, "throw", 1);
	cr_expect_eq(rig.plan.nsites, 1);
	end();
}

/* ---- yields --------------------------------------------------------------------------------- */

static int plan_yield(const uint8_t (*code)[4], size_t n)
{
	toy_open(&rig, &(struct toy_program){.code = code, .n = n, .handler = {{118, 1}}});
	return models_plan_yield(&rig.p);
}

Test(yield, the_store_shows_the_frame)
{
	static const uint8_t good[][4] = {
		{TOY_RET},		   /* 0 */
		{TOY_MOV, FRAME, 5},	   /* 1 */
		{TOY_STORE, ZERO, SP, 8},  /* 2 */
		{TOY_NOP},		   /* 3 */
		{TOY_STORE, 5, 16, 8},	   /* 4: not zero */
		{TOY_STORE, ZERO, 17, 8},  /* 5 */
		{TOY_STORE, ZERO, 18, 16}, /* 6: another field */
		{TOY_BR, 9},		   /* 7 */
	};
	static const uint8_t written[][4] = {
		{TOY_RET},		  /* 0 */
		{TOY_MOV, FRAME, 5},	  /* 1 */
		{TOY_STORE, ZERO, 17, 8}, /* 2 */
		{TOY_MOV, 17, 5},	  /* 3 */
		{TOY_NOP},		  /* 4 */
		{TOY_BR, 9},		  /* 5 */
	};

	assert_ok(plan_yield(good, 8));
	cr_expect_eq(rig.plan.nsites, 1);
	expect_site(3, PYP_SITE_YIELD, "YIELD_VALUE", 17);
	toy_close(&rig);
	/* Then only the first instruction has the frame. */
	assert_ok(plan_yield(written, 6));
	expect_site(1, PYP_SITE_YIELD, "YIELD_VALUE", FRAME);
	rig.plan.nsites = 0;
	rig.p.cfg.v[toy_node(&rig, 1)].in.probe = INSN_FORBIDDEN;
	expect_missing(models_plan_yield(&rig.p), "YIELD_VALUE");
	end();
}

static int plan_instrumented(const uint8_t (*code)[4], size_t n)
{
	toy_open(&rig, &(struct toy_program){.code = code, .n = n, .handler = {{241, 1}}});
	return models_plan_instrumented_yield(&rig.p);
}

#define INSTRUMENTED "INSTRUMENTED_YIELD_VALUE"

Test(yield, the_tools_result)
{
	uint8_t code[][4] = {
		{TOY_RET},		  /* 0 */
		{TOY_CALL, 0, TOY_TO(0)}, /* 1 */
		{TOY_B, 0, TOY_TO(3)},	  /* 2 */
		{TOY_TEST, 0, 0},	  /* 3 */
		{TOY_BEQ, 0, TOY_TO(6)},  /* 4 */
		{TOY_RET},		  /* 5 */
		{TOY_BR, 9},		  /* 6 */
	};

	assert_ok(plan_instrumented(code, 7));
	cr_expect_eq(rig.plan.nsites, 1);
	expect_site(4, PYP_SITE_YIELD, INSTRUMENTED, FRAME);
	expect_condition(4, 1, true);
	/* The frame is unknown there, or there is no such opcode. */
	rig.plan.nsites = 0;
	rig.p.frame[toy_node(&rig, 4)].regs = 0;
	expect_missing(models_plan_instrumented_yield(&rig.p), "location of the frame");
	rig.layout.op.instrumented_yield_value = LAYOUT_NO_OPCODE;
	assert_ok(models_plan_instrumented_yield(&rig.p));
	rig.layout.op.instrumented_yield_value = 242;
	rig.p.missing[0] = '\0';
	expect_missing(models_plan_instrumented_yield(&rig.p), "no handler");
	cr_expect_eq(rig.plan.nsites, 0);
	toy_close(&rig);
	/* Another register is tested, or for another value. */
	code[3][1] = code[3][2] = 1;
	expect_missing(plan_instrumented(code, 7), "the tools' result is not tested");
	toy_close(&rig);
	memcpy(code[3], (const uint8_t[4]){TOY_CMPI, 0, 1}, 4);
	expect_missing(plan_instrumented(code, 7), "the tools' result is not tested");
	end();
}

/* The test for tools is inlined, and skips their call; success leads over this many jumps. */
static int plan_inlined(unsigned int jumps, enum toy_op first)
{
	uint8_t code[][4] = {
		{TOY_RET},			/* 0 */
		{TOY_CMPI, 5, 1},		/* 1 */
		{first, 0, TOY_TO(9)},		/* 2: no tools */
		{TOY_CALL, 0, TOY_TO(0)},	/* 3 */
		{TOY_CMPI, 0, 0},		/* 4 */
		{TOY_BNE, 0, TOY_TO(7)},	/* 5 */
		{TOY_B, 0, TOY_TO(15 - jumps)}, /* 6 */
		{TOY_RET},			/* 7 */
		{TOY_NOP},			/* 8 */
		{TOY_B, 0, TOY_TO(14)},		/* 9 */
		{TOY_B, 0, TOY_TO(11)},		/* 10 */
		{TOY_B, 0, TOY_TO(12)},		/* 11 */
		{TOY_B, 0, TOY_TO(13)},		/* 12 */
		{TOY_B, 0, TOY_TO(14)},		/* 13 */
		{TOY_BR, 9},			/* 14 */
	};

	return plan_instrumented(code, 15);
}

Test(yield, the_tools_call_is_skipped)
{
	assert_ok(plan_inlined(4, TOY_BEQ));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(2, PYP_SITE_YIELD, INSTRUMENTED, FRAME);
	expect_condition(2, 1, true);
	expect_site(5, PYP_SITE_YIELD, INSTRUMENTED, FRAME);
	expect_condition(5, 0, false);
	toy_close(&rig);
	expect_missing(plan_inlined(5, TOY_BEQ), "the tools' result is not tested");
	toy_close(&rig);
	assert_ok(plan_inlined(1, TOY_BLT));
	expect_condition(2, 2, true);
	end();
}

/* The same with the edges exchanged: the call is where the branch jumps to. */
Test(yield, the_tools_are_called_by_a_jump)
{
	static const uint8_t code[][4] = {
		{TOY_RET},		  /* 0 */
		{TOY_CMPI, 5, 1},	  /* 1 */
		{TOY_BNE, 0, TOY_TO(4)},  /* 2 */
		{TOY_BR, 9},		  /* 3 */
		{TOY_CALL, 0, TOY_TO(0)}, /* 4 */
		{TOY_CMPI, 0, 0},	  /* 5 */
		{TOY_BEQ, 0, TOY_TO(3)},  /* 6 */
		{TOY_RET},		  /* 7 */
	};

	assert_ok(plan_instrumented(code, 8));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_condition(2, 0, false);
	expect_condition(6, 1, true);
	end();
}

/* ---- 3.11 ----------------------------------------------------------------------------------- */

static void open_11(const uint8_t (*code)[4], size_t n, const struct toy_handler h[3])
{
	struct toy_program program = {
		.code = code, .n = n, .full = full, .layout = layout_find(3, 11)};

	memcpy(program.handler, h, 3 * sizeof(*h));
	toy_open(&rig, &program);
}

static int plan_tracing(const uint8_t (*code)[4], size_t n)
{
	open_11(code, n,
		(const struct toy_handler[3]){{layout_find(3, 11)->op.do_tracing, 2}, {1, 0}});
	return models_plan_tracing(&rig.p);
}

#define RESUME_11 (uint8_t)(layout_find(3, 11)->op.resume)

Test(tracing, code_of_resume)
{
	uint8_t code[][4] = {
		{TOY_NOP},		  /* 0 */
		{TOY_RET},		  /* 1 */
		{TOY_CALLR, 9},		  /* 2 */
		{TOY_CMPB, 5, RESUME_11}, /* 3 */
		{TOY_BEQ, 0, TOY_TO(6)},  /* 4 */
		{TOY_BR, 9},		  /* 5 */
		{TOY_MOV, 5, 6},	  /* 6 */
		{TOY_NOP},		  /* 7 */
		{TOY_BR, 9},		  /* 8 */
	};

	assert_ok(plan_tracing(code, 9));
	cr_expect_eq(rig.plan.nsites, 1);
	expect_site(7, PYP_SITE_ENTER, "DO_TRACING", FRAME);
	expect_condition(7, 0, -1);
	cr_expect(site_at(7)->early);
	toy_close(&rig);
	/* No emulated instruction there: the branch */
	memcpy(code[7], (const uint8_t[4]){TOY_MOV, 5, 7}, 4);
	assert_ok(plan_tracing(code, 9));
	cr_expect_eq(rig.plan.nsites, 1);
	expect_site(4, PYP_SITE_ENTER, "DO_TRACING", FRAME);
	expect_condition(4, 1, true);
	cr_expect(site_at(4)->early);
	toy_close(&rig);
	/* The other edge; others get there, too. */
	memcpy(code[4], (const uint8_t[4]){TOY_BNE, 0, TOY_TO(8)}, 4);
	memcpy(code[5], (const uint8_t[4]){TOY_NOP}, 4);
	assert_ok(plan_tracing(code, 9));
	expect_site(5, PYP_SITE_ENTER, "DO_TRACING", FRAME);
	toy_close(&rig);
	memcpy(code[1], (const uint8_t[4]){TOY_B, 0, TOY_TO(5)}, 4);
	assert_ok(plan_tracing(code, 9));
	expect_site(4, PYP_SITE_ENTER, "DO_TRACING", FRAME);
	expect_condition(4, 0, false);
	end();
}

Test(tracing, which_comparison_is_for_resume)
{
	const struct {
		uint8_t insn[4];
		bool found;
	} v[] = {
		{{TOY_CMPB, 5, RESUME_11}, true},
		{{TOY_CMPI, 5, RESUME_11}, true},
		{{TOY_CMPI, 5, RESUME_11, 1}, false}, /* only the lowest byte is the same */
		{{TOY_CMPB, 5, (uint8_t)(RESUME_11 + 1)}, false},
		{{TOY_CMP, 5, 6}, false},
		{{TOY_TEST, 5, 5}, false},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		uint8_t code[][4] = {
			{TOY_NOP},		 /* 0 */
			{TOY_RET},		 /* 1 */
			{TOY_NOP},		 /* 2 */
			{0},			 /* 3 */
			{TOY_BEQ, 0, TOY_TO(6)}, /* 4 */
			{TOY_BR, 9},		 /* 5 */
			{TOY_NOP},		 /* 6 */
			{TOY_BR, 9},		 /* 7 */
		};

		memcpy(code[3], v[i].insn, 4);
		if (v[i].found)
			assert_ok(plan_tracing(code, 8));
		else
			expect_missing(plan_tracing(code, 8), "no test for RESUME");
		cr_expect_eq(rig.plan.nsites, v[i].found, "%zu", i);
		toy_close(&rig);
	}
	check_no_leaks();
}

static int plan_edges(const uint8_t (*code)[4], size_t n, unsigned int other)
{
	open_11(code, n,
		(const struct toy_handler[3]){{layout_find(3, 11)->op.yield_value, 2}, {1, other}});
	rig.plan.sites[rig.plan.nsites++] =
		(struct plan_site){.kind = PYP_SITE_LEAVE, .vaddr = TOY_CODE + 4 * 9};
	return models_plan_yield_edges(&rig.p);
}

/* At 9 the frame ends by an exception. */
Test(tracing, a_yield_becomes_certain)
{
	uint8_t code[][4] = {
		{TOY_NOP},		 /* 0 */
		{TOY_RET},		 /* 1 */
		{TOY_CMPI, 5, 0},	 /* 2 */
		{TOY_BNE, 0, TOY_TO(8)}, /* 3: another opcode runs */
		{TOY_CMPI, 6, 0},	 /* 4 */
		{TOY_BEQ, 0, TOY_TO(7)}, /* 5 */
		{TOY_B, 0, TOY_TO(9)},	 /* 6 */
		{TOY_RET},		 /* 7 */
		{TOY_BR, 9},		 /* 8 */
		{TOY_RET},		 /* 9 */
	};

	assert_ok(plan_edges(code, 10, 0));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(5, PYP_SITE_YIELD, "YIELD_VALUE", FRAME);
	expect_condition(5, 1, true);
	toy_close(&rig);
	/* Both are reasons why it may not yield. */
	memcpy(code[5], (const uint8_t[4]){TOY_BNE, 0, TOY_TO(8)}, 4);
	memcpy(code[6], (const uint8_t[4]){TOY_B, 0, TOY_TO(7)}, 4);
	assert_ok(plan_edges(code, 10, 0));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_condition(5, 0, false);
	toy_close(&rig);
	memcpy(code[3], (const uint8_t[4]){TOY_BNE, 0, TOY_TO(9)}, 4);
	memcpy(code[5], (const uint8_t[4]){TOY_BNE, 0, TOY_TO(9)}, 4);
	assert_ok(plan_edges(code, 10, 0));
	expect_condition(5, 0, false);
	toy_close(&rig);
	/* Other opcodes run that code. */
	expect_missing(plan_edges(code, 10, 4), "never becomes certain");
	cr_expect_eq(rig.plan.nsites, 1);
	toy_close(&rig);
	memcpy(code[5], (const uint8_t[4]){TOY_CBNZ, 6, TOY_TO(9)}, 4);
	expect_missing(plan_edges(code, 10, 0), "no probe possible");
	toy_close(&rig);
	memcpy(code[2], (const uint8_t[4]){TOY_RET}, 4);
	expect_missing(plan_edges(code, 10, 0), "does not check for tools");
	rig.layout.op.yield_value = 3;
	rig.p.missing[0] = '\0';
	expect_missing(models_plan_yield_edges(&rig.p), "does not check for tools");
	end();
}

#define IS_ENTRY (uint8_t)(layout_find(3, 11)->bpf.frame_is_entry)

static int plan_is_entry(const uint8_t (*code)[4], size_t n)
{
	const struct layout *l = layout_find(3, 11);

	open_11(code, n,
		(const struct toy_handler[3]){{l->op.return_value, 5},
					      {l->op.return_generator, 10}});
	return models_plan_is_entry(&rig.p);
}

Test(is_entry, ends_of_frames)
{
	uint8_t code[][4] = {
		{TOY_LOADB, 5, 1, IS_ENTRY},	 /* 0: the unwinder */
		{TOY_CMPB, 5, 0},		 /* 1 */
		{TOY_BNE, 0, TOY_TO(4)},	 /* 2 */
		{TOY_BR, 9},			 /* 3 */
		{TOY_RET},			 /* 4 */
		{TOY_LOADB, 5, FRAME, IS_ENTRY}, /* 5: RETURN_VALUE */
		{TOY_MOV, 6, 7},		 /* 6 */
		{TOY_CMPB, 5, 0},		 /* 7 */
		{TOY_BEQ, 0, TOY_TO(3)},	 /* 8 */
		{TOY_RET},			 /* 9 */
		{TOY_LOADB, 5, FRAME, IS_ENTRY}, /* 10: RETURN_GENERATOR */
		{TOY_CMPB, 5, 0},		 /* 11 */
		{TOY_BEQ, 0, TOY_TO(3)},	 /* 12 */
		{TOY_RET},			 /* 13 */
	};
	/* The same without the comparison */
	static const uint8_t other[][4] = {
		{TOY_LOADB, FRAME, FRAME, 0}, /* the register changes */
		{TOY_LOAD, 5, FRAME, 0},      /* wide */
		{TOY_LOADB, 5, FRAME, 1},     /* another field */
		{TOY_LOADB, 5, SP, 0},	      /* the stack */
		{TOY_CMPB, 5, 1},	      /* another value */
		{TOY_TEST, 5, 5},	      /* another test */
		{TOY_CMPB, 7, 0},	      /* of a register */
	};

	assert_ok(plan_is_entry(code, 14));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(2, PYP_SITE_LEAVE, "unwind", 1);
	expect_site(8, PYP_SITE_LEAVE, "RETURN_VALUE", FRAME);
	assert_ok(models_prove_is_entry(&rig.p));
	/* A suspension returns, too. */
	rig.plan.sites[1].kind = PYP_SITE_YIELD;
	assert_ok(models_prove_is_entry(&rig.p));
	rig.plan.sites[1].kind = PYP_SITE_ENTER;
	expect_missing(models_prove_is_entry(&rig.p), "return");
	toy_close(&rig);
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
		uint8_t changed[14][4];

		memcpy(changed, code, sizeof(code));
		memcpy(changed[i < 4 ? 5 : 7], other[i], 4);
		if (i < 4)
			changed[5][3] = (uint8_t)(changed[5][3] + IS_ENTRY);
		if (i == 0)
			changed[7][1] = FRAME;
		assert_ok(plan_is_entry(changed, 14));
		cr_expect_eq(rig.plan.nsites, 1, "%zu", i);
		expect_site(2, PYP_SITE_LEAVE, "unwind", 1);
		expect_missing(models_prove_is_entry(&rig.p), "return");
		toy_close(&rig);
	}
	/* Without the opcode, its return must be a frame's end, too. */
	assert_ok(plan_is_entry(code, 14));
	rig.layout.op.return_generator = LAYOUT_NO_OPCODE;
	expect_missing(models_prove_is_entry(&rig.p), "return");
	end();
}

/* ---- functions that end frames and free code ------------------------------------------------ */

#define OWNER	      (uint8_t)(layout_find(3, 13)->bpf.frame_owner)
#define CLEAR_AND_POP "_PyEval_FrameClearAndPop"

/* RETURN_VALUE calls a function that does not end frames, then the one that does; RETURN_CONST too. */
static const uint8_t ending[][4] = {
	{TOY_MOV, 1, FRAME},	   /* 0: the unwinder */
	{TOY_CALL, 0, TOY_TO(13)}, /* 1 */
	{TOY_RET},		   /* 2 */
	{TOY_MOV, 1, FRAME},	   /* 3: RETURN_VALUE */
	{TOY_CALL, 0, TOY_TO(18)}, /* 4: gets the frame, but does not test its owner */
	{TOY_MOV, 1, 5},	   /* 5 */
	{TOY_CALL, 0, TOY_TO(13)}, /* 6: does not get the frame */
	{TOY_MOV, 1, FRAME},	   /* 7 */
	{TOY_CALL, 0, TOY_TO(13)}, /* 8 */
	{TOY_BR, 9},		   /* 9 */
	{TOY_MOV, 1, FRAME},	   /* 10: RETURN_CONST */
	{TOY_CALL, 0, TOY_TO(13)}, /* 11 */
	{TOY_BR, 9},		   /* 12 */
	{TOY_MOV, 21, 1},	   /* 13: ends frames */
	{TOY_NOP},		   /* 14 */
	{TOY_LOADB, 5, 21, 70},	   /* 15 */
	{TOY_MOV, 5, 6},	   /* 16 */
	{TOY_RET},		   /* 17 */
	{TOY_LOADB, 5, 21, 70},	   /* 18: another frame's owner */
	{TOY_LOAD, 5, 1, 70},	   /* 19: a wider field */
	{TOY_LOADB, 5, 1, 71},	   /* 20: another field */
	{TOY_RET},		   /* 21 */
};

#define ENDING                                                                                     \
	{                                                                                          \
		{36, 3},                                                                           \
		{                                                                                  \
			103, 10                                                                    \
		}                                                                                  \
	}

Test(clear_and_pop, is_found_by_its_call)
{
	uint8_t code[sizeof(ending) / 4][4];

	cr_assert_eq(OWNER, 70);
	OPEN(ending, .handler = ENDING);
	assert_ok(models_plan_clear_and_pop(&rig.p));
	cr_expect_eq(rig.plan.nsites, 1);
	expect_site(14, PYP_SITE_LEAVE, "FrameClearAndPop", 1);
	toy_close(&rig);
	/* The symbol is another function, which does not end frames. */
	OPEN(ending, .handler = ENDING, .symbol = {{CLEAR_AND_POP, TOY_CODE + 4 * 18}});
	expect_missing(models_plan_clear_and_pop(&rig.p), "unwinding");
	toy_close(&rig);
	/* Nobody calls it. */
	memcpy(code, ending, sizeof(code));
	code[15][3] = 71;
	OPEN(code, .handler = ENDING);
	expect_missing(models_plan_clear_and_pop(&rig.p), "not exported");
	toy_close(&rig);
	OPEN(code, .handler = ENDING, .symbol = {{CLEAR_AND_POP, TOY_CODE + 4 * 13}});
	expect_missing(models_plan_clear_and_pop(&rig.p), "does not test the frame's owner");
	toy_close(&rig);
	/* A way around it, in the second of the returns */
	memcpy(code, ending, sizeof(code));
	memcpy(code[11], (const uint8_t[4]){TOY_CBNZ, 5, TOY_TO(12)}, 4);
	OPEN(code, .handler = ENDING, .symbol = {{CLEAR_AND_POP, TOY_CODE + 4 * 13}});
	expect_missing(models_plan_clear_and_pop(&rig.p), "RETURN_CONST (a path");
	rig.layout.op.return_const = LAYOUT_NO_OPCODE;
	rig.p.missing[0] = '\0';
	assert_ok(models_plan_clear_and_pop(&rig.p));
	toy_close(&rig);
	/* Nothing in it can be probed, or it is no code. */
	memcpy(code, ending, sizeof(code));
	memcpy(code[13], (const uint8_t[4]){TOY_CMPM1, 0, 1, 70}, 4);
	memcpy(code[14], (const uint8_t[4]){TOY_RET}, 4);
	OPEN(code, .handler = ENDING);
	assert_ok(models_plan_clear_and_pop(&rig.p));
	cr_expect_eq(site_at(13)->cost, PLAN_COST_STEPPED);
	toy_close(&rig);
	memcpy(code[13], (const uint8_t[4]){TOY_CALLM, 0, 1, 70}, 4);
	OPEN(code, .handler = ENDING, .symbol = {{CLEAR_AND_POP, TOY_CODE + 4 * 13}});
	expect_missing(models_plan_clear_and_pop(&rig.p), "owner");
	end();
}

/* In a shared library it is called through a stub. */
Test(clear_and_pop, is_called_through_a_stub)
{
	uint8_t code[sizeof(ending) / 4][4];

	memcpy(code, ending, sizeof(code));
	for (int i = 1; i < 12; i++)
		if (code[i][0] == TOY_CALL && code[i][2] == 13)
			memcpy(code[i], (const uint8_t[4]){TOY_CALL, 0, TOY_TO_PLT(0)}, 4);
	OPEN(code, .handler = ENDING, .symbol = {{CLEAR_AND_POP, TOY_CODE + 4 * 13}},
	     .plt = {CLEAR_AND_POP});
	assert_ok(models_plan_clear_and_pop(&rig.p));
	expect_site(14, PYP_SITE_LEAVE, "FrameClearAndPop", 1);
	toy_close(&rig);
	OPEN(code, .handler = ENDING, .symbol = {{CLEAR_AND_POP, TOY_CODE + 4 * 13}},
	     .plt = {"another"});
	expect_missing(models_plan_clear_and_pop(&rig.p), "unwinding");
	end();
}

/*
 * RETURN_CONST calls it directly, RETURN_VALUE through a stub: then frames end in the evaluator, if
 * nobody else calls either.
 */
Test(clear_and_pop, has_two_addresses)
{
	uint8_t code[][4] = {
		{TOY_CBNZ, 9, TOY_TO(1)},     /* 0 */
		{TOY_CALL, 0, TOY_TO(13)},    /* 1: unwinding */
		{TOY_RET},		      /* 2 */
		{TOY_CBNZ, 5, TOY_TO(4)},     /* 3: RETURN_VALUE */
		{TOY_MOV, 1, FRAME},	      /* 4 */
		{TOY_CALL, 0, TOY_TO_PLT(0)}, /* 5 */
		{TOY_BR, 9},		      /* 6 */
		{TOY_CBNZ, 5, TOY_TO(8)},     /* 7: RETURN_CONST */
		{TOY_MOV, 1, FRAME},	      /* 8 */
		{TOY_CALL, 0, TOY_TO(13)},    /* 9 */
		{TOY_BR, 9},		      /* 10 */
		{TOY_NOP},		      /* 11: another function */
		{TOY_RET},		      /* 12 */
		{TOY_MOV, 21, 1},	      /* 13 */
		{TOY_NOP},		      /* 14 */
		{TOY_LOADB, 5, 21, 70},	      /* 15 */
		{TOY_RET},		      /* 16 */
	};
	struct arch arch = toy_arch;

	arch.find_branch = toy_find_branch;
	for (int other = 0; other < 3; other++) {
		if (other == 1)
			memcpy(code[11], (const uint8_t[4]){TOY_CALL, 0, TOY_TO_PLT(0)}, 4);
		else if (other == 2)
			memcpy(code[11], (const uint8_t[4]){TOY_B, 0, TOY_TO(13)}, 4);
		OPEN(code, .handler = {{36, 3}, {103, 7}}, .arch = &arch,
		     .symbol = {{CLEAR_AND_POP, TOY_CODE + 4 * 13}}, .plt = {CLEAR_AND_POP});
		assert_ok(models_plan_clear_and_pop(&rig.p));
		cr_expect_eq(rig.plan.nsites, other ? 1 : 3);
		if (other) {
			expect_site(14, PYP_SITE_LEAVE, "FrameClearAndPop", 1);
		} else {
			expect_site(0, PYP_SITE_LEAVE, "end", 1);
			expect_site(3, PYP_SITE_LEAVE, "return", FRAME);
			expect_site(7, PYP_SITE_LEAVE, "return", FRAME);
		}
		toy_close(&rig);
	}
	check_no_leaks();
}

Test(code_free, is_the_types_destructor)
{
	static const uint8_t code[][4] = {
		{TOY_RET},	  /* 0 */
		{TOY_MOV, 16, 0}, /* 1 */
		{TOY_NOP},	  /* 2 */
		{TOY_RET},	  /* 3 */
	};
	static const uint64_t good[8] = {[6] = TOY_CODE + 4}, bad[8] = {[6] = TOY_DATA},
			      forbidden[8] = {[6] = TOY_CODE};

	OPEN(code, TOY_DATA_OF(good), .symbol = {{"PyCode_Type", TOY_DATA}});
	assert_ok(models_plan_code_free(&rig.p));
	cr_expect_eq(rig.plan.nsites, 1);
	expect_site(2, PYP_SITE_CODE_FREE, "code_dealloc", 0);
	rig.layout.type_dealloc = 0x7000;
	expect_missing(models_plan_code_free(&rig.p), "PyCode_Type");
	toy_close(&rig);
	OPEN(code, TOY_DATA_OF(good));
	expect_missing(models_plan_code_free(&rig.p), "PyCode_Type");
	toy_close(&rig);
	OPEN(code, TOY_DATA_OF(bad), .symbol = {{"PyCode_Type", TOY_DATA}});
	expect_missing(models_plan_code_free(&rig.p), "not code");
	toy_close(&rig);
	OPEN(code, TOY_DATA_OF(forbidden), .symbol = {{"PyCode_Type", TOY_DATA}});
	expect_missing(models_plan_code_free(&rig.p), "no probe possible");
	end();
}

/* ---- frames that are objects: up to 3.10 ---------------------------------------------------- */

/* 3.8: the arguments are the frame and throwflag. RETURN_VALUE begins at 12. */
static int plan_object(const uint8_t (*code)[4], size_t n)
{
	toy_open(&rig, &(struct toy_program){.code = code,
					     .n = n,
					     .full = full,
					     .layout = layout_find(3, 8),
					     .handler = {{83, 12}}});
	return models_plan_frame_object(&rig.p);
}

static const uint8_t object[][4] = {
	{TOY_MOV, FRAME, 0},	   /* 0 */
	{TOY_MOV4, 21, 1},	   /* 1: throwflag */
	{TOY_CALL, 0, TOY_TO(11)}, /* 2: the recursion check */
	{TOY_CMPI, 0, 0},	   /* 3 */
	{TOY_BNE, 0, TOY_TO(11)},  /* 4: it failed */
	{TOY_CMPI, 6, 0},	   /* 5 */
	{TOY_BEQ, 0, TOY_TO(10)},  /* 6: abort */
	{TOY_NOP},		   /* 7 */
	{TOY_NOP},		   /* 8 */
	{TOY_BR, 9},		   /* 9 */
	{TOY_STOP},		   /* 10 */
	{TOY_RET},		   /* 11 */
	{TOY_LOAD, 5, FRAME, 24},  /* 12: f->f_back */
	{TOY_STORE, 5, 16, 24},	   /* 13: tstate->frame */
	{TOY_NOP},		   /* 14 */
	{TOY_NOP},		   /* 15 */
	{TOY_RET},		   /* 16 */
};

#define OBJECT (sizeof(object) / 4)

static void expect_flag(unsigned int at, int reg)
{
	const struct plan_site *s = site_at(at);

	cr_expect(s->has_flag == (reg >= 0) && s->flag_reg == (reg < 0 ? 0 : reg), "%u: %u", at,
		  s->flag_reg);
}

Test(frame_object, begins_once_and_ends)
{
	uint8_t code[OBJECT][4];

	cr_assert(layout_find(3, 8)->bpf.frame_previous == 24 && layout_find(3, 8)->ts_frame == 24);
	assert_ok(plan_object(object, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	/* The first of all places after the check */
	expect_site(6, PYP_SITE_ENTER, "entry", FRAME);
	expect_condition(6, 0, -1);
	expect_flag(6, 21);
	expect_site(14, PYP_SITE_LEAVE, "exit_eval_frame", FRAME);
	toy_close(&rig);
	memcpy(code, object, sizeof(code));
	toy_change(code, 6, TOY_MOV, 5, 6, 0);
	assert_ok(plan_object(code, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(7, PYP_SITE_ENTER, "entry", FRAME);
	end();
}

/* Without a single place: the edge on which the check succeeds */
Test(frame_object, begins_on_edges)
{
	uint8_t code[OBJECT][4];

	memcpy(code, object, sizeof(code));
	toy_change(code, 5, TOY_MOV, 5, 6, 0);
	toy_change(code, 6, TOY_MOV, 5, 6, 0);
	toy_change(code, 7, TOY_BR, 9, 0, 0);
	assert_ok(plan_object(code, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(4, PYP_SITE_ENTER, "entry", FRAME);
	expect_condition(4, 0, false);
	expect_flag(4, 21);
	toy_close(&rig);
	/* Nobody keeps throwflag. */
	toy_change(code, 1, TOY_NOP, 0, 0, 0);
	assert_ok(plan_object(code, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_condition(4, 0, false);
	expect_flag(4, -1);
	cr_expect_str_eq(rig.p.missing, "");
	toy_close(&rig);
	/* An edge to where it only aborts does not count. */
	toy_change(code, 2, TOY_BEQ, 0, 10, 0);
	assert_ok(plan_object(code, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_condition(4, 0, false);
	toy_close(&rig);
	toy_change(code, 4, TOY_CBNZ, 0, 11, 0);
	expect_missing(plan_object(code, OBJECT), "no probe possible after the recursion check");
	toy_close(&rig);
	/* It ends at once: there is no dispatch, but a site where it ends. */
	memcpy(code, object, sizeof(code));
	toy_change(code, 5, TOY_B, 0, 12, 0);
	assert_ok(plan_object(code, OBJECT));
	rig.plan.nsites = 0;
	rig.p.cfg.v[toy_node(&rig, 5)].in.probe = INSN_STEPPED;
	assert_ok(models_plan_frame_object(&rig.p));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_condition(4, 0, false);
	end();
}

/* A place that not all paths to the first dispatch pass is none. */
Test(frame_object, begins_on_all_paths)
{
	uint8_t code[OBJECT][4];

	memcpy(code, object, sizeof(code));
	toy_change(code, 5, TOY_CBNZ, 6, 9, 0);
	toy_change(code, 6, TOY_NOP, 0, 0, 0);
	assert_ok(plan_object(code, OBJECT));
	expect_site(5, PYP_SITE_ENTER, "entry", FRAME);
	rig.plan.nsites = 0;
	rig.p.cfg.v[toy_node(&rig, 5)].in.probe = INSN_STEPPED;
	assert_ok(models_plan_frame_object(&rig.p));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(4, PYP_SITE_ENTER, "entry", FRAME);
	expect_condition(4, 0, false);
	end();
}

/* A tool may be called after the check: the site must be before it, if possible. */
Test(frame_object, begins_before_tools_are_called)
{
	uint8_t code[OBJECT][4];

	memcpy(code, object, sizeof(code));
	toy_change(code, 5, TOY_MOV, 5, 6, 0);
	toy_change(code, 6, TOY_CALLR, 9, 0, 0);
	assert_ok(plan_object(code, OBJECT));
	expect_site(4, PYP_SITE_ENTER, "entry", FRAME);
	expect_condition(4, 0, false);
	toy_close(&rig);
	toy_change(code, 4, TOY_CBNZ, 0, 11, 0);
	assert_ok(plan_object(code, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(7, PYP_SITE_ENTER, "entry", FRAME);
	cr_expect_str_eq(rig.p.missing, "");
	end();
}

/* Another opcode jumps to the code after the check: it is no entry, or only an edge is. */
Test(frame_object, does_not_begin_in_the_loop)
{
	uint8_t code[OBJECT][4];

	memcpy(code, object, sizeof(code));
	toy_change(code, 16, TOY_B, 0, 5, 0);
	assert_ok(plan_object(code, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(4, PYP_SITE_ENTER, "entry", FRAME);
	toy_close(&rig);
	toy_change(code, 16, TOY_B, 0, 3, 0);
	expect_missing(plan_object(code, OBJECT), "part of the loop");
	end();
}

Test(frame_object, there_is_a_recursion_check)
{
	uint8_t code[OBJECT][4];

	memcpy(code, object, sizeof(code));
	toy_change(code, 4, TOY_BNE, 0, 10, 0);
	assert_ok(plan_object(code, OBJECT));
	/* Then it begins at once. */
	expect_site(2, PYP_SITE_ENTER, "entry", 0);
	end();
}

/* Where no instruction after the load of f_back is emulated: one before it, or the load itself */
Test(frame_object, ends_before_the_load)
{
	uint8_t code[OBJECT][4];

	memcpy(code, object, sizeof(code));
	toy_change(code, 14, TOY_RET, 0, 0, 0);
	assert_ok(plan_object(code, OBJECT));
	expect_site(12, PYP_SITE_LEAVE, "exit_eval_frame", FRAME);
	cr_expect_eq(site_at(12)->cost, PLAN_COST_STEPPED);
	toy_close(&rig);
	/* The load overwrites the frame's register, so it is unknown behind it. */
	memcpy(code, object, sizeof(code));
	toy_change(code, 12, TOY_LOAD, FRAME, FRAME, 24);
	toy_change(code, 13, TOY_STORE, FRAME, 16, 24);
	assert_ok(plan_object(code, OBJECT));
	expect_site(12, PYP_SITE_LEAVE, "exit_eval_frame", FRAME);
	toy_close(&rig);
	/* It is overwritten later. */
	memcpy(code, object, sizeof(code));
	toy_change(code, 14, TOY_MOV, FRAME, 5, 0);
	assert_ok(plan_object(code, OBJECT));
	expect_site(12, PYP_SITE_LEAVE, "exit_eval_frame", FRAME);
	toy_close(&rig);
	memcpy(code, object, sizeof(code));
	toy_change(code, 12, TOY_NOP, 0, 0, 0);
	toy_change(code, 13, TOY_LOAD, 5, FRAME, 24);
	toy_change(code, 14, TOY_STORE, 5, 16, 24);
	toy_change(code, 15, TOY_RET, 0, 0, 0);
	assert_ok(plan_object(code, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(12, PYP_SITE_LEAVE, "exit_eval_frame", FRAME);
	cr_expect_eq(site_at(12)->cost, PLAN_COST_EMULATED);
	toy_close(&rig);
	/* Neither is emulated, and the load is not the first. */
	toy_change(code, 12, TOY_MOV, 5, 6, 0);
	assert_ok(plan_object(code, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(13, PYP_SITE_LEAVE, "exit_eval_frame", FRAME);
	cr_expect_eq(site_at(13)->cost, PLAN_COST_STEPPED);
	toy_close(&rig);
	/* Between load and store */
	toy_change(code, 12, TOY_LOAD, 5, FRAME, 24);
	toy_change(code, 13, TOY_NOP, 0, 0, 0);
	assert_ok(plan_object(code, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(13, PYP_SITE_LEAVE, "exit_eval_frame", FRAME);
	end();
}

/* None of these makes the caller's frame the current one. */
Test(frame_object, other_stores)
{
	static const struct {
		uint8_t at, insn[4];
	} v[] = {
		{12, {TOY_LOAD, 5, FRAME, 32}},
		{12, {TOY_LOAD, 5, SP, 24}},
		{13, {TOY_STORE, 5, 16, 32}},
		{13, {TOY_STORE, 5, SP, 24}},
		{13, {TOY_STORE, 5, FRAME, 24}},
		{13, {TOY_STORE, 6, 16, 24}},
		{13, {TOY_STORE4, 5, 16, 24}},
		{13, {TOY_OPAQUE}},
		{13, {TOY_CALLR, 9}},
	};

	uint8_t code[OBJECT][4];

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		memcpy(code, object, sizeof(code));
		memcpy(code[v[i].at], v[i].insn, 4);
		expect_missing(plan_object(code, OBJECT), "exit_eval_frame");
		toy_close(&rig);
	}
	/* Overwritten before it is stored */
	memcpy(code, object, sizeof(code));
	toy_change(code, 13, TOY_MOV, 5, 6, 0);
	toy_change(code, 14, TOY_STORE, 5, 16, 24);
	expect_missing(plan_object(code, OBJECT), "exit_eval_frame");
	end();
}

/* ---- graphs without room -------------------------------------------------------------------- */

Test(full, all_sites)
{
	static const uint8_t throws[][4] = {
		{TOY_CMPI, 2, 0},	 /* 0 */
		{TOY_BNE, 0, TOY_TO(3)}, /* 1 */
		{TOY_BR, 9},		 /* 2 */
		{TOY_NOP},		 /* 3: throw() */
		{TOY_RET},		 /* 4 */
	};
	static const uint8_t yields[][4] = {
		{TOY_NOP},		   /* 0 */
		{TOY_RET},		   /* 1 */
		{TOY_CMPB, 5, 151},	   /* 2 */
		{TOY_BNE, 0, TOY_TO(9)},   /* 3 */
		{TOY_RET},		   /* 4 */
		{TOY_LOADB, 5, FRAME, 68}, /* 5 */
		{TOY_CMPB, 5, 0},	   /* 6 */
		{TOY_BEQ, 0, TOY_TO(9)},   /* 7 */
		{TOY_RET},		   /* 8 */
		{TOY_BR, 9},		   /* 9 */
		{TOY_RET},		   /* 10 */
	};

	full = true;
	OPEN(throws);
	assert_ok(models_plan_throw(&rig.p));
	cr_expect_eq(rig.plan.nsites, 1);
	toy_close(&rig);
	OPEN(ending, .handler = ENDING);
	assert_ok(models_plan_clear_and_pop(&rig.p));
	cr_expect_eq(rig.plan.nsites, 1);
	toy_close(&rig);
	assert_ok(plan_edges(yields, 11, 0));
	cr_expect_eq(rig.plan.nsites, 2);
	toy_close(&rig);
	assert_ok(plan_is_entry(yields, 11));
	cr_expect_eq(rig.plan.nsites, 1);
	expect_missing(models_prove_is_entry(&rig.p), "return");
	toy_close(&rig);
	assert_ok(plan_tracing(yields, 11));
	cr_expect_eq(rig.plan.nsites, 1);
	toy_close(&rig);
	assert_ok(plan_object(object, OBJECT));
	cr_expect_eq(rig.plan.nsites, 2);
	rig.plan.nsites = 0;
	rig.p.cfg.v[toy_node(&rig, 14)].in.probe = INSN_STEPPED;
	rig.p.cfg.v[toy_node(&rig, 15)].in.probe = INSN_STEPPED;
	rig.p.cfg.v[toy_node(&rig, 6)].in.probe = INSN_STEPPED;
	rig.p.cfg.v[toy_node(&rig, 7)].in.probe = INSN_STEPPED;
	rig.p.cfg.v[toy_node(&rig, 8)].in.probe = INSN_STEPPED;
	assert_ok(models_plan_frame_object(&rig.p));
	cr_expect_eq(rig.plan.nsites, 2);
	expect_site(4, PYP_SITE_ENTER, "entry", FRAME);
	expect_site(12, PYP_SITE_LEAVE, "exit_eval_frame", FRAME);
	end();
}
