// SPDX-License-Identifier: BSD-2-Clause
/* Functions: identity, addresses that are reused, limits. */
#include "stats/func.h"

#include <errno.h>

#include "harness/test.h"

static uint32_t intern(struct funcs *f, const char *file, int32_t line, const char *name,
		       const char *qualname)
{
	const struct func_identity id = {
		.filename = file, .name = name, .qualname = qualname, .firstlineno = line};

	return funcs_intern(f, &id);
}

Test(func, identity)
{
	struct funcs f;
	uint32_t a;

	assert_ok(funcs_init(&f, 100, 1000));
	a = intern(&f, "a.py", 1, "f", "C.f");
	cr_assert(!func_is_pseudo(a));
	cr_assert_eq(intern(&f, "a.py", 1, "f", "C.f"), a);
	cr_assert_neq(intern(&f, "a.py", 2, "f", "C.f"), a);
	cr_assert_neq(intern(&f, "b.py", 1, "f", "C.f"), a);
	cr_assert_neq(intern(&f, "a.py", 1, "g", "C.f"), a);
	cr_assert_neq(intern(&f, "a.py", 1, "f", "D.f"), a);
	cr_assert_neq(intern(&f, "a.py", 1, "f", NULL), intern(&f, "a.py", 1, "f", ""));
	cr_assert_str_eq(funcs_identity(&f, a).qualname, "C.f");
	cr_assert_eq(funcs_identity(&f, a).firstlineno, 1);
	funcs_deinit(&f);
	check_no_leaks();
}

Test(func, native)
{
	struct funcs f;
	uint32_t len;

	assert_ok(funcs_init(&f, 100, 1000));
	len = intern(&f, "~", 0, "<built-in method builtins.len>", NULL);
	cr_assert_eq(len, FUNC_PSEUDO_MAX, "the first that is not pseudo");
	cr_assert(funcs_is_native(&f, len));
	cr_assert(!funcs_is_native(&f, intern(&f, "~", 1, "f", NULL)));
	cr_assert(!funcs_is_native(&f, intern(&f, "a.py", 0, "f", NULL)));
	cr_assert(!funcs_is_native(&f, FUNC_GC));
	funcs_deinit(&f);
	check_no_leaks();
}

/* A target's function may have the name of a pseudo function. */
Test(func, pseudo_is_not_a_name)
{
	struct funcs f;

	assert_ok(funcs_init(&f, 100, 1000));
	cr_assert(!func_is_pseudo(intern(&f, "~", 0, "(truncated)", NULL)));
	cr_assert(!func_is_pseudo(intern(&f, "~", 0, "(lost)", NULL)));
	funcs_deinit(&f);
	check_no_leaks();
}

Test(func, addresses)
{
	const struct func_identity f_id = {"a.py", "f", NULL, 1}, g_id = {"a.py", "g", NULL, 5};
	struct funcs f;
	uint32_t a, found;
	bool bound;

	assert_ok(funcs_init(&f, 100, 1000));
	a = intern(&f, "a.py", 1, "f", NULL);
	cr_assert(!funcs_find(&f, 0x10, &found));
	cr_assert_eq(funcs_bind(&f, 0x10, &f_id, &bound), a);
	cr_assert(bound);
	cr_assert_eq(funcs_bind(&f, 0x10, &f_id, NULL), a, "said again");
	cr_assert_neq(funcs_bind(&f, 0x10, &g_id, NULL), a, "the address is used again");
	cr_assert(funcs_find(&f, 0x10, &found));
	cr_assert_eq(found, intern(&f, "a.py", 5, "g", NULL));
	cr_assert_eq(funcs_bind(&f, 0x20, &f_id, NULL), a, "its old address is free");
	funcs_forget(&f, 0x10);
	funcs_forget(&f, 0x99);
	cr_assert(!funcs_find(&f, 0x10, &found));
	cr_assert(funcs_find(&f, 0x20, &found));
	funcs_forget_all(&f);
	cr_assert(!funcs_find(&f, 0x20, &found));
	cr_assert_eq(intern(&f, "a.py", 1, "f", NULL), a, "functions stay");
	funcs_deinit(&f);
	check_no_leaks();
}

static const struct func_identity unknown = {"?", "?", NULL, 1}, known = {"a.py", "f", NULL, 1};

static void assert_is(const struct funcs *f, uint32_t func, const struct func_identity *id,
		      uint32_t variant)
{
	struct func_identity found = funcs_identity(f, func);

	cr_assert(func_identity_equal(&found, id), "%s", found.name);
	cr_assert_eq(f->list[func].variant, variant);
}

