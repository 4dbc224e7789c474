// SPDX-License-Identifier: BSD-2-Clause
/* Answers of an inspector: the daemon accepts valid ones and refuses invalid ones. */
#include "inspect/answer.h"

#include <errno.h>
#include <string.h>

#include "harness/heap.h"
#include "harness/test.h"
#include "inspect/inspect.h"

static struct inspect_result found;
static struct python py;
static const struct answer_via exe = {.exe = true};

static void setup(void)
{
	found = (struct inspect_result){.exec_id = 7, .misses = true};
	py = (struct python){.major = 3, .minor = 11, .micro = 2, .bias = 0x7f0000000000};
	py.layout = *layout_find(3, 11);
	py.runtime = 0x7f0000123450;
	py.evaluator = 0x7f0000001000;
	py.code_type = 0x2000;
	py.build_id_len = 2;
	snprintf(py.version, sizeof(py.version), "3.11.2");
	snprintf(py.file, sizeof(py.file), "/usr/bin/py\nthon");
	snprintf(found.cmdline, sizeof(found.cmdline), "python x");
	found.python = &py;
	found.plan.nsites = 2;
	for (unsigned int i = 0; i < 2; i++) {
		found.plan.sites[i] = (struct plan_site){
			.offset = 0x1000 + i,
			.vaddr = 0x2000 + i,
			.kind = PYP_SITE_ENTER,
			.reg = 12,
			.disp = -8,
			.deref = true,
			.len = 5,
			.role = "RESUME",
			.insn = "call 1",
		};
		found.plan.native[i] = (struct plan_site){
			.offset = 0x3000 + i,
			.vaddr = 0x4000 + i,
			.kind = PYP_SITE_C_ENTER,
			.reg = 3,
			.has_callable = true,
			.callable_reg = 4,
			.callable_deref = true,
			.callable_disp = -16,
			.len = 5,
			.role = "call",
			.insn = "call 2",
		};
	}
	found.plan.nnative = 2;
	found.plan.gc[0] = (struct plan_site){
		.offset = 0x5000,
		.vaddr = 0x6000,
		.kind = PYP_SITE_GC_START,
		.reg = 2,
		.len = 5,
		.role = "collection starts",
		.insn = "call 3",
	};
	found.plan.gc[1] = found.plan.gc[0];
	found.plan.gc[1].offset = 0x5010;
	found.plan.gc[1].vaddr = 0x6010;
	found.plan.gc[1].kind = PYP_SITE_GC_STOP;
	found.plan.gc[1].disp = PYP_GC_NO_GENERATION;
	found.plan.ngc = 2;
}

TestSuite(answer, .init = setup);

static char *encode(int err, const struct diag *diag, size_t *size)
{
	char *data = answer_encode_find(&found, &exe, err, diag, size);

	cr_assert(data);
	cr_assert(*size <= answer_max(QUESTION_FIND));
	return data;
}

static int decode(struct inspect_result *ret, struct diag *diag)
{
	size_t size;
	char *data = encode(0, NULL, &size);
	int r = answer_decode_find(data, size, 42, NULL, ret, diag);

	free(data);
	return r;
}

Test(answer, arrives_as_it_was)
{
	struct inspect_result r;

	assert_ok(decode(&r, NULL));
	cr_assert_str_eq(r.python->version, "3.11.2");
	cr_assert_str_eq(r.python->file, "/usr/bin/py?thon");
	cr_assert_str_eq(r.python->via, "/proc/42/exe");
	cr_assert_str_eq(r.cmdline, "python x");
	cr_assert_eq(r.python->bias, py.bias);
	cr_assert_eq(r.python->runtime, py.runtime);
	cr_assert_eq(memcmp(&r.python->layout, &py.layout, sizeof(py.layout)), 0);
	cr_assert_eq(r.exec_id, 7);
	cr_assert(r.misses && !r.same);
	cr_assert_eq(r.plan.nsites, 2);
	cr_assert_eq(plan_cookie(&r.plan.sites[1], 1), plan_cookie(&found.plan.sites[1], 1));
	cr_assert_str_eq(r.plan.sites[0].role, "RESUME");
	cr_assert_eq(r.plan.nnative, 2);
	cr_assert_eq(plan_cookie(&r.plan.native[1], 1), plan_cookie(&found.plan.native[1], 1));
	cr_assert(r.plan.native[1].has_callable && r.plan.native[1].callable_deref);
	cr_assert_eq(r.plan.native[1].callable_reg, 4);
	cr_assert_eq(r.plan.native[1].callable_disp, -16);
	cr_assert_eq(r.plan.ngc, 2);
	cr_assert_eq(plan_cookie(&r.plan.gc[1], 5), plan_cookie(&found.plan.gc[1], 5));
	inspect_result_deinit(&r);
	check_no_leaks();
}

