// SPDX-License-Identifier: BSD-2-Clause
/*
 * The self-test passes on every interpreter of this machine, fails for each kind of error in a site
 * of the plan, and its verdict is cached. (tests/unit/verify/test_cache.c has the conditions under
 * which a cached verdict is used.)
 */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/interpreters.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "verify/verify.h"

static const char sleeping[] = "import signal\nprint('ready')\nsignal.pause()\n";

struct subject {
	pid_t pid;
	int out;
	struct target *target;
	struct python *python;
	struct plan plan;
	char *cache; /* $XDG_CACHE_HOME */
};

static void subject_start(struct subject *s, const struct interpreter *it)
{
	struct diag diag = {0};
	char line[16];

	s->cache = temp_dir_new();
	cr_assert(setenv("XDG_CACHE_HOME", s->cache, 1) == 0 && unsetenv("CACHE_DIRECTORY") == 0);
	s->pid = interpreter_start(it, sleeping, &s->out);
	interpreter_line(s->out, line, sizeof(line));
	assert_diag_ok(target_open(s->pid, &s->target, &diag), &diag);
	assert_diag_ok(python_discover(s->target, &s->python, &diag), &diag);
	assert_diag_ok(plan_build(s->python->image, &s->python->layout, &s->plan, &diag), &diag);
}