Test(func, renamed)
{
	struct funcs f;
	uint32_t a, b, c;

	assert_ok(funcs_init(&f, 100, 1000));
	a = funcs_bind(&f, 0x10, &unknown, NULL);
	b = funcs_bind(&f, 0x20, &unknown, NULL);
	c = funcs_bind(&f, 0x30, &unknown, NULL);
	assert_ok(funcs_rename(&f, 0x20, &known));
	assert_is(&f, b, &known, 0);
	assert_ok(funcs_rename(&f, 0x20, &known));
	assert_is(&f, b, &known, 0);
	assert_is(&f, a, &unknown, 0);
	assert_is(&f, c, &unknown, 2);
	cr_assert_eq(intern(&f, "a.py", 1, "f", NULL), b);
	assert_is(&f, funcs_bind(&f, 0x40, &unknown, NULL), &unknown, 3);
	assert_ok(funcs_rename(&f, 0x30, &known));
	assert_is(&f, c, &known, 1);
	assert_ok(funcs_rename(&f, 0x10, &known));
	assert_ok(funcs_rename(&f, 0x40, &known));
	funcs_forget(&f, 0x20);
	cr_assert_eq(funcs_bind(&f, 0x50, &known, NULL), b, "the only one without a code object");
	cr_assert_eq(funcs_rename(&f, 0x99, &known), -ENOENT);
	funcs_deinit(&f);
	check_no_leaks();
}

/* The newest of three, which heads their list, the one between, and the oldest */
Test(func, renaming_leaves_the_others)
{
	for (uint32_t k = 0; k < 3; k++) {
		struct funcs f;
		uint32_t func[3];

		assert_ok(funcs_init(&f, 100, 1000));
		for (uint32_t i = 0; i < 3; i++)
			func[i] = funcs_bind(&f, 0x10 + i, &unknown, NULL);
		assert_ok(funcs_rename(&f, 0x10 + k, &known));
		assert_is(&f, func[k], &known, 0);
		for (uint32_t i = 0; i < 3; i++) {
			if (i == k)
				continue;
			funcs_forget(&f, 0x10 + i);
			cr_assert_eq(funcs_bind(&f, 0x20 + i, &unknown, NULL), func[i]);
		}
		assert_is(&f, funcs_bind(&f, 0x30, &unknown, NULL), &unknown, k == 2 ? 2 : 3);
		cr_assert_eq(f.n, FUNC_PSEUDO_MAX + 4);
		funcs_deinit(&f);
	}
	check_no_leaks();
}

/* Nothing is left of the name in between. */
Test(func, renamed_and_back)
{
	struct funcs f;
	uint32_t a, b;

	assert_ok(funcs_init(&f, 100, 1000));
	a = funcs_bind(&f, 0x10, &unknown, NULL);
	assert_ok(funcs_rename(&f, 0x10, &known));
	b = funcs_bind(&f, 0x20, &unknown, NULL);
	assert_ok(funcs_rename(&f, 0x10, &unknown));
	assert_is(&f, a, &unknown, 1);
	assert_is(&f, b, &unknown, 0);
	assert_is(&f, funcs_bind(&f, 0x30, &unknown, NULL), &unknown, 2);
	assert_is(&f, funcs_bind(&f, 0x40, &known, NULL), &known, 0);
	cr_assert_eq(f.n, FUNC_PSEUDO_MAX + 4);
	funcs_deinit(&f);
	check_no_leaks();
}

/* It would give one code object's name to the calls of others. */
Test(func, of_several_code_objects_is_not_renamed)
{
	struct funcs f;

	assert_ok(funcs_init(&f, 100, 1000));
	funcs_bind(&f, 0x10, &unknown, NULL);
	funcs_forget(&f, 0x10);
	funcs_bind(&f, 0x20, &unknown, NULL);
	cr_assert_eq(funcs_rename(&f, 0x20, &known), -EBUSY);
	funcs_bind(&f, 0x30, &unknown, NULL);
	funcs_bind(&f, 0x30, &unknown, NULL); /* that it was freed was lost */
	cr_assert_eq(funcs_rename(&f, 0x30, &known), -EBUSY);
	funcs_deinit(&f);
	check_no_leaks();
}

