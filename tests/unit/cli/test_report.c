// SPDX-License-Identifier: BSD-2-Clause
/* report and diff on files: merging, restrictions, formats, refused input. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "cmd.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/temp_dir.h"
#include "harness/test.h"

/* Runs a command line; words end with NULL. Returns its output, or NULL after an error. */
static char *run(struct diag *diag, const char *const *words)
{
	char *argv[260] = {(char *)"pyprofctl"}, *ret = NULL;
	struct cmdline cl;
	size_t size;
	int argc = 1, err;
	FILE *out = open_memstream(&ret, &size);

	cr_assert(out);
	while (*words)
		argv[argc++] = (char *)*words++;
	diag_clear(diag);
	err = cmdline_parse(argc, argv, &cl, diag);
	if (!err) {
		const struct cmd_call call = {.opts = cl.opts,
					      .operands = cl.operands,
					      .noperands = cl.noperands,
					      .out = out};

		err = cl.cmd->run(&call, diag);
	}
	fclose(out);
	if (err == 0)
		return ret;
	cr_assert(diag->msg[0], "an error without a word");
	free(ret);
	return NULL;
}

struct fixture {
	char *dir;
	char a[256], b[256], wall[256], other[256];
};

static void save(struct fixture *f, char path[256], const char *name, const char *text,
		 enum snapshot_clock clock)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(text);
	struct format_opts o = {.clock = clock};

	report_save("json", s, &o, f->dir, name);
	snprintf(path, 256, "%s/%s", f->dir, name);
}

static struct fixture setup(void)
{
	struct fixture f = {.dir = temp_dir_new()};