Test(answer, reports_an_error)
{
	struct inspect_result r;
	struct diag diag = {0}, said = {0};
	size_t size;
	char *data;

	diag_set(&said, -ENOENT, PYP_EXIT_UNTRACEABLE, "hint", "no\033 Python");
	data = encode(-ENOENT, &said, &size);
	assert_err(answer_decode_find(data, size, 42, NULL, &r, &diag), -ENOENT);
	cr_assert_str_eq(diag.msg, "no? Python");
	cr_assert_eq(diag.exit, PYP_EXIT_UNTRACEABLE);
	free(data);
	check_no_leaks();
}

static void lies(const char *what)
{
	struct inspect_result r;
	struct diag diag = {0};

	assert_err(decode(&r, &diag), -EPROTO);
	cr_assert(strstr(diag.msg, "invalid answer"), "%s: %s", what, diag.msg);
	cr_assert_eq(diag.exit, PYP_EXIT_UNTRACEABLE);
	setup();
}

Test(answer, impossible_sites_are_refused)
{
	found.plan.sites[1].offset = found.plan.sites[0].offset;
	lies("twice the same offset");
	found.plan.sites[1].vaddr = found.plan.sites[0].vaddr;
	lies("twice the same address");
	found.plan.sites[0].kind = (enum pyp_site_kind)0;
	lies("no kind");
	found.plan.sites[0].kind = (enum pyp_site_kind)6;
	lies("an unknown kind");
	found.plan.sites[0].reg = 16;
	lies("a register");
	found.plan.sites[0].flag_reg = 16;
	lies("another register");
	found.plan.sites[0].cc = 16;
	lies("a condition");
	found.plan.sites[0].len = 0;
	lies("no instruction");
	found.plan.sites[0].len = 16;
	lies("a long instruction");
	found.plan.sites[0].offset = IMAGE_MAX_SIZE;
	lies("beyond any file");
	memcpy(found.plan.missing, "x", 2);
	lies("a plan that is not complete");
	found.plan.sites[0].kind = PYP_SITE_C_ENTER;
	lies("a call among Python's sites");
	found.plan.sites[0].has_callable = true;
	lies("something called at Python's sites");
}

Test(answer, impossible_native_sites_are_refused)
{
	struct plan_site *s = &found.plan.native[0];

	s->kind = PYP_SITE_ENTER;
	lies("a kind of Python's");
	s->has_callable = false;
	lies("nothing that is called");
	s->kind = PYP_SITE_C_LEAVE;
	lies("something that is called where it is over");
	s->callable_reg = 16;
	lies("a register");
	s->cost = PLAN_COST_STEPPED;
	lies("an instruction that is not emulated");
	s->offset = found.plan.sites[1].offset;
	lies("the place of another site");
	s->vaddr = found.plan.native[1].vaddr;
	lies("the address of another call");
	memcpy(found.plan.native_missing, "x", 2);
	lies("sites that are not complete");
}

Test(answer, impossible_collector_sites_are_refused)
{
	struct plan_site *s = &found.plan.gc[0];

	s->kind = PYP_SITE_ENTER;
	lies("a kind of Python's");
	s->has_callable = true;
	lies("something that is called");
	s->deref = true;
	lies("a generation in memory");
	s->disp = 8;
	lies("a displacement");
	s->cost = PLAN_COST_STEPPED;
	lies("an instruction that is not emulated");
	s->offset = found.plan.native[1].offset;
	lies("the place of another site");
	memcpy(found.plan.gc_missing, "x", 2);
	lies("sites that are not complete");
}

Test(answer, impossible_interpreters_are_refused)
{
	py.minor = 200;
	lies("a version");
	py.bias = 0x7f0000000001;
	lies("a bias");
	py.runtime = UINT64_MAX;
	lies("an address");
	py.layout.bpf.frame_code += 8;
	lies("an offset that is fixed");
	py.version[0] = '\0';
	lies("no version");
	py.layout.interp_eval_frame += 1;
	lies("an offset that is not aligned");
}