/* Removes the cached verdicts. */
static void cache_remove(const struct subject *s)
{
	char path[600];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s/pyprofd", s->cache);
	d = opendir(path);
	while (d && (e = readdir(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	(void)rmdir(path);
}

static void subject_end(struct subject *s)
{
	cache_remove(s);
	temp_dir_remove(s->cache);
	python_free(s->python);
	target_free(s->target);
	interpreter_end(s->pid, s->out);
}

static struct verify_result verify(struct subject *s, bool fresh)
{
	const struct verify_opts vo = {
		.python = s->python,
		.plan = &s->plan,
		.target = s->target,
		.fresh = fresh,
	};
	struct verify_result v;

	verify_run(&vo, &v);
	return v;
}

/*
 * Checks that all sites were hit, except those on paths that the program cannot take: the second
 * recursion check, which is for the very end of the stack; RESUME_CHECK_JIT, without a JIT; and
 * RESUME_CHECK, in builds that do not specialise opcodes.
 */
static void expect_sites(const struct subject *s, const struct verify_result *r)
{
	for (unsigned int i = 0; i < s->plan.nsites; i++) {
		const struct plan_site *site = &s->plan.sites[i];
		bool rare = strcmp(site->role, "RESUME_CHECK_JIT") == 0 ||
			    (strcmp(site->role, "entry") == 0 && site->has_cc) ||
			    (strcmp(site->role, "RESUME_CHECK") == 0 &&
			     s->python->layout.unspecialized);

		cr_expect(rare || r->site_mask >> i & 1, "%s: %s at 0x%llx was not exercised",
			  s->python->file, site->role, (unsigned long long)site->offset);
	}
}

/* A verdict depends on the mechanism: with another one, the self-test must run again. */
static void check_mechanism(struct subject *s)
{
	struct verify_result r;

	cr_assert(setenv("PYPROFD_ATTACH", "tracefs", 1) == 0);
	r = verify(s, false);
	cr_expect(r.verdict == VERIFY_RIGHT && !r.cached, "by tracefs: %s", r.reason);
	cr_assert(unsetenv("PYPROFD_ATTACH") == 0);
}

Test(verify, every_interpreter)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n;

	caps_require_bpf();
	n = interpreters_find(v);
	for (size_t i = 0; i < n; i++) {
		struct subject s;
		struct verify_result r;
		char text[256];

		if (v[i].major != 3)
			continue;
		subject_start(&s, &v[i]);
		r = verify(&s, true);
		fprintf(stderr, "3.%-3d %s  %s\n", v[i].minor, verify_text(&r, text, sizeof(text)),
			v[i].exe);
		cr_expect(r.verdict == VERIFY_RIGHT && !r.cached, "%s: %s", v[i].exe, r.reason);
		cr_expect_str_empty(r.gc_wrong, "%s: %s", v[i].exe, r.gc_wrong);
		cr_expect(r.functions >= 40 && r.calls >= 10000 && r.events >= 24000);
		expect_sites(&s, &r);
		r = verify(&s, false);
		cr_expect(r.verdict == VERIFY_RIGHT && r.cached, "%s: %s", v[i].exe, r.reason);
		check_mechanism(&s);
		subject_end(&s);
	}
	check_no_leaks();
}

/* Returns whether site i of the plan was hit, so that the self-test can detect errors in it. */
static bool is_seen(const struct verify_result *r, unsigned int i)
{
	return r->site_mask >> i & 1;
}

struct mistake {
	const struct interpreter *it;
	struct subject *s;
	unsigned int site;
	const char *what;
	const char *named; /* must be in the reason; NULL: any reason */
};

static void expect_wrong(const struct mistake *m)
{
	const struct verify_result r = verify(m->s, false);

	cr_expect_eq(r.verdict, VERIFY_WRONG, "%s: %s at site %u: %d %s", m->it->exe, m->what,
		     m->site, r.verdict, r.reason);
	if (r.verdict == VERIFY_WRONG && m->named)
		cr_expect(strstr(r.reason, m->named), "%s: %s is not named: %s", m->it->exe,
			  m->named, r.reason);
}

static void without_site(struct mistake *m, const struct plan *whole)
{
	struct plan *p = &m->s->plan;

	*p = *whole;
	p->sites[m->site] = p->sites[--p->nsites];
	m->what = "no probe";
	m->named = NULL;
	expect_wrong(m);
}

static enum pyp_site_kind other_kind(enum pyp_site_kind kind, bool alike)
{
	switch (kind) {
	case PYP_SITE_ENTER:
		return alike ? PYP_SITE_THROW : PYP_SITE_LEAVE;
	case PYP_SITE_THROW:
		return alike ? PYP_SITE_ENTER : PYP_SITE_YIELD;
	case PYP_SITE_LEAVE:
		return alike ? PYP_SITE_YIELD : PYP_SITE_CODE_FREE;
	case PYP_SITE_YIELD:
		return alike ? PYP_SITE_LEAVE : PYP_SITE_ENTER;
	default:
		return alike ? PYP_SITE_LEAVE : PYP_SITE_ENTER;
	}
}

/*
 * The site has a probe of the wrong kind: a similar one (a return instead of a yield), or an
 * unrelated one, which may look as if no event occurred.
 */
static void mislabelled(struct mistake *m, const struct plan *whole)
{
	const struct plan_site *site = &whole->sites[m->site];
	struct plan *p = &m->s->plan;

	for (int alike = 0; alike < 2; alike++) {
		*p = *whole;
		p->sites[m->site].kind = other_kind(site->kind, alike);
		p->sites[m->site].has_flag = false;
		m->what = plan_kind_name(p->sites[m->site].kind);
		m->named = alike && site->kind != PYP_SITE_CODE_FREE ? site->role : NULL;
		expect_wrong(m);
	}
}

/*
 * The frame is read from a wrong location, a branch has the wrong sense, or throwflag is ignored.
 */
static void misread(struct mistake *m, const struct plan *whole)
{
	struct plan *p = &m->s->plan;

	*p = *whole;
	p->sites[m->site].reg = 4;
	p->sites[m->site].deref = false;
	m->what = "the stack pointer";
	m->named = NULL;
	expect_wrong(m);
	if (whole->sites[m->site].has_cc) {
		*p = *whole;
		p->sites[m->site].taken = !p->sites[m->site].taken;
		m->what = "the other side of the branch";
		expect_wrong(m);
	}
	if (whole->sites[m->site].has_flag) {
		*p = *whole;
		p->sites[m->site].has_flag = false;
		m->what = "no throwflag";
		m->named = whole->sites[m->site].role;
		expect_wrong(m);
	}
}

/* Two sites are interchanged. */
static void swapped(struct mistake *m, const struct plan *whole)
{
	struct plan *p = &m->s->plan;

	for (unsigned int j = m->site + 1; j < whole->nsites; j++) {
		enum pyp_site_kind kind = whole->sites[m->site].kind;

		if (kind == whole->sites[j].kind)
			continue;
		*p = *whole;
		p->sites[m->site].kind = p->sites[j].kind;
		p->sites[j].kind = kind;
		m->what = "swapped";
		m->named = NULL;
		expect_wrong(m);
		return;
	}
}

/*
 * The self-test detects each kind of error in each site of the plan: all of the newest interpreter;
 * of the others, and of those of other releases, each site has one of the errors, in turn.
 */
static void mistakes(const struct interpreter *it, bool all)
{
	static void (*const make[])(struct mistake *, const struct plan *) = {
		without_site, mislabelled, misread, swapped};
	const unsigned int kinds = sizeof(make) / sizeof(*make);
	struct subject s;
	struct mistake m = {.it = it, .s = &s};
	struct verify_result r;
	struct plan whole;

	subject_start(&s, it);
	whole = s.plan;
	r = verify(&s, true);
	cr_assert_eq(r.verdict, VERIFY_RIGHT, "%s", r.reason);
	for (m.site = 0; m.site < whole.nsites; m.site++)
		for (unsigned int k = 0; k < kinds && is_seen(&r, m.site); k++)
			if (all || k == m.site % kinds)
				make[k](&m, &whole);
	s.plan = whole;
	subject_end(&s);
}

Test(verify, mistakes)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n;

	caps_require_bpf();
	n = interpreters_of_models(v);
	for (size_t i = 0; i < n; i++)
		mistakes(&v[i],
			 getenv("PYPROF_TEST_ALL") || (i == 0 && !getenv("PYPROF_INTERPRETERS")));
	check_no_leaks();
}

/* A program whose name is not python's may be any program, so the self-test does not execute it. */
Test(verify, programs_that_are_not_run)
{
	struct interpreter v[INTERPRETERS_MAX];
	struct subject s;
	struct verify_result r;

	caps_require_bpf();
	interpreters_find(v);
	subject_start(&s, &v[0]);
	snprintf(s.target->exe, sizeof(s.target->exe), "/usr/sbin/service");
	r = verify(&s, true);
	cr_expect(r.verdict == VERIFY_NOT_RUN && strstr(r.reason, "not named python"), "%s",
		  r.reason);
	subject_end(&s);
	check_no_leaks();
}

/* ---- collections ------------------------------------------------------------------------- */

static void expect_gc_wrong(struct subject *s, const struct plan *planted, const char *mistake)
{
	const struct plan own = s->plan;
	struct verify_result r;

	s->plan = *planted;
	r = verify(s, true);
	s->plan = own;
	cr_expect_neq(r.gc_wrong[0], '\0', "%s: %s was not found", s->python->file, mistake);
	cr_expect_eq(r.verdict, VERIFY_RIGHT, "%s: %s: all else is right: %s", s->python->file,
		     mistake, r.reason);
	fprintf(stderr, "  %-24s %s\n", mistake, r.gc_wrong);
}

static void remove_kind(struct plan *p, enum pyp_site_kind kind)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->ngc; i++)
		if (p->gc[i].kind != kind)
			p->gc[n++] = p->gc[i];
	p->ngc = n;
}