	save(&f, f.a, "a.json", "thread 42 42 Main\nmain a.py:1 1 1000\n  f a.py:5 2 5000 9000\n",
	     SNAPSHOT_CPU);
	save(&f, f.b, "b.json", "thread 77 77 Main\nmain a.py:1 1 1000\n  f a.py:5 3 90000\n",
	     SNAPSHOT_CPU);
	save(&f, f.wall, "wall.json", "thread 78 78 Main\nmain a.py:1 1 1000\n", SNAPSHOT_WALL);
	snprintf(f.other, sizeof(f.other), "%s/out.csv", f.dir);
	return f;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(report, merges_and_restricts)
{
	struct fixture f = setup();
	struct diag diag = {0};
	char *all = run(&diag, WORDS("report", f.a, f.b, "-s", "calls", "-l", "1"));
	char *pattern = run(&diag, WORDS("report", f.a, f.b, "main"));
	char *one = run(&diag, WORDS("report", f.a, f.b, "--pid", "77", "-f", "collapsed"));

	cr_assert(all && strstr(all, "         7 function calls in 0.000 seconds\n"), "%s", all);
	cr_assert(strstr(all, "        5    0.000    0.000    0.000    0.000 a.py:5(f)\n"));
	cr_assert(strstr(all, "due to restriction <1>"));
	cr_assert(pattern && strstr(pattern, "a.py:1(main)") && !strstr(pattern, "a.py:5(f)"));
	cr_assert(one && strstr(one, "f (a.py:5) 90000\n") && !strstr(one, " 5000\n"), "%s", one);
	free(all);
	free(pattern);
	free(one);
	temp_dir_remove(f.dir);
	check_no_leaks();
}

Test(report, writes_files_in_the_format_of_their_names)
{
	struct fixture f = setup();
	struct diag diag = {0};
	char *nothing = run(&diag, WORDS("report", f.a, "-o", f.other)), line[256];
	FILE *csv = fopen(f.other, "r");

	cr_assert(nothing && !*nothing && csv, "%s", diag.msg);
	cr_assert(fgets(line, sizeof(line), csv) && strncmp(line, "ncalls,pcalls,", 14) == 0);
	fclose(csv);
	free(nothing);
	temp_dir_remove(f.dir);
}

Test(report, two_hundred_files)
{
	const char *words[204] = {"report"};
	static char files[200][256];
	struct fixture f = setup();
	struct diag diag = {0};
	char *text;

	for (int i = 0; i < 200; i++) {
		char name[32], snapshot[128];

		snprintf(name, sizeof(name), "%d.json", i);
		snprintf(snapshot, sizeof(snapshot),
			 "thread %d 42 Main\nmain a.py:1 1 1000\n  f a.py:5 %d %d\n", 1000 + i,
			 i % 2 ? 2 : 3, i % 2 ? 5000 : 90000);
		save(&f, files[i], name, snapshot, SNAPSHOT_CPU);
		words[i + 1] = files[i];
	}
	text = run(&diag, words);
	cr_assert(text && strstr(text, "      500    0.009    0.000    0.009    0.000 a.py:5(f)\n"),
		  "%s%s", text ? text : "", diag.msg);
	free(text);
	temp_dir_remove(f.dir);
	check_no_leaks();
}

/* Two snapshots of one run: the second contains all data of the first. */
Test(report, overlapping_snapshots)
{
	static const char text[] = "thread 42 42 Main\nmain a.py:1 1 1000\n";
	struct fixture f = setup();
	const struct format_opts o = {0};
	struct diag diag = {0};
	char *got, later[300];
	struct snapshot *s;

	cr_assert_null(run(&diag, WORDS("report", f.b, f.a, f.a)));
	cr_assert(diag.exit == PYP_EXIT_USAGE && strstr(diag.msg, "process 42"), "%s", diag.msg);
	cr_assert(strstr(diag.msg, "a.json' and '") && diag.hint[0]);
	snprintf(later, sizeof(later), "%s/later.json", f.dir);
	/* the second was taken a second later */
	s = snapshot_build(text);
	s->targets[0].end_unix_ns += 1000000000;
	report_save("json", s, &o, f.dir, "later.json");
	cr_assert_null(run(&diag, WORDS("report", f.a, later)));
	/* the data was cleared after the first snapshot */
	s->targets[0].start_unix_ns = s->targets[0].end_unix_ns - 1000;
	report_save("json", s, &o, f.dir, "later.json");
	got = run(&diag, WORDS("report", f.a, later));
	cr_assert(got, "%s", diag.msg);
	free(got);
	/* another thread of the process */
	snapshot_free(s);
	s = snapshot_build(text);
	s->threads[0].tid = 43;
	report_save("json", s, &o, f.dir, "later.json");
	got = run(&diag, WORDS("report", f.a, later));
	cr_assert(got, "%s", diag.msg);
	free(got);
	/* another host */
	snapshot_free(s);
	s = snapshot_build(text);
	s->host = "elsewhere";
	report_save("json", s, &o, f.dir, "later.json");
	got = run(&diag, WORDS("report", f.a, later));
	cr_assert(got, "%s", diag.msg);
	free(got);
	snapshot_free(s);
	temp_dir_remove(f.dir);
	check_no_leaks();
}

Test(report, clocks)
{
	struct fixture f = setup();
	struct diag diag = {0};
	char *text;

	cr_assert_null(run(&diag, WORDS("report", f.a, f.wall)));
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	text = run(&diag, WORDS("report", f.a, f.wall, "--clock", "wall"));
	cr_assert(text && strstr(text, "; wall time"));
	free(text);
	text = run(&diag, WORDS("report", f.wall));
	cr_assert(text && strstr(text, "; wall time"));
	free(text);
	temp_dir_remove(f.dir);
}

static void assert_fails(const char *const *words, enum pyp_exit exit)
{
	struct diag diag = {0};

	cr_assert_null(run(&diag, words));
	cr_assert_eq(diag.exit, exit, "%d: %s", diag.exit, diag.msg);
}

/* A snapshot saved with functions left out records that, and is not merged with others. */
Test(report, what_was_left_out_is_known)
{
	static const char *const ways[] = {"--only-my-code", "--builtins-of=len", "--strip-dirs"};
	struct fixture f = setup();
	struct diag diag = {0};
	char less[512], *text;

	snprintf(less, sizeof(less), "%s/less.json", f.dir);
	for (int i = 0; i < 3; i++) {
		free(run(&diag, WORDS("report", f.a, ways[i], "-o", less)));
		assert_fails(WORDS("report", less, f.b), PYP_EXIT_USAGE);
		assert_fails(WORDS("diff", less, f.b), PYP_EXIT_USAGE);
		assert_fails(WORDS("diff", f.a, less), PYP_EXIT_USAGE);
		text = run(&diag, WORDS("diff", less, f.b, "--force"));
		cr_assert_not_null(text);
		free(text);
		text = run(&diag, WORDS("diff", less, less));
		cr_assert_not_null(text);
		free(text);
		text = run(&diag, WORDS("report", less));
		cr_assert(text && (i == 2 || strstr(text, " folded into")), "%s", text);
		free(text);
	}
	temp_dir_remove(f.dir);
	check_no_leaks();
}

Test(report, refusals)
{
	struct fixture f = setup();

	assert_fails(WORDS("report"), PYP_EXIT_USAGE);
	assert_fails(WORDS("report", "missing"), PYP_EXIT_FAILURE);
	assert_fails(WORDS("report", f.a, "missing.json"), PYP_EXIT_FAILURE);
	assert_fails(WORDS("report", f.dir), PYP_EXIT_FAILURE);
	assert_fails(WORDS("report", "/dev/null"), PYP_EXIT_USAGE);
	assert_fails(WORDS("report", f.a, "-f", "bogus"), PYP_EXIT_USAGE);
	assert_fails(WORDS("report", f.a, "-s", "bogus"), PYP_EXIT_USAGE);
	assert_fails(WORDS("report", f.a, "("), PYP_EXIT_USAGE);
	assert_fails(WORDS("report", f.a, "--pid", "7"), PYP_EXIT_NO_PROCESS);
	assert_fails(WORDS("report", f.a, "-o", "/nonexistent/x.csv"), PYP_EXIT_FAILURE);
	temp_dir_remove(f.dir);
}

Test(diff, names_what_got_slower)
{
	struct fixture f = setup();
	struct diag diag = {0};
	char *text = run(&diag, WORDS("diff", f.a, f.b));
	char *json = run(&diag, WORDS("diff", f.a, f.b, "-f", "json", "-l", "1"));

	cr_assert(text &&
		  strstr(text, "filename:lineno(function)\n        3        +1   0.000090"));
	cr_assert(json && strstr(json, "\"change\":85000") && !strstr(json, "\"main\""), "%s",
		  json);
	free(text);
	free(json);
	assert_fails(WORDS("diff", f.a), PYP_EXIT_USAGE);
	assert_fails(WORDS("diff", f.a, f.wall), PYP_EXIT_USAGE);
	assert_fails(WORDS("diff", f.a, f.b, f.b), PYP_EXIT_USAGE);
	assert_fails(WORDS("diff", f.a, "missing"), PYP_EXIT_FAILURE);
	text = run(&diag, WORDS("diff", f.a, f.wall, "--clock", "wall"));
	cr_assert_not_null(text);
	free(text);
	temp_dir_remove(f.dir);
	check_no_leaks();
}
