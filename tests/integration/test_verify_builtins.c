// SPDX-License-Identifier: BSD-2-Clause
/*
 * The self-test of calls of C functions passes on every interpreter of this machine, and fails for
 * each kind of error in a site that it hits.
 */
#include "harness/caps.h"
#include "harness/interpreters.h"
#include "harness/python.h"
#include "harness/test.h"
#include "verify/verify.h"

static const char sleeping[] = "import signal\nprint('ready')\nsignal.pause()\n";

struct subject {
	const struct interpreter *it;
	pid_t pid;
	int out;
	struct target *target;
	struct python *python;
	struct plan plan;
};

static void subject_start(struct subject *s, const struct interpreter *it)
{
	struct diag diag = {0};
	char line[16];

	s->it = it;
	s->pid = interpreter_start(it, sleeping, &s->out);
	interpreter_line(s->out, line, sizeof(line));
	assert_diag_ok(target_open(s->pid, &s->target, &diag), &diag);
	assert_diag_ok(python_discover(s->target, &s->python, &diag), &diag);
	assert_diag_ok(plan_build(s->python->image, &s->python->layout, &s->plan, &diag), &diag);
	cr_assert(s->plan.nnative, "%s: %s", it->exe, s->plan.native_missing);
}

static void subject_end(struct subject *s)
{
	python_free(s->python);
	target_free(s->target);
	interpreter_end(s->pid, s->out);
}

static struct verify_result verify(const struct subject *s)
{
	const struct verify_opts vo = {
		.python = s->python,
		.plan = &s->plan,
		.target = s->target,
		.builtins = true,
	};
	struct verify_result v;

	verify_run(&vo, &v);
	return v;
}

/* Returns whether site i of the sites of C functions was hit. */
static bool is_seen(const struct plan *plan, const struct verify_result *r, unsigned int i)
{
	const uint64_t words[] = {r->site_mask, r->more_sites[0], r->more_sites[1]};
	unsigned int site = plan->nsites + i;

	return words[site / 64] >> (site % 64) & 1;
}

Test(verify_builtins, every_interpreter)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n;

	caps_require_bpf();
	n = interpreters_find(v);
	for (size_t i = 0; i < n; i++) {
		struct subject s;
		struct verify_result r;
		unsigned int seen = 0;

		if (v[i].major != 3)
			continue;
		subject_start(&s, &v[i]);
		r = verify(&s);
		for (unsigned int k = 0; k < s.plan.nnative; k++)
			seen += is_seen(&s.plan, &r, k);
		fprintf(stderr, "3.%-3d %u events, %u of %u sites of C functions  %s\n", v[i].minor,
			r.events, seen, s.plan.nnative, v[i].exe);
		cr_expect_eq(r.verdict, VERIFY_RIGHT, "%s: %s", v[i].exe, r.reason);
		/*
		 * Free-threaded 3.13 does not specialise opcodes, so half of the sites are not hit.
		 */
		cr_expect(r.events > 6000 && (v[i].abi ? 5 : 3) * seen >= s.plan.nnative,
			  "%u of %u", seen, s.plan.nnative);
		subject_end(&s);
	}
	check_no_leaks();
}

/* Makes an error in a site. Returns false if this kind of error does not apply to the site. */
typedef bool (*mistake_fn)(struct plan *p, struct plan_site *site);

static bool missing(struct plan *p, struct plan_site *site)
{
	*site = p->native[--p->nnative];
	return true;
}

static bool another_kind(struct plan *p, struct plan_site *site)
{
	(void)p;
	if (site->kind == PYP_SITE_C_LEAVE)
		return false; /* the called function is not known there */
	site->kind = site->kind == PYP_SITE_C_ENTER ? PYP_SITE_C_INSTANT : PYP_SITE_C_ENTER;
	return true;
}

static bool end_for_call(struct plan *p, struct plan_site *site)
{
	(void)p;
	if (site->kind == PYP_SITE_C_LEAVE)
		return false;
	site->kind = PYP_SITE_C_LEAVE;
	return true;
}

static bool no_frame(struct plan *p, struct plan_site *site)
{
	(void)p;
	site->reg = 4;
	site->deref = false;
	return true;
}

static bool other_callable(struct plan *p, struct plan_site *site)
{
	(void)p;
	if (site->kind == PYP_SITE_C_LEAVE)
		return false;
	site->callable_reg = 4;
	site->callable_deref = false;
	return true;
}

static bool other_side(struct plan *p, struct plan_site *site)
{
	(void)p;
	if (!site->has_cc)
		return false;
	site->taken = !site->taken;
	return true;
}

static const struct {
	const char *what;
	mistake_fn make;
} mistakes[] = {
	{"no probe", missing},
	{"another kind", another_kind},
	{"an end for a call", end_for_call},
	{"the stack pointer for the frame", no_frame},
	{"the stack pointer for what is called", other_callable},
	{"the other side of the branch", other_side},
};

/*
 * If one C_LEAVE site directly follows another (compilers duplicate code that both paths lead to),
 * the second one suffices: without the first, the result is the same.
 */
static bool is_spare(const struct plan_site *site, const struct verify_result *whole,
		     const struct verify_result *r)
{
	return site->kind == PYP_SITE_C_LEAVE && r->verdict == VERIFY_RIGHT &&
	       r->events == whole->events;
}

/*
 * Returns whether to make mistake k in site i: all in each site of the newest interpreter; of the
 * others, and of those of other releases, one site lacks its probe and the next one has one of the
 * other mistakes, in turn.
 */
static bool is_chosen(bool all, unsigned int i, size_t k)
{
	return all || k == (i % 2 ? 0 : 1 + i / 2 % (sizeof(mistakes) / sizeof(*mistakes) - 1));
}

static void check_mistakes(const struct interpreter *it, bool all)
{
	unsigned int found = 0, spare = 0;
	struct subject s;
	struct verify_result whole;
	struct plan plan;

	subject_start(&s, it);
	plan = s.plan;
	whole = verify(&s);
	cr_assert_eq(whole.verdict, VERIFY_RIGHT, "%s: %s", it->exe, whole.reason);
	for (unsigned int i = 0; i < plan.nnative; i++) {
		if (!is_seen(&plan, &whole, i))
			continue;
		for (size_t k = 0; k < sizeof(mistakes) / sizeof(*mistakes); k++) {
			struct verify_result r;

			s.plan = plan;
			if (!is_chosen(all, i, k) || !mistakes[k].make(&s.plan, &s.plan.native[i]))
				continue;
			r = verify(&s);
			found += r.verdict == VERIFY_WRONG;
			if (is_spare(&plan.native[i], &whole, &r)) {
				spare++;
				continue;
			}
			cr_expect_eq(r.verdict, VERIFY_WRONG, "%s: %s at 0x%llx (%s): %d %s",
				     it->exe, mistakes[k].what,
				     (unsigned long long)plan.native[i].offset, plan.native[i].role,
				     r.verdict, r.reason);
		}
	}
	fprintf(stderr, "%u mistakes found, %u ends were spare  %s\n", found, spare, it->exe);
	cr_expect(found > 8 * spare, "%s: %u of %u", it->exe, spare, found);
	s.plan = plan;
	subject_end(&s);
}

Test(verify_builtins, mistakes)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n;

	caps_require_bpf();
	n = interpreters_of_models(v);
	for (size_t i = 0; i < n; i++)
		check_mistakes(&v[i], getenv("PYPROF_TEST_ALL") ||
					      (i == 0 && !getenv("PYPROF_INTERPRETERS")));
	check_no_leaks();
}