static void plant_gc_mistakes(struct subject *s)
{
	static struct plan planted;
	const uint8_t others = 4; /* this many registers further: it holds another value or none */

	planted = s->plan;
	for (unsigned int i = 0; i < planted.ngc; i++)
		planted.gc[i].kind = planted.gc[i].kind == PYP_SITE_GC_START ? PYP_SITE_GC_STOP
									     : PYP_SITE_GC_START;
	expect_gc_wrong(s, &planted, "starts and stops swapped");
	planted = s->plan;
	remove_kind(&planted, PYP_SITE_GC_STOP);
	expect_gc_wrong(s, &planted, "no stops");
	planted = s->plan;
	remove_kind(&planted, PYP_SITE_GC_START);
	expect_gc_wrong(s, &planted, "no starts");
	planted = s->plan;
	for (unsigned int i = 0; i < planted.ngc; i++)
		planted.gc[i].reg = (uint8_t)((planted.gc[i].reg + others) & 15);
	expect_gc_wrong(s, &planted, "another register");
}

/*
 * Errors in the sites of collections are detected, and do not affect the verdict on the other
 * sites.
 */
Test(verify, mistakes_about_collections)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n;

	caps_require_bpf();
	n = interpreters_of_models(v);
	for (size_t i = 0; i < n; i++) {
		struct subject s;
		struct verify_result r;

		subject_start(&s, &v[i]);
		r = verify(&s, true);
		cr_expect(r.verdict == VERIFY_RIGHT && !r.gc_wrong[0], "%s: %s%s", v[i].exe,
			  r.reason, r.gc_wrong);
		fprintf(stderr, "%s\n", v[i].exe);
		plant_gc_mistakes(&s);
		subject_end(&s);
	}
	check_no_leaks();
}