Test(func, renaming_has_limits)
{
	struct funcs f;
	uint64_t code = 0x1000;
	uint32_t func;

	assert_ok(funcs_init(&f, 100, 8));
	func = funcs_bind(&f, 0x10, &unknown, NULL);
	cr_assert_eq(funcs_rename(&f, 0x10, &known), -ENOSPC, "bytes of names");
	assert_is(&f, func, &unknown, 0);
	cr_assert_eq(funcs_bind(&f, 0x10, &unknown, NULL), func);
	funcs_deinit(&f);
	assert_ok(funcs_init(&f, 100, 1000));
	for (int i = 0; i < FUNC_VARIANTS_MAX; i++)
		funcs_bind(&f, code += 16, &known, NULL);
	func = funcs_bind(&f, 0x10, &unknown, NULL);
	cr_assert_eq(funcs_rename(&f, 0x10, &known), -ENOSPC, "variants");
	assert_is(&f, func, &unknown, 0);
	funcs_deinit(&f);
	check_no_leaks();
}

Test(func, code_objects_alive_together_are_variants)
{
	const struct func_identity id = {"a.py", "<listcomp>", NULL, 7};
	struct funcs f;
	uint32_t a, b;

	assert_ok(funcs_init(&f, 100, 1000));
	a = funcs_bind(&f, 0x10, &id, NULL);
	b = funcs_bind(&f, 0x20, &id, NULL);
	cr_assert_neq(a, b);
	cr_assert_eq(f.list[a].variant, 0);
	cr_assert_eq(f.list[b].variant, 1);
	funcs_forget(&f, 0x10);
	cr_assert_eq(funcs_bind(&f, 0x30, &id, NULL), a, "what is free is used first");
	for (uint64_t code = 0x1000; code < 0x2000; code += 16)
		funcs_bind(&f, code, &id, NULL);
	cr_assert_eq(f.n, FUNC_PSEUDO_MAX + FUNC_VARIANTS_MAX, "no more than that");
	/* of 256 code objects, 14 have a variant of their own */
	cr_assert_eq(f.list[f.n - 1].bound, 1 + 242, "the last one is that of the others");
	cr_assert_eq(f.list[f.n - 1].codes, 1 + 242);
	funcs_forget_all(&f);
	cr_assert_eq(f.list[funcs_bind(&f, 0x40, &id, NULL)].variant, 15);
	cr_assert_eq(f.list[funcs_bind(&f, 0x50, &id, NULL)].variant, 14);
	cr_assert_eq(f.n, FUNC_PSEUDO_MAX + FUNC_VARIANTS_MAX);
	funcs_deinit(&f);
	check_no_leaks();
}

Test(func, caps)
{
	const struct func_identity id = {"a.py", "f", NULL, 1};
	struct funcs f;
	uint32_t a;
	bool bound;

	assert_ok(funcs_init(&f, 2, 16));
	a = intern(&f, "a.py", 1, "f", NULL);
	cr_assert_eq(intern(&f, "a.py", 1, "a_long_name", NULL), FUNC_TRUNCATED, "bytes");
	cr_assert(!func_is_pseudo(intern(&f, "a.py", 2, "f", NULL)));
	cr_assert_eq(intern(&f, "a.py", 3, "f", NULL), FUNC_TRUNCATED, "functions");
	cr_assert_eq(intern(&f, "a.py", 1, "f", NULL), a);
	for (uint64_t code = 0; code < 1000; code++)
		funcs_bind(&f, code, &id, NULL);
	cr_assert_eq(f.by_code.n, 4 * (2 + FUNC_PSEUDO_MAX), "addresses");
	cr_assert_eq(f.n, 2 + FUNC_PSEUDO_MAX);
	cr_assert_eq(f.list[FUNC_TRUNCATED].bound, 0);
	funcs_bind(&f, 0, &(struct func_identity){"b.py", "g", NULL, 1}, &bound);
	cr_assert(bound, "what is there can change");
	cr_assert_eq(funcs_bind(&f, 5000, &id, &bound), a, "it has no code object now");
	cr_assert(!bound && f.list[a].bound == 0, "nor then");
	funcs_deinit(&f);
	check_no_leaks();
}

Test(func, many)
{
	struct funcs f;
	char name[16];

	assert_ok(funcs_init(&f, 100000, 10000000));
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < 20000; i++) {
			snprintf(name, sizeof(name), "f%d", i);
			cr_assert_eq(intern(&f, "a.py", i, name, name),
				     (uint32_t)i + FUNC_PSEUDO_MAX);
		}
	funcs_deinit(&f);
	check_no_leaks();
}