Test(answer, refined_offsets_keep_to_their_ranges)
{
	struct inspect_result r;

	py.minor = 13;
	py.layout = *layout_find(3, 13);
	py.layout.interp_next += 8;
	py.layout.bpf.frame_owner += 1;
	assert_ok(decode(&r, NULL));
	cr_assert_eq(r.python->layout.interp_next, py.layout.interp_next);
	cr_assert_eq(r.python->layout.bpf.frame_owner, py.layout.bpf.frame_owner);
	inspect_result_deinit(&r);
	py.layout.bpf.frame_previous = (uint16_t)(py.layout.bpf.frame_code + 40);
	lies("a frame that is spread");
}

Test(answer, build_is_reported)
{
	struct inspect_result r;

	py.minor = 13;
	py.layout = *layout_find_abi(3, 13, LAYOUT_ABI_FREE_THREADED);
	assert_ok(decode(&r, NULL));
	cr_assert(python_free_threaded(r.python));
	cr_assert_eq(memcmp(&r.python->layout, &py.layout, sizeof(py.layout)), 0);
	inspect_result_deinit(&r);
	py.minor = 14;
	lies("a free-threaded build that is not known");
	py.minor = 13;
	py.layout.abi = 0xff;
	lies("a build that cannot be");
}

/* Each byte in turn is replaced: the decoder does not read beyond the end, and nothing leaks. */
Test(answer, any_byte_may_be_wrong)
{
	size_t size, at, refused = 0;
	char *data = encode(0, NULL, &size);

	for (at = 0; at < size; at++) {
		struct inspect_result r = {0};
		char was = data[at];

		data[at] = (char)0xff;
		if (answer_decode_find(data, size, 42, NULL, &r, NULL) < 0)
			refused++;
		inspect_result_deinit(&r);
		data[at] = was;
	}
	cr_assert(refused > 64, "%zu", refused);
	for (at = 0; at < size; at += 97)
		cr_assert_lt(answer_decode_find(data, at, 42, NULL, &(struct inspect_result){0},
						NULL),
			     0);
	free(data);
	check_no_leaks();
}

Test(answer, a_mapping_names_the_file)
{
	struct answer_via via = {.start = 0x7f0000001000, .end = 0x7f0000003000};
	struct inspect_result r;
	size_t size;
	char *data = answer_encode_find(&found, &via, 0, NULL, &size);

	assert_ok(answer_decode_find(data, size, 42, NULL, &r, NULL));
	cr_assert_str_eq(r.python->via, "/proc/42/map_files/7f0000001000-7f0000003000");
	inspect_result_deinit(&r);
	free(data);
	via.start = via.end;
	data = answer_encode_find(&found, &via, 0, NULL, &size);
	assert_err(answer_decode_find(data, size, 42, NULL, &r, NULL), -EPROTO);
	free(data);
}

Test(answer, stacks)
{
	struct pyp_chain_frame frames[3] = {{1, 2}, {3, 4}, {5, 6}};
	int32_t lines[3] = {10, 0, 30};
	struct python_stack v[3] = {
		{.tid = 7, .tstate = 8, .n = 3, .frames = frames},
		{.tid = 9, .truncated = true},
		{.tid = 11, .n = 3, .stable = 2, .frames = frames, .lines = lines}};
	struct python_stack *got;
	size_t size, n, at[2];
	char *data;

	for (size_t i = 0; i < 2; i++)
		free(answer_encode_stacks(v, i + 1, &at[i]));
	data = answer_encode_stacks(v, 3, &size);
	assert_ok(answer_decode_stacks(data, size, &got, &n));
	cr_assert(n == 3 && got[0].n == 3 && got[0].tid == 7 && got[1].truncated);
	cr_assert_eq(memcmp(got[0].frames, frames, sizeof(frames)), 0);
	cr_assert(!got[0].lines && got[2].stable == 2);
	cr_assert_eq(memcmp(got[2].frames, frames, sizeof(frames)), 0);
	cr_assert_eq(memcmp(got[2].lines, lines, sizeof(lines)), 0);
	python_stacks_free(got, n);
	for (size_t cut = 1; cut < size; cut++)
		if (cut != at[0] && cut != at[1])
			assert_err(answer_decode_stacks(data, cut, &got, &n), -EPROTO);
	free(data);
	check_no_leaks();
}

