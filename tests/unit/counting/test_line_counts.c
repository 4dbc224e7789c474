// SPDX-License-Identifier: BSD-2-Clause
/* counting/line_counts: samples by function and line; what cannot be known is counted as line 0. */
#include "counting/line_counts.h"

#include <errno.h>

#include "harness/test.h"
#include "profile/profile_priv.h"
#include "snapshot/lines.h"

#define CODE(i) (0x1000u + (uint64_t)(i)*0x10)
#define FIRST	10

/* What the target answers. */
static struct {
	int err;
	int32_t firstlineno; /* of the code objects now */
	unsigned int asked;
} target;

static int names(void *ctx, uint64_t code, uint64_t announced_ns, struct code_names *ret)
{
	(void)ctx;
	(void)announced_ns;
	if (asprintf(&ret->name, "f%u", (unsigned int)(code - CODE(0)) / 0x10) < 0)
		return -1;
	ret->filename = strdup("a.py");
	ret->firstlineno = FIRST;
	return 0;
}

/* Lines 11 to 10 + n, four bytes each. */
static int lines(void *ctx, uint64_t code, struct code_lines *ret)
{
	const uint32_t n = 4;

	(void)ctx;
	(void)code;
	target.asked++;
	if (target.err)
		return target.err;
	*ret = (struct code_lines){.firstlineno = target.firstlineno, .n = n};
	ret->v = calloc(n, sizeof(*ret->v));
	for (uint32_t i = 0; i < n; i++)
		ret->v[i] = (struct code_line_run){4 * (i + 1), FIRST + 1 + (int32_t)i};
	return 0;
}

static struct profile *new_profile(void)
{
	struct profile *p = profile_new(NULL, names, NULL);

	target.err = 0;
	target.firstlineno = FIRST;
	target.asked = 0;
	profile_reads_lines(p, lines, NULL);
	profile_begin(p, 100);
	return p;
}

static void sample_part(struct profile *p, uint64_t code, int32_t offset, uint32_t first,
			uint16_t flags)
{
	const uint64_t codes[] = {code, CODE(9)};
	struct event e = {.type = PYP_REC_SAMPLE, .ts = 200, .tid = 1};

	e.u.sample = (struct event_sample){.period = 10,
					   .first = first,
					   .count = 2,
					   .flags = PYP_SAMPLE_LAST | flags,
					   .offset = offset,
					   .codes = codes};
	profile_event(p, &e);
}

static void sample(struct profile *p, uint64_t code, int32_t offset)
{
	sample_part(p, code, offset, 0, 0);
}

/* The lines of a function as "line:samples ...". */
static void assert_lines(const struct profile *p, const char *func, const char *expected)
{
	struct snapshot *s = snapshot_new();
	struct snapshot_target target_of = {.mode = MODE_SAMPLE};
	char got[256] = "";

	assert_ok(profile_snapshot(p, 1000, 7, s, &target_of));
	for (uint32_t i = 0; i < s->nfuncs; i++)
		for (uint32_t k = 0; k < s->funcs[i].nlines && !strcmp(s->funcs[i].name, func);
		     k++) {
			const struct snapshot_line *l = &s->funcs[i].lines[k];
			size_t at = strlen(got);

			snprintf(got + at, sizeof(got) - at, "%d:%d ", l->line, (int)l->samples);
			cr_assert_eq(l->self_ns, 10 * l->samples);
			cr_assert_float_eq(l->variance, 100.0 * (double)l->samples, 1e-6);
		}
	cr_assert_str_eq(got, expected, "%s", func);
	snapshot_free(s);
}

Test(line_counts, by_function_and_line)
{
	struct profile *p = new_profile();

	sample(p, CODE(0), 0);
	sample(p, CODE(0), 5);
	sample(p, CODE(1), 14);
	sample(p, CODE(0), 4);
	assert_lines(p, "f0", "11:1 12:2 ");
	assert_lines(p, "f1", "14:1 ");
	assert_lines(p, "f9", "");
	cr_assert_eq(target.asked, 2, "once for each code object");
	profile_clear(p, 300);
	assert_lines(p, "f0", "");
	sample(p, CODE(0), 0);
	assert_lines(p, "f0", "11:1 ");
	cr_assert_eq(target.asked, 2, "the tables are kept");
	profile_free(p);
	check_no_leaks();
}