Test(answer, names)
{
	char file[] = "a.py", name[] = "f\xc3\xa9";
	struct code_names c = {.filename = file, .name = name, .firstlineno = 3, .flags = 4}, got;
	size_t size;
	char *data = answer_encode_code(&c, &size);

	assert_ok(answer_decode_code(data, size, &got));
	cr_assert_str_eq(got.filename, file);
	cr_assert_str_eq(got.name, name);
	cr_assert(!got.qualname && got.firstlineno == 3 && got.flags == 4);
	code_names_deinit(&got);
	for (size_t cut = 0; cut < size; cut++)
		assert_err(answer_decode_code(data, cut, &got), -EPROTO);
	data[size - 1] = 'x'; /* an incomplete character */
	assert_err(answer_decode_code(data, size, &got), -EPROTO);
	data[size - 1] = '\0';
	assert_err(answer_decode_code(data, size, &got), -EPROTO);
	free(data);
	check_no_leaks();
}

Test(answer, lines)
{
	struct code_line_run v[] = {{4, 7}, {6, 0}, {CODE_LINES_NO_END, 9}};
	struct code_lines c = {.firstlineno = 3, .n = 3, .v = v}, got;
	size_t size;
	char *data = answer_encode_lines(&c, &size);

	cr_assert_leq(size, answer_max(QUESTION_LINES));
	assert_ok(answer_decode_lines(data, size, &got));
	cr_assert(got.n == 3 && got.firstlineno == 3 && got.v[2].line == 9);
	cr_assert_eq(code_lines_find(&got, -1), 3);
	cr_assert_eq(code_lines_find(&got, 3), 7);
	cr_assert_eq(code_lines_find(&got, 4), 0);
	cr_assert_eq(code_lines_find(&got, 6), 9);
	code_lines_deinit(&got);
	for (size_t cut = 0; cut < size; cut++)
		assert_err(answer_decode_lines(data, cut, &got), -EPROTO);
	free(data);
	v[1].end = 4;
	data = answer_encode_lines(&c, &size);
	assert_err(answer_decode_lines(data, size, &got), -EPROTO);
	free(data);
	v[1] = (struct code_line_run){5, -1};
	data = answer_encode_lines(&c, &size);
	assert_err(answer_decode_lines(data, size, &got), -EPROTO);
	free(data);
	check_no_leaks();
}

Test(answer, what_hides_calls)
{
	char text[256];
	bool misses = false;
	size_t size;
	char *data = answer_encode_hidden(true, "a JIT\n", &size);

	assert_ok(answer_decode_hidden(data, size, &misses, text, sizeof(text)));
	cr_assert(misses);
	cr_assert_str_eq(text, "a JIT?");
	memset(data + 4, 'x', 256);
	assert_err(answer_decode_hidden(data, size, &misses, text, sizeof(text)), -EPROTO);
	free(data);
	check_no_leaks();
}

Test(answer, census)
{
	struct census_type types[] = {{(char[]){"list"}, 5, 600}, {(char[]){"a.B"}, 1, 48}};
	const struct census c = {
		.types = types, .n = 2, .lists = 4, .torn = 1, .passes = 3, .other = 2};
	struct census got;
	size_t size;
	char *data = answer_encode_census(&c, &size);

	cr_assert(size <= answer_max(QUESTION_CENSUS));
	assert_ok(answer_decode_census(data, size, &got));
	cr_assert(got.n == 2 && got.objects == 8 && got.bytes == 648 && got.torn == 1 &&
		  got.passes == 3);
	cr_assert_str_eq(got.types[1].name, "a.B");
	cr_assert(got.types[0].count == 5 && got.types[1].bytes == 48);
	census_deinit(&got);
	for (size_t cut = 0; cut < size; cut++)
		assert_err(answer_decode_census(data, cut, &got), -EPROTO);
	data[size - 1] = '\n';
	assert_err(answer_decode_census(data, size, &got), -EPROTO);
	free(data);
	types[0].bytes = UINT64_MAX;
	data = answer_encode_census(&c, &size);
	assert_err(answer_decode_census(data, size, &got), -EPROTO);
	free(data);
	check_no_leaks();
}