Test(line_counts, what_has_no_line)
{
	struct profile *p = new_profile();

	sample(p, CODE(0), -2);
	sample(p, CODE(0), 16);
	sample(p, CODE(0), PYP_SAMPLE_NO_OFFSET);
	assert_lines(p, "f0", "0:2 10:1 ");
	sample_part(p, CODE(0), 0, 0, PYP_SAMPLE_METHOD);
	sample_part(p, CODE(0), 0, 64, 0);
	assert_lines(p, "f0", "0:2 10:1 ");
	profile_free(p);
	check_no_leaks();
}

Test(line_counts, refused)
{
	struct profile *p = new_profile();

	sample(p, CODE(0), 0);
	profile_refuse_lines(p);
	sample(p, CODE(0), 0);
	assert_lines(p, "f0", "");
	profile_free(p);
	check_no_leaks();
}

/* A table that cannot be read is tried again, but not at each sample. */
Test(line_counts, unreadable)
{
	struct profile *p = new_profile();

	target.err = -EFAULT;
	for (int i = 0; i < 64; i++)
		sample(p, CODE(0), 0);
	cr_assert_eq(target.asked, 1);
	target.err = 0;
	for (int i = 0; i < 10; i++)
		sample(p, CODE(0), 0);
	cr_assert_eq(target.asked, 2);
	assert_lines(p, "f0", "0:65 11:9 ");
	/* After the second failure, it is left alone for twice as many. */
	target.err = -EFAULT;
	target.asked = 0;
	for (int i = 0; i < 1 + 64 + 1 + 128; i++)
		sample(p, CODE(1), 0);
	cr_assert_eq(target.asked, 2);
	sample(p, CODE(1), 0);
	cr_assert_eq(target.asked, 3);
	profile_free(p);
	check_no_leaks();
}

/* The address has another code object: after a record, or before its record has arrived. */
Test(line_counts, reused_addresses)
{
	struct profile *p = new_profile();
	struct event e = {.type = PYP_REC_CODE_FREE, .ts = 250, .tid = 1};
	const size_t each = sizeof(struct line_table) + 4 * sizeof(struct code_line_run);

	sample(p, CODE(0), 0);
	sample(p, CODE(1), 0);
	cr_assert(p->lines.ntables == 2 && p->lines.bytes == 2 * each);
	e.u.code.code = CODE(0);
	profile_event(p, &e);
	cr_assert(p->lines.ntables == 1 && p->lines.bytes == each);
	e.type = PYP_REC_CODE; /* its predecessor's end was not reported */
	e.u.code.code = CODE(1);
	e.u.code.firstlineno = FIRST;
	profile_event(p, &e);
	cr_assert(p->lines.ntables == 0 && p->lines.bytes == 0);
	sample(p, CODE(1), 0);
	cr_assert_eq(target.asked, 3);
	target.asked = 2;
	e.type = PYP_REC_CODE_FREE;
	e.u.code.code = CODE(0);
	sample(p, CODE(1), 0);
	cr_assert_eq(target.asked, 2);
	sample(p, CODE(0), 0);
	cr_assert_eq(target.asked, 3);
	profile_event(p, &e);
	target.firstlineno = FIRST + 1;
	sample(p, CODE(0), 0);
	assert_lines(p, "f0", "0:1 11:2 ");
	profile_free(p);
	check_no_leaks();
}

Test(line_counts, bounded)
{
	struct profile *p = new_profile();
	struct snapshot *s = snapshot_new();
	struct snapshot_target of = {.mode = MODE_SAMPLE};
	uint64_t n = 0;

	for (uint32_t i = 0; i < LINE_COUNTS_MAX / 4 + 10; i++)
		for (int32_t k = 0; k < 16; k += 4)
			sample(p, 0x100000 + 0x10 * (uint64_t)i, k);
	assert_ok(profile_snapshot(p, 1000, 7, s, &of));
	for (uint32_t i = 0; i < s->nfuncs; i++)
		n += snapshot_lines_sum(&s->funcs[i]).samples;
	cr_assert_eq(n + of.lines_dropped, LINE_COUNTS_MAX + 40);
	cr_assert_gt(of.lines_dropped, 0);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}
